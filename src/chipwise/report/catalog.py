"""The catalog as pages: a list, one thing with its facts, a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Heading,
    Line,
    Table,
    Text,
    accent,
    bad,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import UNKNOWN, amount, gib, listing, maybe, plural, times
from chipwise.units import show_usd

Answer = Mapping[str, Any]


def catalog_list_page(answer: Answer) -> Document:
    """Sizes with their accelerators, then chips."""
    return Document(blocks=tuple(_list(answer)))


def _list(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line("Sizes ", dim(f"{len(answer['instances'])}")), level=1)
    columns = (
        Column(title="size"),
        Column(title="accelerators"),
        Column(title="memory each", right=True),
        Column(title="vCPU", right=True),
        Column(title="memory", right=True),
        Column(title="status"),
    )
    yield Table(columns=columns, rows=tuple(map(_size, answer["instances"])))
    yield Heading(line=line("Chips ", dim(f"{len(answer['chips'])}")))
    yield _chips(answer["chips"])
    regions, as_of = plural(len(answer["regions"]), "region"), f"facts as of {answer['facts_as_of']}"
    yield Text(line=line(dim(f"{regions} · {as_of} · chipwise catalog show NAME")))


def _chips(chips: list[Answer]) -> Table:
    columns = (
        Column(title="chip"),
        Column(title="architecture"),
        Column(title="memory", right=True),
        Column(title="rented as", wraps=True),
    )
    return Table(columns=columns, rows=tuple(map(_chip, chips)))


def _size(size: Answer) -> tuple[Line, ...]:
    chips = line(dim("none"))
    if size["chip"]:
        chips = line(times(size["chips"] or 1, size["chip"]), _share(size))
    return (
        line(accent(size["name"])),
        chips,
        line(maybe(size["accelerator_memory_bytes"], gib) if size["chip"] else ""),
        line(maybe(size["vcpu"], amount)),
        line(maybe(size["ram_bytes"], gib)),
        _status(size),
    )


def _share(size: Answer) -> str:
    fraction = size["chip_fraction"]
    return f" ({fraction:g} of one)" if fraction < 1 else ""


def _status(size: Answer) -> Line:
    if size["lacks"]:
        return line(warn("lacks facts"))
    return line(good(size["status"]) if size["status"] == "current" else dim(size["status"]))


def _chip(chip: Answer) -> tuple[Line, ...]:
    rented = ", ".join(chip["aws_families"])
    return (
        line(accent(chip["id"])),
        line(chip["architecture"]),
        line(maybe(chip["memory_bytes"], gib)),
        line(rented or dim("not rented by AWS")),
    )


def catalog_show_page(answer: Answer) -> Document:
    """Facts with kind, source and date; rivals under the chosen; prices; where it is offered."""
    return Document(blocks=tuple(_show(answer)))


def _show(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line(strong(answer["name"]), dim(f"  {answer['kind']}")), level=1)
    columns = (
        Column(title="fact"),
        Column(title="value", wraps=True),
        Column(title="kind"),
        Column(title="source"),
        Column(title="read on"),
    )
    rows = [row for fact in answer["facts"] for row in _fact_rows(fact)]
    yield Table(columns=columns, rows=tuple(rows))
    if answer["prices"]:
        yield Heading(line=line("Prices, an hour"))
        yield _prices(answer["prices"])
    if answer["offerings"]:
        yield Heading(line=line("Offered in"))
        regions = [offering["region"] for offering in answer["offerings"]]
        yield Text(line=line(listing(regions, len(regions))), indent=1)
    yield Heading(line=line("Sources"))
    sources = answer["sources"].items()
    said = tuple(line(strong(key), f" {one['title']} ", dim(one["locator"])) for key, one in sources)
    yield Bullets(items=said, mark=dim("-"), indent=1)


def _fact_rows(fact: Answer) -> Iterator[tuple[Line, ...]]:
    yield (line(accent(fact["key"])), *_said(fact))
    for other in fact["conflicts"]:
        yield (line(dim("  but")), *_said(other))


def _said(fact: Answer) -> tuple[Line, ...]:
    unit = f" {fact['unit']}" if fact["unit"] else ""
    why = dim(f" ({fact['why']})") if fact["why"] else ""
    return (
        line(f"{_value(fact['value'])}{unit}", dim(f" · {fact['where']}"), why),
        line(fact["kind"]),
        line(fact["source"]),
        line(dim(fact["read_on"])),
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _prices(prices: list[Answer]) -> Table:
    columns = (
        Column(title="term"),
        Column(title="region"),
        Column(title="USD", right=True),
        Column(title="as of"),
        Column(title="note", wraps=True),
    )
    rows = tuple(
        (
            line(price["term"]),
            line(price["region"] or UNKNOWN),
            line("none" if price["usd_per_hour"] is None else show_usd(price["usd_per_hour"])),
            line(dim(price["as_of"] or "undated")),
            line(dim(price["note"] or "")),
        )
        for price in prices
    )
    return Table(columns=columns, rows=rows, indent=1)


def catalog_check_page(answer: Answer) -> Document:
    """The verdict and every finding."""
    counts = ", ".join(f"{count:,} {name}" for name, count in answer["counts"].items())
    verdict = good("whole") if answer["ok"] else bad("broken")
    as_of = f"facts as of {answer['facts_as_of']}"
    heading = Heading(line=line(verdict, dim(f"  {counts} · {as_of}")), level=1)
    rows = tuple(map(_finding, answer["findings"]))
    columns = (Column(title=""), Column(title="of"), Column(title="what", wraps=True))
    return Document(blocks=(heading, Table(columns=columns, rows=rows)) if rows else (heading,))


def _finding(finding: Answer) -> tuple[Line, ...]:
    tone = bad if finding["severity"] == "error" else warn
    return line(tone(finding["severity"])), line(finding["subject"]), line(finding["what"])
