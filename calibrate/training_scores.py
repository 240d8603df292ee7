"""How far training predictions are off, and how wide that makes their ranges: the parts of the score page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SPREAD, MIXTURE_SPREAD, STAND_IN_SPREAD, HELD_SHARE = "spread_factor", "mixture_spread_factor", 1.4, 0.8
Factors = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """ln(predicted / measured tokens a second) of a complete run; `seen`: a run that was fitted has its generation."""

    source: str
    generation: str
    mixture: bool
    seen: bool
    log: float


def spreads(left_out: Sequence[Error], known: frozenset[str]) -> Factors:
    """Factors that hold 80 % of left-out runs: of generations seen elsewhere, of those not seen, of mixtures."""
    seen = [one for one in left_out if one.seen and not one.mixture]
    unseen = [one for one in left_out if not one.seen and not one.mixture]
    found = {(SPREAD, f"generation:{name}"): _held(seen) for name in sorted(known)}
    found[SPREAD, "all"] = max(_held(unseen), _held(seen))
    found[MIXTURE_SPREAD, "all"] = _held([one for one in left_out if one.mixture])
    return found


def _held(found: Sequence[Error]) -> float:
    return float(np.exp(np.quantile(np.abs([one.log for one in found]), HELD_SHARE))) if found else STAND_IN_SPREAD


def ranges(left_out: Sequence[Error], factors: Factors) -> str:
    """How wide the printed ranges are and how many left-out runs they hold, by source."""
    seen = min(value for (name, scope), value in factors.items() if name == SPREAD and scope != "all")
    unseen, mixtures = factors[SPREAD, "all"], factors[MIXTURE_SPREAD, "all"]

    def holds(one: Error) -> bool:
        width = max(seen if one.seen else unseen, mixtures if one.mixture else 1.0)
        return bool(abs(one.log) <= np.log(width))

    names = [*sorted({one.source for one in left_out}), "all"]
    shares = {name: float(np.mean([holds(one) for one in left_out if name in {one.source, "all"}])) for name in names}
    lines = [
        "### Ranges",
        "",
        (
            f"Times and divided by {seen:.2f}; {unseen:.2f} for a generation that no other source knows, "
            f"{mixtures:.2f} for mixtures of experts."
        ),
        "",
        "| source left out | within the range, % |",
        "|---|---|",
        *(f"| {name} | {100.0 * share:.0f} |" for name, share in shares.items()),
    ]
    return "\n".join(lines) + "\n"


def report(title: str, found: Sequence[Error]) -> str:
    """A table in markdown: by source, and of all runs alike."""
    lines = [f"### {title}", "", "| source | n | median, % | p90, % | bias of ln |", "|---|---|---|---|---|"]
    names = [*sorted({one.source for one in found}), "all"]
    for name in names:
        logs = np.array([one.log for one in found if name in {one.source, "all"}])
        off = 100.0 * np.abs(np.exp(logs) - 1.0)
        lines.append(
            f"| {name} | {len(logs)} | {np.median(off):.1f} | {np.quantile(off, 0.9):.1f} | {np.mean(logs):+.3f} |"
        )
    return "\n".join(lines) + "\n"
