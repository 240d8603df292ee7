"""A cell's question put to `advise`, once for every question, and what was answered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.advisor import Request, advise
from chipwise.decide import Advice, Option

Ask = Callable[[Request], Advice]
Difference = dict[str, Any]
_SUFFIXES = {"_tokens_per_s": "", "_per_s": "", "_s": "s", "_tokens": "", "_usd": "", "_weeks": ""}
"""A field's unit, and how a flag writes it."""
_NAMES = {"purpose": "for", "regions": "region", "ha_factor": "ha", "audio_s": "audio-seconds"}
"""Flags that are not named as their field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and its answer."""

    request: Request
    advice: Advice

    @property
    def options(self) -> tuple[Option, ...]:
        """What is recommended."""
        return self.advice.options

    def value(self, name: str) -> Any:
        """A value of the workload as it was resolved; None where the question has none."""
        return self.advice.workload.get(name, {}).get("value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the answer says of a cell, whether that is the guide's word, and if not, why."""

    answer: tuple[str, ...]
    agrees: bool
    differs: tuple[Difference, ...] = ()


def remembering(ask: Ask = advise) -> Ask:
    """`ask`, which answers a question that was put before from memory."""
    known: dict[str, Advice] = {}

    def asked(request: Request) -> Advice:
        key = repr(request)
        if key not in known:
            known[key] = ask(request)
        return known[key]

    return asked


def command(question: Mapping[str, Any]) -> str:
    """The question as it is typed.

    >>> command({"model": "llama-3.1-8b", "purpose": "chat", "ttft_p99_s": 0.5, "only": ("g6e", "p5")})
    'chipwise plan llama-3.1-8b --for chat --ttft-p99 0.5s --only g6e,p5'
    """
    said = [_flag(name, value) for name, value in question.items() if name != "model"]
    return " ".join(["chipwise plan", question["model"], *said])


def _flag(name: str, value: Any) -> str:
    suffix = next((one for one in _SUFFIXES if name.endswith(one)), "")
    flag = _NAMES.get(name, name.removesuffix(suffix).replace("_", "-"))
    if isinstance(value, bool):
        return f"--{flag}"
    text = ",".join(value) if isinstance(value, tuple) else f"{value:.15g}" if isinstance(value, float) else str(value)
    return f"--{flag} {text}{_SUFFIXES.get(suffix, '')}"


def request_of(question: Mapping[str, Any]) -> Request:
    """The question as `advise` takes it."""
    return dataclasses.replace(Request(model=question["model"]), **question)
