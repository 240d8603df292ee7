"""How much and in what: formats, splits, counts, bytes and bounds of the answer beside the guide's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.audit.guide_check.asked import Asked, Told
from chipwise.audit.guide_check.reasons import (
    held_bytes,
    instead,
    lacking_bytes,
    nothing_feasible,
    outside,
    reason,
    room,
)
from chipwise.precision import format_facts
from chipwise.units import show_bytes

if TYPE_CHECKING:
    from chipwise.audit.guide_check.asked import Difference
    from chipwise.decide import Option

Words = Sequence[str]
_NEAR_CACHE, _NEAR_WEIGHTS = 0.02, 0.05
"""How far a printed figure may be off by rounding: of a cache that is exact, of weights that are a rule of thumb."""


def _span(word: str) -> tuple[float, float]:
    """`2-4` or `64-`: from, to."""
    low, _, high = word.partition("-")
    return float(low), float(high or "inf")


def formats(words: Words, asked: Asked) -> Told:
    """An option holds its weights in a format of the guide's; else what that format would do on the same instances."""
    held = [format_facts(option.precision.weights).family for option in asked.options]
    agrees = bool(set(held) & set(words))
    differs = () if agrees else tuple(_unlike(words, asked))
    return Told(answer=tuple(option.precision.weights for option in asked.options), agrees=agrees, differs=differs)


def _unlike(words: Words, asked: Asked) -> Iterator[Difference]:
    allowed = _allowed(asked)
    for word in words:
        named = next((name for name, family in allowed.items() if family == word), None)
        if named is None:
            yield reason("support", word, "not legal", None, f"the checkpoint may not become {word}")
        else:
            yield from instead(asked, precision=named)


def _allowed(asked: Asked) -> dict[str, str]:
    """What the checkpoint may be held in, with the family of each format."""
    return {row["format"]: format_facts(row["format"]).family for row in asked.advice.model["precisions"]}


def legal(words: Words, asked: Asked) -> Told:
    """The checkpoint may be served in the format."""
    allowed = _allowed(asked)
    agrees = bool(set(allowed.values()) & set(words))
    why = f"served in {', '.join(allowed)}"
    differs = () if agrees else (reason("support", words[0], "not legal", None, why),)
    return Told(answer=tuple(allowed), agrees=agrees, differs=differs)


def counted(unit: str, count: Callable[[Option], float]) -> Callable[[Words, Asked], Told]:
    """A part: a number of an option lies within the guide's span."""

    def told(words: Words, asked: Asked) -> Told:
        low, high = _span(words[0])
        found = [count(option) for option in asked.options]
        agrees = any(low <= value <= high for value in found)
        differs = () if agrees else (outside(asked.options[0], unit, found[0], (low, high)),)
        return Told(answer=tuple(f"{value:g} {unit}" for value in found), agrees=agrees, differs=differs)

    return told


def nodes(option: Option) -> float:
    """Instances that one replica, or a run, spans."""
    return float(-(-option.instances // max(option.replicas, 1)))


def tp(words: Words, asked: Asked) -> Told:
    """The tensor parallelism of an option; else what the guide's would do on the same instances."""
    low, high = _span(words[0])
    found = [option.parallelism.tp for option in asked.options]
    agrees = any(low <= value <= high for value in found)
    differs = () if agrees else (*instead(asked, tp=int(low if found[0] < low else high)),)
    return Told(answer=tuple(f"tp {value}" for value in found), agrees=agrees, differs=differs)


def ep(words: Words, asked: Asked) -> Told:
    """Experts spread over devices of their own; where tensor parallelism splits each, the layout that does so."""
    low, high = _span(words[0])
    agrees = any(low <= option.parallelism.ep <= high for option in asked.options)
    answer = tuple(f"ep {option.parallelism.ep}, tp {option.parallelism.tp}" for option in asked.options)
    return Told(answer=answer, agrees=agrees, differs=() if agrees else (room(asked.options[0]),))


def mfu(words: Words, asked: Asked) -> Told:
    """The predicted MFU of an option, in percent."""
    low, high = _span(words[0])
    found = [option.performance["training"]["mfu_fraction"].mid * 100.0 for option in asked.options]
    agrees = any(low <= value <= high for value in found)
    differs = [
        reason("slo", option.instance, value / 100.0, "fraction", f"MFU {value:.0f} %, the guide's target {words[0]} %")
        for option, value in zip(asked.options, found, strict=True)
    ]
    return Told(answer=tuple(f"{value:.0f} %" for value in found), agrees=agrees, differs=() if agrees else (*differs,))


def count(words: Words, asked: Asked) -> Told:
    """The fewest chips that memory asks for."""
    low, high = _span(words[0])
    first = asked.options[0]
    value = first.sizing.chips_by_memory
    agrees = low <= value <= high
    differs = () if agrees else (room(first) if value < low else _short(first, high),)
    return Told(answer=(f"{value} chips",), agrees=agrees, differs=differs)


def _short(option: Option, chips: float) -> Difference:
    short = lacking_bytes(option, chips)
    why = f"a replica holds {show_bytes(held_bytes(option))}; {chips:g} chips lack {short / 1e9:.1f} GB"
    return reason("memory", option.instance, short, "bytes", why)


def cache(words: Words, asked: Asked) -> Told:
    """Bytes of the cache of all requests, each as long as the context."""
    held = asked.advice.model["kv_bytes_per_token"] * asked.value("context") * asked.value("users") / 1e9
    said = float(words[0])
    agrees = abs(held / said - 1.0) <= _NEAR_CACHE
    why = f"{held:.3f} GB, the guide says {said:g}"
    differs = () if agrees else (reason("memory", "cache", (held - said) * 1e9, "bytes", why),)
    return Told(answer=(f"{held:.3f} GB",), agrees=agrees, differs=differs)


def weights(words: Words, asked: Asked) -> Told:
    """Bytes of the weights of one replica at so many bits."""
    bits, _, gigabytes = words[0].partition("=")
    said = float(gigabytes)
    found = [
        (option.precision.weights, option.memory["per_chip"]["weights_bytes"] * option.memory["chips"] / 1e9)
        for option in asked.options
        if format_facts(option.precision.weights).bits == int(bits)
    ]
    if not found:
        return nothing_feasible(asked)
    agrees = any(abs(held / said - 1.0) <= _NEAR_WEIGHTS for _, held in found)
    differs = [
        reason("memory", name, (held - said) * 1e9, "bytes", f"{held:.1f} GB with scales and what stays at 16 bits")
        for name, held in found
    ]
    answer = tuple(f"{held:.1f} GB in {name}" for name, held in found)
    return Told(answer=answer, agrees=agrees, differs=() if agrees else (*differs,))


_PHASES: Mapping[str, tuple[str, str]] = {
    "prefill": ("prefill_s", "prefill_bound_by"),
    "decode": ("decode_s", "bound_by"),
}


def bound(words: Words, asked: Asked) -> Told:
    """What binds most of a phase: the operations of the first option, by the time that each bound takes.

    The time that a prompt waits for others, and a token for others' prompts, is no operation of theirs.
    """
    phase, _, wanted = words[0].partition("=")
    first = asked.options[0]
    spent = _spent(first.performance["serving"]["terms"], *_PHASES[phase])
    most, whole = max(spent, key=lambda name: spent[name]), sum(spent.values())
    share = spent.get(wanted, 0.0) / whole
    why = f"{most} binds {spent[most] / whole:.0%} of {phase}, {wanted} {share:.0%}"
    differs = () if most == wanted else (reason("slo", first.instance, share, "fraction", why),)
    return Told(answer=(f"{phase} {most}",), agrees=most == wanted, differs=differs)


_OF_OTHERS = frozenset({"waiting", "prefill of others"})


def _spent(terms: Sequence[Mapping[str, Any]], seconds: str, bound_by: str) -> dict[str, float]:
    spent: dict[str, float] = {}
    for term in terms:
        if term["op"] not in _OF_OTHERS:
            spent[term[bound_by]] = spent.get(term[bound_by], 0.0) + (term[seconds] or 0.0)
    return spent
