"""One option of a plan: speed against what was asked, memory, cost, infrastructure, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from chipwise.report.arrangement import arrangement_blocks, bars_of, chips, rented
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
    graded,
    listing,
    maybe,
    plural,
    rate,
    seconds,
    split_text,
    spread,
    usd,
)
from chipwise.report.training import run_rows, step_bar, step_rows, within
from chipwise.units import CENT, show_seconds, show_usd

Answer = Mapping[str, Any]
MILLION = 1e6
_NEEDED = ("required", "recommended", "optional")


def option_blocks(option: Answer, workload: Answer, shared: Collection[str] = ()) -> Iterator[Block]:
    """The blocks of one option; what stands in `shared` is said elsewhere, once for all."""
    yield Heading(line=_title(option))
    yield Text(line=_layout(option), indent=1)
    yield from arrangement_blocks(option)
    yield from _speed(option, workload)
    yield memory_bar(option["memory"], indent=1)
    yield Pairs(rows=tuple(_rows(option, workload)), indent=1)
    for mark, items in _arguments(option, shared):
        if items:
            yield Bullets(items=tuple(items), mark=mark, indent=1)


def _speed(option: Answer, workload: Answer) -> Iterator[Block]:
    """Latency against what was asked, or the step and the run; how much comes out."""
    performance = option["performance"]
    if performance.get("serving"):
        yield _serving(option, bars_of(option, workload))
        yield Pairs(rows=tuple(_output(performance["serving"], option["rating_throughput"])), indent=1)
    if performance.get("training"):
        yield Pairs(rows=tuple(step_rows(performance["training"], option["rating_mfu"])), indent=1)
        yield step_bar(performance["training"], indent=1)
    elif performance.get("other"):
        yield Pairs(rows=(("speed", _units(performance["other"])),), indent=1)
    if option["run"]:
        yield Pairs(rows=tuple(run_rows(option["run"], workload)), indent=1)


def _title(option: Answer) -> Line:
    tied = option["tied_with"]
    ties = warn(f"  ties with {listing([str(rank) for rank in tied])}") if tied else ""
    return line(f"Option {option['rank']}: ", accent(rented(option)), ties)


def _layout(option: Answer) -> Line:
    latency = option["latency"]
    idle = option["chips"] - option["chips_used"]
    return join([
        line(chips(option), warn(f" ({idle} idle, paid for)") if idle else ""),
        *_slices(option["sharing"]),
        *_laid(option),
        line(option["engine"]),
        line(dim(option["evidence"])),
        line(dim(f"{latency['method']} percentiles") if latency else ""),
    ])  # fmt: skip


def _slices(sharing: Answer | None) -> list[Line]:
    """The slices of the GPUs that are taken, where the devices are slices."""
    if not sharing or not sharing.get("slices"):
        return []
    return [line(f"{sharing['slices_used']} of {sharing['slices']} MIG slices ", accent(sharing["profile"]))]


def _laid(option: Answer) -> list[Line]:
    """The split and the formats; a run has neither replicas nor a cache."""
    precision, split = option["precision"], split_text(option["parallelism"])
    if option["performance"].get("training"):
        return [line(split), line(f"{precision['compute']} math")]
    cache = "" if option["performance"].get("other") else f", {precision['kv']} cache"
    return [
        line(plural(option["replicas"], "replica"), f" of {split}"),
        line(f"{precision['weights']} weights{cache}, {precision['compute']} math"),
    ]


def _serving(option: Answer, workload: Answer) -> Table:
    """TTFT and TPOT alone and under load, the 99th percentile against the bar, throughput."""
    serving = option["performance"]["serving"]
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
        graded(latency.get(f"rating_{key}")),
    )


def _met(value: float | None, bar: float) -> Any:
    if value is None:
        return dim("?")
    return good("✓") if value <= bar else bad("✗")


def _output(serving: Answer, grade: str | None) -> Iterator[tuple[str, Line]]:
    per_chip = rate(serving["output_tokens_per_s_per_chip"], "tok/s")
    yield "output", rate(serving["output_tokens_per_s"], "tok/s")
    yield "per chip", join([per_chip, graded(grade)], "  ")


def _units(other: Answer) -> Line:
    keeps_up = other.get("real_time_factor")
    return join([
        rate(other["units_per_s"], f"{other['unit']}s a second"),
        line(*seconds(other["latency_s"]), dim(" latency")),
        *([line("real-time factor ", *spread(keeps_up, amount))] if keeps_up else []),
    ])  # fmt: skip


def _rows(option: Answer, workload: Answer) -> Iterator[tuple[str, Line]]:
    yield from _costs(option["cost"], workload)
    needed = [check for check in option["infrastructure"] if check["need"] in _NEEDED]
    yield "needs", join([_check(check) for check in needed]) if needed else line("nothing special")
    for check in needed:
        if check["time"]:
            yield "", line(dim(f"{check['feature']}: {check['time']}"))
    for name, settings in _settings(option):
        yield name, join([line(f"{key} {_setting(value)}") for key, value in settings.items()])
    yield "sized by", _sizing(option["sizing"])
    yield "scale", _scale(option["scale"])
    if option["sharing"]:
        yield "tenants", _tenants(option["sharing"])
    yield "regions", _regions(option)


def _regions(option: Answer) -> Line:
    """The regions, and by which rule the first of several named ones leads."""
    led = [one["why"] for one in option["region_advice"] if one["rank"] == 1]
    first = dim(f" · {option['regions'][0]}: {led[0]}") if led and len(option["regions"]) > 1 else ""
    return line(listing(option["regions"], 6), first)


def _settings(option: Answer) -> Iterator[tuple[str, Answer]]:
    """The engine's settings; of several models each one's own."""
    for name, value in option["settings"].items():
        if isinstance(value, Mapping):
            yield name, value
    if not any(isinstance(value, Mapping) for value in option["settings"].values()):
        yield "settings", option["settings"]


def _tenants(sharing: Answer) -> Line:
    technique = sharing["technique"] or "none on this GPU"
    isolated = f", isolation by {sharing['isolation']}" if sharing["technique"] else ""
    return line(strong(technique), isolated, dim(f" · {sharing['why']} ({sharing['source']})"))


def _costs(cost: Answer, workload: Answer) -> Iterator[tuple[str, Line]]:
    yield "cost", _hourly(cost)
    for name, unit in _PER.items():
        if cost.get(name):
            budget_usd = (workload.get("budget_usd") or {}).get("value") if name == "usd_per_run" else None
            figures, per = _shown(name, cost[name], unit)
            yield "", join([line(*usd(figures), dim(f" {per}")), within(cost[name], budget_usd, show_usd)])
    priced = [one for one in cost["purchase"] if one["usd_per_hour"]]
    if priced:
        yield "bought as", join([line(f"{one['option']} ", *usd(one["usd_per_hour"])) for one in priced])


def _shown(name: str, figures: Answer, unit: str) -> tuple[Answer, str]:
    """The figures and what they are for: of units that cost next to nothing a million."""
    if name != "usd_per_unit" or figures["mid"] >= CENT:
        return figures, unit
    return {key: value * MILLION for key, value in figures.items()}, "per million of them at this load"


_PER = {
    "usd_per_million_output_tokens": "per million output tokens at this load",
    "usd_per_million_at_capacity": "per million output tokens at capacity",
    "usd_per_unit": "for each at this load",
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
