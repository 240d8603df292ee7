"""The shape of an answer. Field names are those of the JSON that `plan --json` prints; `from_` prints as `from`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chipwise.guide import RegionAdvice
from chipwise.units import Percentiles, Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How one replica is split: devices a replica = tp x pp x cp (x dp where attention is data-parallel)."""

    tp: int
    pp: int
    ep: int
    dp: int
    cp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionChoice:
    """What weights and cache are held in, what the chip multiplies in, and what that is said to cost in quality."""

    weights: str
    kv: str
    compute: str
    quality: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency percentiles over requests with the guide's grade; `method` names how the spread was got."""

    ttft_s: Percentiles
    tpot_s: Percentiles
    rating_ttft: str | None
    rating_tpot: str | None
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A training run: how long, how many chip-hours, what a checkpoint weighs and how often to write one."""

    duration_s: Range
    chip_hours: Range
    tokens: float | None
    checkpoint_bytes: float
    checkpoint_interval_s: float | None
    interruption_cost_usd: Range | None
    samples: float | None = None
    """Where the model is trained on images, clips or rows rather than tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What decided the number of instances."""

    chips_by_memory: int
    instances_by_memory: int
    instances_by_throughput: int
    ha_factor: float
    binding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseLine:
    """One way to buy the deployment; `usd_per_hour` None where no rate is known, and `why` says so."""

    option: str
    usd_per_hour: Range | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the deployment costs. No cost is a bare number; an unknown price is None."""

    usd_per_hour: Range | None
    usd_per_million_output_tokens: Range | None
    usd_per_million_at_capacity: Range | None
    usd_per_unit: Range | None
    usd_per_run: Range | None
    price_as_of: str | None
    price_kind: str | None
    purchase: tuple[PurchaseLine, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCheck:
    """One infrastructure feature: whether the workload needs it and whether the size has it.

    `time` is the part of `effect` that was computed for this option, in seconds; None where nothing was.
    """

    feature: str
    need: str
    has: bool
    effect: str
    rule: str
    source: str
    time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discouraged:
    """A rule that speaks against an option without forbidding it, and what ignoring it costs."""

    rule: str
    why: str
    penalty: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What to start with and which signal says to add more."""

    start_with: str
    signal: str
    threshold: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One recommended deployment. `memory` and `performance` are the objects that `memory` and `estimate` print."""

    rank: int
    tied_with: tuple[int, ...]
    instance: str
    instances: int
    chip: str
    chips: int
    chips_used: int
    replicas: int
    devices_per_replica: int
    parallelism: Parallelism
    precision: PrecisionChoice
    engine: str
    settings: dict[str, Any]
    memory: dict[str, Any]
    performance: dict[str, Any]
    latency: Latency | None
    rating_throughput: str | None
    rating_mfu: str | None
    run: Run | None
    sizing: Sizing
    cost: Cost
    infrastructure: tuple[FeatureCheck, ...]
    pools: tuple[dict[str, Any], ...] | None
    sharing: dict[str, Any] | None
    scale: Scale
    regions: tuple[str, ...]
    reasons: tuple[str, ...]
    risks: tuple[str, ...]
    discouraged_by: tuple[Discouraged, ...]
    evidence: str
    region_advice: tuple[RegionAdvice, ...] = ()
    """The regions that were named, weighed by the guide's rules; empty where none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What keeps a feasible size behind option `than`, and by how much: price, slo (the goal's metric) or support."""

    kind: str
    value: float | None
    unit: str | None
    than: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlsoFeasible:
    """A size that would do, and why it stands behind the options."""

    instance: str
    instances: int
    precision: str
    parallelism: Parallelism
    usd_per_hour: Range | None
    ttft_p99_s: float | None
    tpot_p99_s: float | None
    behind: Behind
    behind_because: str
    profile: str | None = None
    """The MIG profile whose slices the devices are."""
    aside: str | None = None
    """Why it is so far behind that a page folds it with its like: such rows come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A size that will not do: the rule it fails, the number it lacked, what came nearest, what would change it."""

    instance: str
    rule: str
    reason: str
    shortfall: dict[str, float | str] | None
    nearest: dict[str, Any]
    change: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """A size about which too little is known; `lacks` names the missing facts."""

    instance: str
    lacks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A size that the question itself left out; `by` names the flag."""

    instance: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The whole answer. Every size of the catalog stands exactly once in the five lists."""

    facts_as_of: str
    model: dict[str, Any]
    workload: dict[str, Any]
    options: tuple[Option, ...]
    also_feasible: tuple[AlsoFeasible, ...]
    rejected: tuple[Rejected, ...]
    not_judged: tuple[NotJudged, ...]
    excluded: tuple[Excluded, ...]
    considered: dict[str, int]
    guide: dict[str, Any]
    gpu_or_neuron: dict[str, Any]
    gpu_needed: dict[str, Any] | None
    benchmark: dict[str, Any]
    warnings: tuple[str, ...] = ()
    schema_version: int = field(default=1)
