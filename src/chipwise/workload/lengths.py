"""Reads lengths of real requests: CSV with a header or JSON objects, under the names that traces use."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from chipwise.errors import InputError
from chipwise.workload.types import LengthTable

ISL_NAMES = (
    "isl", "input_length", "contexttokens", "num_prefill_tokens", "prompt_len", "input_len", "input_tokens",
    "prompt_tokens", "prompt_length", "request_tokens",
)  # fmt: skip
OSL_NAMES = (
    "osl", "output_length", "generatedtokens", "num_decode_tokens", "output_len", "output_tokens",
    "completion_tokens",
    "response_tokens", "generated_tokens",
)  # fmt: skip
TIME_NAMES = ("timestamp", "arrived_at", "arrival_time", "arrival_s", "time")
MILLISECONDS = frozenset({"input_length"})
"""Traces that name their prompts so give arrival times in milliseconds (the Mooncake format)."""
Record = Mapping[str, object]


def read_lengths(path: Path) -> LengthTable:
    """Prompt and answer lengths of every request in a file, arrivals where it has them.

    Args:
        path: `.csv` with a header, or `.jsonl`, `.ndjson`, `.json` with an object a line or a list of
        objects.

    Raises:
        InputError: no such file, no known columns, a length that is no whole number above 0, or no request.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path}", why=str(error), fix="give a CSV or JSON-lines file of request lengths"
        ) from error
    records = _json_records(path, text) if path.suffix.lower() in {".jsonl", ".ndjson", ".json"} else _csv_records(text)
    return _table(path, list(records))


def _table(path: Path, records: Sequence[Record]) -> LengthTable:
    if not records:
        raise InputError(f"{path} holds no request", why="lengths are needed", fix="add one request a line")
    isl_name = _column(path, records[0], ISL_NAMES, "prompt lengths")
    osl_name = _column(path, records[0], OSL_NAMES, "answer lengths")
    times = [name for name in records[0] if name.strip().lower() in TIME_NAMES]
    return LengthTable(
        path=str(path),
        isl=tuple(_whole(path, number, record.get(isl_name)) for number, record in enumerate(records, 1)),
        osl=tuple(_whole(path, number, record.get(osl_name)) for number, record in enumerate(records, 1)),
        arrival_s=_arrivals(records, times[0], isl_name) if times else None,
    )


def _column(path: Path, record: Record, names: Iterable[str], what: str) -> str:
    by_name = {name.strip().lower().lstrip("\ufeff"): name for name in record}
    for name in names:
        if name in by_name:
            return by_name[name]
    raise InputError(
        f"{path} has no column of {what}",
        why=f"its columns are {', '.join(record) or 'none'}",
        fix=f"name one of them {' or '.join(list(names)[:3])}",
    )


def _whole(path: Path, number: int, value: object) -> int:
    try:
        length = float(value) if isinstance(value, (int, float, str)) else math.nan
    except ValueError:
        length = math.nan
    if not math.isfinite(length) or length < 0 or length != int(length):
        raise InputError(
            f"{path}, request {number}: {str(value)[:40]!r} is no length",
            why="lengths are whole numbers of tokens",
            fix="correct the file",
        )
    return int(length)


def _arrivals(records: Sequence[Record], time_name: str, isl_name: str) -> tuple[float, ...] | None:
    """Seconds since the first request; None where a time cannot be read."""
    read = [_seconds(record.get(time_name)) for record in records]
    seconds = [value for value in read if value is not None]
    if len(seconds) != len(read):
        return None
    scale = 1e-3 if isl_name.strip().lower() in MILLISECONDS else 1.0
    return tuple((value - seconds[0]) * scale for value in seconds)


def _seconds(value: object) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        # Traces print seven digits of a second; Python reads six.
        whole, dot, rest = text.partition(".")
        return dt.datetime.fromisoformat(whole + dot + rest[:6]).timestamp()
    except ValueError:
        return None


def _csv_records(text: str) -> Iterator[Record]:
    yield from csv.DictReader(text.splitlines())


def _json_records(path: Path, text: str) -> Iterator[Record]:
    try:
        whole = text.lstrip().startswith("[")
        found = json.loads(text) if whole else [json.loads(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON", why=str(error), fix="write one JSON object a line") from error
    for record in found:
        if not isinstance(record, dict):
            raise InputError(
                f"{path} holds {str(record)[:40]!r}",
                why="each request must be an object",
                fix="correct the file",
            )
        yield record
