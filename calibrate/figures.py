"""The product's own table of serving measurements: its columns, how it is read, and a run of it as the product asks."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from chipwise.audit.items import SkipError
from chipwise.audit.names import engine_named
from chipwise.audit.replay import DEFECTS
from chipwise.audit.runs import Conditions, Load, ModelKey, Place, Run, run_from
from chipwise.audit.settings import Settings
from chipwise.engines.defaults import Usage
from chipwise.perf.load import LoadKind

PLACE = ("tp", "pp", "ep", "dp", "replicas", "chips")
LOAD = ("isl", "osl", "osl_cv", "osl_most", "concurrency", "rate_per_s", "requests")
SETTINGS = ("max_num_seqs", "chunk_tokens", "utilization", "graph_tokens")
FIGURES = (
    "ttft_s", "ttft_p50_s", "tpot_s", "e2e_s",
    "output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "prompt_tokens_per_s",
)  # fmt: skip
"""What a run printed, in base units; rates are those of the whole deployment."""
COLUMNS = (
    "id", "set", "source", "where", "model", "weights", "kv", "chip", "engine", "release", "release_assumed",
    *PLACE, "kind", "usage", *LOAD, *SETTINGS, "eager", "host_sampling", "rented", "complete", *FIGURES,
)  # fmt: skip
RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "prompt_tokens_per_s")
"""One rate says what the others do: the first that a run has counts."""
DEFAULTS: Mapping[str, float] = {"osl_most": math.inf, "requests": math.inf, "concurrency": 1.0}
"""What a blank cell of a load means where it is not nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure of a run: what it is, in base units, and whether its source states every condition."""

    id: str
    laboratory: str
    source: str
    figure: str
    """A name of `FIGURES`."""
    value: float
    run: Run
    complete: bool

    @property
    def quantity(self) -> str:
        """Rates of one kind count together, and so do latencies."""
        return self.figure.split("_", maxsplit=1)[0] if self.figure not in RATES else "throughput"


def measurements(file: Path) -> list[Measurement]:
    """Every figure that is fitted or scored: the latencies of a run, and one rate.

    The time of a whole request counts only where its parts are not printed.
    """
    with file.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return [one for row in rows for one in _figures(row)]


def _figures(row: Mapping[str, str]) -> Iterable[Measurement]:
    have = [name for name in FIGURES if row[name]]
    rate = next((name for name in RATES if row[name]), None)
    parts = {name.split("_", maxsplit=1)[0] for name in have} >= {"ttft", "tpot"}
    wanted = [name for name in have if name == rate or name not in RATES]
    if parts:
        wanted = [name for name in wanted if name != "e2e_s"]
    if "ttft_s" in wanted:
        wanted = [name for name in wanted if name != "ttft_p50_s"]
    try:
        run = run_from(conditions(row))
    except (SkipError, *DEFECTS):
        return
    for name in wanted:
        yield Measurement(
            id=row["id"],
            laboratory=row["set"],
            source=row["source"],
            figure=name,
            value=float(row[name]),
            run=run,
            complete=row["complete"] == "1",
        )


def conditions(row: Mapping[str, str]) -> Conditions:
    """The conditions of a row: what is blank was not stated."""
    numbers = {name: _number(row[name]) for name in (*PLACE, *LOAD, *SETTINGS)}
    load = {name: numbers[name] if numbers[name] is not None else DEFAULTS.get(name, 0.0) for name in LOAD}
    said = Settings(
        sequences=numbers["max_num_seqs"],
        chunk_tokens=numbers["chunk_tokens"],
        utilization=numbers["utilization"],
        length_tokens=numbers["graph_tokens"],
        eager=row["eager"] == "1",
        host_sampling=row["host_sampling"] == "1",
        rented=row["rented"] == "1",
    )
    return Conditions(
        model=ModelKey(name=row["model"], models=None, words=row["weights"]),
        chip_id=row["chip"],
        engine=engine_named(row["engine"], row["release"]),
        assumed_release=row["release_assumed"] == "1",
        place=Place(**{name: cast("float", numbers[name]) for name in PLACE}),
        load=Load(kind=cast("LoadKind", row["kind"]), **{name: cast("float", load[name]) for name in LOAD}),
        said=said,
        kv_words=row["kv"],
        usage=cast("Usage", row["usage"]),
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
