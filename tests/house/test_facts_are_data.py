"""Facts are data: no chip's figure is a literal in the code, and no code treats a chip or size by its name.

Heuristics with few false alarms. A figure: a literal of a million or more with two or more significant digits
that is no power of two (a bandwidth such as 3.35e12, a peak such as 989e12). A name: a chip or instance type
in a comparison, a match or as a key of a dict. Docstrings may show both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import pytest

_HARDWARE = re.compile(
    r"(?:(?:a10g?|a100|h100|h200|b200|b300|gb200|gb300|l4|l40s?|t4g?|v100|trainium\d?|inferentia\d?)(?:-.+)?"
    r"|rtx-pro-.+|(?:p\d|g\d|trn\d|inf\d)[a-z]*\.\w+)",
    re.IGNORECASE,
)


def is_figure(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < 1e6:
        return False
    digits = f"{abs(value):.12e}".split("e")[0].replace(".", "").rstrip("0")
    return len(digits) > 1 and not float(value).hex().lstrip("-").startswith("0x1.0000000000000p")


def _compared(node: ast.AST) -> Iterator[ast.expr | None]:
    match node:
        case ast.Compare(left=left, comparators=others):
            for side in (left, *others):
                yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else (side,)
        case ast.Dict(keys=keys):
            yield from keys
        case ast.MatchValue(value=value):
            yield value


def findings(name: str, source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Constant) and is_figure(node.value):
            found.append(f"{name}:{node.lineno} {node.value!r} looks like a fact: put it into a data file")
        for part in _compared(node):
            text = part.value if isinstance(part, ast.Constant) else None
            if isinstance(text, str) and _HARDWARE.fullmatch(text):
                found.append(f"{name}:{getattr(part, 'lineno', 0)} {text!r} is treated apart by its name")
    return found


def test_no_fact_stands_in_code(product: Mapping[str, str]) -> None:
    assert [line for name, text in product.items() for line in findings(name, text)] == []


@pytest.mark.parametrize(
    "source",
    [
        "peak = 989.4e12",
        "hbm_bytes = 141_000_000_000",
        "if chip == 'h100-sxm': pass",
        "if instance in ('g6.xlarge', other): pass",
        "PRICES = {'p5.48xlarge': price}",
        "match chip:\n    case 'trainium2': pass",
    ],
)
def test_a_fact_in_code_is_seen(source: str) -> None:
    assert len(findings("x.py", source)) == 1


@pytest.mark.parametrize("value", [1e12, 2**30, 2.0**40, 86400, 9e15, 999_999, 0.5, True, "h100"])
def test_powers_and_small_numbers_are_no_facts(value: object) -> None:
    assert not is_figure(value)
