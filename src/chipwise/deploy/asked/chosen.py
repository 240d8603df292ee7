"""One option of a plan as typed objects: what is rented, how a replica is split, what the engine is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from chipwise.decide.advice import Parallelism
from chipwise.deploy.asked.plan_file import Part, broken
from chipwise.errors import UnknownNameError
from chipwise.model.registry import hub_id

Work = Literal["serving", "training", "other"]
Scalar = str | int | float | bool | None
_AS_STORED = "as it is"
_ORDER = ("on-demand", "capacity-block", "reserved", "spot", "savings-plan")
_RENTED_AS = {"savings-plan": "on-demand"}
"""A Savings Plan is a discount: the instances are launched on demand."""
ROLES = ("prefill", "decode")
_AXES = ("tp", "pp", "ep", "dp", "cp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is run."""

    name: str
    """Its short name; the id asked for where the short name means another checkpoint."""
    checkpoint: str
    """By which the engine finds it: the Hugging Face id asked for, where one is known, else the name."""
    architecture: str
    params: int
    stored_format: str | None
    """The format the checkpoint is stored in; None where the plan does not say."""
    stored_bytes: float
    """What is downloaded: the checkpoint as it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What weights and cache are held in, and what is computed in."""

    weights: str
    kv: str
    compute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """How one chip is shared: by which technique, in which MIG profile, by how many."""

    technique: str
    profile: str | None
    tenants: int | None
    isolation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training run: its method and how often it writes what."""

    method: str
    checkpoint_bytes: float
    checkpoint_interval_s: float | None
    duration_s: float
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """A size that would do as well, behind the chosen one."""

    instance: str
    precision: str
    split: Parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One part of a deployment that splits prefill and decode."""

    role: str
    instance: str
    instances: int
    replicas: int
    devices_per_replica: int
    split: Parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One option, whole."""

    model: Model
    work: Work
    rank: int
    instance: str
    instances: int
    chip: str
    replicas: int
    devices_per_replica: int
    split: Parallelism
    precision: Precision
    engine: str
    engine_version: str
    settings: Mapping[str, Scalar]
    purchase: str
    regions: tuple[str, ...]
    regions_named: bool
    """Whether the question named Regions; otherwise these are all that offer the size."""
    weights_bytes: float
    """Of one replica, all its devices together."""
    device_bytes: float
    """What the fullest chip holds, weights and cache and all."""
    device_capacity_bytes: float
    run: Run | None
    sharing: Slice | None
    pools: tuple[Pool, ...]
    fallbacks: tuple[Fallback, ...]
    facts_as_of: str

    @property
    def loaded_bytes(self) -> float:
        """What a replica reads to start: its weights, or the larger checkpoint that it quantises while loading."""
        return max(self.weights_bytes, self.model.stored_bytes)


def choose(plan: Part, option: int = 1) -> Chosen:
    """The option of that rank.

    Raises:
        UnknownNameError: the plan has no such option.
        InputError: the plan is broken there.
    """
    ranked = {str(one.at("rank").count()): one for one in plan.at("options").each()}
    if str(option) not in ranked:
        listing = f"the plan has option {', '.join(ranked)}"
        raise UnknownNameError("option", str(option), (), listing=listing)
    return _chosen(plan, ranked[str(option)])


def _chosen(plan: Part, option: Part) -> Chosen:
    work = _work(option)
    settings = {str(name): one for name, one in _settings(option)}
    version = settings.get("engine_version")
    chips_per_replica = option.at("memory").at("chips").count()
    return Chosen(
        model=_model(plan.at("model")),
        work=work,
        rank=option.at("rank").count(),
        instance=option.at("instance").word(),
        instances=option.at("instances").count(),
        chip=option.at("chip").word(),
        replicas=option.at("replicas").count(),
        devices_per_replica=option.at("devices_per_replica").count(),
        split=_split(option.at("parallelism")),
        precision=_precision(option.at("precision")),
        engine=option.at("engine").word(),
        engine_version=option.at("settings").at("engine_version").word() if version else "",
        settings=settings,
        purchase=_purchase(option.at("cost")),
        regions=tuple(region.word() for region in option.at("regions").each()),
        regions_named=option.maybe("region_advice") is not None and any(option.at("region_advice").each()),
        device_bytes=_held(option.at("memory").at("per_chip")),
        device_capacity_bytes=option.at("memory").at("per_chip").at("capacity_bytes").number(),
        weights_bytes=option.at("memory").at("per_chip").at("weights_bytes").number() * chips_per_replica,
        run=_run(option, settings) if work == "training" else None,
        sharing=_sharing(option),
        pools=tuple(_pool(one) for one in option.at("pools").each()) if option.maybe("pools") else (),
        fallbacks=tuple(_fallback(one) for one in plan.at("also_feasible").each()),
        facts_as_of=plan.at("facts_as_of").word(),
    )


def _work(option: Part) -> Work:
    performance = option.at("performance")
    for work in ("serving", "training", "other"):
        if performance.maybe(work):
            return work
    raise broken(performance.where, "predicts neither serving nor training nor anything else")


def _settings(option: Part) -> list[tuple[str, Scalar]]:
    settings = option.at("settings")
    if not isinstance(settings.value, Mapping):
        raise broken(settings.where, "is no object")
    return [(name, settings.at(name).scalar()) for name in settings.value]


def _held(chip: Part) -> float:
    """What is held: the capacity less what is free and what the engine leaves alone."""
    capacity, free, reserved = (chip.at(f"{name}_bytes").number() for name in ("capacity", "free", "reserved"))
    return max(0.0, capacity - free - reserved)


def _model(model: Part) -> Model:
    name = model.at("name").text()
    usual, asked = hub_id(name), model.maybe("checkpoint")
    checkpoint = asked.text() if asked else usual
    stored = [one for one in model.at("precisions").each() if one.at("condition").text().startswith(_AS_STORED)]
    return Model(
        name=name if usual in {name, checkpoint} else checkpoint,
        checkpoint=checkpoint,
        architecture=model.at("architecture").word(),
        params=model.at("params_total").count(least=0),
        stored_format=stored[0].at("format").word() if stored else None,
        stored_bytes=model.at("weight_bytes").number(),
    )


def _split(part: Part) -> Parallelism:
    return Parallelism(**{axis: part.at(axis).count() for axis in _AXES})


def _precision(part: Part) -> Precision:
    return Precision(weights=part.at("weights").word(), kv=part.at("kv").word(), compute=part.at("compute").word())


def _purchase(cost: Part) -> str:
    """How the option is bought: the line whose price is the option's; else the first line that has one."""
    lines = {one.at("option").text(): one.maybe("usd_per_hour") for one in cost.at("purchase").each()}
    priced = {name: line.at("mid").number() for name, line in lines.items() if line}
    paid = cost.maybe("usd_per_hour")
    same = [name for name in _ORDER if paid and priced.get(name) == paid.at("mid").number()]
    found = [*same, *(name for name in _ORDER if name in priced), _ORDER[0]][0]
    return _RENTED_AS.get(found, found)


def _run(option: Part, settings: Mapping[str, Scalar]) -> Run:
    run = option.at("run")
    interval = run.maybe("checkpoint_interval_s")
    return Run(
        method=str(settings.get("method") or "full-ft"),
        checkpoint_bytes=run.at("checkpoint_bytes").number(),
        checkpoint_interval_s=interval.number() if interval else None,
        duration_s=run.at("duration_s").at("mid").number(),
        step_s=option.at("performance").at("training").at("step_s").at("mid").number(),
    )


def _sharing(option: Part) -> Slice | None:
    sharing = option.maybe("sharing")
    technique = sharing.maybe("technique") if sharing else None
    if sharing is None or technique is None:
        return None
    profile, tenants, isolation = (sharing.maybe(name) for name in ("profile", "tenants", "isolation"))
    return Slice(
        technique=technique.word(),
        profile=profile.word() if profile else None,
        tenants=tenants.count() if tenants else None,
        isolation=isolation.text() if isolation else None,
    )


def _role(part: Part) -> str:
    said = part.word()
    if said not in ROLES:
        raise broken(part.where, f"is none of {', '.join(ROLES)}")
    return said


def _pool(part: Part) -> Pool:
    return Pool(
        role=_role(part.at("role")),
        instance=part.at("instance").word(),
        instances=part.at("instances").count(),
        replicas=part.at("replicas").count(),
        devices_per_replica=part.at("devices_per_replica").count(),
        split=_split(part.at("parallelism")),
    )


def _fallback(part: Part) -> Fallback:
    return Fallback(
        instance=part.at("instance").word(),
        precision=part.at("precision").word(),
        split=_split(part.at("parallelism")),
    )
