"""The answer of `advise` as a page: what was asked, the options side by side and one by one, all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from chipwise.report import others
from chipwise.report.arrangement import rented
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
from chipwise.report.phrases import TIMES, UNKNOWN, amount, gib, maybe, plural, share, split_text, times
from chipwise.report.workload import workload_block
from chipwise.units import CENT, show_count, show_seconds, show_usd

Answer = Mapping[str, Any]
MILLION = 1e6
Shown = tuple[str, Callable[[Answer], str]]
"""A column of the options side by side: its title, and what an option says there."""


def plan_page(advice: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(advice)))


def summary_blocks(advice: Answer) -> Iterator[Block]:
    """What was asked, and the options side by side."""
    yield Heading(line=model_line(advice["model"]), level=1)
    yield workload_block(advice["workload"])
    yield Text(line=_considered(advice))
    if advice["options"]:
        yield Heading(line=line("Options"))
        yield _side_by_side(advice["options"])
        yield from _late(advice)
    else:
        yield Heading(line=line(warn("Nothing feasible")))


def _late(advice: Answer) -> Iterator[Block]:
    """That no option ends by the deadline of the preset, which nobody asked for and which therefore rejects none."""
    asked = advice["workload"].get("deadline_s") or {}
    took_s = [one["run"]["duration_s"]["mid"] for one in advice["options"] if one["run"]]
    if asked.get("from") != "preset" or not took_s or min(took_s) <= asked["value"]:
        return
    soonest = f"no option ends within the preset's {show_seconds(asked['value'])}: the soonest takes"
    yield Text(line=line(warn(f"! {soonest} {show_seconds(min(took_s))}")), indent=1)


def _blocks(advice: Answer) -> Iterator[Block]:
    yield from summary_blocks(advice)
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
    yield from others.warnings([*shared, *advice["warnings"]])


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
    """One row an option; a training run is told by its step and its end, serving by its latency."""
    own = _own(options)
    laid = "split" if _trains(options) else f"replicas {TIMES} split"
    named = tuple(Column(title=title) for title in ("#", "size", laid))
    figures = tuple(Column(title=title, right=True) for title, _ in own)
    return Table(columns=named + figures, rows=tuple(_summary(option, own) for option in options), indent=1)


def _trains(options: list[Answer]) -> bool:
    return any(option["performance"].get("training") for option in options)


def _own(options: list[Answer]) -> tuple[Shown, ...]:
    """The figures that tell these options apart."""
    if _trains(options):
        return _runs(options)
    whole = any(option["performance"].get("other") for option in options)
    if whole:
        return _answers(options)
    return _SERVES if any(_p99(option, "ttft_s") != UNKNOWN for option in options) else _BATCHES


_IN_WORDS: Mapping[str, str] = {
    "TTFT p99": "P99 TTFT {}", "TPOT p99": "P99 TPOT {}", "latency p99": "P99 latency {}", "tok/s": "{} tok/s",
    "a second": "{} a second", "$ a million": "{} a million", "$ each": "{} each",
    "$/M tok": "{} a million output tokens", "$/h": "{} an hour", "$ a run": "{} a run", "samples/s": "{} samples/s",
}  # fmt: skip
"""A figure as part of a sentence, by its title in a table."""


def headline(option: Answer) -> Line:
    """An option in one sentence: what to buy, how it is laid, how fast, at what price."""
    shown = [(title, show(option)) for title, show in _own([option])]
    told = [_IN_WORDS.get(title, f"{title} {{}}").format(text) for title, text in shown if text != UNKNOWN]
    split = split_text(option["parallelism"])
    several = f"{plural(option['replicas'], 'replica')} of " if option["replicas"] > 1 else ""
    laid = f"{several}{split} at {option['precision']['weights']}"
    return line(strong(rented(option)), f": {', '.join([laid, *told])}")


def figures_of(option: Answer) -> dict[str, str]:
    """What a table of options side by side says of one, by title."""
    split = split_text(option["parallelism"])
    laid = {"size": rented(option), "split": split, "weights": str(option["precision"]["weights"])}
    return {**laid, **{title: show(option) for title, show in _own([option])}}


def _summary(option: Answer, own: Sequence[Shown]) -> tuple[Line, ...]:
    split = split_text(option["parallelism"])
    laid = split if option["performance"].get("training") else times(option["replicas"], split)
    return (
        line(str(option["rank"]), warn("=") if option["tied_with"] else ""),
        line(accent(rented(option))),
        line(f"{laid} {option['precision']['weights']}"),
        *(line(show(option)) for _, show in own),
    )


def _mid(figures: Answer | None, show: Callable[[float], str]) -> str:
    return UNKNOWN if figures is None else show(figures["mid"])


def _p99(option: Answer, name: str) -> str:
    return maybe(((option["latency"] or {}).get(name) or {}).get("p99"), show_seconds)


def _step(option: Answer, name: str, show: Callable[[float], str]) -> str:
    return _mid((option["performance"].get("training") or {}).get(name), show)


def _output(option: Answer) -> str:
    return _mid((option["performance"].get("serving") or {}).get("output_tokens_per_s"), amount)


def _units(option: Answer) -> str:
    other = option["performance"].get("other")
    return UNKNOWN if other is None else f"{amount(other['units_per_s']['mid'])} {other['unit']}s"


def _answers(options: list[Answer]) -> tuple[Shown, ...]:
    """Latency, throughput and price; a unit by the million where it costs next to nothing."""
    each = [option["cost"]["usd_per_unit"] for option in options]
    scale = 1.0 if any(figures and figures["mid"] >= CENT for figures in each) else MILLION
    title = "$ a million" if scale > 1.0 else "$ each"
    return (*_ANSWERS, (title, lambda option: _each(option["cost"]["usd_per_unit"], scale)))


def _each(figures: Answer | None, scale: float) -> str:
    return UNKNOWN if figures is None else show_usd(figures["mid"] * scale)


def _runs(options: list[Answer]) -> tuple[Shown, ...]:
    """Tokens a second, or samples where the model reads no tokens."""
    tokens = any((option["performance"].get("training") or {}).get("tokens_per_s") for option in options)
    counted = ("tok/s", "tokens_per_s") if tokens else ("samples/s", "samples_per_s")
    return ((counted[0], lambda option: _step(option, counted[1], amount)), *_RUNS)


_PRICE: Shown = ("$/h", lambda option: _mid(option["cost"]["usd_per_hour"], show_usd))
_SERVES: tuple[Shown, ...] = (
    ("TTFT p99", lambda option: _p99(option, "ttft_s")),
    ("TPOT p99", lambda option: _p99(option, "tpot_s")),
    ("tok/s", _output),
    _PRICE,
)
_BATCHES: tuple[Shown, ...] = (
    *_SERVES[1:],
    ("$/M tok", lambda option: _mid(option["cost"]["usd_per_million_output_tokens"], show_usd)),
)
"""Where nobody waits for a first token, its time is not known, and the price of the tokens decides."""
_ANSWERS: tuple[Shown, ...] = (
    ("latency p99", lambda option: _p99(option, "ttft_s")),
    ("a second", _units),
    _PRICE,
)
_RUNS: tuple[Shown, ...] = (
    ("MFU", lambda option: _step(option, "mfu_fraction", share)),
    ("run", lambda option: _mid((option["run"] or {}).get("duration_s"), show_seconds)),
    _PRICE,
    ("$ a run", lambda option: _mid(option["cost"]["usd_per_run"], show_usd)),
)
