"""The pages of `deploy`: the files that were written, and the faults that `deploy lint` found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Heading,
    Table,
    Text,
    Word,
    accent,
    bad,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import plural

Answer = Mapping[str, Any]
_TONES = {"error": bad, "warning": warn}


def deploy_page(answer: Answer) -> Document:
    """The files and the warnings."""
    done = "would be written" if answer["dry_run"] else "written; nothing was applied"
    columns = (Column(title="file"), Column(title="kind"), Column(title="API version"))
    rows = tuple(
        (line(accent(one["path"])), line(one["kind"] or dim("text")), line(one["api_version"] or ""))
        for one in answer["files"]
    )
    blocks: list[Block] = [
        Heading(line=line(strong(plural(len(rows), "file")), f" {done}"), level=1),
        Table(columns=columns, rows=rows),
    ]
    if answer["warnings"]:
        items = tuple(line(warning) for warning in answer["warnings"])
        blocks += [Heading(line=line("Mind")), Bullets(items=items, mark=Word(text="!", tone="warn"))]
    return Document(blocks=tuple(blocks))


def deploy_lint_page(answer: Answer) -> Document:
    """Every finding: where, what, why, and how to mend it."""
    findings = answer["findings"]
    if not findings:
        return Document(blocks=(Heading(line=line(good("no fault found")), level=1),))
    blocks: list[Block] = [Heading(line=line(strong(plural(len(findings), "finding"))), level=1)]
    for one in findings:
        tone = _TONES.get(one["severity"], dim)
        head = line(accent(f"{one['file']}:{one['line']}"), "  ", tone(one["severity"]), "  ", strong(one["rule"]))
        blocks += [Text(line=head), Text(line=line(one["why"]), indent=1), Text(line=line(dim(one["fix"])), indent=1)]
    return Document(blocks=tuple(blocks))
