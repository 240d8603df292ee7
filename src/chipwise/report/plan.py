"""The answer of `advise` as a page: what was asked, the options side by side and one by one, all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.report import others
from chipwise.report.document import (
    Block,
    Column,
    Document,
    Heading,
    Line,
    Table,
    Text,
    accent,
    dim,
    line,
    strong,
    warn,
)
from chipwise.report.option import option_blocks, said_of_all
from chipwise.report.phrases import TIMES, UNKNOWN, amount, gib, maybe, split_text, times
from chipwise.report.workload import workload_block
from chipwise.units import show_count, show_seconds, show_usd

Answer = Mapping[str, Any]


def plan_page(advice: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(advice)))


def _blocks(advice: Answer) -> Iterator[Block]:
    yield Heading(line=model_line(advice["model"]), level=1)
    yield workload_block(advice["workload"])
    yield Text(line=_considered(advice))
    if advice["options"]:
        yield Heading(line=line("Options"))
        yield _side_by_side(advice["options"])
    else:
        yield Heading(line=line(warn("Nothing feasible")))
    shared = said_of_all(advice["options"])
    for option in advice["options"]:
        yield from option_blocks(option, advice["workload"], shared)
    yield from others.also_feasible(advice["also_feasible"])
    yield from others.rejected(advice["rejected"])
    yield from others.left_out(advice)
    yield from others.guide(advice["guide"])
    yield from others.gpu_or_neuron(advice["gpu_or_neuron"])
    yield from others.gpu_needed(advice["gpu_needed"])
    yield from others.benchmark(advice["benchmark"])
    yield from others.warnings([*_methods(advice["options"]), *shared, *advice["warnings"]])


def _methods(options: list[Answer]) -> list[str]:
    """How percentiles were got, in full, each way once."""
    found = [option["latency"]["method"] for option in options if option["latency"]]
    return [f"percentiles are {method}" for method in dict.fromkeys(found)]


def model_line(model: Answer) -> Line:
    """Name, class, parameters, data type, weight."""
    active = model["params_active"]
    more = f", {show_count(active)} active" if active and active != model["params_total"] else ""
    return line(
        strong(model["name"]),
        dim(f"  {model['architecture']} · {show_count(model['params_total'])} parameters{more} · "),
        dim(f"{model['dtype'] or 'unknown data type'} · {gib(model['weight_bytes'])}"),
    )


def _considered(advice: Answer) -> Line:
    counts = [f"{count:,} {name}" for name, count in advice["considered"].items()]
    return line(dim(f"{', '.join(counts)} considered · facts as of {advice['facts_as_of']}"))


def _side_by_side(options: list[Answer]) -> Table:
    columns = (
        Column(title="#"),
        Column(title="size"),
        Column(title=f"replicas {TIMES} split"),
        Column(title="TTFT p99", right=True),
        Column(title="TPOT p99", right=True),
        Column(title="tok/s", right=True),
        Column(title="$/h", right=True),
    )
    return Table(columns=columns, rows=tuple(map(_summary, options)), indent=1)


def _summary(option: Answer) -> tuple[Line, ...]:
    latency = option["latency"] or {}
    price = option["cost"]["usd_per_hour"]
    return (
        line(str(option["rank"]), warn("=") if option["tied_with"] else ""),
        line(accent(times(option["instances"], option["instance"]))),
        line(times(option["replicas"], split_text(option["parallelism"])), f" {option['precision']['weights']}"),
        *(line(maybe((latency.get(name) or {}).get("p99"), show_seconds)) for name in ("ttft_s", "tpot_s")),
        line(_throughput(option["performance"])),
        line(UNKNOWN if price is None else show_usd(price["mid"])),
    )


def _throughput(performance: Answer) -> str:
    serving, training = performance.get("serving"), performance.get("training")
    if serving:
        return amount(serving["output_tokens_per_s"]["mid"])
    return amount(training["tokens_per_s"]["mid"]) if training else UNKNOWN
