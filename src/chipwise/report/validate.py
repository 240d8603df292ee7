"""The page of `validate`: what was replayed, errors by metric and group, the worst, what was skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.report.document import (
    Block,
    Column,
    Document,
    Heading,
    Line,
    Pairs,
    Table,
    Text,
    bad,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import DASH, amount, plural

Answer = Mapping[str, Any]
_RIGHT = (0.7, 0.9)
"""Where the share of measurements within an 80 % range should lie."""
_SHOWN_GROUPS = 16
_SHOWN_TERMS = 3


def validate_page(answer: Answer) -> Document:
    """Everything of a validation, the largest groups only."""
    blocks: list[Block] = [Heading(line=line(strong(f"validate {answer['kind']}")), level=1), *_counts(answer)]
    blocks += [Heading(line=line("By metric")), _metrics(answer)]
    if answer["classification"]:
        blocks += [Heading(line=line("Fits or runs out of memory")), _recalls(answer["classification"])]
    for keys, own in _groupings(answer["groups"]).items():
        blocks += [Heading(line=line(f"By {', '.join(keys)}")), _groups(own, keys)]
    if answer["worst"]:
        blocks += [Heading(line=line("Furthest off")), _worst(answer["worst"])]
    return Document(blocks=tuple(blocks))


def _counts(answer: Answer) -> list[Block]:
    overall = answer["overall"]
    drawn = f", {answer['sample']} drawn" if answer["sample"] else ""
    found: list[Block] = [
        Text(
            line=line(
                f"{plural(answer['rows'], 'row')}{drawn}, {plural(answer['items'], 'item')}, ",
                strong(f"{answer['scored']:,} predicted"),
            )
        ),
        Text(
            line=line(
                "median error ",
                strong(_percent(overall["mdape"])),
                f", 90th percentile {_percent(overall['p90_ape'])}, bias {_bias(overall['bias'])}, in range ",
                _coverage(overall["coverage80"]),
            )
        ),
    ]
    skipped = answer["skipped"]
    if skipped:
        rows = tuple((code, line(f"{count:,}")) for code, count in skipped.items())
        found += [Heading(line=line("Not predicted")), Pairs(rows=rows)]
    return found


def _metrics(answer: Answer) -> Table:
    balanced = answer["by_source"]["mdape"]
    columns = (
        Column(title="metric"),
        Column(title="n", right=True),
        Column(title="median", right=True),
        Column(title="by source", right=True),
        Column(title="p90", right=True),
        Column(title="bias", right=True),
        Column(title="in range", right=True),
    )
    rows = tuple(
        (
            line(strong(metric)),
            line(f"{one['n']:,}"),
            _right(one) if "accuracy" in one else line(_percent(one["mdape"])),
            line(_percent(balanced.get(metric))),
            line(_percent(one["p90_ape"])),
            line(_bias(one["bias_log"])),
            line(_coverage(one["coverage80"])),
        )
        for metric, one in answer["metrics"].items()
    )
    return Table(columns=columns, rows=rows)


def _right(one: Answer) -> Line:
    return line(f"{one['accuracy'] * 100:.0f} % right")


def _recalls(recalls: Answer) -> Pairs:
    names = {"fits_recall": "of what fits", "oom_recall": "of what does not", "balanced_accuracy": "mean of the two"}
    return Pairs(rows=tuple((label, line(_percent(recalls[name]))) for name, label in names.items()))


def _groupings(groups: list[Answer]) -> dict[tuple[str, ...], list[Answer]]:
    """The groups of equal keys together."""
    found: dict[tuple[str, ...], list[Answer]] = {}
    for one in groups:
        found.setdefault(tuple(one["key"]), []).append(one)
    return found


def _groups(groups: list[Answer], keys: tuple[str, ...]) -> Table:
    columns = (
        *(Column(title=key) for key in keys),
        Column(title="n", right=True),
        Column(title="median", right=True),
        Column(title="p90", right=True),
        Column(title="bias", right=True),
        Column(title="in range", right=True),
    )
    rows = tuple(
        (
            *(line(one["key"][key]) for key in keys),
            line(f"{one['n']:,}"),
            line(_percent(one["mdape"])),
            line(_percent(one["p90_ape"])),
            line(_bias(one["bias_log"])),
            line(_coverage(one["coverage80"])),
        )
        for one in groups[:_SHOWN_GROUPS]
    )
    return Table(columns=columns, rows=rows)


def _worst(worst: list[Answer]) -> Table:
    columns = (
        Column(title="run"),
        Column(title="metric"),
        Column(title="predicted", right=True),
        Column(title="measured", right=True),
        Column(title="most of it", wraps=True),
    )
    rows = tuple(
        (
            line(one["run_id"]),
            line(one["metric"]),
            line(amount(one["predicted"])),
            line(amount(one["measured"])),
            line(dim(_largest(one["terms"]))),
        )
        for one in worst
    )
    return Table(columns=columns, rows=rows)


def _largest(terms: Mapping[str, float | None]) -> str:
    known = [(name, value) for name, value in terms.items() if value is not None]
    ordered = sorted(known, key=lambda item: -abs(item[1]))
    return ", ".join(f"{name} {value:.3g}" for name, value in ordered[:_SHOWN_TERMS]) or DASH


def validate_decisions_page(answer: Answer) -> Document:
    """How often the pick was the best measured, and what the others cost."""
    regret = answer["regret"]
    blocks: list[Block] = [
        Heading(line=line(strong("validate decisions")), level=1),
        Text(
            line=line(
                f"{plural(answer['cases'], 'question')} with two or more kinds of hardware measured: best picked ",
                strong(_percent(answer["top1"])),
                f", among the first three {_percent(answer['top3'])}",
            )
        ),
        Text(
            line=line(
                f"regret: mean {_percent(regret['mean'])}, median {_percent(regret['median'])}, "
                f"90th percentile {_percent(regret['p90'])}"
            )
        ),
    ]
    missed = [one for one in answer["cases_detail"] if one["regret"] > 0]
    if missed:
        blocks += [Heading(line=line("Dearest misses")), _misses(missed)]
    return Document(blocks=tuple(blocks))


def _misses(missed: list[Answer]) -> Table:
    columns = (
        Column(title="model"),
        Column(title="question", wraps=True),
        Column(title="picked"),
        Column(title="best"),
        Column(title="regret", right=True),
    )
    rows = tuple(
        (
            line(one["model"]),
            line(one["question"]),
            line(one["picked"]),
            line(one["best"]),
            line(_percent(one["regret"])),
        )
        for one in sorted(missed, key=lambda one: -one["regret"])[:_SHOWN_GROUPS]
    )
    return Table(columns=columns, rows=rows)


def _percent(value: float | None) -> str:
    """A share in per cent; one digit behind the point below ten.

    >>> _percent(0.0345), _percent(0.5)
    ('3.5 %', '50 %')
    """
    if value is None:
        return DASH
    return f"{value * 100:.1f} %" if value < 0.1 else f"{value * 100:.0f} %"


def _bias(value: float | None) -> str:
    return DASH if value is None else f"{value:+.2f}"


def _coverage(value: float | None) -> Any:
    if value is None:
        return dim(DASH)
    tone: Callable[[str], Any] = good if _RIGHT[0] <= value <= _RIGHT[1] else warn if value > _RIGHT[1] else bad
    return tone(f"{value * 100:.0f} %")
