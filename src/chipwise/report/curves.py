"""The curves of an option as a page of tables: the figures that `plot` draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.report.document import Block, Column, Document, Heading, Line, Table, accent, dim, line
from chipwise.report.phrases import UNKNOWN, amount, seconds, spread, times
from chipwise.units import show_count, show_seconds, show_usd

Answer = Mapping[str, Any]
_PERCENT = 100.0


def curves_page(answer: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(answer)))


def _blocks(answer: Answer) -> Iterator[Block]:
    what = accent(times(answer["instances"], answer["instance"]))
    yield Heading(line=line(answer["model"], dim(" on "), what), level=1)
    if answer["load"]:
        yield Heading(line=line("By requests in flight"))
        yield _table(("in flight", "mean TTFT", "mean TPOT", "tok/s"), [_load(row) for row in answer["load"]])
    if answer["context"]:
        yield Heading(line=line("By context"))
        yield _table(("context", "requests a replica holds"), [_context(row) for row in answer["context"]])
    if answer["use"]:
        yield Heading(line=line("By share of capacity in use"))
        yield _table(("in use", "$ per million output tokens"), [_use(row) for row in answer["use"]])
    yield Heading(line=line("Every size that would do"))
    yield _table(("size", "$/h", "P99 TTFT", "P99 TPOT"), [_candidate(row) for row in answer["candidates"]])


def _table(titles: tuple[str, ...], rows: list[tuple[Line, ...]]) -> Table:
    columns = tuple(Column(title=title, right=place > 0) for place, title in enumerate(titles))
    return Table(columns=columns, rows=tuple(rows))


def _load(row: Answer) -> tuple[Line, ...]:
    speed = row["output_tokens_per_s"]
    return (
        line(f"{row['concurrency']:,}"),
        line(*seconds(row["ttft_s"])) if row["ttft_s"] else line(UNKNOWN),
        line(*seconds(row["tpot_s"])) if row["tpot_s"] else line(UNKNOWN),
        line(*spread(speed, amount)),
    )


def _context(row: Answer) -> tuple[Line, ...]:
    held = row["max_concurrency"]
    return line(show_count(row["context"])), line(UNKNOWN if held is None else f"{held:,.1f}")


def _use(row: Answer) -> tuple[Line, ...]:
    return line(f"{row['share'] * _PERCENT:.0f} %"), line(*spread(row["usd_per_million_output_tokens"], show_usd))


def _candidate(row: Answer) -> tuple[Line, ...]:
    return (
        line(accent(times(row["instances"], row["instance"]))),
        line(UNKNOWN if row["usd_per_hour"] is None else show_usd(row["usd_per_hour"])),
        line(UNKNOWN if row["ttft_p99_s"] is None else show_seconds(row["ttft_p99_s"])),
        line(UNKNOWN if row["tpot_p99_s"] is None else show_seconds(row["tpot_p99_s"])),
    )
