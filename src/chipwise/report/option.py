"""One option of a plan: speed against what was asked, memory, cost, infrastructure, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Heading,
    Line,
    Pairs,
    Table,
    Text,
    Word,
    accent,
    bad,
    dim,
    good,
    join,
    line,
    strong,
    warn,
)
from chipwise.report.memory import memory_bar
from chipwise.report.phrases import (
    TIMES,
    UNKNOWN,
    amount,
    gib,
    listing,
    maybe,
    percent,
    plural,
    rate,
    seconds,
    split_text,
    spread,
    times,
    usd,
)
from chipwise.units import show_count, show_seconds

Answer = Mapping[str, Any]
_GRADES = {
    **dict.fromkeys(("excellent", "good", "high", "best-in-class"), good),
    **dict.fromkeys(("risky", "low", "inefficient"), warn),
}
_NEEDED = ("required", "recommended", "optional")


def option_blocks(option: Answer, workload: Answer, shared: Collection[str] = ()) -> Iterator[Block]:
    """The blocks of one option; what stands in `shared` is said elsewhere, once for all."""
    yield Heading(line=_title(option))
    yield Text(line=_layout(option), indent=1)
    speed = _serving(option, workload)
    if speed is not None:
        yield speed
    work = _work(option)
    if work.rows:
        yield work
    yield memory_bar(option["memory"], indent=1)
    yield Pairs(rows=tuple(_rows(option)), indent=1)
    for mark, items in _arguments(option, shared):
        if items:
            yield Bullets(items=tuple(items), mark=mark, indent=1)


def method_of(latency: Answer) -> str:
    """How the percentiles were got, in a word."""
    return str(latency["method"]).partition(":")[0]


def _title(option: Answer) -> Line:
    tied = option["tied_with"]
    ties = warn(f"  ties with {listing([str(rank) for rank in tied])}") if tied else ""
    return line(f"Option {option['rank']}: ", accent(times(option["instances"], option["instance"])), ties)


def _layout(option: Answer) -> Line:
    precision = option["precision"]
    latency = option["latency"]
    idle = option["chips"] - option["chips_used"]
    return join([
        line(times(option["chips"], option["chip"]), warn(f" ({idle} idle, paid for)") if idle else ""),
        line(plural(option["replicas"], "replica"), f" of {split_text(option['parallelism'])}"),
        line(f"{precision['weights']} weights, {precision['kv']} cache, {precision['compute']} math"),
        line(option["engine"]),
        line(dim(option["evidence"])),
        line(dim(f"{method_of(latency)} percentiles") if latency else ""),
    ])  # fmt: skip


def _serving(option: Answer, workload: Answer) -> Table | None:
    """TTFT and TPOT alone and under load, the 99th percentile against the bar, throughput."""
    serving = option["performance"].get("serving")
    if not serving:
        return None
    latency = option["latency"] or {}
    rows = [_latency_row(key, serving, latency, workload) for key in ("ttft", "tpot")]
    columns = (
        Column(title=""),
        Column(title="alone"),
        Column(title="under load"),
        Column(title="p99", right=True),
        Column(title="asked \u2264"),
        Column(title="grade"),
    )
    return Table(columns=columns, rows=tuple(rows), indent=1)


def _latency_row(key: str, serving: Answer, latency: Answer, workload: Answer) -> tuple[Line, ...]:
    name = f"{key}_s"
    p99 = (latency.get(name) or {}).get("p99")
    bar = (workload.get(f"{key}_p99_s") or {}).get("value")
    asked = line() if bar is None else line(_met(p99, bar), f" {show_seconds(bar)}")
    return (
        line(dim(key.upper())),
        seconds(serving["isolated"][name]),
        seconds(serving[name]),
        line(strong(maybe(p99, show_seconds))),
        asked,
        _graded(latency.get(f"rating_{key}")),
    )


def _met(value: float | None, bar: float) -> Any:
    if value is None:
        return dim("?")
    return good("✓") if value <= bar else bad("✗")


def _graded(grade: str | None) -> Line:
    return (_GRADES.get(grade, dim)(grade),) if grade else ()


def _work(option: Answer) -> Pairs:
    """How much comes out: tokens, steps or units, and the run they make."""
    performance = option["performance"]
    rows: list[tuple[str, Line]] = []
    if performance.get("serving"):
        rows += _output(performance["serving"], option["rating_throughput"])
    if performance.get("training"):
        rows += _steps(performance["training"], option["rating_mfu"])
    if performance.get("other"):
        other = performance["other"]
        per_s = rate(other["units_per_s"], f"{other['unit']}s a second")
        rows.append(("speed", join([per_s, seconds(other["latency_s"])])))
    rows += _run(option["run"]) if option["run"] else []
    return Pairs(rows=tuple(rows), indent=1)


def _output(serving: Answer, grade: str | None) -> Iterator[tuple[str, Line]]:
    per_chip = rate(serving["output_tokens_per_s_per_chip"], "tok/s")
    yield "output", rate(serving["output_tokens_per_s"], "tok/s")
    yield "per chip", join([per_chip, _graded(grade)], "  ")


def _steps(training: Answer, grade: str | None) -> Iterator[tuple[str, Line]]:
    yield "step", join([seconds(training["step_s"]), rate(training["tokens_per_s"], "tok/s")])
    yield "MFU", join([percent(training["mfu_fraction"]), _graded(grade)], "  ")


def _run(run: Answer) -> Iterator[tuple[str, Line]]:
    yield "run", join([seconds(run["duration_s"]), line(f"{show_count(run['tokens'])} tokens")])
    yield "chip-hours", spread(run["chip_hours"], amount)
    every = maybe(run["checkpoint_interval_s"], show_seconds)
    yield "checkpoint", line(f"{gib(run['checkpoint_bytes'])} every {every}")
    if run["interruption_cost_usd"]:
        yield "interruption", usd(run["interruption_cost_usd"])


def _rows(option: Answer) -> Iterator[tuple[str, Line]]:
    yield from _costs(option["cost"])
    needed = [check for check in option["infrastructure"] if check["need"] in _NEEDED]
    yield "needs", join([_check(check) for check in needed]) if needed else line("nothing special")
    yield "settings", join([line(f"{name} {_setting(value)}") for name, value in option["settings"].items()])
    yield "sized by", _sizing(option["sizing"])
    yield "scale", _scale(option["scale"])
    yield "regions", line(listing(option["regions"], 6))


def _costs(cost: Answer) -> Iterator[tuple[str, Line]]:
    yield "cost", _hourly(cost)
    for name, unit in _PER.items():
        if cost.get(name):
            yield "", line(*usd(cost[name]), dim(f" {unit}"))
    priced = [one for one in cost["purchase"] if one["usd_per_hour"]]
    if priced:
        yield "bought as", join([line(f"{one['option']} ", *usd(one["usd_per_hour"])) for one in priced])


_PER = {
    "usd_per_million_output_tokens": "per million output tokens at this load",
    "usd_per_million_at_capacity": "per million output tokens at capacity",
    "usd_per_unit": "per unit",
    "usd_per_run": "for the run",
}


_PRICE = {"api": "list price", "assumed": "assumed price", "user": "your price"}


def _hourly(cost: Answer) -> Line:
    if cost["usd_per_hour"] is None:
        return line(warn("no price known"))
    kind = _PRICE.get(cost["price_kind"], "price")
    as_of = cost["price_as_of"] or "undated"
    tone = warn if cost["price_kind"] == "assumed" else dim
    return line(*usd(cost["usd_per_hour"]), " an hour", tone(f" · {kind}, {as_of}"))


def _check(check: Answer) -> Line:
    if check["has"]:
        return line(good("✓ "), check["feature"])
    tone = bad if check["need"] == "required" else warn
    return line(tone("✗ "), check["feature"], dim(f" {check['need']}"))


def _scale(scale: Answer) -> Line:
    steps = (
        f"start with {scale['start_with']}",
        f"watch {scale['signal']}",
        f"{scale['threshold']}: {scale['next']}",
    )
    return join([line(step) for step in steps])


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return amount(value) if isinstance(value, int | float) else str(UNKNOWN if value is None else value)


def _sizing(sizing: Answer) -> Line:
    return line(
        sizing["binding"],
        dim(
            f" (memory {plural(sizing['instances_by_memory'], 'instance')}, throughput "
            f"{sizing['instances_by_throughput']}, headroom {TIMES} {amount(sizing['ha_factor'])})"
        ),
    )


def _arguments(option: Answer, shared: Collection[str]) -> Iterator[tuple[Word, list[Line]]]:
    yield good("+"), [line(text) for text in option["reasons"]]
    yield warn("!"), [line(text) for text in option["risks"] if text not in shared]
    yield warn("~"), [line(one["why"], dim(f" ({one['rule']}: {one['penalty']})")) for one in option["discouraged_by"]]
    yield dim("$"), [line(dim(text)) for text in option["cost"]["caveats"] if text not in shared]


def said_of_all(options: list[Answer]) -> list[str]:
    """Risks and caveats that every one of several options has."""
    said = [[*option["risks"], *option["cost"]["caveats"]] for option in options]
    return [text for text in said[0] if all(text in other for other in said)] if len(said) > 1 else []
