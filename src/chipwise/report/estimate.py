"""The answer of `estimate` as a page: speed, what it is made of, memory."""

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
from chipwise.report.phrases import amount, maybe, percent, rate, seconds, spread
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
        if answer[kind]:
            yield Heading(line=line(kind.capitalize() if kind != "other" else "Speed"))
            yield Pairs(rows=tuple(rows(answer[kind])), indent=1)
            yield from _terms(answer[kind].get("terms") or [])
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


def _training(training: Answer) -> Iterator[tuple[str, Line]]:
    yield "step", seconds(training["step_s"])
    yield "tokens", rate(training["tokens_per_s"], "tok/s")
    yield "per chip", rate(training["tokens_per_s_per_chip"], "tok/s")
    yield "samples", rate(training["samples_per_s"], "a second")
    yield "MFU", line(*percent(training["mfu_fraction"]), dim("  HFU "), *percent(training["hfu_fraction"]))
    efficiency = training["communication_efficiency"]
    parts = [line(dim(f"{name} "), *percent(figures)) for name, figures in efficiency.items() if figures]
    yield "communication", join(parts)
    yield (
        "pipeline bubble",
        line(maybe(training["pipeline_bubble_fraction"], lambda share: f"{share * 100:.0f} %")),
    )


def _other(other: Answer) -> Iterator[tuple[str, Line]]:
    yield "speed", rate(other["units_per_s"], f"{other['unit']}s a second")
    yield "per chip", rate(other["units_per_s_per_chip"], f"{other['unit']}s a second")
    yield "latency", seconds(other["latency_s"])
    if other["real_time_factor"]:
        yield "real-time factor", spread(other["real_time_factor"], amount)


_SPEED = {"serving": _serving, "training": _training, "other": _other}


def _terms(terms: list[Answer]) -> Iterator[Block]:
    """What the time goes to, operation by operation; the columns are the terms' own names."""
    if not terms:
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
