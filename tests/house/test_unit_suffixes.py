"""A number that names a physical or money quantity says its unit: `hbm_bytes`, `ttft_s`, `usd_per_hour`.

Looked at are the fields of dataclasses and the arguments of functions in the package that are annotated as
numbers: int, float, an array, a Range, or an alias made of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

import pytest

QUANTITIES = {
    *("memory", "hbm", "vram", "bandwidth", "throughput", "power", "price", "cost"),
    *("latency", "duration", "time", "interval", "timeout", "deadline", "ttft", "tpot", "itl", "e2e"),
}
UNITS = {
    *(
        "bytes",
        "gb",
        "gib",
        "bits",
        "s",
        "ms",
        "us",
        "seconds",
        "hours",
        "weeks",
        "flop",
        "flops",
        "usd",
        "watts",
    ),
    *("tokens", "requests", "count", "fraction", "factor", "ratio", "per", "steps", "chips", "instances"),
}
NUMBERS = {"int", "float", "Range", "Percentiles", "ndarray", "NDArray"}


def _parts(annotation: ast.expr) -> Iterator[str]:
    """The names of a union: `float | np.ndarray | None` is float, ndarray, None; other shapes are one `?`."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _parts(left)
            yield from _parts(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            yield name
        case ast.Constant(value=None):
            yield "None"
        case _:
            yield "?"


def aliases(sources: Iterable[str]) -> set[str]:
    """Names of module-level type aliases that are numbers, such as `Array = float | np.ndarray`."""
    found: set[str] = set()
    for source in sources:
        for node in ast.parse(source).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if isinstance(value, ast.BinOp):
                    found |= {name} if set(_parts(value)) <= NUMBERS | {"None"} else set()
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found |= {name} if set(_parts(value)) <= NUMBERS | {"None"} else set()
    return found


def _is_number(annotation: ast.expr | None, numbers: set[str]) -> bool:
    parts = set(_parts(annotation)) - {"None"} if annotation else set()
    return bool(parts) and parts <= numbers


def _named(node: ast.AST) -> Iterator[tuple[int, str, ast.expr | None]]:
    if isinstance(node, ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                yield field.lineno, field.target.id, field.annotation
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            yield argument.lineno, argument.arg, argument.annotation


def findings(name: str, source: str, numbers: set[str]) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source, name)):
        for line, given, annotation in _named(node):
            words = set(given.lower().split("_"))
            if words & QUANTITIES and not words & UNITS and _is_number(annotation, numbers):
                found.append(f"{name}:{line} {given} does not say its unit")
    return found


def test_quantities_say_their_unit(product: Mapping[str, str]) -> None:
    numbers = NUMBERS | aliases(product.values())
    assert [line for name, text in product.items() for line in findings(name, text, numbers)] == []


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    hbm: int",
        "class A:\n    latency_p99: float | None",
        "def f(*, memory_bandwidth: np.ndarray): ...",
        "def f(price: Numbers): ...",
    ],
)
def test_a_bare_quantity_is_seen(source: str) -> None:
    numbers = NUMBERS | aliases(["Numbers = float | np.ndarray"])
    assert len(findings("x.py", source, numbers)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    hbm_bytes: int\n    ttft_s: Range\n    memory: Budget\n    price_as_of: str",
        "def f(usd_per_hour: float, bandwidth_bytes_per_s: float, cost: dict[str, float]): ...",
    ],
)
def test_a_named_unit_or_a_non_number_passes(source: str) -> None:
    assert findings("x.py", source, NUMBERS) == []
