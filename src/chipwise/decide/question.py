"""What `decide` is asked: plain data, no names to resolve, no files to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from chipwise.catalog import Catalog
from chipwise.engines import EngineProfile
from chipwise.model import ModelSpec

if TYPE_CHECKING:
    from chipwise.perf.other.load import Arrival
    from chipwise.perf.other.passes import Item

ANY_NEURON = "neuron"
"""The engine's name that leaves it to the pages which part of the Neuron SDK runs the model."""
FULLEST = 0.8
"""Share of the rate at which queues grow without end that a plan may use: our choice, as a predicted rate is uncertain
and a queue's wait grows as 1 / (1 - share)."""
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
class TrainingDemand:
    """A run and its bars. `tokens` are those of all passes, `global_batch` counts sequences a step.

    `sample` is there where the model is no language model: what one sample is. A sequence is then a sample of one
    token, so that `tokens` counts samples.

    `recompute` and `micro_batch` left None are tried. `isl_tokens`, `osl_tokens` and `group` describe what a
    reinforcement method generates: `group` answers a prompt. `roles` says where its other models are: beside the one
    that is trained, with generation in turn or beside it too, or apart on other devices.
    """

    method: str
    tokens: float
    seq_len: float
    global_batch: float
    micro_batch: int | None
    optimizer: str
    recompute: str | None
    shard: str | None = None
    lora_rank: int = 16
    isl_tokens: float | None = None
    osl_tokens: float | None = None
    group: int = 1
    deadline_s: float | None = None
    offload: str = "none"
    roles: str = "in-turn"
    sample: Item | None = None
    precision: str = "bf16"
    """What matrices are multiplied in; weights, gradients and states are held as the trainer holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDemand:
    """Requests that are answered whole, and their bar: images, texts to embed, sound, rows."""

    item: Item
    arrival: Arrival
    latency_p99_s: float | None = None


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
    precision_stated: bool = False
    """Whether the asker set the floor; otherwise the goal implies it."""
    precision_why: str = ""
    ha_factor: float = 1.0
    interruptible: bool = False
    custom_kernels: bool = False
    strict_guide: bool = False
    isolation: str | None = None
    team: str | None = None
    timeline_weeks: float | None = None
    stability: str | None = None


D = TypeVar("D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything `decide` looks at. `engines` is by chip vendor; a vendor without one cannot be judged."""

    model: ModelSpec
    demand: Demand | TrainingDemand | OtherDemand
    policy: Policy
    catalog: Catalog
    engines: Mapping[str, EngineProfile]
    workload: Mapping[str, Any]
    purpose: str
    budget_usd: float | None = None
    tenants: tuple[Question, ...] = ()
    """Several models on shared devices, each a question of its own; the largest of them speaks for all elsewhere."""
    engine_named: str | None = None
    """The engine that the asker named; None where the preset and the pages of the vendor choose."""

    @property
    def neuron_stack(self) -> str | None:
        """The part of the Neuron SDK that the asker named; None where any will do."""
        return None if self.engine_named in {None, ANY_NEURON} else self.engine_named

    @property
    def serving(self) -> Demand:
        """The demand of a serving question.

        Raises:
            TypeError: it is another question.
        """
        return self._demanded(Demand)

    @property
    def training(self) -> TrainingDemand:
        """The demand of a training question.

        Raises:
            TypeError: it is another question.
        """
        return self._demanded(TrainingDemand)

    @property
    def other(self) -> OtherDemand:
        """The demand of a question about answers that are no token streams.

        Raises:
            TypeError: it is another question.
        """
        return self._demanded(OtherDemand)

    def _demanded(self, kind: type[D]) -> D:
        if isinstance(self.demand, kind):
            return self.demand
        msg = f"a question of {type(self.demand).__name__} has no {kind.__name__}"
        raise TypeError(msg)

    @property
    def kind(self) -> str:
        """The guide's kind of work: inference, pretrain or finetune."""
        if isinstance(self.demand, Demand | OtherDemand):
            return "inference"
        return "pretrain" if self.demand.method == "pretrain" else "finetune"

    @property
    def longest_tokens(self) -> float:
        """The longest sequence asked for."""
        if isinstance(self.demand, OtherDemand):
            return self.demand.item.tokens or 0.0
        return self.demand.context_tokens if isinstance(self.demand, Demand) else self.demand.seq_len

    @property
    def order_by(self) -> str:
        """The goal that orders: the last."""
        return self.policy.goals[-1]
