"""What the answer says in words: needs, amounts, signals, boxes passed, values held, the signal to scale by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.audit.guide_check.asked import Asked, Told
from chipwise.audit.guide_check.figures import nodes
from chipwise.audit.guide_check.reasons import reason, room
from chipwise.catalog import load_catalog
from chipwise.report.json import as_json

if TYPE_CHECKING:
    from chipwise.audit.guide_check.asked import Difference
    from chipwise.decide import Option

Words = Sequence[str]


def need(words: Words, asked: Asked) -> Told:
    """How much the first option needs a feature; what one device or one node holds needs no link or network."""
    feature, _, wanted = words[0].partition("=")
    first = asked.options[0]
    check = next(one for one in first.infrastructure if one.feature == feature)
    if wanted == "multi-node":
        wanted = "required" if nodes(first) > 1 else "not-needed"
    agrees = check.need == wanted
    return Told(answer=(f"{feature} {check.need}",), agrees=agrees, differs=() if agrees else (room(first),))


def amount(words: Words, asked: Asked) -> Told:
    """How much of a feature the first option's size has."""
    feature, _, wanted = words[0].partition("=")
    said = next(one.effect for one in asked.options[0].infrastructure if one.feature == feature).partition("here: ")[2]
    return Told(answer=(said,), agrees=wanted in said)


def signal(words: Words, asked: Asked) -> Told:
    """Where one signal for GPU or Neuron points."""
    name, _, wanted = words[0].partition("=")
    found = next(one for one in asked.advice.gpu_or_neuron["signals"] if one["signal"] == name)
    agrees = found["points_to"] == wanted
    differs = () if agrees else (reason("support", name, found["points_to"], None, found["why"]),)
    return Told(answer=(f"{name}: {found['points_to']}",), agrees=agrees, differs=differs)


def box(words: Words, asked: Asked) -> Told:
    """The answer's own way through the guide passes the box."""
    path = tuple(asked.advice.guide["path"])
    return Told(answer=path, agrees=words[0] in path)


def holds(words: Words, asked: Asked) -> Told:
    """The answer says what the box asks for: every path leads to a value, that of `path=value` where one is given."""
    content = as_json(asked.advice)
    found = {word: _at(content, word.partition("=")[0]) for word in words}
    differs = [
        reason("support", path, _short(value), None, f"{path} is {_short(value)}")
        for path, value in ((word.partition("=")[0], value) for word, value in found.items() if not _is(word, value))
    ]
    answer = tuple(f"{word.partition('=')[0]}: {_short(value)}" for word, value in found.items())
    return Told(answer=answer, agrees=not differs, differs=tuple(differs))


def _is(word: str, value: Any) -> bool:
    _, given, wanted = word.partition("=")
    return str(value) == wanted if given else value not in (None, [], "")


def _at(content: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(content, list):
            content = content[int(step)] if int(step) < len(content) else None
        else:
            content = content.get(step) if isinstance(content, Mapping) else None
    return content


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and "mid" in value:
        return f"{value['mid']:.4g}"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value[:3])
    return f"{len(value)} entries" if isinstance(value, list | Mapping) else str(value)


def shared(words: Words, asked: Asked) -> Told:
    """How tenants share one GPU: the technique, or the MIG profile that holds one of them."""
    found = [option.sharing or {} for option in asked.options]
    said = [[one[key] for key in ("technique", "profile") if one.get(key)] or [_WHOLE] for one in found]
    agrees = any(word in one for one in said for word in words)
    differs = () if agrees else (_other_share(words[0], asked.options[0]),)
    return Told(answer=tuple(" ".join(one) for one in said), agrees=agrees, differs=differs)


_WHOLE = "whole"
"""One tenant has the GPU."""


def _other_share(wanted: str, option: Option) -> Difference:
    """Against a profile: by how much a tenant exceeds it, or the profile what is planned; against a technique: why."""
    sharing = option.sharing or {"technique": None, "profile": None, "why": "each tenant has devices of its own"}
    sizes = {one.name: float(one.memory_bytes or 0) for one in load_catalog().chips[option.chip].mig_profiles}
    if wanted not in sizes:
        return reason("support", option.instance, str(sharing["technique"]), None, sharing["why"])
    taken = sizes.get(sharing["profile"] or "", float(option.memory["per_chip"]["capacity_bytes"]))
    more = "more" if taken > sizes[wanted] else "less"
    why = f"a tenant is given {taken / 1e9:.1f} GB, {more} than {wanted} has: {sharing['why']}"
    return reason("memory", option.instance, abs(taken - sizes[wanted]), "bytes", why)


def scale(words: Words, asked: Asked) -> Told:
    """The signal that says to add more."""
    first = asked.options[0]
    said = f"{first.scale.signal}: {first.scale.threshold}"
    agrees = words[0].lower() in said.lower()
    differs = () if agrees else (reason("slo", first.instance, said, None, f"watched here: {said}"),)
    return Told(answer=(said,), agrees=agrees, differs=differs)
