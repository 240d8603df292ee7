"""A training step and its run: where the time goes, what devices wait for, how long the whole takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from chipwise.guide import grade
from chipwise.report.document import Bar, Line, Part, bad, dim, good, join, line
from chipwise.report.phrases import amount, gib, graded, maybe, percent, rate, seconds, share, spread, usd
from chipwise.units import show_count, show_seconds

Answer = Mapping[str, Any]
_Kind = Literal["held", "cache", "working", "reserved"]

_DRAWN: Mapping[str, _Kind] = {
    "compute": "held",
    "bandwidth": "cache",
    "communication": "working",
    "overhead": "reserved",
}
"""How the bar draws what bounds a term."""
_NAMES = {
    "gemm": "matrix products",
    "expert": "experts",
    "head": "output head",
    "recompute": "recomputation",
    "other_passes": "other models",
    "tp": "tensor parallelism",
    "pp": "pipeline hand-over",
    "ep": "expert exchange",
    "dp": "gradient averaging",
    "gather": "weight gathering",
    "bubble": "pipeline bubble",
    "rollout": "generation",
    "loop": "reinforcement loop",
    "unpacking": "unpacking the base",
    "host": "host",
}
_LEAST_SHOWN = 0.01
"""Terms below this share of the step are drawn together."""


def step_bar(training: Answer, indent: int = 0) -> Bar:
    """One optimizer step, every term by the share of time it takes, the longest first."""
    terms = sorted(training["terms"], key=lambda term: -term["seconds"])
    step_s = sum(term["seconds"] for term in terms)
    shown = [term for term in terms if term["seconds"] >= _LEAST_SHOWN * step_s > 0]
    rest_s = step_s - sum(term["seconds"] for term in shown)
    parts = [_part(term_name(term["op"]), term["seconds"], step_s, _drawn(term["bound_by"])) for term in shown]
    parts += [_part("other", rest_s, step_s, "reserved")] if rest_s > 0 else []
    return Bar(parts=tuple(parts), total=step_s, caption=line(dim("where a step's time goes")), indent=indent)


def term_name(op: str) -> str:
    """A term of the step in words.

    >>> term_name("gemm"), term_name("optimizer")
    ('matrix products', 'optimizer')
    """
    return _NAMES.get(op, op.replace("_", " "))


def _part(label: str, took_s: float, step_s: float, kind: _Kind) -> Part:
    part = took_s / step_s
    return Part(label=label, value=took_s, shown=share(part) if part >= _LEAST_SHOWN / 2 else "< 1 %", kind=kind)


def _drawn(bound_by: str | None) -> _Kind:
    return _DRAWN.get(bound_by or "", "reserved")


def step_rows(training: Answer, mfu_grade: str | None = None) -> Iterator[tuple[str, Line]]:
    """The step, its tokens or samples, how busy the chips are and what they wait for."""
    yield "step", seconds(training["step_s"])
    tokens, per_chip = training["tokens_per_s"], training["tokens_per_s_per_chip"]
    if tokens is not None:
        yield "tokens", join([rate(tokens, "tok/s"), () if per_chip == tokens else rate(per_chip, "a chip")])
    model, hardware = training["mfu_fraction"], training["hfu_fraction"]
    busy = join([percent(model), graded(mfu_grade)], "  ")
    yield "MFU", busy if hardware == model else join([busy, line(dim("HFU "), *percent(hardware))])
    samples, each = training["samples_per_s"], training.get("samples_per_s_per_chip")
    yield "samples", join([rate(samples, "a second"), rate(each, "a chip") if each and each != samples else ()])
    yield "communication", _waits(training["communication_efficiency"], _cut_by(training))
    yield "pipeline bubble", line(maybe(training["pipeline_bubble_fraction"], share), dim(" of the step"))


def _cut_by(training: Answer) -> str:
    """What devices of one copy wait for: tensor parallelism, context parallelism or both, which are rated as one."""
    waited = {term["op"] for term in training["terms"] if term["seconds"] > 0}
    return "+".join(kind for kind in ("tp", "cp") if kind in waited) or "tp"


def _waits(efficiency: Answer, cut_by: str) -> Line:
    """The share of time not spent waiting for other devices, in all and by the kind of parallelism, with its grade."""
    kinds = [
        line(
            dim(f"{cut_by if name == 'tp' else name} "),
            *percent(one),
            " ",
            *graded(grade("communication_efficiency", name, one["mid"])),
        )
        for name, one in efficiency.items()
        if one and name != "overall"
    ]
    if not kinds:
        return line(dim("none: devices wait for nobody"))
    return join([line(*percent(efficiency["overall"]), dim(" efficient")), *kinds])


def run_rows(run: Answer, workload: Answer) -> Iterator[tuple[str, Line]]:
    """How long the run takes, against the deadline; its checkpoints, and what interruptions cost."""
    deadline_s = (workload.get("deadline_s") or {}).get("value")
    counted = ("tokens", run["tokens"]) if run["tokens"] is not None else ("samples", run["samples"])
    took = join([seconds(run["duration_s"]), line(f"{show_count(counted[1])} {counted[0]}")])
    yield "run", join([took, within(run["duration_s"], deadline_s, show_seconds)])
    yield "chip-hours", spread(run["chip_hours"], amount)
    every = maybe(run["checkpoint_interval_s"], show_seconds)
    yield "checkpoint", line(f"{gib(run['checkpoint_bytes'])} every {every}")
    if run["interruption_cost_usd"]:
        yield "interruptions", line(*usd(run["interruption_cost_usd"]), dim(" on Spot"))


def within(figures: Answer | None, bar: float | None, show: Any) -> Line:
    """A bar and whether the middle of a range meets it.

    >>> [word.text for word in within({"low": 1.0, "mid": 2.0, "high": 9.0}, 3.0, show_seconds)]
    ['\u2713', ' \u2264 3.00 s']
    """
    if bar is None or figures is None:
        return ()
    return line(good("\u2713") if figures["mid"] <= bar else bad("\u2717"), f" \u2264 {show(bar)}")
