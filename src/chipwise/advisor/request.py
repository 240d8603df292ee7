"""What can be asked, in base units. The doors parse text into these; a field left None takes the preset's value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to `advise`. Names follow the flags of `chipwise plan`, with their unit.

    >>> Request(model="llama-3.3-70b", users=64, context_tokens=8192, ttft_p99_s=1.0).purpose is None
    True
    """

    model: str
    """One model, or several with commas between, that share devices."""
    models: str | None = None
    per_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Where several models share: fields of this request that one of them has of its own, by its name."""
    purpose: str | None = None
    goal: str | None = None
    ttft_p99_s: float | None = None
    tpot_p99_s: float | None = None
    users: float | None = None
    think_s: float | None = None
    rate_per_s: float | None = None
    throughput_tokens_per_s: float | None = None
    isl_tokens: int | None = None
    osl_tokens: int | None = None
    context_tokens: int | None = None
    lengths: str | None = None
    prefix_hit_fraction: float | None = None
    image_size: int | None = None
    steps: int | None = None
    frames: int | None = None
    audio_s: float | None = None
    tokens: float | None = None
    epochs: float | None = None
    global_batch: int | None = None
    deadline_s: float | None = None
    budget_usd: float | None = None
    regions: tuple[str, ...] = ()
    purchase: str = "any"
    prices_usd_per_hour: dict[str, float] = field(default_factory=dict)
    vendor: str = "any"
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    min_precision: str | None = None
    isolation: str | None = None
    team: str | None = None
    timeline_weeks: float | None = None
    stability: str | None = None
    custom_kernels: bool = False
    ha_factor: float | None = None
    availability: float | None = None
    engine: str | None = None
    strict_guide: bool = False
    simulate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRequest:
    """A split asked for by flag; None is left to chipwise."""

    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    dp: int | None = None
    cp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """Engine settings asked for by flag; None takes the engine's default for its version."""

    engine: str | None = None
    version: str | None = None
    precision: str | None = None
    kv_precision: str | None = None
    utilization: float | None = None
    chunk_tokens: int | None = None
    max_num_seqs: int | None = None
    eager: bool = False
    draft: str | None = None
    draft_tokens: int | None = None
    acceptance: float | None = None
    prefix_hit_fraction: float = 0.0
    lora_adapters: int = 0
    lora_rank: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """A training set-up asked for by flag; `method` None means that serving is asked."""

    method: str | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    optimizer: str | None = None
    recompute: str | None = None
    shard: str | None = None
    lora_rank: int = 16
    trainer: str | None = None
    offload: str | None = None
    roles: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRequest:
    """A question to `size` (the `memory` command): does this model fit there, and what else would?"""

    model: str
    models: str | None = None
    chip: str | None = None
    instance: str | None = None
    mig: str | None = None
    context_tokens: int | None = None
    concurrency: int = 1
    split: SplitRequest = field(default_factory=SplitRequest)
    engine: EngineRequest = field(default_factory=EngineRequest)
    training: TrainingRequest = field(default_factory=TrainingRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A question to `estimate`: how fast is this model, laid out so, under this load?"""

    model: str
    models: str | None = None
    instance: str | None = None
    chip: str | None = None
    instances: int | None = None
    replicas: int | None = None
    isl_tokens: int | None = None
    osl_tokens: int | None = None
    context_tokens: int | None = None
    lengths: str | None = None
    concurrency: int | None = None
    rate_per_s: float | None = None
    batch: int | None = None
    offline: bool = False
    image_size: int | None = None
    steps: int | None = None
    frames: int | None = None
    audio_s: float | None = None
    split: SplitRequest = field(default_factory=SplitRequest)
    engine: EngineRequest = field(default_factory=EngineRequest)
    training: TrainingRequest = field(default_factory=TrainingRequest)
