"""A chart as SVG: two axes, and on them lines, bands, points and a bar that is asked for.

Colours of ink are `currentColor`, so that a drawing follows the page it stands on; nothing needs a stylesheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from chipwise.report.drawings.axes import Axis

WIDTH, HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 18, 30, 52
_SHORT = 12
_BARS_LEFT, _BARS_RIGHT, _ROW = 110, 90, 26
COLORS = ("#3566c9", "#1b9e77", "#d98a1f", "#7b5cc4", "#c9302c", "#8a94a3")
"""In the order in which series take them."""
_FONT = 'font-family="system-ui, sans-serif" font-size="12"'


Mark = Literal["dot", "ring", "cross", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points in their order, (x, y); with `band` the low and high of each y; `joined` draws the line between."""

    label: str
    points: tuple[tuple[float, float], ...]
    told: tuple[str, ...] = ()
    band: tuple[tuple[float, float], ...] = ()
    joined: bool = True
    color: str = COLORS[0]
    mark: Mark = "dot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A value of an axis that was asked for: a dashed line with its words."""

    axis: Literal["x", "y"]
    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: its title (read out, not drawn), its axes, what stands on them."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    limits: tuple[Limit, ...] = ()


def svg(chart: Chart) -> str:
    """The chart as one SVG element.

    >>> axis = Axis(title="x", low=0.0, high=1.0)
    >>> drawn = svg(Chart(title="t", x=axis, y=axis, series=(Series(label="a", points=((0.5, 0.5),)),)))
    >>> drawn.startswith("<svg") and "<title>t</title>" in drawn
    True
    """
    inner = "".join([
        *_grid(chart),
        *(part for one in chart.series for part in _series(chart, one)),
        *(_limit(chart, one) for one in chart.limits),
        *_legend(chart.series),
    ])  # fmt: skip
    return _sheet(chart.title, inner, height=HEIGHT)


def stack(title: str, rows: Sequence[tuple[str, float, str, str]]) -> str:
    """Parts of a whole from left to right, one a row, each where the one before ends: name, value, words and color.

    >>> drawn = stack("t", [("weights", 2.0, "2 GiB", "#111"), ("cache", 2.0, "2 GiB", "#222")])
    >>> drawn.count("<rect"), drawn.count('x="110.0"'), drawn.count('width="220.0"')
    (2, 1, 2)
    """
    whole = sum(value for _, value, _, _ in rows) or 1.0
    scale = (WIDTH - _BARS_LEFT - _BARS_RIGHT) / whole
    drawn, left = [], float(_BARS_LEFT)
    for place, (name, value, shown, color) in enumerate(rows):
        top = _ROW * place
        drawn.append(
            f'<text x="{_BARS_LEFT - 8}" y="{top + 17}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left:.1f}" y="{top + 4}" width="{scale * value:.1f}" height="{_ROW - 8}" '
            f'fill="{color}"><title>{escape(name)} {escape(shown)}</title></rect>'
            f'<text x="{left + scale * value + 6:.1f}" y="{top + 17}">{escape(shown)}</text>'
        )
        left += scale * value
    return _sheet(title, "".join(drawn), height=_ROW * len(rows) + 8)


def _sheet(title: str, inner: str, *, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {_FONT} '
        f'fill="currentColor" aria-label="{escape(title)}"><title>{escape(title)}</title>{inner}</svg>'
    )


def _x(chart: Chart, value: float) -> float:
    return _LEFT + chart.x.place(value) * (WIDTH - _LEFT - _RIGHT)


def _y(chart: Chart, value: float) -> float:
    return HEIGHT - _BOTTOM - chart.y.place(value) * (HEIGHT - _TOP - _BOTTOM)


def _grid(chart: Chart) -> Iterator[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for value in chart.x.ticks():
        x = _x(chart, value)
        yield f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="currentColor" stroke-opacity="0.12"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(chart.x.told(value))}</text>'
    for value in chart.y.ticks():
        y = _y(chart, value)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="currentColor" stroke-opacity="0.12"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(chart.y.told(value))}</text>'
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" stroke="currentColor" fill="none" stroke-opacity="0.6"/>'
    yield f'<text x="{(_LEFT + right) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(chart.x.title)}</text>'
    middle = (_TOP + bottom) / 2
    yield (
        f'<text x="14" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 14 {middle:.0f})">'
        f"{escape(chart.y.title)}</text>"
    )


def _series(chart: Chart, series: Series) -> Iterator[str]:
    places = [(_x(chart, x), _y(chart, y)) for x, y in series.points]
    if series.band:
        yield _band(chart, series)
    if series.joined and len(places) > 1:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path d="M{path}" fill="none" stroke="{series.color}" stroke-width="2"/>'
    told = series.told or ("",) * len(places)
    for (x, y), words in zip(places, told, strict=True):
        yield _mark(series, x, y, words)


def _band(chart: Chart, series: Series) -> str:
    across = [_x(chart, x) for x, _ in series.points]
    upper = [f"{x:.1f} {_y(chart, high):.1f}" for x, (_, high) in zip(across, series.band, strict=True)]
    lower = [f"{x:.1f} {_y(chart, low):.1f}" for x, (low, _) in zip(across, series.band, strict=True)]
    return f'<path d="M{"L".join([*upper, *reversed(lower)])}Z" fill="{series.color}" fill-opacity="0.16"/>'


def _mark(series: Series, x: float, y: float, words: str) -> str:
    if series.mark == "none":
        return ""
    title = f"<title>{escape(words)}</title>" if words else ""
    if series.mark == "cross":
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        return (
            f'<path d="{path}" stroke="{series.color}" stroke-width="2" fill="none" pointer-events="all">{title}</path>'
        )
    fill = series.color if series.mark == "dot" else "none"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{series.color}" stroke-width="1.5" '
        f'pointer-events="all">{title}</circle>'
    )


def _limit(chart: Chart, limit: Limit) -> str:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    if limit.axis == "y":
        y = _y(chart, limit.value)
        path, x, text_y, anchor = f"M{_LEFT} {y:.1f}H{right}", float(right - 4), y - 5, "end"
    else:
        x = _x(chart, limit.value)
        path, text_y, anchor = f"M{x:.1f} {_TOP}V{bottom}", _TOP + 12.0, "end"
        x -= 5
    return (
        f'<path d="{path}" stroke="{COLORS[4]}" stroke-width="1.5" stroke-dasharray="6 4" fill="none"/>'
        f'<text x="{x:.1f}" y="{text_y:.1f}" text-anchor="{anchor}" fill="{COLORS[4]}">{escape(limit.label)}</text>'
    )


def _legend(series: Sequence[Series]) -> Iterator[str]:
    """One entry a series, side by side above the chart."""
    named = [one for one in series if one.label]
    x = float(_LEFT)
    for one in named if len(named) > 1 else ():
        stroke = f'<path d="M{x:.0f} {_SHORT}h11" stroke="{one.color}" stroke-width="2"/>'
        yield stroke if one.mark == "none" else _mark(one, x + 5, _SHORT, "")
        yield f'<text x="{x + 15:.0f}" y="{_SHORT + 4}">{escape(one.label)}</text>'
        x += 15 + 7.0 * len(one.label) + 18
