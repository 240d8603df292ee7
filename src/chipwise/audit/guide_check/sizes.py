"""Which sizes: those the answer recommends, would take, or finds without a feature, beside those of the guide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from chipwise.audit.guide_check.asked import Asked, Told
from chipwise.audit.guide_check.reasons import of_sizes, reason
from chipwise.capacity import buyable_terms
from chipwise.catalog import load_catalog
from chipwise.decide.screen import matches

if TYPE_CHECKING:
    from chipwise.audit.guide_check.asked import Difference
    from chipwise.decide import Option
    from chipwise.decide.advice import Cost
    from chipwise.units import Range

Words = Sequence[str]
KINDS = {"nvidia": "gpu", "neuron": "neuron"}
_PAST_FEATURES = frozenset({"region", "purchase", "slo", "budget"})
"""Rules that come after the check of features."""


def _named(words: Words) -> list[str]:
    """The sizes that words mean: names or families."""
    known = load_catalog().instances.values()
    return [one.name for one in known if any(matches(one, word) for word in words)]


def _able(asked: Asked) -> set[str]:
    return {one.instance for one in asked.options} | {one.instance for one in asked.advice.also_feasible}


def why_none(words: Words, asked: Asked) -> Iterator[Difference]:
    """For each word why none of its sizes is an option."""
    for word in words:
        names = _named([word])
        if not names:
            yield reason("support", word, "no such size", None, "the catalog knows no such size")
        elif found := of_sizes(names, asked):
            yield found


def sizes(words: Words, asked: Asked) -> Told:
    """The options hold a size that the guide names; else each of its sizes says why it is none."""
    names = _named(words)
    agrees = any(option.instance in names for option in asked.options)
    answer = tuple(f"{option.instances} x {option.instance}" for option in asked.options) or ("no size will do",)
    return Told(answer=answer, agrees=agrees, differs=() if agrees else tuple(why_none(words, asked)))


def feasible(words: Words, asked: Asked) -> Told:
    """Each family that the guide names has a size that would do."""
    able = _able(asked)
    unable = [word for word in words if not set(_named([word])) & able]
    answer = tuple(f"{word} would {'not ' * (word in unable)}do" for word in words)
    return Told(answer=answer, agrees=not unable, differs=tuple(why_none(unable, asked)))


def infeasible(words: Words, asked: Asked) -> Told:
    """No family that the guide rules out has a size that would do."""
    able = _able(asked)
    will = [word for word in words if set(_named([word])) & able]
    answer = tuple(f"{word} would {'not ' * (word not in will)}do" for word in words)
    return Told(answer=answer, agrees=not will)


def has(words: Words, asked: Asked) -> Told:
    """Every family has the feature that the question needs, as far as it is known of it."""
    return _all_are("yes", words, asked)


def lacks(words: Words, asked: Asked) -> Told:
    """No family has the feature that the question needs, as far as it is known of it."""
    return _all_are("no", words, asked)


def _all_are(wanted: str, words: Words, asked: Asked) -> Told:
    found = {word: _said(word, _having(asked)) for word in words}
    unknown = [word for word, said in found.items() if said is None]
    known = {said for said in found.values() if said is not None}
    answer = tuple(f"{word}: {said or 'not known'}" for word, said in found.items())
    return Told(answer=answer, agrees=known == {wanted}, differs=tuple(why_none(unknown, asked)))


def exactly(words: Words, asked: Asked) -> Told:
    """The families that have the feature are those of the guide; `nvidia:` or `neuron:` first looks at that vendor."""
    kind = KINDS.get(words[0].removesuffix(":"))
    wanted = set(words[1:] if kind else words)
    known = load_catalog().instances
    having = {known[name].family for name, yes in _having(asked).items() if yes and kind in {None, known[name].kind}}
    return Told(answer=tuple(sorted(having)), agrees=having == wanted)


def _having(asked: Asked) -> dict[str, bool]:
    """Whether each size has the feature of `--needs`; those that fail before it is looked at are left out."""
    found = dict.fromkeys(_able(asked), True)
    for row in asked.advice.rejected:
        if row.rule.startswith("needs-"):
            found[row.instance] = False
        elif row.rule in _PAST_FEATURES:
            found[row.instance] = True
    return found


def _said(word: str, having: Mapping[str, bool]) -> str | None:
    known = [having[name] for name in _named([word]) if name in having]
    return None if not known else "yes" if any(known) else "no"


def sold(words: Words, asked: Asked) -> Told:
    """The first option can be bought so, at a price that is known."""
    first = asked.options[0]
    lines = {line.option: line for line in first.cost.purchase}
    priced = [name for name, line in lines.items() if line.usd_per_hour is not None]
    agrees = bool(set(priced) & set(words))
    differs = () if agrees else tuple(_unsold(name, lines[name].why, first.instance) for name in words)
    return Told(answer=tuple(f"{first.instance} {name}" for name in priced), agrees=agrees, differs=differs)


def _unsold(term: str, why: str, name: str) -> Difference:
    offered = buyable_terms(load_catalog().instance(name), term, interruptible=True)
    return reason("price" if offered else "region", name, term, None, why)


def apart(words: Words, asked: Asked) -> Told:
    """Prompts on one size, answers on another: an option's two pools stand on the sizes of the words, in that order."""
    stages = [[pool["instance"] for pool in option.pools or ()] for option in asked.options]
    wanted = [set(_named([word])) for word in words]
    agrees = any(
        len(found) == len(wanted) and all(name in names for name, names in zip(found, wanted, strict=True))
        for found in stages
    )
    answer = tuple(
        " then ".join(found) or f"{option.instance} does both"
        for option, found in zip(asked.options, stages, strict=True)
    )
    differs = () if agrees else (*_together(asked.options), *why_none(words, asked))
    return Told(answer=answer, agrees=agrees, differs=differs)


def _together(options: Sequence[Option]) -> Iterator[Difference]:
    """What an option says of pools that it does not have, or costs with those that it has."""
    for option in options:
        usd = option.cost.usd_per_hour
        if usd is not None:
            why = next((one for one in option.reasons if one.startswith("prefill and decode apart")), None)
            pools = " and ".join(f"{pool['instances']} x {pool['instance']}" for pool in option.pools or ())
            yield reason("price", option.instance, usd.mid, "USD/h", why or f"in pools of {pools}")


def vendor(words: Words, asked: Asked) -> Told:
    """Whose chips: the verdict."""
    said = asked.advice.gpu_or_neuron["verdict"]
    agrees = said == words[0]
    return Told(answer=(said,), agrees=agrees, differs=() if agrees else tuple(_not_alone(words[0], asked)))


def _not_alone(wanted: str, asked: Asked) -> Iterator[Difference]:
    """Why the wanted vendor is not alone: its own sizes' reason, or that the other's would do as well."""
    known = load_catalog().instances
    mine = [name for name, one in known.items() if one.kind == KINDS[wanted]]
    if found := of_sizes(mine, asked):
        yield found
    for option in asked.options:
        if known[option.instance].kind not in {KINDS[wanted], "cpu"}:
            yield reason("support", option.instance, option.engine, None, f"{option.instances} of it meet the bars too")


def cheaper(words: Words, asked: Asked) -> Told:
    """Whose best option does the same work for less money."""
    best = _by_kind(asked, _for_the_work)
    mine, other = best.get(KINDS[words[0]]), best.get("gpu" if words[0] == "neuron" else "neuron")
    answer = tuple(f"{option.instance} at ${usd:,.4g}" for usd, option in best.values())
    if mine is None or other is None:
        agrees = mine is not None
        return Told(answer=answer, agrees=agrees, differs=() if agrees else tuple(_not_alone(words[0], asked)))
    apart = mine[0] - other[0]
    why = f"{mine[1].instance} costs ${mine[0]:,.4g}, {other[1].instance} ${other[0]:,.4g} for the same work"
    differs = () if apart <= 0 else (reason("price", mine[1].instance, apart, "USD", why),)
    return Told(answer=answer, agrees=apart <= 0, differs=differs)


def _by_kind(asked: Asked, money: Callable[[Cost], Range | None]) -> dict[str, tuple[float, Option]]:
    """By kind of hardware the option that costs least."""
    known = load_catalog().instances
    best: dict[str, tuple[float, Option]] = {}
    for option in asked.options:
        usd, kind = money(option.cost), known[option.instance].kind
        if usd is not None and (kind not in best or usd.mid < best[kind][0]):
            best[kind] = usd.mid, option
    return best


def _for_the_work(cost: Cost) -> Range | None:
    """Of the run, or of a million tokens of a full deployment."""
    return cost.usd_per_run or cost.usd_per_million_at_capacity or cost.usd_per_hour


def gpu(words: Words, asked: Asked) -> Told:
    """Whether a GPU is needed; where not, what the cheapest of them costs more."""
    found = asked.advice.gpu_needed or {"answer": True, "why": "it generates tokens"}
    said = "yes" if found["answer"] else "no"
    prices = _by_kind(asked, lambda cost: cost.usd_per_hour)
    on_cpu, other = prices.pop("cpu", None), min(prices.values(), default=None, key=lambda pair: pair[0])
    name = asked.options[0].instance
    value = other[0] - on_cpu[0] if on_cpu and other else said
    unit = "USD/h" if on_cpu and other else None
    differs = () if said == words[0] else (reason("price", name, value, unit, found["why"]),)
    return Told(answer=(said,), agrees=said == words[0], differs=differs)
