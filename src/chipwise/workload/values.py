"""Small steps that every kind of workload takes: the user's word, else the preset's."""

from __future__ import annotations

from chipwise.errors import InputError
from chipwise.workload.presets import Preset
from chipwise.workload.types import Given, WorkloadRequest

FLAGS = {
    "preset": "--for", "ttft_p99_s": "--ttft-p99", "tpot_p99_s": "--tpot-p99",
    "latency_p99_s": "--latency-p99",
    "rate_per_s": "--rate", "throughput_tokens_per_s": "--throughput", "think_s": "--think",
    "prefix_hit_fraction": "--prefix-hit", "deadline_s": "--deadline", "budget_usd": "--budget",
    "seq_len": "--seq-len", "micro_batch": "--micro-batch", "global_batch": "--global-batch",
    "lora_rank": "--lora-rank", "image_size": "--image-size", "audio_s": "--audio-seconds",
}  # fmt: skip
"""How the command line spells a field of the request, where that is not `--field`."""

_ABOVE_ZERO = (
    "ttft_p99_s", "tpot_p99_s", "latency_p99_s", "users", "rate_per_s", "throughput_tokens_per_s", "batch",
    "isl",
    "context", "tokens", "epochs", "deadline_s", "budget_usd", "seq_len", "micro_batch", "global_batch",
    "lora_rank", "image_size", "steps", "frames", "audio_s",
)  # fmt: skip


def flag(field: str) -> str:
    """The flag a field of the request comes from.

    >>> flag("rate_per_s"), flag("users")
    ('--rate', '--users')
    """
    return FLAGS.get(field, f"--{field}")


def said(request: WorkloadRequest, field: str) -> bool:
    """Whether the user gave that field."""
    return getattr(request, field) not in {None, False}


def check_ranges(request: WorkloadRequest) -> None:
    """Refuse what no workload can have.

    Raises:
        InputError: a size, rate or time that is not above 0, a negative answer length or think time,
            a share outside 0 to 1.
    """
    for field in _ABOVE_ZERO:
        value = getattr(request, field)
        if value is not None and not value > 0:
            raise InputError(
                f"{flag(field)} is {value}",
                why="it must be above 0",
                fix=f"give {flag(field)} a positive number",
            )
    for field in ("osl", "think_s"):
        value = getattr(request, field)
        if value is not None and value < 0:
            raise InputError(f"{flag(field)} is {value}", why="it cannot be negative", fix="give 0 or more")
    hit = request.prefix_hit_fraction
    if hit is not None and not 0 <= hit <= 1:
        raise InputError(f"--prefix-hit is {hit}", why="it is a share of the prompt", fix="give a number from 0 to 1")


def number(value: float | None, preset: Preset, key: str) -> Given[float] | None:
    """The user's number, else the preset's; None where neither has one."""
    if value is not None:
        return Given(value=float(value), origin="user")
    found = preset.number(key)
    return None if found is None else Given(value=found, origin="preset")


def whole(value: float | None, preset: Preset, key: str) -> Given[int] | None:
    """As `number`, for counts."""
    found = number(value, preset, key)
    return None if found is None else Given(value=round(found.value), origin=found.origin)


def text(value: str | None, preset: Preset, key: str) -> Given[str] | None:
    """As `number`, for words."""
    if value is not None:
        return Given(value=value, origin="user")
    found = preset.text(key)
    return None if found is None else Given(value=found, origin="preset")
