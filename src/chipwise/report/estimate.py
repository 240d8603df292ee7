"""The answer of `estimate` as a page: speed, what it is made of, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    Text,
    bad,
    dim,
    good,
    join,
    line,
    strong,
    warn,
)
from chipwise.report.memory import memory_bar
from chipwise.report.phrases import UNKNOWN, amount, rate, seconds, split_text, spread
from chipwise.report.training import step_bar, step_rows, term_name
from chipwise.units import show_seconds

Answer = Mapping[str, Any]


def estimate_page(answer: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(answer)))


def _blocks(answer: Answer) -> Iterator[Block]:
    verdict = good("runs") if answer["feasible"] else bad("cannot run so")
    yield Heading(line=line(verdict, dim(f"  {answer['evidence']}")), level=1)
    yield Text(line=_config(answer["config"]))
    for kind, rows in _SPEED.items():
        if answer[kind] and not (kind == "other" and answer["training"]):  # the same rate, in the model's own unit
            yield Heading(line=line(kind.capitalize() if kind != "other" else "Speed"))
            yield Pairs(rows=tuple(rows(answer[kind])), indent=1)
            yield from _terms(answer[kind])
    if answer["memory"]:
        yield Heading(line=line("Memory"))
        yield memory_bar(answer["memory"], indent=1)
    if answer["watts"]:
        yield Pairs(rows=(("power", rate(answer["watts"], "W")),), indent=1)
    if answer["warnings"]:
        yield Bullets(items=tuple(line(text) for text in answer["warnings"]), mark=warn("!"))


def _config(config: Answer) -> Line:
    """The configuration as resolved, values that are not set left out."""
    shown = {name: value for name, value in config.items() if value not in (None, False, "", [], {})}
    return join([line(dim(f"{name} "), _value(value)) for name, value in shown.items()])


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "tp" in value:
        return split_text(value)
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_value(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return amount(value) if isinstance(value, int | float) else str(value)


def _serving(serving: Answer) -> Iterator[tuple[str, Line]]:
    alone = serving["isolated"]
    yield "TTFT", line(*_latency(serving["ttft_s"]), dim("  alone "), *seconds(alone["ttft_s"]))
    yield "TPOT", line(*seconds(serving["tpot_s"]), dim("  alone "), *seconds(alone["tpot_s"]))
    yield "end to end", _latency(serving["e2e_s"])
    yield "output", line(*rate(serving["output_tokens_per_s"], "tok/s"))
    yield "per chip", rate(serving["output_tokens_per_s_per_chip"], "tok/s")
    yield "in and out", rate(serving["total_tokens_per_s"], "tok/s")
    yield "batch", spread(serving["batch"], amount)
    load = bad("saturated: requests queue without end") if serving["saturated"] else good("below capacity")
    yield "load", line(load, dim(" at most "), *rate(serving["saturation_rate"], "req/s"))
    yield "bound by", line(strong(serving["bound_by"]))


def _latency(figures: Answer | None) -> Line:
    return line(bad("grows with the queue")) if figures is None else seconds(figures)


def _other(other: Answer) -> Iterator[tuple[str, Line]]:
    yield "speed", rate(other["units_per_s"], f"{other['unit']}s a second")
    yield "per chip", rate(other["units_per_s_per_chip"], f"{other['unit']}s a second")
    yield "latency", seconds(other["latency_s"])
    if other["real_time_factor"]:
        yield "real-time factor", spread(other["real_time_factor"], amount)


_SPEED: Mapping[str, Callable[[Answer], Iterator[tuple[str, Line]]]] = {
    "serving": _serving,
    "training": step_rows,
    "other": _other,
}


def _terms(speed: Answer) -> Iterator[Block]:
    """What the time goes to, operation by operation; the columns are the terms' own names."""
    terms = speed.get("terms") or []
    if all("seconds" in term for term in terms):
        yield from _step(speed, terms)
        return
    names = list(dict.fromkeys(name for term in terms for name in term))
    columns = tuple(
        Column(title=name.removesuffix("_s").replace("_", " "), right=name.endswith("_s")) for name in names
    )
    spent = [term for term in terms if any(value for name, value in term.items() if name.endswith("_s"))]
    rows = tuple(tuple(line(_term(name, term.get(name))) for name in names) for term in spent)
    yield Text(line=line(dim("where the time goes")), indent=1)
    yield Table(columns=columns, rows=rows, indent=1)


def _term(name: str, value: Any) -> str:
    if not value:
        return ""
    return show_seconds(value) if name.endswith("_s") else str(value)


def _step(training: Answer, terms: list[Answer]) -> Iterator[Block]:
    """The terms of an optimizer step, drawn and as a table."""
    spent = [term for term in terms if term["seconds"]]
    if not spent:
        return
    yield step_bar(training, indent=1)
    columns = (Column(title="op"), Column(title="takes", right=True), Column(title="bound by"))
    rows = tuple(
        (line(term_name(term["op"])), line(show_seconds(term["seconds"])), line(dim(term["bound_by"] or UNKNOWN)))
        for term in sorted(spent, key=lambda term: -term["seconds"])
    )
    yield Table(columns=columns, rows=rows, indent=1)
