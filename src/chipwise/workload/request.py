"""Text to a `WorkloadRequest`: flags and the keys of a workload file, units understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chipwise.errors import InputError, UnknownNameError
from chipwise.units import parse_count, parse_rate, parse_seconds, parse_usd
from chipwise.workload.types import WorkloadRequest

Parser = Callable[[str], object]


def _tokens(text: str) -> int:
    return parse_count(text, binary=True)


def _share(text: str) -> float:
    body = text.strip()
    try:
        return float(body.removesuffix("%")) / (100.0 if body.endswith("%") else 1.0)
    except ValueError:
        raise InputError(f"{text!r} is not a share", why="no number", fix="write 0.5 or 50%") from None


def _number(text: str) -> float:
    return float(parse_rate(text))


def _flag(text: str) -> bool:
    return text.strip().lower() in {"true", "yes", "1", "on"}


_FIELDS: Mapping[str, tuple[str, Parser]] = {
    "for": ("preset", str), "goal": ("goal", str), "ttft-p99": ("ttft_p99_s", parse_seconds),
    "tpot-p99": ("tpot_p99_s", parse_seconds), "latency-p99": ("latency_p99_s", parse_seconds),
    "users": ("users", parse_count), "concurrency": ("users", parse_count), "think": ("think_s",
    parse_seconds),
    "rate": ("rate_per_s", parse_rate), "throughput": ("throughput_tokens_per_s", parse_rate),
    "offline": ("offline", _flag), "batch": ("batch", parse_count), "isl": ("isl", _tokens), "osl": ("osl",
    _tokens),
    "context": ("context", _tokens), "lengths": ("lengths", Path), "prefix-hit": ("prefix_hit_fraction",
    _share),
    "tokens": ("tokens", parse_count), "epochs": ("epochs", _number), "deadline": ("deadline_s",
    parse_seconds),
    "budget": ("budget_usd", parse_usd), "method": ("method", str), "seq-len": ("seq_len", _tokens),
    "micro-batch": ("micro_batch", parse_count), "global-batch": ("global_batch", parse_count),
    "optimizer": ("optimizer", str), "recompute": ("recompute", str), "shard": ("shard", str),
    "lora-rank": ("lora_rank", parse_count), "image-size": ("image_size", parse_count),
    "steps": ("steps", parse_count), "frames": ("frames", parse_count), "audio-seconds": ("audio_s",
    parse_seconds),
}  # fmt: skip


def parse_request(options: Mapping[str, object]) -> WorkloadRequest:
    """A request from flags or the keys of a workload file, spelled as the flags without their dashes.

    Text is read with its unit (`8k`, `500ms`, `$50k`); numbers are taken in base units; None is left out.

    Raises:
        UnknownNameError: a key that is no setting of a workload; proposes near ones.
        InputError: a text that cannot be read, or two keys for one value (`users` and `concurrency`).

    >>> parse_request({"for": "chat", "context": "8k", "ttft-p99": "500ms", "users": 64}).context
    8192
    """
    read: dict[str, Any] = {}
    for key, value in options.items():
        if value is None or value is False:
            continue
        field, parser = _field(key)
        if field in read:
            raise InputError(
                f"{key!r} is given twice",
                why=f"another key means {field} as well",
                fix="leave one of them out",
            )
        read[field] = value if value is True else parser(_text(value))
    return WorkloadRequest(**read)


def request_keys() -> tuple[str, ...]:
    """Keys a workload file may use."""
    return tuple(_FIELDS)


def _field(key: str) -> tuple[str, Parser]:
    found = _FIELDS.get(key.strip().lower().replace("_", "-"))
    if found is None:
        raise UnknownNameError("workload setting", key, _FIELDS, listing="known: " + ", ".join(_FIELDS))
    return found


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
