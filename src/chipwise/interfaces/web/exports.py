"""The answer as a file to keep: JSON, Markdown, a report of one file, or a table of every size."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from chipwise.interfaces.web.documents import document_of
from chipwise.report import html


def _json(content: Mapping[str, Any]) -> str:
    import json

    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _markdown(content: Mapping[str, Any]) -> str:
    from chipwise.report.markdown import markdown

    return markdown(document_of("plan", content))


def _html(content: Mapping[str, Any]) -> str:
    return html.file("chipwise plan", html.html(document_of("plan", content)))


def _csv(content: Mapping[str, Any]) -> str:
    """Every size with where it stands and why."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("instance", "stands_in", "instances", "usd_per_hour", "ttft_p99_s", "tpot_p99_s", "why"))
    for option in content["options"]:
        spread, price = option["latency"] or {}, option["cost"]["usd_per_hour"]
        p99 = [(spread.get(name) or {}).get("p99") for name in ("ttft_s", "tpot_s")]
        why = "; ".join(option["reasons"])
        rows.writerow((option["instance"], "options", option["instances"], price and price["mid"], *p99, why))
    for row in content["also_feasible"]:
        price = row["usd_per_hour"]
        figures = (row["instances"], price and price["mid"], row["ttft_p99_s"], row["tpot_p99_s"])
        rows.writerow((row["instance"], "also_feasible", *figures, row["behind_because"]))
    for place, reason in {"rejected": "reason", "not_judged": "lacks", "excluded": "by"}.items():
        for row in content[place]:
            rows.writerow((row["instance"], place, "", "", "", "", row[reason]))
    return out.getvalue()


EXPORTS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "json": ("application/json", _json),
    "md": ("text/markdown", _markdown),
    "html": ("text/html", _html),
    "csv": ("text/csv", _csv),
}
"""Ending to media type, and what writes it."""
