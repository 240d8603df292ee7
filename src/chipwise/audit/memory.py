"""Replays `memory.csv`: what engines printed at start, and whether they started at all."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from chipwise.audit.dating import release_meant
from chipwise.audit.items import (
    METRIC_NOT_COVERED,
    MODEL_UNREADABLE,
    Context,
    Item,
    Line,
    Prediction,
    SkipError,
    each_row,
    missing,
    stages,
)
from chipwise.audit.names import (
    Engine,
    at_format,
    cache_format,
    chip_named,
    engine_named,
    format_named,
    known_engine,
    model_named,
)
from chipwise.audit.replay import DEFECTS
from chipwise.audit.settings import Limits, device_facts, kv_format_of, limits_of, settings_of
from chipwise.audit.table import Row
from chipwise.catalog import Chip
from chipwise.engines import Version, load_engine, parse_version, spare_layers
from chipwise.memory import MemoryAnswer, MemoryProfile, ServingMemoryInput, memory_profile, size_serving, visible_bytes
from chipwise.memory.serving import weights_error
from chipwise.model import ModelSpec, Tower, Weight
from chipwise.parallelism import Split, shard
from chipwise.precision import with_precision
from chipwise.precision.formats import format_facts

REQUIRED = ("model",)
GIB = 2**30
COLUMNS = {
    "weights_gib": ("weights_gib_per_gpu", "weights_gib"),
    "kv_mem_gib": ("kv_mem_gib_per_gpu", "kv_mem_gib"),
    "kv_tokens": ("kv_tokens",),
    "activation_gib": ("activation_gib",),
    "cudagraph_gib": ("cudagraph_gib",),
}
"""Metric to the columns that may hold it."""
OUTCOMES = {"fits": True, "ok": True, "oom": False}
NEEDS_CAPACITY = frozenset({"kv_mem_gib", "kv_tokens", "fits"})
NEEDS_UTILIZATION = frozenset({"kv_mem_gib", "kv_tokens"})
UNSTATED_BELOW, UNSTATED_ABOVE, MOST_UTILIZATION = 0.1, 0.07, 0.98
"""How far from the default people set the share of memory, where a row does not say."""
UTILIZATION = "gpu_memory_utilization_or_mem_fraction"
NAMELESS = "unknown"
"""The chip of a row that names none: its memory alone decides the engine's defaults."""
_CONTEXT_TOKENS = 8192.0
"""Where neither row nor model says how long a request may be."""
_DEFAULT_SAID = re.compile(r"\bdefault (?:gpu[ _]memory[ _])?(?:utili[sz]ation|arguments|settings)\b")
"""Words that say that nothing was set."""
_FIRST_ENGINE = "0.7.3"
"""vLLM's last release with its first engine (V0) alone: what stands in for V0 under a later release."""
_SECOND_SINCE: Version = (0, 8)
_FIRST_UNTIL: Version = (0, 11)
_BLOCKS_UNTIL: Version = (0, 10)
"""V0 ran on request or where V1 could not, from 0.8 to 0.10; only V0 printed blocks in 0.8 and 0.9."""
_SECOND_CAPABILITY = 8.0
"""V1 of that time needs this compute capability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The device a row ran on. Its bytes are what the row prints, else what is known of its chip."""

    chip: Chip | None
    capacity_bytes: float | None
    lacking: str | None
    """The code of why there is no capacity."""

    @property
    def nvlink(self) -> bool:
        """Whether its replicas talk over more than PCIe; a chip outside the catalog is taken not to."""
        return self.chip is not None and self.chip.link is not None and self.chip.link.kind != "pcie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A row with its answer."""

    device: Device
    model: ModelSpec
    engine: Engine
    asked: ServingMemoryInput
    answer: MemoryAnswer
    stated_context: bool
    """Whether the row says how long a request may be."""
    stated_utilization: bool

    @property
    def refuses(self) -> bool:
        """Whether the engine does not start where one request of the full context does not fit."""
        return self.profile.utilization_rule == "total"

    @property
    def profile(self) -> MemoryProfile:
        """What the engine's version does with memory."""
        return memory_profile(self.asked.engine, self.asked.engine_version)


def items_of(rows: list[Row], context: Context) -> list[Item]:
    """A metric for every filled cell, and the outcome."""
    del context
    found = []
    for row in rows:
        for metric, columns in COLUMNS.items():
            column = next((name for name in columns if row.text(name)), None)
            if column is not None:
                value = row.finite(column)
                barred = missing(column) if value is None else None
                found.append(Item(row=row, metric=metric, measured=value, barred=barred))
        outcome = OUTCOMES.get(row.text("outcome").lower())
        if outcome is not None:
            found.append(Item(row=row, metric="fits", measured=outcome))
    return found


def predict(items: list[Item], context: Context) -> list[Line]:
    """A line an item; every row is sized once."""
    return each_row(items, lambda row: _size(row, context), lambda item, found: _predicted(item.metric, found))


def _size(row: Row, context: Context) -> Sized | SkipError:
    try:
        return _sized(row, context)
    except SkipError as skipped:
        return skipped
    except DEFECTS:
        return SkipError(MODEL_UNREADABLE)


def _sized(row: Row, context: Context) -> Sized:
    device = device_of(row)
    engine = engine_of(row, device)
    model = _model(row, context)
    split = replace(split_of(row, model), spare_layers=spare_layers(load_engine(engine.name, engine.version)))
    asked = _asked(row, engine, model, device, split)
    share = _utilization(row)
    return Sized(
        device=device,
        model=model,
        engine=engine,
        asked=asked,
        answer=size_serving(asked),
        stated_context=row.positive("max_model_len") is not None,
        stated_utilization=share is not None or _DEFAULT_SAID.search(row.note.lower()) is not None,
    )


def engine_of(row: Row, device: Device) -> Engine:
    """The engine at the release that the row states, else at the one its source dates it to.

    vLLM's V0 under a release that also had V1 is read as the last release that had V0 alone; so is a row that prints
    blocks and no release, as V0 did.

    Raises:
        SkipError: the cell is blank, or no source of the engine was read.
    """
    name, text = row.text("engine"), row.text("engine_version")
    known_engine(name, text)
    said = engine_named(name, text)
    version = said.version or release_meant(said.name, text, row.text("source"))
    if said.name == "vllm" and _first_engine(row, device, parse_version(version or "")):
        version = _FIRST_ENGINE
    return engine_named(name, version or "")


def _first_engine(row: Row, device: Device, version: Version | None) -> bool:
    blocks = row.positive("gpu_blocks") is not None
    if version is None:
        return blocks
    if not _SECOND_SINCE <= version < _FIRST_UNTIL:
        return False
    named = re.search(r"\bv0 engine\b", row.note.lower()) is not None
    capability = device.chip.compute_capability if device.chip else None
    old = capability is not None and float(capability) < _SECOND_CAPABILITY
    return named or old or (blocks and version < _BLOCKS_UNTIL)


def _asked(row: Row, engine: Engine, model: ModelSpec, device: Device, split: Split) -> ServingMemoryInput:
    said = settings_of(row)
    limits = _limits(row, engine, device, split)
    context_tokens = row.positive("max_model_len") or float(model.max_context_tokens or _CONTEXT_TOKENS)
    return ServingMemoryInput(
        shards=shard(model, split),
        capacity_bytes=device.capacity_bytes or float(GIB),
        utilization=limits.utilization,
        context_tokens=context_tokens,
        concurrency=1.0,
        chunk_tokens=limits.chunk_tokens,
        whole_prompts=limits.whole_prompts,
        max_num_seqs=limits.sequences,
        kv_format=_kv_format(row, model, engine),
        element_bytes=4.0 if _wide(row) else 2.0,
        engine=engine.name,
        engine_version=engine.version,
        eager=said.eager,
        graph_max_batch=limits.graph_batch,
        nvlink=device.nvlink,
        devices_per_chip=device.chip.cores if device.chip else 1,
        lora_adapters=0 if said.lora_rank is None else 1,
        lora_rank=int(said.lora_rank or 0),
        draft_tokens=said.draft_tokens if model.mtp else 0,
    )


def _kv_format(row: Row, model: ModelSpec, engine: Engine) -> str:
    """The cache's format; one that the row leaves to the engine follows a 32-bit model."""
    words = row.text("kv_cache_dtype")
    return "fp32" if _wide(row) and cache_format(words) is None else kv_format_of(words, model, engine.name)


def _limits(row: Row, engine: Engine, device: Device, split: Split) -> Limits:
    """The limits the row states, else the engine's defaults on its device."""
    chip = device.chip.id if device.chip else NAMELESS
    facts = device_facts(chip, device.capacity_bytes, tp=float(split.tp), pp=float(split.pp), usage="server")
    return limits_of(engine, facts, replace(settings_of(row), utilization=_utilization(row)))


def _utilization(row: Row) -> float | None:
    """The share that the notes or the column state; a column above 1 is in per cent."""
    share = row.positive(UTILIZATION)
    return settings_of(row).utilization or (share / 100.0 if share and share > 1.0 else share)


def _model(row: Row, context: Context) -> ModelSpec:
    """The model as the row loads it: quantised as it says, and at its dtype (a 32-bit checkpoint goes to 16 bits).

    A format that covers a whole file (GGUF) holds embeddings too; quantisation while loading takes towers as well.
    """
    words, stored = row.text("quantization"), model_named(row.text("model"), context.models)
    model = stored if _holds(stored, words) else at_format(row.text("model"), context.models, words)
    if _wide(row):
        return with_precision(model, "fp32")
    if model.quantisation is not None:
        held = format_facts(model.quantisation.weight_format)
        if held.covers == "all" and model.quantisation.inferred_from:
            return with_precision(model, held.name)
        return _with_towers(model, held.name) if "online" in words.lower() else model
    stored_wide = any(weight.format == "fp32" for weight, _ in model.all_weights())
    return with_precision(model, "bf16") if stored_wide else model


def _holds(model: ModelSpec, words: str) -> bool:
    """Whether a quantised checkpoint already has weights of the format that words name, beside others perhaps."""
    name = format_named(words)
    if model.quantisation is None or name is None:
        return False
    return any(format_facts(weight.format).family == format_facts(name).family for weight, _ in model.all_weights())


def _with_towers(model: ModelSpec, name: str) -> ModelSpec:
    """The model with the matrices of its towers' layers in a format."""

    def narrowed(weight: Weight) -> Weight:
        return replace(weight, format=name) if weight.gemm and weight.quantisable else weight

    def tower(one: Tower) -> Tower:
        layers = (replace(layer, weights=tuple(map(narrowed, layer.weights))) for layer in one.layers)
        return replace(one, layers=tuple(layers))

    return replace(model, towers=tuple(map(tower, model.towers)))


def _wide(row: Row) -> bool:
    return row.text("dtype").lower() in {"float32", "fp32", "float"}


def device_of(row: Row) -> Device:
    """The device: printed memory beats what the catalog knows; a name outside the catalog does where it is printed."""
    lacking: str | None = None
    chip: Chip | None = None
    try:
        chip = chip_named(row.text("gpu"), "gpu")
    except SkipError as skipped:
        lacking = skipped.code
    printed, named = row.positive("gpu_mem_gib_reported"), _named_gib(row.text("gpu"))
    if printed is not None:
        return Device(chip=chip, capacity_bytes=printed * GIB, lacking=None)
    if chip is not None and chip.memory_bytes:
        return Device(chip=chip, capacity_bytes=float(visible_bytes(chip.id, chip.memory_bytes)), lacking=None)
    if named is not None:
        return Device(chip=chip, capacity_bytes=float(visible_bytes(NAMELESS, named * GIB)), lacking=None)
    return Device(chip=chip, capacity_bytes=None, lacking=lacking or missing("gpu_mem_gib_reported"))


def _named_gib(name: str) -> float | None:
    """The memory in a GPU's name, in GiB as boards are named.

    >>> _named_gib("RTX 5080 16GB"), _named_gib("RTX 5080")
    (16.0, None)
    """
    found = re.search(r"(\d+(?:\.\d+)?)\s*gi?b\b", name.lower())
    return float(found.group(1)) if found else None


def split_of(row: Row, model: ModelSpec) -> Split:
    """The split: without tp, all GPUs beyond pp and dp are one tensor-parallel group.

    dp ranks are copies unless they share experts: where the row says so, or where tp x pp x dp is more than the GPUs,
    so that the ranks share those of tp (SGLang and TensorRT-LLM count data-parallel attention in this way).

    Raises:
        SkipError: neither tp nor the number of GPUs is stated.
    """
    pp, dp = stages(row.positive("pp") or 1.0), row.positive("dp") or 1.0
    tp, devices = row.positive("tp"), row.positive("n_gpus")
    if tp is None and devices is None:
        raise SkipError(missing("tp"))
    tp = tp or max((devices or 1.0) / pp / dp, 1.0)
    within = devices is not None and tp * pp * dp > devices and tp % dp == 0
    tp = tp / dp if within else tp
    stated = row.positive("ep") or 1.0
    ep = tp * dp if row.yes("ep") and row.positive("ep") is None else min(stated, tp * dp)
    routed = any(layer.experts for layer in model.layers)
    return Split(tp=tp, pp=pp, dp=dp if routed and (within or ep > 1) else 1.0, ep=ep if routed else 1.0)


def _predicted(metric: str, sized: Sized) -> Prediction:
    if metric in NEEDS_CAPACITY and sized.device.capacity_bytes is None:
        raise SkipError(sized.device.lacking or missing("gpu"))
    if metric in NEEDS_UTILIZATION and not sized.stated_utilization:
        raise SkipError(missing(UTILIZATION))
    low, mid, high = _fits(sized) if metric == "fits" else _figure(metric, sized)
    budget = sized.answer.budget
    terms = {
        name: float(value) / GIB for name, value in {"capacity_bytes": budget.capacity_bytes, **budget.terms()}.items()
    }
    return Prediction(
        low=low,
        mid=mid,
        high=high,
        evidence=sized.answer.evidence,
        terms={name.replace("_bytes", "_gib"): value for name, value in terms.items() if value},
        labels={
            "chip": sized.device.chip.id if sized.device.chip else NAMELESS,
            "family": sized.model.model_type,
            "class": sized.model.architecture,
            "version": sized.profile.basis,
        },
    )


def _figure(metric: str, sized: Sized) -> tuple[float, float, float]:
    """Low, mid and high in the table's unit. Terms that are fitted are off by the shares that the profile states.

    Every data-parallel rank prints the tokens of its own pool.
    """
    answer, profile = sized.answer, sized.profile
    tokens = (float(answer.low_fraction), float(answer.high_fraction))
    room, error = float(answer.room_bytes) / GIB, float(answer.error_bytes) / GIB
    if metric == "kv_mem_gib":
        return room - error, room, room + error
    figures = {
        "weights_gib": (
            float(answer.budget.weights_bytes + answer.budget.adapters_bytes) / GIB,
            _around(weights_error(sized.asked.shards, profile)),
        ),
        "kv_tokens": (float(answer.kv_cache_tokens) / float(sized.asked.shards.split.dp), tokens),
        "activation_gib": (float(answer.activations_total_bytes) / GIB, _around(profile.activations_error)),
        "cudagraph_gib": (float(answer.graphs_total_bytes) / GIB, _around(profile.graphs_error)),
    }
    if metric not in figures:
        raise SkipError(METRIC_NOT_COVERED)
    mid, (low, high) = figures[metric]
    return mid * low, mid, mid * high


def _around(share: float) -> tuple[float, float]:
    return 1.0 / (1.0 + share), 1.0 + share


def _fits(sized: Sized) -> tuple[bool, bool, bool]:
    """Whether it starts, with the cache at the low end, the middle and the high end of its range.

    Raises:
        SkipError: the answer hangs on a condition that the row does not state.
    """
    low, mid, high = _starts(sized, sized.answer)
    if not sized.stated_context and _starts(sized, sized.answer, refuses=not sized.refuses)[1] != mid:
        raise SkipError(missing("max_model_len"))
    if not sized.stated_utilization:
        usual = float(sized.asked.utilization)
        for share in (usual - UNSTATED_BELOW, min(usual + UNSTATED_ABOVE, MOST_UTILIZATION)):
            other = size_serving(replace(sized.asked, utilization=share))
            if _starts(sized, other)[1] != mid:
                raise SkipError(missing(UTILIZATION))
    return low, mid, high


def _starts(sized: Sized, answer: MemoryAnswer, *, refuses: bool | None = None) -> tuple[bool, bool, bool]:
    """An engine that refuses needs room for one request of the full context; another starts wherever there is any.

    Either fails where graphs, the driver and the sampler find no room beside weights and cache.
    """
    least = float(answer.need_bytes) if (sized.refuses if refuses is None else refuses) else 1.0
    beside = float(answer.reserve_room_bytes) if sized.refuses else 0.0
    pool_error = float(answer.error_bytes)
    graphs_error = sized.profile.graphs_error * float(answer.graphs_total_bytes) if sized.refuses else 0.0
    low, mid, high = (
        float(answer.room_bytes) + sign * pool_error >= least and beside + sign * graphs_error >= 0
        for sign in (-1, 0, 1)
    )
    return low, mid, high
