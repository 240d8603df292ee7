"""Why an answer is not the guide's: read off the answer's own rows, another estimate, or the errata; never written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.advisor import EngineRequest, EstimateRequest, SplitRequest, estimate
from chipwise.advisor.reasons import best_place
from chipwise.audit.guide_check.asked import Told
from chipwise.decide.differences import difference
from chipwise.errors import ChipwiseError
from chipwise.guide import claim
from chipwise.units import show_seconds, show_usd

if TYPE_CHECKING:
    from chipwise.audit.guide_check.asked import Asked, Difference
    from chipwise.decide import Option

_STANDS = frozenset({"right", "unverifiable"})
"""Verdicts that leave the guide's word as it is."""
_NOT_HELD = frozenset({"capacity_bytes", "free_bytes", "reserved_bytes"})
PER_MILLION = 1e6
SECONDS_PER_HOUR = 3600.0


def reason(kind: str, name: str, value: float | str, unit: str | None, why: str) -> Difference:
    """One structured difference: what it is about, by how much, in words."""
    return {"kind": kind, "id": name, "value": value, "unit": unit, "why": why}


def errata(claims: Sequence[str]) -> list[Difference]:
    """What is wrong with the guide's own word, by the errata.

    >>> [one["id"] for one in errata(("A-s7-mig-g7e", "A-s7-mig-g6e"))]
    ['A-s7-mig-g7e']
    """
    return [
        reason("erratum", one.id, one.right_value, None, f"the guide is {one.verdict} here: {one.claim}")
        for one in map(claim, claims)
        if one.verdict not in _STANDS
    ]


def unanswered(error: ChipwiseError) -> Told:
    """A question that has no answer: what is not known, or what does not go together."""
    why = f"{error.what}: {error.why}"
    return Told(answer=(error.what,), agrees=False, differs=(reason("support", error.family, error.what, None, why),))


def nothing_feasible(asked: Asked) -> Told:
    """No size will do: the one that is rejected for a number it lacks, else the first."""
    rejected = asked.advice.rejected
    nearest = next((row for row in rejected if row.shortfall), rejected[0] if rejected else None)
    rows = [nearest] if nearest else [*asked.advice.not_judged[:1]]
    return Told(answer=("no size will do",), agrees=False, differs=tuple(map(difference, rows)))


def of_sizes(names: Collection[str], asked: Asked) -> Difference | None:
    """Why none of these sizes is an option: the row of the one that came furthest; None where one is."""
    place, row = best_place(names, asked.advice)
    return None if place == "options" else difference(row)


def outside(option: Option, unit: str, value: float, span: tuple[float, float]) -> Difference:
    """Why an option has more or fewer instances, chips or copies than the guide's span.

    Fewer: what the guide's least would cost more, at this price. More: the time a run would take on the guide's
    most, or what memory or a bar of serving asks for.
    """
    low, high = span
    if value < low:
        return _dearer(option, low / value, f"{low:g} {unit} in place of {value:g}")
    if option.run is not None:
        return _slower(option.instance, option.run.duration_s.mid, f"{high:g} {unit}", value / high)
    return _needed(option, unit, high)


def _dearer(option: Option, times: float, words: str) -> Difference:
    usd = option.cost.usd_per_hour
    if usd is None:
        return reason("price", option.instance, "no price", None, f"{words} cost more, and no price is known")
    more = usd.mid * (times - 1.0)
    return reason("price", option.instance, more, "USD/h", f"{words} cost {show_usd(more)} an hour more")


def _slower(name: str, ours_s: float, words: str, times: float) -> Difference:
    """A run takes at the least so many times as long."""
    theirs_s = ours_s * times
    why = f"{words} take {show_seconds(theirs_s)} at the least, what is planned {show_seconds(ours_s)}"
    return reason("slo", name, theirs_s - ours_s, "s", why)


def _needed(option: Option, unit: str, high: float) -> Difference:
    sizing = option.sizing
    if sizing.binding == "memory":
        short = lacking_bytes(option, high)
        return reason("memory", option.instance, short, "bytes", f"{high:g} {unit} lack {short / 1e9:.1f} GB")
    needed = sizing.instances_by_throughput
    why = f"the bars ask for {needed} instances ({sizing.binding} binds)"
    return reason("slo", option.instance, float(needed), "instances", why)


def held_bytes(option: Option) -> float:
    """What one replica holds on all its chips."""
    held = sum(value for name, value in option.memory["per_chip"].items() if name not in _NOT_HELD)
    return float(held) * float(option.memory["chips"])


def lacking_bytes(option: Option, chips: float) -> float:
    """What so many chips lack to hold a replica."""
    per_chip = option.memory["per_chip"]
    return max(held_bytes(option) - chips * float(per_chip["capacity_bytes"] - per_chip["reserved_bytes"]), 0.0)


def room(option: Option) -> Difference:
    """A replica is held by what is planned, with so much to spare."""
    free = float(option.memory["per_chip"]["free_bytes"])
    nodes = -(-option.instances // max(option.replicas, 1))
    why = (
        f"{option.devices_per_replica} devices on {nodes} {'node' if nodes == 1 else 'nodes'} hold it, "
        f"{free / 1e9:.1f} GB free on each chip"
    )
    return reason("memory", option.instance, free, "bytes per chip", why)


def instead(asked: Asked, *, tp: int | None = None, precision: str | None = None) -> list[Difference]:
    """The first option's instances laid out as the guide says, estimated under the same load: where that is worse.

    Returns:
        What it lacks in memory, or each latency that is longer and the cost where it is higher; nothing where it is
        better.
    """
    option = asked.options[0]
    words = f"tp {tp}" if tp else str(precision)
    request = EstimateRequest(
        model=asked.request.model,
        models=asked.request.models,
        instance=option.instance,
        instances=option.instances,
        isl_tokens=_whole(asked.value("isl")),
        osl_tokens=_whole(asked.value("osl")),
        context_tokens=_whole(asked.value("context")),
        split=SplitRequest(tp=tp or option.parallelism.tp, pp=None if tp else option.parallelism.pp),
        engine=EngineRequest(engine=option.engine, precision=precision or option.precision.weights),
        **_load(asked),
    )
    try:
        found = estimate(request)
    except ChipwiseError as error:
        return [reason("support", option.instance, words, None, f"{error.what}: {error.why}")]
    if not found["feasible"]:
        short = float(found["memory"]["shortfall_bytes"])
        return [reason("memory", option.instance, short, "bytes per chip", f"{words} does not fit there")]
    return list(_worse(found["serving"], option, words))


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _load(asked: Asked) -> dict[str, Any]:
    kind = asked.value("load")
    if kind == "rate":
        return {"rate_per_s": asked.value("rate_per_s")}
    return {"concurrency": _whole(asked.value("users"))} if kind == "closed" else {"offline": True}


def _worse(serving: dict[str, Any], option: Option, words: str) -> Iterator[Difference]:
    ours = option.performance["serving"]
    for name in ("ttft_s", "tpot_s"):
        if serving[name] and ours[name] and serving[name].mid > ours[name].mid:
            metric, theirs = name.removesuffix("_s").upper(), serving[name].mid
            why = f"{words}: mean {metric} {show_seconds(theirs)}, as planned {show_seconds(ours[name].mid)}"
            yield reason("slo", option.instance, theirs - ours[name].mid, "s", why)
    rate, usd = "output_tokens_per_s", option.cost.usd_per_hour
    if usd is not None and serving[rate].mid < ours[rate].mid:
        slower = 1.0 / serving[rate].mid - 1.0 / ours[rate].mid
        apart = usd.mid / SECONDS_PER_HOUR * PER_MILLION * slower
        why = f"{words}: {show_usd(apart)} more for a million output tokens"
        yield reason("price", option.instance, apart, "USD per million output tokens", why)
