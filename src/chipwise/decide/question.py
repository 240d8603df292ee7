"""What `decide` is asked: plain data, no names to resolve, no files to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chipwise.catalog import Catalog
from chipwise.engines import EngineProfile
from chipwise.model import ModelSpec

LoadKind = Literal["closed", "rate", "offline", "static", "single"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A serving load and its bars; a bar left None does not judge. `users` are requests in flight."""

    kind: LoadKind
    isl_tokens: float
    osl_tokens: float
    context_tokens: float
    users: float = 1.0
    rate_per_s: float = 0.0
    throughput_tokens_per_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_p99_s: float | None = None
    prefix_hit_fraction: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the asker allows and prefers. `goals` is A or A, B: A filters at its bar, B orders."""

    goals: tuple[str, ...]
    regions: tuple[str, ...]
    purchase: str = "any"
    prices_usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    vendor: str = "any"
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    min_precision: str | None = None
    precision_why: str = ""
    ha_factor: float = 1.0
    interruptible: bool = False
    custom_kernels: bool = False
    strict_guide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything `decide` looks at. `engines` is by chip vendor; a vendor without one cannot be judged."""

    model: ModelSpec
    demand: Demand
    policy: Policy
    catalog: Catalog
    engines: Mapping[str, EngineProfile]
    workload: Mapping[str, Any]
    purpose: str
    budget_usd: float | None = None

    @property
    def order_by(self) -> str:
        """The goal that orders: the last."""
        return self.policy.goals[-1]
