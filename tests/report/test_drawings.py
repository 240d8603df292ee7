"""Drawings: points stand where their values say, axes have round ticks, hostile words stay words."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.report.drawings import context_figure, cost_figure, latency_figure, memory_figure, pareto_figure
from chipwise.report.drawings.axes import Axis, spanning
from chipwise.report.drawings.chart import HEIGHT, WIDTH, Chart, Limit, Series, svg
from chipwise.report.html import stylesheet

SVG = "{http://www.w3.org/2000/svg}"


def band(mid: float) -> dict[str, float]:
    return {"low": mid / 2, "mid": mid, "high": mid * 2}


CURVES: dict[str, Any] = {
    "model": "m<&>", "instance": "g6e.xlarge", "instances": 2, "bars": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.05},
    "load": [
        {"concurrency": users, "ttft_s": band(0.1 * users), "tpot_s": band(0.01 * users),
         "output_tokens_per_s": band(9.0)}
        for users in (1, 2, 4)
    ],
    "context": [{"context": 1024 * 2**k, "max_concurrency": 64 / 2**k, "kv_cache_tokens": 65536} for k in range(4)],
    "use": [{"share": share / 4, "usd_per_million_output_tokens": band(4 / share)} for share in range(1, 5)],
    "memory": {"capacity_bytes": 3e10, "weights_bytes": 3 * 2**30, "cache_bytes": 2**30, "free_bytes": 0},
    "candidates": [
        {"instance": "a", "instances": 1, "usd_per_hour": 2.0, "ttft_p99_s": 0.2, "tpot_p99_s": 0.02, "place": 1,
         "feasible": True, "why": "x"},
        {"instance": "b", "instances": 1, "usd_per_hour": 9.0, "ttft_p99_s": 0.2, "tpot_p99_s": 0.01, "place": None,
         "feasible": True, "why": '<script>"'},
        {"instance": "c", "instances": 1, "usd_per_hour": None, "ttft_p99_s": None, "tpot_p99_s": None, "place": None,
         "feasible": True, "why": "no price"},
        {"instance": "d", "instances": 2, "usd_per_hour": 1.0, "ttft_p99_s": 9.0, "tpot_p99_s": 0.005, "place": None,
         "feasible": False, "why": "P99 TTFT 9 s at best"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("figure", [latency_figure, context_figure, cost_figure, pareto_figure, memory_figure])
def test_every_figure_is_one_well_formed_svg(figure: object) -> None:
    assert callable(figure)
    root = ET.fromstring(figure(CURVES))  # noqa: S314 # our own drawing
    assert root.tag == f"{SVG}svg"
    assert "m<&>" in (root.findtext(f"{SVG}title") or "")


def test_a_part_of_memory_has_the_color_of_its_kind_on_every_page() -> None:
    sheet = stylesheet()
    memory = {
        "capacity_bytes": 5e9,
        "weights_bytes": 1e9,
        "activations_bytes": 2e9,
        "cache_bytes": 1e9,
        "free_bytes": 1e9,
    }
    drawn = dict(re.findall(r'fill="(#\w+)"><title>(\w+)', memory_figure({**CURVES, "memory": memory})))
    kinds = {"weights": "held", "activations": "working", "cache": "cache"}
    assert {name: color for color, name in drawn.items() if name in kinds} == {
        name: re.findall(rf"--{kind}: (#\w+)", sheet)[0] for name, kind in kinds.items()
    }


def test_what_has_no_price_has_no_place_and_hover_says_why() -> None:
    root = ET.fromstring(pareto_figure(CURVES))  # noqa: S314 # our own drawing
    told = [one.text for one in root.iter(f"{SVG}title")]
    assert '1 × b: <script>"' in told  # noqa: RUF001 # the sign of the pages
    assert not any("no price" in (text or "") for text in told)


def test_what_misses_a_bar_is_a_cross_with_its_reason_and_stands_on_no_front() -> None:
    drawn = pareto_figure(CURVES)
    (cross,) = re.findall(r'<path d="M[^"]*l8 8[^>]*><title>([^<]*)', drawn)
    assert cross.endswith("d: P99 TTFT 9 s at best")
    alone = pareto_figure({**CURVES, "candidates": [row for row in CURVES["candidates"] if row["feasible"]]})
    front = re.search(r'<path d="(M[^"]*)" fill="none" stroke="#3566c9"', drawn)
    assert front is not None
    assert front.group(1).count("L") == 1  # a and b, though d is cheaper and faster than both
    assert "misses a bar" in drawn
    assert "misses a bar" not in alone


def test_a_point_stands_where_its_values_say() -> None:
    axis = Axis(title="", low=0.0, high=10.0)
    drawn = svg(Chart(title="t", x=axis, y=axis, series=(Series(label="", points=((0.0, 0.0), (10.0, 10.0))),)))
    places = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
    (x0, y0), (x1, y1) = [(float(x), float(y)) for x, y in places]
    assert x0 < 100
    assert x1 > WIDTH - 30
    assert y0 > HEIGHT - 60
    assert y1 < 40


def test_a_bar_that_was_asked_is_a_dashed_line_at_its_value() -> None:
    axis = Axis(title="", low=0.0, high=2.0)
    chart = Chart(title="t", x=axis, y=axis, series=(), limits=(Limit(axis="y", value=1.0, label="asked"),))
    (line,) = re.findall(r'd="M\d+ ([\d.]+)H\d+" stroke="#c9302c"', svg(chart))
    (tick,) = re.findall(
        r'd="M\d+ ([\d.]+)H\d+" stroke="currentColor" stroke-opacity="0.12"/><text [^>]*>1<', svg(chart)
    )
    assert line == tick


@given(values=st.lists(st.floats(min_value=1e-6, max_value=1e12), min_size=1, max_size=8), log=st.booleans())
def test_an_axis_shows_all_values_between_round_ticks(values: list[float], *, log: bool) -> None:
    axis = spanning("", values, shown=str, log=log)
    assert axis.low <= min(values)
    assert axis.high >= max(values) * (1 - 1e-9)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 40
    assert all(axis.low * 0.999 <= tick <= axis.high * 1.001 for tick in ticks)
    places = [axis.place(value) for value in sorted(values)]
    assert places == sorted(places)
