"""Takes answers as JSON-ready data; gives SVG drawings. Read `chart.py` first, then `figures.py`.

The drawings are written here and not by a plotting library: they need no more than axes, lines, points and bars, must
say on hover what a point is, follow light and dark with the page's own ink, and be there within milliseconds.
"""

from chipwise.report.drawings.figures import context_figure, cost_figure, latency_figure, memory_figure, pareto_figure

__all__ = ["context_figure", "cost_figure", "latency_figure", "memory_figure", "pareto_figure"]
