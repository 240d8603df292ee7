"""Whether a picked deployment would do better as two pools: the cheapest pair that meets its bars, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.decide.deployment import standing_of
from chipwise.decide.pools.deployment import PooledDeployment
from chipwise.decide.pools.pairs import Task, cheapest_pair, deployed, pools_of
from chipwise.decide.pools.rows import rows_of
from chipwise.decide.rank import ranked
from chipwise.decide.serving.deployment import ServingDeployment
from chipwise.decide.serving.seats import at_precision
from chipwise.engines import disaggregation
from chipwise.facts import read_rows
from chipwise.units import show_usd

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipwise.cost import Quote
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.pick import Picked
    from chipwise.decide.pools.deployment import Pools
    from chipwise.decide.question import Question
    from chipwise.engines import Disaggregation
    from chipwise.model import ModelSpec

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@cache
def least_saving() -> float:
    """Share of the price that two pools must save to pay; a policy of ours."""
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "policy.csv", COLUMNS)}["least_saving"]


def with_pools(question: Question, picked: Picked, offered: Mapping[str, Quote | None]) -> Picked:
    """The finalists, each as two pools where these pay, else with why they do not; ranked anew.

    Where two finalists come to the same pair of sizes the second is looked at on its own size alone.

    Args:
        question: model, demand, policy.
        picked: what ranking chose.
        offered: sizes that may be bought, with their price.
    """
    options: list[Deployment] = []
    for one in picked.options:
        found = apart(question, one, offered) if isinstance(one, ServingDeployment) else one
        if isinstance(found, PooledDeployment) and any(_same_pools(other, found) for other in options):
            found = apart(question, found.together, {one.instance.name: offered.get(one.instance.name)})
        options.append(found)
    return replace(picked, options=tuple(ranked(options, lambda one: standing_of(one, question))))


def _same_pools(one: Deployment, other: Deployment) -> bool:
    """Whether two finalists come to the same two sizes in the same roles: then they are one option."""
    if not isinstance(one, PooledDeployment) or not isinstance(other, PooledDeployment):
        return False
    return [pool.instance.name for pool in one.pools] == [pool.instance.name for pool in other.pools]


def apart(
    question: Question, together: ServingDeployment, offered: Mapping[str, Quote | None]
) -> ServingDeployment | PooledDeployment:
    """The deployment as two pools where these answer the same rate within the same bars for clearly less.

    A closed load counts by the rate at which `together` answers it.
    """
    ability = disaggregation(together.layout.seat.engine, kinds_of(question.model))
    why_not = _beside_the_point(question, together, ability)
    if why_not is not None:
        return replace(together, apart=f"prefill and decode apart: {why_not}")
    task = Task(
        question=question,
        together=together,
        model=at_precision(question.model, together.evaluated.option),
        demand=replace(question.serving, kind="rate", rate_per_s=together.value("requests_per_s")),
        ability=ability,
    )
    best = cheapest_pair(task, rows_of(question, together, offered))
    if best is None:
        return replace(together, apart="prefill and decode apart: no two pools that can be joined meet the bars")
    pools = pools_of(task, best)
    verdict = _beyond(together, pools)
    return deployed(task, best, pools) if verdict is None else replace(together, apart=verdict)


def kinds_of(model: ModelSpec) -> frozenset[str]:
    """Words by which engines part models: class, latent attention, recurrent states, an encoder before the decoder."""
    kinds = {layer.attention.kind for layer in model.layers}
    causal = {layer.attention.causal for layer in model.layers if layer.attention.kind != "none"}
    words: set[str] = {model.architecture}
    words |= {"mla"} if "mla" in kinds else set()
    words |= {"recurrent"} if kinds & {"linear", "mamba"} else set()
    words |= {"encoder-decoder"} if len(causal) > 1 else set()
    return frozenset(words)


def _beside_the_point(question: Question, together: ServingDeployment, ability: Disaggregation) -> str | None:
    """Why two pools are not looked for; None where they are."""
    demand, hourly = question.serving, together.usd_per_hour
    if demand.kind not in {"closed", "rate"} or (demand.ttft_p99_s is None and demand.tpot_p99_s is None):
        return "nobody waits for a token here, so prompts that hold up answers cost no bar"
    if not ability.runs:
        return f"{ability.why} ({ability.source})"
    if hourly is None:
        return "not compared, as no price is known"
    if together.instances == 1:
        price = show_usd(hourly.mid)
        return f"one {together.instance.name} at {price} an hour does both, and two pools need no less"
    return _unjoined(together)


def _unjoined(together: ServingDeployment) -> str | None:
    """Why nothing could carry a cache from one pool to another; None where something could."""
    platform = together.layout.seat.platform
    if platform.profile is not None:
        return "slices have neither a link nor a network of their own"
    if platform.devices == 1 and not platform.networked:
        return f"{together.instance.name} has one device and no EFA: nothing would carry the cache to a second pool"
    return None


def _beyond(together: ServingDeployment, pools: Pools) -> str | None:
    """Why the cheapest two pools do not pay; None where they do."""
    price, apart_usd = together.usd_per_hour.mid if together.usd_per_hour else 0.0, pools.usd_per_hour.mid
    if apart_usd <= price * (1.0 - least_saving()):
        return None
    less = 1.0 - apart_usd / price
    verdict = f"{less:.0%} less, below the {least_saving():.0%} asked of two pools" if less > 0 else "it does not pay"
    least = f"{show_usd(apart_usd)} an hour at the least ({pools.words})"
    return f"prefill and decode apart would cost {least} against {show_usd(price)} together: {verdict}"
