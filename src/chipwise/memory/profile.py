"""What an engine version does with memory: settings from `engines`, constants from `data/profiles.csv`.

A subject of the table is `engine@version`: its rows hold from that version on, until a later subject says
otherwise. `any` holds for every engine that says nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from chipwise.engines import Version, load_engine, parse_version
from chipwise.facts import FactTable, Source, Value, read_facts, read_sources, values_of
from chipwise.memory.terms import Storage

DATA = Path(__file__).parent / "data"
UtilizationRule = Literal["total", "static", "free"]
Evidence = Literal["measured", "calibrated", "transferred", "physics"]
_ANY = "any"
_PADDED, _HIDDEN, _HELD, _CAPTURED = "expert_multiple_", "expert_hidden_multiple_", "held_as_", "graph_max_"
_RULES: Mapping[str, UtilizationRule] = {"of-total": "total", "static": "static", "of-free": "free"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfile:
    """How one engine version divides a device's memory."""

    engine: str
    basis: str
    """The version whose constants were the last to apply."""
    utilization_rule: UtilizationRule
    """total: weights, activations and cache share `utilization` of the device. static: weights and cache, the
    rest works in what is reserved. free: the cache takes `utilization` of what the others leave."""
    cache_cap_fraction: float
    """The cache takes at most this share of what the engine may fill."""
    sampler_copies: float
    """32-bit copies of the logits while sampling."""
    hidden_copies: float
    """Hidden states alive at the peak of a layer."""
    recurrent_copies: float
    """16-bit copies of a recurrent layer's values that its chunked kernel works with."""
    encoder_least_tokens: float
    """Tokens of a step of a model with a tower, at least."""
    encoder_limits_sequences: bool
    """The profile runs no more sequences than items that its tokens hold."""
    reductions_kept: float
    """Hidden states a layer and step that all-reduces keep allocated until the profile ends."""
    chunks_beyond_tokens: float
    """Longest context whose prompts run whole where the engine does not chunk by itself; 0: no such length."""
    fixed_bytes: float
    """Activations whatever the model."""
    experts_kept: bool
    """Expert buffers stay allocated while the sampler peaks."""
    experts_freed_formats: frozenset[str]
    """Weight formats whose kernels keep no such buffers."""
    single_bytes: float
    """Memory outside the framework's allocator on one device."""
    nvlink_bytes: float
    """The same where devices talk over NVLink: buffers of NCCL and of the engine's own all-reduces."""
    pcie_bytes: float
    """The same where they talk over PCIe."""
    context_bytes: float
    """What the driver's context takes before anything is loaded; the engine does not count it."""
    graph_size_bytes: float
    """Memory of the graphs of one captured batch size, whatever the model."""
    graph_layer_bytes: float
    """The same per layer."""
    graphs_counted: bool
    """Graphs take room within `utilization`; else they live in what is reserved."""
    block_tokens: float
    group_ratio: float
    blocks_per_state: float
    """Recurrent states that it keeps for a request: its own, copies for prefixes and for what runs ahead."""
    state_ratio: float
    """What of the pool is set aside for recurrent states, over what is left for tokens; 0: they share its blocks."""
    windows_bounded: bool
    mla_latent: bool
    mla_multiple: float
    tokens_per_group: bool
    """The printed size is blocks over groups; else concurrency times context."""
    storage: Storage
    graph_max: dict[str, float]
    """Families of which the engine captures batches up to this size, whatever its default."""
    weights_error: float
    """Share of the weights by which a checkpoint of 16 bits may be off, 8 times in 10."""
    quantised_error: float
    """The same of a quantised checkpoint, whose exceptions a config does not always list."""
    activations_error: float
    """Share of the activations by which they may be off, 8 times in 10; the same of what follows."""
    overhead_error: float
    graphs_error: float
    capacity_error: float
    evidence: Evidence
    warnings: tuple[str, ...] = ()


@cache
def sources() -> dict[str, Source]:
    """The documents that the tables of this room cite, by key."""
    return read_sources(DATA / "sources.csv")


@cache
def _table() -> FactTable:
    return read_facts(DATA / "profiles.csv", sources())


@cache
def _subjects() -> dict[str, list[tuple[Version, str]]]:
    engines: dict[str, list[tuple[Version, str]]] = {}
    for subject in _table().rows:
        engine, _, text = subject.partition("@")
        engines.setdefault(engine, []).append((parse_version(text) or (0, 0, 0), subject))
    return {engine: sorted(rows) for engine, rows in engines.items()}


def _constants(engine: str, version: Version | None) -> tuple[dict[str, Value], str]:
    """What the table says of `engine` at `version`, over what it says of any; the last version that spoke."""
    merged = dict(values_of(_table(), _subjects()[_ANY][0][1]))
    basis = ""
    for since, subject in _subjects().get(engine, []):
        if version is None or since <= version:
            merged |= values_of(_table(), subject)
            basis = subject.partition("@")[2]
    return merged, basis


@cache
def memory_profile(engine: str, version: str | None = None) -> MemoryProfile:
    """The constants of `engine` at `version`; None: the newest version known.

    An engine without a row of its own gets those of any engine, and its evidence says so.

    Raises:
        UnknownNameError: an engine that no table holds.

    >>> memory_profile("vllm", "0.19.0").graphs_counted, memory_profile("vllm", "0.24.0").graphs_counted
    (False, True)
    """
    known = load_engine(engine, version)
    asked = parse_version(version or "") or parse_version(known.version)
    values, basis = _constants(known.name, asked)
    facts = {fact.key: fact.value for fact in reversed(known.facts)}
    warnings = list(known.notes)
    if values["evidence"] == "physics":
        warnings.append(f"no start-up log of {known.title} was read: activations and overhead are assumed")
    return _profile(known.name, basis or known.version, facts, values, tuple(warnings))


def _family(values: dict[str, Value], prefix: str) -> dict[str, Value]:
    """The values whose keys start alike, by the rest of the key."""
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _storage(values: dict[str, Value]) -> Storage:
    return Storage(
        expert_multiple={name: float(value) for name, value in _family(values, _PADDED).items()},
        expert_hidden_multiple={name: float(value) for name, value in _family(values, _HIDDEN).items()},
        held_as={name: str(value) for name, value in _family(values, _HELD).items()},
    )


def _profile(
    engine: str, basis: str, facts: dict[str, Value], values: dict[str, Value], warnings: tuple[str, ...]
) -> MemoryProfile:
    def number(key: str) -> float:
        return float(values[key])

    return MemoryProfile(
        engine=engine,
        basis=basis,
        utilization_rule=_RULES[str(facts.get("budget", "of-total"))],
        cache_cap_fraction=float(facts.get("kv_share_cap", 1.0)),
        sampler_copies=number("sampler_copies"),
        hidden_copies=number("hidden_copies"),
        recurrent_copies=number("recurrent_copies"),
        encoder_least_tokens=number("encoder_least_tokens"),
        encoder_limits_sequences=bool(values["encoder_limits_sequences"]),
        reductions_kept=number("reductions_kept"),
        chunks_beyond_tokens=number("chunks_beyond_tokens"),
        fixed_bytes=number("activations_fixed"),
        experts_kept=bool(values["experts_kept"]),
        experts_freed_formats=frozenset(str(values["experts_freed_formats"]).split()),
        single_bytes=number("overhead_single"),
        nvlink_bytes=number("overhead_nvlink"),
        pcie_bytes=number("overhead_pcie"),
        context_bytes=number("context"),
        graph_size_bytes=number("graph_per_size"),
        graph_layer_bytes=number("graph_per_size_layer"),
        graphs_counted=bool(facts.get("graph_memory_counted", False)),
        block_tokens=float(facts.get("block_tokens", 1)),
        group_ratio=number("group_ratio"),
        blocks_per_state=number("blocks_per_state"),
        state_ratio=number("state_ratio"),
        windows_bounded=bool(values["windows_bounded"]),
        mla_latent=bool(facts.get("mla_latent", True)),
        mla_multiple=number("mla_multiple"),
        tokens_per_group=bool(values["tokens_per_group"]),
        storage=_storage(values),
        graph_max={name: float(value) for name, value in _family(values, _CAPTURED).items()},
        weights_error=number("range_weights"),
        quantised_error=number("range_weights_quantised"),
        activations_error=number("range_activations"),
        overhead_error=number("range_overhead"),
        graphs_error=number("range_graphs"),
        capacity_error=number("range_capacity"),
        evidence=cast("Evidence", values["evidence"]),
        warnings=warnings,
    )
