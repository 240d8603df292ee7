"""The figures: from the curves of an option to charts. Each takes the answer of `curves` and gives SVG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.report.drawings.axes import spanning
from chipwise.report.drawings.chart import COLORS, Chart, Limit, Mark, Series, stack, svg
from chipwise.report.memory import PART_KINDS
from chipwise.report.phrases import times
from chipwise.units import show_bytes, show_count, show_seconds, show_usd

Answer = Mapping[str, Any]
_PERCENT = 100.0
_HELD_COLORS = dict(zip(("held", "cache", "working", "trained", "over", "reserved"), COLORS, strict=True)) | {
    "free": "#c4cad3"
}
"""By kind of what memory holds; the page's style sheet names the same."""
_WIDE = 8.0
"""A span of so many times is drawn on a logarithmic axis."""


def latency_figure(curves: Answer) -> str:
    """TTFT and TPOT against requests in flight, with their ranges and the bars asked for."""
    rows = curves["load"]
    colors = {"ttft_s": COLORS[0], "tpot_s": COLORS[1]}
    series = tuple(
        Series(
            label=f"mean {name[:4].upper()}",
            color=color,
            points=tuple((row["concurrency"], row[name]["mid"]) for row in rows if row[name]),
            band=tuple((row[name]["low"], row[name]["high"]) for row in rows if row[name]),
            told=tuple(
                f"{row['concurrency']} in flight: {name[:4].upper()} {show_seconds(row[name]['mid'])}, "
                f"{show_count(row['output_tokens_per_s']['mid'])} tok/s"
                for row in rows
                if row[name]
            ),
        )
        for name, color in colors.items()
    )
    bars = {name: curves["bars"][f"{name[:4]}_p99_s"] for name in colors}
    limits = tuple(
        Limit(axis="y", value=bar, label=f"P99 {name[:4].upper()} asked ≤ {show_seconds(bar)}")
        for name, bar in bars.items()
        if bar
    )
    values = [value for one in series for pair in (*one.band, *((y, y) for _, y in one.points)) for value in pair]
    return svg(
        Chart(
            title=f"Latency against load: {_what(curves)}",
            x=spanning("requests in flight", [row["concurrency"] for row in rows], shown=show_count, log=True),
            y=spanning("seconds", [*values, *(one.value for one in limits)], shown=show_seconds, log=True),
            series=series,
            limits=limits,
        )
    )


def context_figure(curves: Answer) -> str:
    """Requests that the cache of one replica holds, against the context of each."""
    rows = curves["context"]
    points = tuple((row["context"], row["max_concurrency"]) for row in rows if row["max_concurrency"])
    told = tuple(f"context {show_count(x)}: {y:,.1f} requests" for x, y in points)
    return svg(
        Chart(
            title=f"Requests that fit against context: {_what(curves)}",
            x=spanning("context, tokens", [x for x, _ in points], shown=show_count, log=True),
            y=spanning("requests a replica holds", [y for _, y in points], shown=show_count, log=True),
            series=(Series(label="", points=points, told=told),),
        )
    )


def cost_figure(curves: Answer) -> str:
    """USD per million output tokens against the share of capacity that is used."""
    rows = curves["use"]
    costs = [row["usd_per_million_output_tokens"] for row in rows]
    points = tuple((row["share"] * _PERCENT, cost["mid"]) for row, cost in zip(rows, costs, strict=True))
    return svg(
        Chart(
            title=f"Cost against use: {_what(curves)}",
            x=spanning("share of capacity in use, %", [0.0, _PERCENT], shown=show_count),
            y=spanning(
                "USD per million output tokens",
                [cost[end] for cost in costs for end in ("low", "high")],
                shown=show_usd,
                log=True,
            ),
            series=(
                Series(
                    label="",
                    points=points,
                    band=tuple((cost["low"], cost["high"]) for cost in costs),
                    told=tuple(f"{x:.0f} % used: {show_usd(y)}" for x, y in points),
                ),
            ),
        )
    )


def pareto_figure(curves: Answer) -> str:
    """Every size that holds the model, by price and latency; hover says why it is chosen or not."""
    rows = [row for row in curves["candidates"] if row["usd_per_hour"] and row["tpot_p99_s"]]
    would_do = [row for row in rows if row["feasible"]]
    bar = curves["bars"]["tpot_p99_s"]
    latencies_s = [row["tpot_p99_s"] for row in rows]
    wide = max(latencies_s, default=1.0) > _WIDE * min(latencies_s, default=1.0)
    return svg(
        Chart(
            title=f"All sizes that hold {curves['model']}: price against P99 TPOT",
            x=spanning("USD an hour", [row["usd_per_hour"] for row in rows], shown=show_usd, log=True),
            y=spanning("P99 TPOT", [*latencies_s, bar or 0.0], shown=show_seconds, log=wide),
            series=(
                Series(label="none is cheaper and faster", points=_front(would_do), mark="none"),
                _scattered("misses a bar", [row for row in rows if not row["feasible"]], COLORS[5], "cross"),
                _scattered("would do as well", [row for row in would_do if not row["place"]], COLORS[5], "ring"),
                _scattered("options", [row for row in would_do if row["place"]], COLORS[1], "dot"),
            ),
            limits=(Limit(axis="y", value=bar, label=f"asked ≤ {show_seconds(bar)}"),) if bar else (),
        )
    )


def _front(rows: list[Answer]) -> tuple[tuple[float, float], ...]:
    """The sizes that no other beats in price and latency both, from the cheapest on.

    >>> _front([{"usd_per_hour": usd, "tpot_p99_s": s} for usd, s in ((3.0, 0.2), (1.0, 0.3), (2.0, 0.4))])
    ((1.0, 0.3), (3.0, 0.2))
    """
    found: list[tuple[float, float]] = []
    for usd, tpot_s in sorted((row["usd_per_hour"], row["tpot_p99_s"]) for row in rows):
        if not found or tpot_s < found[-1][1]:
            found.append((usd, tpot_s))
    return tuple(found)


def _scattered(label: str, rows: list[Answer], color: str, mark: Mark) -> Series:
    return Series(
        label=label if rows else "",
        color=color,
        joined=False,
        mark=mark,
        points=tuple((row["usd_per_hour"], row["tpot_p99_s"]) for row in rows),
        told=tuple(f"{times(row['instances'], row['instance'])}: {row['why']}" for row in rows),
    )


def memory_figure(curves: Answer) -> str:
    """The terms of the fullest chip's memory, each where the one before ends; together they are what it has."""
    held = {name.removesuffix("_bytes"): value for name, value in curves["memory"].items() if value}
    capacity = held.pop("capacity")
    last = [name for name in ("reserved", "free") if name in held]
    names = [*(name for name in held if name not in last), *last]
    title = f"Memory of one chip, {show_bytes(capacity)}: {_what(curves)}"
    return stack(title, [(name, held[name], show_bytes(held[name]), _held_color(name)) for name in names])


def _held_color(name: str) -> str:
    """The color that the bar of an answer gives the same part."""
    return _HELD_COLORS["free" if name == "free" else PART_KINDS.get(f"{name}_bytes", "working")]


def _what(curves: Answer) -> str:
    return f"{curves['model']} on {times(curves['instances'], curves['instance'])}"
