"""`chipwise explain`: what a word of the field means, what decides it, how it is graded, how to improve it."""

from __future__ import annotations

from typing import Any

from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.output import Output


def run(fields: dict[str, Any], output: Output) -> int:
    """Explain one term."""
    from chipwise.interfaces.guide_answers import explain

    output.emit(explain(fields["term"]), "guide_explain")
    return 0


command = make(
    "explain",
    run,
    argument=Argument(field="term"),
    groups={},
    about="What TERM means (ttft, mfu, kv-cache, mig, …), what decides it, its grades, how to improve it.",
)
