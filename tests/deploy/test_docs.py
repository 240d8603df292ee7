"""docs/deploy.md shows what the code writes, and lists the rules that the lint has; UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chipwise.deploy.asked.chosen import choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.lint import rules

Frozen = Callable[[str], dict[str, Any]]


def block(name: str, content: str) -> str:
    return f"<!-- {name} -->\n\n{content}\n\n<!-- end {name} -->"


def example(plan: dict[str, Any]) -> str:
    bundle = bundle_of(
        choose(Part(value=plan, where="")), Parameters(cluster="prod", region="us-west-2", zone="us-west-2a")
    )
    shown = [file for file in bundle.files if file.kind]
    return "\n\n".join(f"`{file.path}`\n\n```yaml\n{file.text.rstrip()}\n```" for file in shown)


def table() -> str:
    head = ["| rule | severity | finds | met at |", "| --- | --- | --- | --- |"]
    rows = [f"| `{one.name}` | {one.severity} | {one.about} | {one.source} |" for one in rules().values()]
    return "\n".join([*head, *rows])


def test_the_page_is_what_the_code_does(frozen: Frozen, repo: Path) -> None:
    page = repo / "docs" / "deploy.md"
    text = page.read_text(encoding="utf-8")
    for name, content in {"example": example(frozen("chat-8b")), "rules": table()}.items():
        pattern = re.compile(rf"<!-- {name} -->.*?<!-- end {name} -->", re.DOTALL)
        (there,) = pattern.findall(text)
        wanted = block(name, content)
        if os.environ.get("UPDATE_GOLDEN"):
            text = text.replace(there, wanted)
            page.write_text(text, encoding="utf-8")
        else:
            assert there == wanted
