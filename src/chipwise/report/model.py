"""A model as a page: size, attention, cache, experts, splits and precisions."""

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
    Pairs,
    Table,
    accent,
    dim,
    join,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import UNKNOWN, gib, listing, maybe, plural
from chipwise.units import show_count

Answer = Mapping[str, Any]


def model_page(model: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(model)))


def model_list_page(answer: Answer) -> Document:
    """The built-in names."""
    columns = (Column(title="name"), Column(title="also known as", wraps=True))
    rows = tuple((line(accent(one["name"])), line(dim(", ".join(one["aliases"])))) for one in answer["models"])
    heading = Heading(line=line("Built-in models ", dim(f"{len(rows)}")), level=1)
    return Document(blocks=(heading, Table(columns=columns, rows=rows)))


def _blocks(model: Answer) -> Iterator[Block]:
    yield Heading(line=line(strong(model["name"]), dim(f"  {model['architecture']} · {model['model_type']}")), level=1)
    yield Pairs(rows=tuple(_rows(model)))
    if model["attention"]:
        yield Heading(line=line("Attention"))
        yield _attention(model["attention"])
    if model["precisions"]:
        yield Heading(line=line("May be held in"))
        yield _precisions(model["precisions"])
        yield _sources(model["precisions"])
    if model["warnings"]:
        yield Bullets(items=tuple(line(text) for text in model["warnings"]), mark=warn("!"))


def _rows(model: Answer) -> Iterator[tuple[str, Line]]:
    yield "parameters", _params(model)
    yield "weights", line(gib(model["weight_bytes"]), dim(f"  {model['dtype'] or 'data type unknown'}"))
    if model["quantization"]:
        yield "quantised", _quantised(model["quantization"])
    width = f"{plural(model['layers'], 'layer')} of {maybe(model['hidden_size'], _whole)}"
    yield "shape", line(f"{width}, vocabulary {maybe(model['vocab_size'], _whole)}")
    yield "context", line(maybe(model["max_context_tokens"], lambda count: f"{count:,} tokens"))
    cache = f"{gib(model['kv_bytes_per_token'])} a token"
    yield "cache", line(cache, dim("  at 2 bytes an element, all layers"))
    if model["state_bytes_per_sequence"]:
        yield "state", line(f"{gib(model['state_bytes_per_sequence'])} a sequence")
    if model["experts"]:
        yield "experts", _experts(model["experts"])
    if model["legal_tp"]:
        yield "legal tp", line(listing([str(size) for size in model["legal_tp"]], 16))


def _whole(count: float) -> str:
    return f"{count:,.0f}"


def _quantised(quantised: Answer) -> Line:
    origin = quantised["inferred_from"]
    bits = f"{quantised['bits_per_weight']:.2f} bits a weight"
    inferred = f", inferred from {origin}" if origin else ""
    return line(f"{quantised['method']} {quantised['weight_format']}", dim(f"  {bits}{inferred}"))


def _experts(experts: Answer) -> Line:
    shared = f" and {experts['shared']} shared" if experts["shared"] else ""
    each = f"{experts['per_token']} of {experts['routed']}{shared} a token"
    return line(f"{each}, in {plural(experts['moe_layers'], 'layer')}")


def _params(model: Answer) -> Line:
    total, active = model["params_total"], model["params_active"]
    parts = [line(strong(show_count(total)), dim(f" {total:,}"))]
    parts += [line(f"{show_count(active)} active")] if active != total else []
    parts += [line(f"{show_count(model['params_mtp'])} more to predict several tokens")] if model["params_mtp"] else []
    return (*join(parts), dim(f"  by {model['params_source']}"))


def _attention(rows: list[Answer]) -> Table:
    names: tuple[str, ...] = ("layers", "query_heads", "kv_heads", "head_dim", "window_tokens")
    if any(row.get("compressed_every") for row in rows):
        names = (*names, "compressed_every")
    columns = (Column(title="kind"), *(Column(title=name.replace("_", " "), right=True) for name in names))
    cells = tuple((line(row["kind"]), *(line(_cell(row.get(name))) for name in names)) for row in rows)
    return Table(columns=columns, rows=cells, indent=1)


def _cell(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _precisions(rows: list[Answer]) -> Table:
    columns = (
        Column(title="format"),
        Column(title="quality loss", wraps=True),
        Column(title="calibration"),
        Column(title="condition", wraps=True),
    )
    return Table(columns=columns, rows=tuple(map(_precision, rows)), indent=1)


def _precision(row: Answer) -> tuple[Line, ...]:
    needs = "needs data" if row["calibration_data"] else "none"
    return (
        line(strong(row["format"])),
        line(row["quality_loss"] or UNKNOWN),
        line(needs),
        line(row["condition"] or ""),
    )


def _sources(rows: list[Answer]) -> Bullets:
    """Each source once, with the formats it speaks of."""
    formats: dict[str, list[str]] = {}
    for row in rows:
        if row["source"]:
            formats.setdefault(row["source"], []).append(row["format"])
    items = tuple(line(dim(f"{', '.join(names)}: {source}")) for source, names in formats.items())
    return Bullets(items=items, mark=dim("-"), indent=1)
