"""The rest of a plan: every size that is no option with its why, the guide, the verdict, what to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Commands,
    Heading,
    Line,
    Pairs,
    Table,
    Text,
    accent,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import UNKNOWN, amount, gib, listing, maybe, plural, split_text, times
from chipwise.units import show_seconds, show_usd

Answer = Mapping[str, Any]


def also_feasible(rows: list[Answer]) -> Iterator[Block]:
    """Sizes that would do, and why they stand behind; those far behind in a line for each kind of it."""
    if not rows:
        return
    titles = _latencies(rows)
    said = f", with {' and '.join(titles.values())} at p99" if titles else ""
    yield Heading(line=line("Would do as well ", dim(f"{len(rows)}{said}")))
    near = [row for row in rows if not row.get("aside")]
    if near:
        yield _feasible_table(near, titles)
    folded: dict[str, list[Answer]] = {}
    for row in rows:
        if row.get("aside"):
            folded.setdefault(row["aside"], []).append(row)
    for why, group in folded.items():
        names = listing([times(row["instances"], row["instance"]) for row in group], _MOST_FOLDED)
        yield Text(line=line(dim(f"{len(group)} more at {why}: "), dim(names)), indent=1)


_MOST_FOLDED = 6


def _latencies(rows: list[Answer]) -> dict[str, str]:
    """The latencies that the rows have, by field: an answer that comes whole has one, a run none."""
    if any(row["tpot_p99_s"] is not None for row in rows):
        return {"ttft_p99_s": "TTFT", "tpot_p99_s": "TPOT"}
    return {"ttft_p99_s": "latency"} if any(row["ttft_p99_s"] is not None for row in rows) else {}


def _feasible_table(rows: list[Answer], titles: Mapping[str, str]) -> Table:
    latency = tuple(Column(title=title, right=True) for title in titles.values())
    columns = (
        Column(title="size"),
        Column(title="split"),
        Column(title="$/h", right=True),
        *latency,
        Column(title="behind because", wraps=True),
    )
    return Table(columns=columns, rows=tuple(_feasible(row, tuple(titles)) for row in rows), indent=1)


def _feasible(row: Answer, latencies: Sequence[str]) -> tuple[Line, ...]:
    price = row["usd_per_hour"]
    latency = [line(maybe(row[name], show_seconds)) for name in latencies]
    return (
        line(times(row["instances"], row["instance"])),
        line(f"{row.get('profile') or split_text(row['parallelism'])} {row['precision']}"),
        line(UNKNOWN if price is None else show_usd(price["mid"])),
        *latency,
        line(row["behind_because"]),
    )


def rejected(rows: list[Answer]) -> Iterator[Block]:
    """Sizes that will not do, by rule; those with the same reason in one row."""
    if not rows:
        return
    yield Heading(line=line("Will not do ", dim(f"{len(rows)}")))
    for rule, group in groupby(sorted(rows, key=lambda row: str(row["rule"])), key=lambda row: row["rule"]):
        yield from _rule(str(rule), list(group))


def _rule(rule: str, rows: list[Answer]) -> Iterator[Block]:
    """One rule: what would help is said once where it is the same for all."""
    helps = {row["change"] or "" for row in rows}
    parts = [dim(f"  {plural(len(rows), 'size')} · {rows[0]['source']}")]
    parts += [dim(f" · unless {next(iter(helps))}")] if len(helps) == 1 and helps != {""} else []
    yield Text(line=line(strong(rule), *parts), indent=1)
    columns = [Column(title="size", wraps=True), Column(title="why not", wraps=True)]
    columns += [Column(title="unless", wraps=True)] if len(helps) > 1 else []
    alike = _together(rows, lambda row: (_why(row), row["change"] or ""))
    cells = tuple((line(", ".join(names)), why, line(change))[: len(columns)] for (why, change), names in alike)
    yield Table(columns=tuple(columns), rows=cells, indent=2)


def _why(row: Answer) -> Line:
    """The reason, and the number that was lacking where the reason does not hold it."""
    if not row["shortfall"]:
        return line(row["reason"])
    missed = lacked(row["shortfall"])
    told = missed.partition(" per ")[0] in row["reason"] or " short" in row["reason"]
    return line(row["reason"], "" if told else dim(f" ({_MISSED.get(row['shortfall']['unit'], 'short by')} {missed})"))


def lacked(shortfall: Answer) -> str:
    """The number that was lacking, with its unit.

    >>> lacked({"value": 0.031, "unit": "s"})
    '31.0 ms'
    """
    value, unit = shortfall["value"], shortfall["unit"]
    for known, show in _SHOWN.items():
        if unit == known or unit.startswith(f"{known} "):
            return f"{show(value)}{unit.removeprefix(known)}"
    return f"{amount(value)} {unit}"


_SHOWN: Mapping[str, Callable[[float], str]] = {"bytes": gib, "s": show_seconds, "usd": show_usd}
_MISSED = {"s": "over by", "usd": "over by"}


def _together(rows: Iterable[Answer], key: Any) -> list[tuple[Any, list[str]]]:
    """Names of rows of the same key, in the order of the first of each."""
    found: dict[Any, list[str]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row["instance"])
    return list(found.items())


def left_out(advice: Answer) -> Iterator[Block]:
    """Sizes about which too little is known, and those that the question left out."""
    unknown = _together(advice["not_judged"], lambda row: row["lacks"])
    if unknown:
        yield Heading(line=line("Not judged ", dim(f"{len(advice['not_judged'])}")))
        columns = (Column(title="size", wraps=True), Column(title="lacks", wraps=True))
        rows = tuple((line(listing(names, 12)), line(lacks)) for lacks, names in unknown)
        yield Table(columns=columns, rows=rows, indent=1)
    out = _together(advice["excluded"], lambda row: row["by"])
    if out:
        yield Heading(line=line("Left out by the question ", dim(f"{len(advice['excluded'])}")))
        by_reason = tuple((f"{by} ({len(names)})", line(dim(listing(names, 6)))) for by, names in out)
        yield Pairs(rows=by_reason, indent=1)


def guide(answer: Answer) -> Iterator[Block]:
    """What the guide itself recommends, and where the answer differs."""
    if not answer.get("path") and not answer.get("recommends"):
        return
    verdict = good("agrees") if answer["agrees"] else warn("differs")
    yield Heading(line=line("The guide ", verdict))
    rows = [
        ("path", line(" → ".join(map(str, answer["path"])))),
        ("recommends", line(listing(answer["recommends"]))),
    ]
    rows += [(one["kind"], line(f"{one['why']} ", dim(one["id"]))) for one in answer["differs"]]
    yield Pairs(rows=tuple(rows), indent=1)


def gpu_or_neuron(answer: Answer) -> Iterator[Block]:
    """The verdict and its signals."""
    yield Heading(line=line("GPU or Neuron: ", accent(answer["verdict"])))
    rows = tuple(
        (line(one["signal"]), line(strong(one["points_to"])), line(one["why"], dim(f" {one['source']}")))
        for one in answer["signals"]
    )
    if rows:
        columns = (
            Column(title="signal", wraps=True),
            Column(title="points to"),
            Column(title="why", wraps=True),
        )
        yield Table(columns=columns, rows=rows, indent=1)


def gpu_needed(answer: Answer | None) -> Iterator[Block]:
    """Whether a GPU is needed at all."""
    if answer is not None:
        yield Heading(line=line("A GPU is ", strong("needed" if answer["answer"] else "not needed")))
        yield Text(line=line(answer["why"]), indent=1)


def benchmark(answer: Answer) -> Iterator[Block]:
    """What to measure next."""
    if answer["commands"]:
        yield Heading(line=line("Measure next"))
        yield Commands(lines=tuple(answer["commands"]), indent=1)
        if answer["decide_by"]:
            yield Text(line=line(dim("decide by "), answer["decide_by"]), indent=1)


def warnings(texts: list[str]) -> Iterator[Block]:
    """What to keep in mind."""
    if texts:
        yield Heading(line=line("Keep in mind"))
        yield Bullets(items=tuple(line(text) for text in texts), mark=warn("!"), indent=1)
