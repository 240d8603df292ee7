"""A row of a serving table as a `Run`: every condition that a prediction needs, or the code of what is lacking."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from chipwise.audit.dating import release_meant
from chipwise.audit.items import LOAD_NOT_COVERED, SkipError, missing, stages
from chipwise.audit.names import Engine, at_format, chip_named, engine_named
from chipwise.audit.settings import Limits, Settings, device_facts, kv_format_of, limits_of, settings_of
from chipwise.audit.table import Row
from chipwise.catalog import Chip
from chipwise.engines.defaults import Usage
from chipwise.memory import visible_bytes
from chipwise.model import ModelSpec
from chipwise.perf.load import LoadKind
from chipwise.precision import stored_bytes

_KINDS: dict[str, LoadKind] = {
    "fixed-concurrency": "closed",
    "closed-loop": "closed",
    "concurrency": "closed",
    "single-request": "single",
    "single": "single",
    "fixed-batch": "static",
    "static-batch": "static",
    "batch": "static",
    "request-rate": "rate",
    "poisson": "rate",
    "rate": "rate",
    "offline-max-throughput": "offline",
    "offline": "offline",
    "max-throughput": "offline",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One replica's degrees, how many replicas there are, and on how many chips all of them run."""

    tp: float
    pp: float
    ep: float
    dp: float
    replicas: float
    chips: float

    @property
    def devices(self) -> float:
        """Devices of one replica."""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the deployment was asked."""

    kind: LoadKind
    isl: float
    osl: float
    concurrency: float
    rate_per_s: float
    requests: float
    osl_cv: float = 0.0
    """Of the answers' lengths, where the row says that they vary."""
    osl_most: float = math.inf
    """The longest answer that the row says is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKey:
    """Which model at which precision: what `at_format` takes."""

    name: str
    models: Path | None
    words: str

    @property
    def model(self) -> ModelSpec:
        """The model itself, read once."""
        return at_format(self.name, self.models, self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as chipwise asks about it. Equal runs are one question."""

    model: ModelKey
    chip_id: str
    engine: Engine
    place: Place
    load: Load
    limits: Limits
    kv_format: str
    eager: bool
    host_sampling: bool
    rented: bool
    """On an instance of AWS: the row names one. Elsewhere a card has all the lanes that it is made with."""
    assumed_release: bool
    """The row names no release of its engine: the one of its source's day stands in, else the newest."""

    @property
    def chip(self) -> Chip:
        """The chip itself."""
        return _chip(self.chip_id)


@cache
def _chip(chip_id: str) -> Chip:
    return chip_named(chip_id, "hardware")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a row says of its run, as far as it says it: what is left open takes the engine's defaults."""

    model: ModelKey
    chip_id: str
    engine: Engine
    assumed_release: bool
    place: Place
    load: Load
    said: Settings
    kv_words: str
    usage: Usage


def run_of(row: Row, models: Path | None) -> Run:
    """Every condition of a row of `inference.csv`.

    Raises:
        SkipError: a condition is missing, or a name is unknown.
    """
    return run_from(conditions_of(row, models))


def run_from(stated: Conditions) -> Run:
    """The run under these conditions, with the defaults of its engine on its device.

    Raises:
        SkipError: the model cannot be read.
    """
    chip = _chip(stated.chip_id)
    place, said = stated.place, stated.said
    memory = float(visible_bytes(chip.id, chip.memory_bytes or 0.0))
    facts = device_facts(chip.id, memory, tp=place.tp, pp=place.pp, usage=stated.usage)
    return Run(
        model=stated.model,
        chip_id=chip.id,
        engine=stated.engine,
        place=place,
        load=stated.load,
        limits=limits_of(stated.engine, facts, said),
        kv_format=kv_format_of(stated.kv_words, stated.model.model, stated.engine.name),
        eager=said.eager,
        host_sampling=said.host_sampling,
        rented=said.rented,
        assumed_release=stated.assumed_release,
    )


def conditions_of(row: Row, models: Path | None) -> Conditions:
    """What a row of `inference.csv` states.

    A blank tp means that the devices of the row, beyond pp and dp, are one tensor-parallel group. Data-parallel
    ranks of a model without experts are replicas; those of a mixture share its experts, dealt out over ep or else cut
    over all ranks (vLLM, "Data Parallel Deployment": expert layers form a group of DP x TP).

    Raises:
        SkipError: a condition is missing, or a name is unknown.
    """
    said = settings_of(row)
    load = load_of(row, said)
    key = ModelKey(name=row.text("model"), models=models, words=row.text("weight_precision"))
    model = key.model
    chip = chip_named(row.text("hardware"), "hardware")
    engine, assumed = engine_of(row)
    memory = float(visible_bytes(chip.id, chip.memory_bytes or 0.0))
    return Conditions(
        model=key,
        chip_id=chip.id,
        engine=engine,
        assumed_release=assumed,
        place=held(place_of(row, chip, shared=model.is_moe), model, memory / chip.cores),
        load=load,
        said=said,
        kv_words=row.text("kv_precision"),
        usage="offline" if load.kind == "offline" and not row.text("request_rate") else "server",
    )


def engine_of(row: Row) -> tuple[Engine, bool]:
    """The engine at the release of the row, and whether that release is assumed.

    A row without one takes the release that was current when its source appeared; where that is unknown, the newest.

    Raises:
        SkipError: the cell is blank.
    """
    name, text = row.text("engine"), row.text("engine_version")
    said = engine_named(name, text)
    if said.version is not None:
        return said, False
    meant = release_meant(said.name, text, row.text("source"))
    return (engine_named(name, meant) if meant else said), not text


def load_of(row: Row, said: Settings) -> Load:
    """The load of a row.

    Raises:
        SkipError: its kind is not covered, or lengths, concurrency or rate are not stated.
    """
    kind = kind_of(row)
    rate = row.value("request_rate")
    if kind == "rate" and rate == math.inf:
        kind = "offline"
    lengths = [_needed(row, name) for name in ("isl", "osl")]
    if kind in {"closed", "static"}:
        _needed(row, "concurrency_or_batch")
    if kind == "rate":
        _needed(row, "request_rate")
    return Load(
        kind=kind,
        isl=max(lengths[0], 1.0),
        osl=max(lengths[1], 1.0),
        concurrency=row.positive("concurrency_or_batch") or 1.0,
        rate_per_s=rate if kind == "rate" and rate else 0.0,
        requests=said.requests or math.inf,
        osl_cv=0.0 if math.log2(max(lengths[1], 1.0)).is_integer() else said.osl_cv,  # 256 is a cap, 214 a mean
        osl_most=said.osl_most or math.inf,
    )


def kind_of(row: Row) -> LoadKind:
    """The kind of load in chipwise's words.

    Raises:
        SkipError: blank, or none that is covered.
    """
    text = row.text("load_kind").lower().replace("_", "-").replace(" ", "-")
    if not text:
        raise SkipError(missing("load_kind"))
    if text not in _KINDS:
        raise SkipError(LOAD_NOT_COVERED)
    return _KINDS[text]


def _needed(row: Row, column: str) -> float:
    value = row.positive(column)
    if value is None:
        raise SkipError(missing(column))
    return value


def place_of(row: Row, chip: Chip, *, shared: bool = False) -> Place:
    """Degrees and replicas: tp counts devices, `n_devices` chips.

    Args:
        row: what is stated.
        chip: where.
        shared: data-parallel ranks share experts even where none says over how many they are dealt out.

    Raises:
        SkipError: neither tp nor the number of devices is stated.
    """
    tp, pp, dp, ep = (row.positive(name) for name in ("tp", "pp", "dp", "ep"))
    pp, ep, ranks = stages(pp or 1.0), ep or 1.0, dp or 1.0
    ranks = ranks if ep > 1 or shared else 1.0
    chips = row.positive("n_devices")
    if chips is None:
        if tp is None:
            raise SkipError(missing("n_devices"))
        chips = math.ceil(tp * pp * (dp or 1.0) / chip.cores)
    devices = chips * chip.cores
    tp = tp or max(devices / pp / ranks, 1.0)
    if tp * pp * ranks > devices:
        tp = max(math.floor(devices / pp / ranks), 1.0)
    return Place(
        tp=tp,
        pp=pp,
        ep=min(ep, tp * ranks),
        dp=ranks,
        replicas=max(math.floor(devices / (tp * pp * ranks)), 1.0),
        chips=chips,
    )


def held(place: Place, model: ModelSpec, device_bytes: float) -> Place:
    """The place; where a replica cannot hold a routed model and there are several, they share its experts.

    What is written as copies is then data-parallel attention over sharded experts: no other reading runs.
    """
    if not model.is_moe or place.ep > 1 or place.replicas == 1 or not device_bytes:
        return place
    if stored_bytes(model).main_bytes <= place.devices * device_bytes:
        return place
    ranks = place.replicas
    return replace(place, dp=ranks, ep=place.tp * ranks, replicas=1.0)
