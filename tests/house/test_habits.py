"""What no module holds: vague names, swallowed errors, asserts, unfinished work, mute exemptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "v2"}
_UNFINISHED = re.compile(r"\b(NotImplementedError|TODO|FIXME|XXX)\b|pragma: no" + " cover")
_CODES = r"(?>no" + r"qa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?|type:\s*ig" + r"nore(?:\[[\w, -]+\])?)"
_MUTE = re.compile(rf"#\s*{_CODES}(?!\s*[-#(]+\s*\w)")


def vague_parts(name: str) -> list[str]:
    return [part for part in PurePosixPath(name).with_suffix("").parts if part in VAGUE]


def _swallows(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in {"Exception", "BaseException"} for kind in kinds)


def findings(name: str, source: str) -> list[str]:
    found = [f"{name}: the name {part} says nothing" for part in vague_parts(name)]
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.ExceptHandler) and _swallows(node):
            found.append(f"{name}:{node.lineno} catches everything")
        if isinstance(node, ast.Assert):
            found.append(f"{name}:{node.lineno} assert")
    for number, line in enumerate(source.splitlines(), start=1):
        found += [f"{name}:{number} unfinished: {line.strip()}"] if _UNFINISHED.search(line) else []
        found += [f"{name}:{number} exemption without a reason"] if _MUTE.search(line) else []
    return found


def test_the_package_keeps_its_habits(product: Mapping[str, str]) -> None:
    assert [line for name, text in product.items() for line in findings(name, text)] == []


def test_tests_explain_their_exemptions(python: Mapping[str, str]) -> None:
    lines = ((name, line) for name, source in python.items() for line in source.splitlines())
    assert [(name, line) for name, line in lines if _MUTE.search(line)] == []


def test_tests_have_no_vague_modules(python: Mapping[str, str]) -> None:
    assert [part for name in python for part in vague_parts(name)] == []


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept Exception:\n    pass",
        "try:\n    f()\nexcept (ValueError, BaseException) as error:\n    pass",
        "try:\n    f()\nexcept:\n    pass",
        "assert x",
        "raise NotImplementedError",
        "x = 1  # TODO: later",
        "import x  # no" + "qa",
        "import x  # no" + "qa: F401",
        "import x  # no" + "qa: F401, E402",
        "import x  # type: ig" + "nore[import]",
        "import x  # type: ig" + "nore[arg-type]",
    ],
)
def test_a_broken_habit_is_seen(source: str) -> None:
    assert len(findings("src/chipwise/x.py", source)) == 1


def test_a_vague_name_is_seen() -> None:
    assert len(findings("src/chipwise/perf/utils.py", "")) == 1
    assert len(findings("src/chipwise/helpers/x.py", "")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import x  # noqa: F401, E402 - re-exported",
        "x = y  # type: ignore[attr-defined]  # the stub lacks it",
        "except ValueError: pass",
    ],
)
def test_an_explained_exemption_passes(line: str) -> None:
    assert not _MUTE.search(line)
