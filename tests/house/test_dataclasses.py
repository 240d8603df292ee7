"""Objects carry data: dataclasses are frozen, slotted, keyword-only; nothing caches in a property."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

NEEDED = {"frozen", "slots", "kw_only"}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _loose(decorator: ast.expr) -> set[str]:
    """What a decorator lacks of NEEDED; nothing when it is no dataclass decorator."""
    if isinstance(decorator, ast.Call) and _name(decorator.func) == "dataclass":
        given = {
            word.arg for word in decorator.keywords if isinstance(word.value, ast.Constant) and word.value.value is True
        }
        return {need for need in NEEDED if need not in given}
    return set(NEEDED) if _name(decorator) == "dataclass" else set()


def findings(name: str, source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.ClassDef):
            missing = set().union(*(_loose(decorator) for decorator in node.decorator_list))
            found += [f"{name}:{node.lineno} {node.name} lacks {word}" for word in sorted(missing)]
        if isinstance(node, ast.Name | ast.Attribute) and _name(node) == "cached_property":
            found.append(f"{name}:{node.lineno} cached_property")
    return found


def test_dataclasses_only_carry_data(product: Mapping[str, str]) -> None:
    assert [line for name, text in product.items() for line in findings(name, text)] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("@dataclass(frozen=True, slots=True, kw_only=True)\nclass A: ...", 0),
        ("@dataclasses.dataclass\nclass A: ...", 3),
        ("@dataclass(frozen=True, slots=False)\nclass A: ...", 2),
        ("class A:\n    @functools.cached_property\n    def b(self): ...", 1),
    ],
)
def test_a_loose_dataclass_is_seen(source: str, count: int) -> None:
    assert len(findings("x.py", source)) == count
