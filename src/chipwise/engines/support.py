"""Whether an engine runs a model of that kind on that chip at that format: plain words in, a verdict out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, cast

from chipwise.engines.profile import DATA, EngineProfile
from chipwise.engines.versions import Version, at_least, parse_version
from chipwise.facts import read_rows

Status = Literal["ok", "beta", "unsupported", "unknown"]
"""ok: documented; beta: runs, tested on few configurations; unknown: no source that was read says either."""
COLUMNS = (
    "engine", "since", "until", "vendor", "chips", "cc_from", "cc_below", "families", "architectures",
    "model_types", "status", "why", "source", "where", "read_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportQuestion:
    """What is asked of an engine. `format_family` is the family of `precision` (fp8, int4, nvfp4, …)."""

    model_type: str
    architecture: str
    vendor: str
    chip_architecture: str
    compute_capability: str | None
    format_family: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The verdict, why, and who says so."""

    status: Status
    why: str
    source: str


@lru_cache(maxsize=4096)
def supports(profile: EngineProfile, question: SupportQuestion) -> Support:
    """Whether the engine at that version runs it; the first rule that speaks of it decides.

    A vendor the engine has no back end for is unsupported. Where no rule speaks, the answer is unknown. Chips
    of AWS are `neuron_support`'s to judge: here only the vendor counts for them.

    >>> from chipwise.engines.profile import load_engine
    >>> ask = SupportQuestion(model_type="llama", architecture="dense-llm", vendor="nvidia",
    ...                       chip_architecture="hopper", compute_capability="9.0", format_family="fp8")
    >>> supports(load_engine("vllm"), ask).status
    'ok'
    """
    if question.vendor not in profile.vendors:
        why = f"{profile.title} has no back end for chips of {question.vendor}"
        return Support(status="unsupported", why=why, source=f"engines table, {profile.name}")
    version = parse_version(profile.version) or (0,)
    for rule in _rules():
        if rule["engine"] == profile.name and _speaks(rule, question, version):
            return Support(
                status=cast("Status", rule["status"]),
                why=rule["why"],
                source=f"{rule['source']}: {rule['where']}",
            )
    return Support(status="unknown", why="no source that was read says so", source=f"engines table, {profile.name}")


def _speaks(rule: Mapping[str, str], question: SupportQuestion, version: Version) -> bool:
    capability = parse_version(question.compute_capability or "0.0") or (0,)
    since, until = parse_version(rule["since"] or "0"), parse_version(rule["until"])
    return (
        at_least(version, since or (0,))
        and (until is None or not at_least(version, until))
        and _in(rule["vendor"], question.vendor)
        and _in(rule["chips"], question.chip_architecture)
        and (not rule["cc_from"] or capability >= (parse_version(rule["cc_from"]) or (0,)))
        and (not rule["cc_below"] or capability < (parse_version(rule["cc_below"]) or (0,)))
        and _in(rule["families"], question.format_family)
        and _in(rule["architectures"], question.architecture)
        and _in(rule["model_types"], question.model_type)
    )


def _in(words: str, word: str) -> bool:
    return words == "*" or word in words.split()


@cache
def _rules() -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "support.csv", COLUMNS))
