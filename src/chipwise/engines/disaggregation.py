"""Whether an engine runs prefill and decode on pools of their own, and how unlike the two may be."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from chipwise.engines.profile import DATA, EngineProfile
from chipwise.engines.versions import at_least, parse_version
from chipwise.facts import read_rows

Maturity = Literal["supported", "beta", "experimental", "unsupported", "unknown"]
COLUMNS = (
    "engine", "since", "models", "status", "unlike_splits", "unlike_chips", "through", "why", "source", "where",
    "read_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Disaggregation:
    """What an engine documents of two pools for one kind of model."""

    status: Maturity
    unlike_splits: bool
    """The pools may be split differently."""
    unlike_chips: bool
    """The pools may stand on different chips."""
    through: frozenset[str]
    """What the cache crosses: the `link` inside an instance, the `network` (EFA)."""
    why: str
    source: str

    @property
    def runs(self) -> bool:
        """Whether it may be planned with."""
        return self.status in {"supported", "beta", "experimental"}


def disaggregation(profile: EngineProfile, kinds: AbstractSet[str]) -> Disaggregation:
    """What the engine at its version documents for a model of these kinds; the first rule that speaks decides.

    Args:
        profile: the engine at a version.
        kinds: words for the model: its class, `mla`, `recurrent`, `encoder-decoder`.

    >>> from chipwise.engines.profile import load_engine
    >>> disaggregation(load_engine("vllm"), {"dense-llm"}).unlike_chips
    True
    >>> disaggregation(load_engine("vllm"), {"moe-llm", "mla"}).unlike_splits
    False
    >>> disaggregation(load_engine("tgi"), {"dense-llm"}).runs
    False
    """
    version = parse_version(profile.version) or (0,)
    for rule in _rules():
        since = parse_version(rule["since"] or "0") or (0,)
        speaks = rule["models"] == "*" or rule["models"] in kinds
        if rule["engine"] == profile.name and speaks and at_least(version, since):
            return _read(rule)
    return Disaggregation(
        status="unknown",
        unlike_splits=False,
        unlike_chips=False,
        through=frozenset(),
        why=f"no page that was read says that {profile.title} {profile.version} runs prefill and decode apart",
        source=f"engines table, {profile.name}",
    )


def _read(rule: Mapping[str, str]) -> Disaggregation:
    return Disaggregation(
        status=cast("Maturity", rule["status"]),
        unlike_splits=rule["unlike_splits"] == "yes",
        unlike_chips=rule["unlike_chips"] == "yes",
        through=frozenset(rule["through"].split()),
        why=rule["why"],
        source=f"{rule['source']}: {rule['where']}",
    )


@cache
def _rules() -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "disaggregation.csv", COLUMNS))
