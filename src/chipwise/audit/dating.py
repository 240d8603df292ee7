"""Which release of an engine a row means that names none: the one that was current when its source appeared.

Numbers of one repository's threads grow with time, so that a few dated threads place all others; a paper's
repository is dated by the paper. Days of `engine_releases.csv` of kind `assumed` may be off by a few, which
matters to a row of just those days; speeds of rows that name no release are judged by their range alone.
"""

from __future__ import annotations

import csv
import re
from datetime import date, timedelta
from functools import cache
from importlib import resources

_DATED = re.compile(r"\b(20\d\d-\d\d-\d\d)\b")
_THREAD = re.compile(r"\b([\w.-]+/[\w.-]+)#(\d+)\b")


def release_meant(engine: str, version: str, source: str) -> str | None:
    """The release that was current on a row's day.

    The day is the one that the version's text names, else when the source's thread was opened or its paper appeared.
    None: none is known, or it was before the first release listed.

    >>> release_meant("vllm", "main of 2024-12-13", ""), release_meant("vllm", "", "vllm-project/vllm#16570")
    ('0.6.4', '0.8.4')
    """
    day = _day_in(version) or _opened_on(engine, source) or _published_on(source)
    if day is None:
        return None
    known = [name for name, released_on in _releases().get(engine, ()) if released_on <= day]
    return known[-1] if known else None


def _day_in(text: str) -> date | None:
    found = _DATED.search(text)
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def _opened_on(engine: str, source: str) -> date | None:
    """When a thread of the engine's own repository was opened: between the two dated ones that enclose it."""
    found = _THREAD.search(source)
    threads = _threads().get((found.group(1).lower(), engine), []) if found else []
    if not found or not threads:
        return None
    wanted = int(found.group(2))
    before = [pair for pair in threads if pair[0] <= wanted]
    after = [pair for pair in threads if pair[0] > wanted]
    if not before:
        return threads[0][1]
    if not after:
        return before[-1][1]
    (low, since), (high, until) = before[-1], after[0]
    return since + timedelta(days=int((until - since).days * (wanted - low) / (high - low)))


def _published_on(source: str) -> date | None:
    """When the paper of a source's repository appeared."""
    return _publications().get(source.split("@", maxsplit=1)[0].lower())


@cache
def _publications() -> dict[str, date]:
    rows = _rows("publications.csv")
    return {row["repository"]: date.fromisoformat(row["published_on"]) for row in rows}


@cache
def _releases() -> dict[str, list[tuple[str, date]]]:
    found: dict[str, list[tuple[str, date]]] = {}
    for row in _rows("engine_releases.csv"):
        found.setdefault(row["engine"], []).append((row["version"], date.fromisoformat(row["released_on"])))
    return {engine: sorted(rows, key=lambda pair: pair[1]) for engine, rows in found.items()}


@cache
def _threads() -> dict[tuple[str, str], list[tuple[int, date]]]:
    found: dict[tuple[str, str], list[tuple[int, date]]] = {}
    for row in _rows("engine_threads.csv"):
        pair = int(row["number"]), date.fromisoformat(row["opened_on"])
        found.setdefault((row["repository"], row["engine"]), []).append(pair)
    return {key: sorted(rows) for key, rows in found.items()}


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("chipwise.audit").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
