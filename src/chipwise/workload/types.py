"""What a question asks of the hardware: the wish as it comes in, and the workload that it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

Origin = Literal["user", "preset", "model"]
LoadKind = Literal["closed", "rate", "throughput", "offline", "static"]
"""closed: so many requests always in flight; rate: arrivals a second; throughput: output tokens a second;
offline: everything queued at once; static: one fixed batch."""
Unit = Literal["image", "video", "step", "audio-second", "request", "row"]
Method = Literal["pretrain", "full-ft", "lora", "qlora", "dpo", "ppo", "grpo"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given(Generic[T]):
    """A value and who gave it: the user, the preset, or the model (a limit or a size of it)."""

    value: T
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHints:
    """What resolving needs to know of the model, in plain values. None: not known."""

    architecture: str | None = None
    max_context_tokens: int | None = None
    params_total: int | None = None
    params_active: int | None = None
    made_for: str | None = None
    """The preset that the model itself speaks for, where its class has several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest:
    """What the user said, in base units; None: nothing. Names follow the flags."""

    preset: str | None = None
    goal: str | None = None
    ttft_p99_s: float | None = None
    tpot_p99_s: float | None = None
    latency_p99_s: float | None = None
    users: float | None = None
    think_s: float | None = None
    rate_per_s: float | None = None
    throughput_tokens_per_s: float | None = None
    offline: bool = False
    batch: int | None = None
    isl: int | None = None
    osl: int | None = None
    context: int | None = None
    lengths: Path | None = None
    prefix_hit_fraction: float | None = None
    tokens: float | None = None
    epochs: float | None = None
    deadline_s: float | None = None
    budget_usd: float | None = None
    method: str | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    optimizer: str | None = None
    recompute: str | None = None
    shard: str | None = None
    lora_rank: int | None = None
    image_size: int | None = None
    steps: int | None = None
    frames: int | None = None
    audio_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTable:
    """Prompt and answer lengths of real requests, and when they came, where the file says."""

    path: str
    isl: tuple[int, ...]
    osl: tuple[int, ...]
    arrival_s: tuple[float, ...] | None = None

    @property
    def requests(self) -> int:
        """How many requests the file holds."""
        return len(self.isl)

    @property
    def mean_isl(self) -> int:
        """Mean prompt length, rounded."""
        return round(sum(self.isl) / len(self.isl))

    @property
    def mean_osl(self) -> int:
        """Mean answer length, rounded, at least 1."""
        return max(1, round(sum(self.osl) / len(self.osl)))

    @property
    def longest(self) -> int:
        """Longest prompt and answer of one request together."""
        return max(isl + osl for isl, osl in zip(self.isl, self.osl, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWorkload:
    """Tokens for waiting people or machines.

    `users` are requests in flight, or people where `think_s` is above 0.

    Load, users, rate and throughput are totals for the deployment.
    """

    preset: Given[str]
    goals: Given[tuple[str, ...]]
    load: Given[LoadKind]
    isl: Given[int]
    osl: Given[int]
    context: Given[int]
    users: Given[float] | None = None
    think_s: Given[float] | None = None
    rate_per_s: Given[float] | None = None
    throughput_tokens_per_s: Given[float] | None = None
    batch: Given[int] | None = None
    models: Given[int] | None = None
    prefix_hit_fraction: Given[float] | None = None
    ttft_p99_s: Given[float] | None = None
    tpot_p99_s: Given[float] | None = None
    latency_p99_s: Given[float] | None = None
    budget_usd: Given[float] | None = None
    """USD per hour."""
    lengths: LengthTable | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    """A run that changes weights. `tokens` are those of one pass; `global_batch` counts sequences a step.

    A model that reads no tokens has `samples` of one pass in their place, and no `seq_len`.
    """

    preset: Given[str]
    goals: Given[tuple[str, ...]]
    method: Given[Method]
    tokens: Given[int] | None
    epochs: Given[float]
    seq_len: Given[int] | None
    global_batch: Given[int]
    micro_batch: Given[int]
    optimizer: Given[str]
    recompute: Given[str]
    samples: Given[int] | None = None
    shard: Given[str] | None = None
    lora_rank: Given[int] | None = None
    isl: Given[int] | None = None
    osl: Given[int] | None = None
    group: Given[int] | None = None
    deadline_s: Given[float] | None = None
    budget_usd: Given[float] | None = None
    """USD of the run."""
    warnings: tuple[str, ...] = ()

    @property
    def tokens_total(self) -> float | None:
        """Tokens (or samples) of all passes; None where neither the user nor the model's size says how many."""
        counted = self.samples or self.tokens
        return None if counted is None else counted.value * self.epochs.value


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWorkload:
    """One answer a request and no stream: images, diffusion, audio, embeddings, rankings, rows.

    `throughput_units_per_s` counts what `unit` says: images, seconds of audio, requests, rows.
    """

    preset: Given[str]
    goals: Given[tuple[str, ...]]
    unit: Given[Unit]
    load: Given[LoadKind]
    users: Given[float] | None = None
    think_s: Given[float] | None = None
    rate_per_s: Given[float] | None = None
    throughput_units_per_s: Given[float] | None = None
    batch: Given[int] | None = None
    isl: Given[int] | None = None
    osl: Given[int] | None = None
    context: Given[int] | None = None
    image_size: Given[int] | None = None
    steps: Given[int] | None = None
    frames: Given[int] | None = None
    audio_s: Given[float] | None = None
    latency_p99_s: Given[float] | None = None
    budget_usd: Given[float] | None = None
    """USD per hour."""
    warnings: tuple[str, ...] = field(default=())


Workload = ServingWorkload | TrainingWorkload | OtherWorkload
