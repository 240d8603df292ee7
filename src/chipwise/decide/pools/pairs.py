"""Pairs of pools: every decode row with every prefill row that can be joined to it, and the cheapest of all."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.pools.deployment import Crossing, Pool, PooledDeployment, Pools
from chipwise.decide.pools.rows import REPLICAS, Decoder, Row, asked_of, decoding, numbers_of
from chipwise.decide.question import FULLEST
from chipwise.parallelism import Split, shard
from chipwise.perf.costs import cache_bytes_per_sequence
from chipwise.perf.disaggregated import Disaggregated, joined, predict_disaggregated, prefill_pool
from chipwise.perf.spread import tpot_spread, ttft_quantile_s, ttft_spread
from chipwise.perf.work import work_of
from chipwise.precision import kv_bytes_per_element

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from chipwise.decide.pools.deployment import Role
    from chipwise.decide.question import Demand, Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.engines import Disaggregation
    from chipwise.model import ModelSpec
    from chipwise.perf.disaggregated import PrefillPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is looked for: pools for `demand`, the load of `together` as a rate."""

    question: Question
    together: ServingDeployment
    model: ModelSpec
    demand: Demand
    ability: Disaggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One way to have two pools, headroom for failures counted. `shared` instances hold both roles; None: neither."""

    prefill: Row
    decode: Row
    prefills: int
    decodes: int
    across: float
    shared: int | None

    @property
    def instances(self) -> tuple[int, int]:
        """Instances rented for prefill, and for decode (or for both)."""
        if self.shared is not None:
            return 0, self.shared
        return self.prefill.instances(self.prefills), self.decode.instances(self.decodes)

    @property
    def usd_per_hour(self) -> float:
        """Of both."""
        first, second = self.instances
        return self.prefill.usd_per_hour(first) + self.decode.usd_per_hour(second)

    @property
    def key(self) -> tuple[float, int, str, str]:
        """Cheapest first, then fewest replicas, then by name."""
        names = self.prefill.instance.name, self.decode.instance.name
        return (round(self.usd_per_hour, 6), self.prefills + self.decodes, *names)


def cheapest_pair(task: Task, rows: Sequence[Row]) -> Pair | None:
    """The cheapest pair of which one pool at least stands on the size of `together`; None where none meets the bars.

    Decode pools are tried from the cheapest on, until one alone costs what the best pair does. Rows of which one
    replica costs more are not asked about.
    """
    own = [row for row in rows if row.instance.name == task.together.instance.name]
    others = [row for row in rows if row.layout.seat.platform.networked and row not in own]
    best: Pair | None = None
    for decoders, partners in ((own, [*own, *others]), (others, own)):
        most_usd = inf if best is None else best.usd_per_hour
        mine = [row for row in decoders if row.least_usd_per_hour <= most_usd]
        whole = [row for row in partners if int(row.layout.split.dp) == 1]
        if not mine or not whole:
            continue
        prompts = prefill_pool(asked_of(task.model, whole, task.demand, REPLICAS[None, :]))
        for decoder in decoding(task.model, mine, task.demand, most_usd):
            if best is not None and decoder.usd_per_hour > best.usd_per_hour:
                break
            found = _joined(task, decoder, whole, prompts)
            best = min([*([best] if best else []), *found], key=lambda pair: pair.key, default=None)
    return best


def _joined(task: Task, decode: Decoder, rows: Sequence[Row], prompts: PrefillPool) -> Iterator[Pair]:
    """Every prefill row that goes with a decode pool, at its fewest replicas, over the link and over the network."""
    answers = decode.pool
    for across in (0.0, 1.0):
        fitting = [_joinable(task, row, decode.row, across) for row in rows]
        if not any(fitting):
            continue
        meets = _meets(task.demand, joined(prompts, answers, across), len(rows))
        for row, fits, meet in zip(rows, fitting, meets, strict=True):
            if fits and meet.any():
                pair = _pair(task, (row, int(REPLICAS[np.argmax(meet)])), (decode.row, decode.count), across)
                if pair is not None:
                    yield pair


def _meets(demand: Demand, found: Disaggregated, rows: int) -> NDArray[np.bool_]:
    """Where TTFT holds its bar and neither prefill nor the wires are fuller than a plan allows, rows by replicas."""
    shape = (rows, REPLICAS.size)
    bar_s = np.inf if demand.ttft_p99_s is None else demand.ttft_p99_s
    with np.errstate(invalid="ignore"):  # a saturated pool waits for ever: infinite less infinite
        ttft_s = np.broadcast_to(ttft_quantile_s(found.prediction, quantile=0.99), shape)
    most = np.broadcast_to(found.prediction.saturation_rate_per_s, shape) * FULLEST
    return (ttft_s <= bar_s) & (most >= demand.rate_per_s) & (np.broadcast_to(found.crossing_use, shape) <= FULLEST)


def _joinable(task: Task, prefill: Row, decode: Row, across: float) -> bool:
    """Whether the engine joins two such pools, and a link or a network in one region does."""
    ability, same = task.ability, prefill.instance.name == decode.instance.name
    one, other = prefill.layout, decode.layout
    if not ability.unlike_chips and one.seat.platform.chip.id != other.seat.platform.chip.id:
        return False
    if not ability.unlike_splits and one.split != other.split:
        return False
    if not across:
        return same and "link" in ability.through
    networked = one.seat.platform.networked and other.seat.platform.networked
    return networked and (same or not prefill.regions.isdisjoint(decode.regions))


def _pair(task: Task, prompting: tuple[Row, int], decoding: tuple[Row, int], across: float) -> Pair | None:
    """The pair with its headroom; None where one instance was to hold both pools and does not.

    Pools joined by the link live in one instance, and headroom is further such instances.
    """
    (prefill, prefills), (decode, decodes) = prompting, decoding
    factor, room = task.question.policy.ha_factor, decode.layout.seat.platform.devices
    used = prefills * prefill.layout.devices + decodes * decode.layout.devices
    if not across:
        copies = ceil(factor)
        whole = Pair(
            prefill=prefill, decode=decode, prefills=prefills * copies, decodes=decodes * copies, across=across,
            shared=copies,
        )  # fmt: skip
        return whole if used <= room else None
    prefills, decodes = ceil(prefills * factor), ceil(decodes * factor)
    same = prefill.instance.name == decode.instance.name
    inside = max(prefill.layout.devices, decode.layout.devices) <= room
    total = prefills * prefill.layout.devices + decodes * decode.layout.devices
    return Pair(
        prefill=prefill, decode=decode, prefills=prefills, decodes=decodes, across=across,
        shared=-(-total // room) if same and inside else None,
    )  # fmt: skip


def pools_of(task: Task, pair: Pair) -> Pools:
    """What the pair rents, with what each pool is asked."""
    return Pools(
        prefill=_pool(task, "prefill", (pair.prefill, pair.prefills), pair.instances[0]),
        decode=_pool(task, "decode", (pair.decode, pair.decodes), pair.instances[1]),
    )


def deployed(task: Task, pair: Pair, pools: Pools) -> PooledDeployment:
    """The pair as a deployment: what its pools do together, what crosses."""
    prefill, decode = pools.prefill, pools.decode
    found = predict_disaggregated(prefill=prefill.asked, decode=decode.asked, across=pair.across)
    prediction = numbers_of(found.prediction)
    return PooledDeployment(
        together=task.together,
        both=pools,
        crossing=_crossing(task, pair, found),
        ability=task.ability,
        prediction=prediction,
        ttft=ttft_spread(prediction),
        tpot=tpot_spread(prediction, steps=task.demand.osl_tokens - 1.0),
        rate_per_s=task.demand.rate_per_s,
    )


def _pool(task: Task, role: Role, laid: tuple[Row, int], instances: int) -> Pool:
    row, count = laid
    return Pool(
        role=role,
        instance=row.instance,
        layout=row.layout,
        replicas=count,
        needed=instances,
        quote=row.quote,
        asked=asked_of(task.model, [row], task.demand, np.array([[float(count)]])),
    )


def _crossing(task: Task, pair: Pair, found: Disaggregated) -> Crossing:
    element = kv_bytes_per_element(pair.decode.layout.seat.limits.kv_format)
    whole = work_of(shard(task.model, Split()))
    link = pair.decode.instance.link
    return Crossing(
        bytes_per_request=float(
            cache_bytes_per_sequence(whole.layers, cp=whole.cp, context=task.demand.isl_tokens, element_bytes=element)
        ),
        seconds=float(np.ravel(found.crossing_s)[0]),
        over="EFA" if pair.across else link.name if link else "the link of the node",
        use_fraction=float(np.ravel(found.crossing_use)[0]),
    )
