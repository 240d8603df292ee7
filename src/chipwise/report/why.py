"""The answer of `why` as a page: where a size stands, the row in full sentences, what would turn it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    accent,
    bad,
    dim,
    good,
    join,
    line,
    warn,
)
from chipwise.report.option import option_blocks
from chipwise.report.others import lacked
from chipwise.report.phrases import amount, split_text, times, usd
from chipwise.units import show_seconds, show_usd

Answer = Mapping[str, Any]


def why_page(answer: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(answer)))


def _blocks(answer: Answer) -> Iterator[Block]:
    place = answer["stands_in"]
    yield Heading(line=line(accent(answer["instance"]), ": ", _VERDICTS[place]), level=1)
    if place == "options":
        yield from option_blocks(answer["detail"], answer["workload"])
    else:
        yield from _ROWS[place](answer["detail"])
    if answer["would_change_it"]:
        yield Heading(line=line("What would turn it, one change at a time ", dim("the least that is enough")))
        yield _changes(answer["would_change_it"])
    elif place in {"rejected", "excluded"}:
        yield Text(line=line(dim("No single change that was tried makes it do.")))
    yield Text(line=_rest(answer))


_VERDICTS = {
    "options": good("one of the options"),
    "also_feasible": good("would do, and stands behind the options"),
    "rejected": bad("will not do"),
    "not_judged": warn("cannot be judged"),
    "excluded": warn("left out by the question"),
}


def _rest(answer: Answer) -> Line:
    """What is best instead, and how old the facts are."""
    best = answer["best"]
    other = line("the first option is ", accent(best)) if best and best != answer["instance"] else line()
    nothing = line(warn("no size is feasible for this question")) if best is None else line()
    return join([other, nothing, line(dim(f"facts as of {answer['facts_as_of']}"))])


def _feasible(row: Answer) -> Iterator[Block]:
    """A size behind the options: how it would be laid, what it would reach and cost, and why others come first."""
    yield Text(line=line("It would do as ", *_laid(row), ", at ", *usd(row["usd_per_hour"]), " an hour."))
    reached = _latency(row)
    if reached:
        yield Text(line=line("It would reach ", reached, "."))
    yield Text(line=line("It stands behind because of this: ", row["behind_because"], "."))


def _latency(row: Answer) -> str:
    first = "TTFT" if row.get("tpot_p99_s") is not None else "latency"
    named = ((f"a P99 {first} of", "ttft_p99_s"), ("a P99 TPOT of", "tpot_p99_s"))
    return " and ".join(f"{words} {show_seconds(row[name])}" for words, name in named if row.get(name) is not None)


def _laid(row: Answer) -> Line:
    split = split_text(row["parallelism"])
    return line(times(row["instances"], row["instance"]), f", split {split}, in {row['precision']}")


def _rejected(row: Answer) -> Iterator[Block]:
    """A size that will not do: the reason, what it lacked, how near it came, what the rule says would help."""
    yield Text(line=line("It will not do: ", row["reason"], ".", dim(f" (rule {row['rule']}, {row['source']})")))
    rows: list[tuple[str, Line]] = []
    if row["shortfall"]:
        rows.append(("lacked", line(lacked(row["shortfall"]))))
    if row["nearest"]:
        rows.append(("came nearest as", _nearest(row["nearest"])))
    if row["change"]:
        rows.append(("would do with", line(row["change"])))
    if rows:
        yield Pairs(rows=tuple(rows))


def _nearest(nearest: Answer) -> Line:
    """The configuration that missed by the least."""
    return join([line(_near(name, value)) for name, value in nearest.items() if value is not None])


def _near(name: str, value: Any) -> str:
    if name == "usd_per_hour":
        return f"{show_usd(value['mid'])} an hour"
    if isinstance(value, Mapping):
        return split_text(value)
    if isinstance(value, str):
        return value
    words = name.removesuffix("_s").replace("_", " ")
    return f"{words} {show_seconds(value) if name.endswith('_s') else amount(value)}"


def _not_judged(row: Answer) -> Iterator[Block]:
    yield Text(line=line("Not known here: ", row["lacks"], "."))


def _excluded(row: Answer) -> Iterator[Block]:
    yield Text(line=line("It was not looked at: ", row["by"], "."))


_ROWS: Mapping[str, Callable[[Answer], Iterator[Block]]] = {
    "also_feasible": _feasible,
    "rejected": _rejected,
    "not_judged": _not_judged,
    "excluded": _excluded,
}


def _changes(changes: list[Answer]) -> Table:
    columns = (
        Column(title="of"),
        Column(title="change", wraps=True),
        Column(title="then it is", wraps=True),
        Column(title="$/h", right=True),
    )
    rows = tuple(
        (line(dim(one["kind"])), line(accent(one["change"])), _then(one["then"]), usd(one["then"]["usd_per_hour"]))
        for one in changes
    )
    return Table(columns=columns, rows=rows)


def _then(then: Answer) -> Line:
    laid = f"{split_text(then['parallelism'])} {then['precision']}"
    return line(f"{then['instances']} of it, {laid}")
