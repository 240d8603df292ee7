"""The values an engine takes on a given device when nobody sets them.

The shape of its memory budget is among them; what activations, graphs and the runtime take is the memory
room's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from chipwise.engines.profile import Condition, EngineFact, EngineProfile
from chipwise.facts import Value

Usage = Literal["server", "offline"]
Budget = Literal["of-total", "static", "of-free"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What an engine looks at to choose its defaults. Unknown memory counts as a small device."""

    chip: str
    memory_bytes: int | None
    tp: int = 1
    pp: int = 1
    usage: Usage = "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDefaults:
    """Defaults on one device. None: no source says, or the engine has no such setting.

    `budget` says what `utilization` is a share of: `of-total` (vLLM: all memory the engine may take),
    `static` (SGLang: weights and cache together), `of-free` (TensorRT-LLM: what weights and activations
    leave).
    """

    utilization: float | None
    budget: Budget | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    """Tokens a step may hold: the prefill chunk where prefill is chunked."""
    chunked_prefill: bool | None
    prefix_caching: bool | None
    block_tokens: int | None
    graph_max_batch: int | None
    """Largest decode batch captured as a graph; None: none known."""
    graph_memory_counted: bool | None
    """Whether the engine takes the estimated graph memory off the cache."""
    mla_latent: bool | None
    """Whether MLA layers keep the latent only; False: full keys and values of every head."""
    mla_cache_elements: int | None
    """Elements a token that the 576 of a DeepSeek MLA layer take after padding; None: no source."""
    kv_share_cap: float | None
    """The cache takes at most this share of the budget (vLLM on Neuron); None: no such cap."""
    length_buckets: bool | None
    """Whether compiled graphs come in several lengths; False: one of the whole length; None: nothing is compiled so."""
    sources: Mapping[str, str]
    """By field: source key and place."""


def fact_of(profile: EngineProfile, key: str, device: DeviceFacts) -> EngineFact | None:
    """The newest fact of that key whose condition the device meets; None where there is none."""
    return next((fact for fact in profile.facts if fact.key == key and _holds(fact.condition, device)), None)


def engine_defaults(profile: EngineProfile, device: DeviceFacts) -> EngineDefaults:
    """Every default of the engine on that device.

    Where the engine derives its static share (SGLang), the share is
    `round((memory - reserved) / memory, 3)` with `reserved` from `static_reserve_mib`.

    Args:
        profile: the engine at a version.
        device: chip id, driver-reported memory, tp, and whether a server or an offline run.
    """
    found = {key: fact for key in _KEYS if (fact := fact_of(profile, key, device)) is not None}
    values: dict[str, Value] = {key: fact.value for key, fact in found.items()}
    sources = {key: f"{fact.source}: {fact.where}" for key, fact in found.items()}
    derived = _static_share(profile, device, values)
    if derived is not None:
        values["utilization"] = derived
    return EngineDefaults(
        utilization=cast("float | None", values.get("utilization")),
        budget=cast("Budget | None", values.get("budget")),
        max_num_seqs=cast("int | None", values.get("max_num_seqs")),
        max_num_batched_tokens=cast("int | None", values.get("max_num_batched_tokens")),
        chunked_prefill=cast("bool | None", values.get("chunked_prefill")),
        prefix_caching=cast("bool | None", values.get("prefix_caching")),
        block_tokens=cast("int | None", values.get("block_tokens")),
        graph_max_batch=cast("int | None", values.get("graph_max_batch")),
        graph_memory_counted=cast("bool | None", values.get("graph_memory_counted")),
        mla_latent=cast("bool | None", values.get("mla_latent")),
        mla_cache_elements=cast("int | None", values.get("mla_cache_elements")),
        kv_share_cap=cast("float | None", values.get("kv_share_cap")),
        length_buckets=cast("bool | None", values.get("length_buckets")),
        sources=sources,
    )


_KEYS = (
    "utilization", "budget", "max_num_seqs", "max_num_batched_tokens", "chunked_prefill", "prefix_caching",
    "block_tokens", "graph_max_batch", "graph_memory_counted", "mla_latent", "mla_cache_elements",
    "kv_share_cap", "length_buckets",
)  # fmt: skip


def static_reserve_mib(
    *, floor: float, base: float, per_token: float, tokens: int, graphs: float, ranks: float
) -> float:
    """What SGLang keeps free of weights and cache, in MiB.

    `max(floor, base + per_token x tokens + graphs + ranks)`: metadata, activations of a prefill chunk, decode
    graphs, and an allowance for many ranks; a floor on large devices.

    >>> static_reserve_mib(floor=10240, base=512, per_token=1.5, tokens=8192, graphs=512, ranks=128)
    13440.0
    """
    return max(floor, base + per_token * tokens + graphs + ranks)


def _static_share(profile: EngineProfile, device: DeviceFacts, values: Mapping[str, Value]) -> float | None:
    parts = {key: fact_of(profile, key, device) for key in _RESERVE}
    base, per_token = parts["reserve_base_mib"], parts["reserve_per_chunk_token_mib"]
    tokens = values.get("max_num_batched_tokens")
    if base is None or per_token is None or device.memory_bytes is None or not isinstance(tokens, int):
        return None
    graphs = _figure(parts["reserve_per_graph_batch_mib"]) * float(values.get("graph_max_batch") or 0)
    reserve_mib = static_reserve_mib(
        floor=_figure(parts["reserve_floor_mib"]),
        base=_figure(base),
        per_token=_figure(per_token),
        tokens=tokens,
        graphs=graphs,
        ranks=_figure(parts["reserve_per_rank_mib"]) * device.tp * device.pp,
    )
    memory_mib = device.memory_bytes / 2**20
    return round((memory_mib - reserve_mib) / memory_mib, 3)


_RESERVE = (
    "reserve_base_mib", "reserve_per_chunk_token_mib", "reserve_per_graph_batch_mib", "reserve_per_rank_mib",
    "reserve_floor_mib",
)  # fmt: skip


def _figure(fact: EngineFact | None) -> float:
    return 0.0 if fact is None else float(fact.value)


def _holds(condition: Condition, device: DeviceFacts) -> bool:
    memory_gib = (device.memory_bytes or 0) / 2**30
    checks = (
        condition.memory_from_gib is None or memory_gib >= condition.memory_from_gib,
        condition.memory_below_gib is None or memory_gib < condition.memory_below_gib,
        condition.tp_from is None or device.tp >= condition.tp_from,
        condition.tp_below is None or device.tp < condition.tp_below,
        condition.usage is None or device.usage == condition.usage,
        condition.device is None or condition.device in device.chip,
        condition.not_device is None or condition.not_device not in device.chip,
    )
    return all(checks)
