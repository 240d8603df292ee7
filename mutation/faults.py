"""Faults to plant in a module: one operator, comparison, number or word of its code changed at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_CALLS = {
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "ceil": "floor",
    "floor": "ceil",
    "any": "all",
    "all": "any",
}
Change = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A change at one place: which node in the order of the walk, which of its changes."""

    line: int
    what: str
    node: int
    change: int


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """What may be changed of one node, in words and as an edit of it."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        other = _ARITHMETIC[type(node.op)]
        yield f"{type(node.op).__name__} to {other.__name__}", lambda found: setattr(found, "op", other())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        opposite = _COMPARISONS[type(node.ops[0])]
        yield (
            f"{type(node.ops[0]).__name__} to {opposite.__name__}",
            lambda found: setattr(found, "ops", [opposite(), *node.ops[1:]]),
        )
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} to {not node.value}", lambda found: setattr(found, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        more = node.value + 1
        yield f"{node.value} to {more}", lambda found: setattr(found, "value", more)
    if isinstance(node, ast.BoolOp):
        joined = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{type(node.op).__name__} to {joined.__name__}", lambda found: setattr(found, "op", joined())
    if isinstance(node, ast.IfExp):
        turned = ast.UnaryOp(op=ast.Not(), operand=node.test)
        yield "condition turned", lambda found: setattr(found, "test", turned)
    yield from _of_calls(node)


def _of_calls(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        name = _CALLS[node.func.id]
        yield f"{node.func.id} to {name}", lambda found: setattr(found.func, "id", name)  # type: ignore[attr-defined]  # a Call
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS:
        other = _CALLS[node.func.attr]
        yield f"{node.func.attr} to {other}", lambda found: setattr(found.func, "attr", other)  # type: ignore[attr-defined]  # a Call


def _code(tree: ast.Module) -> list[ast.AST]:
    """The nodes that compute: decorators, annotations, imports and `strict=` of zip left out, in a fixed order."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            return
        found.append(node)
        for name, value in ast.iter_fields(node):
            if name in {"decorator_list", "annotation", "returns", "type_params"}:
                continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    visit(one)

    visit(tree)
    return found


def faults(text: str) -> list[Fault]:
    r"""Every fault that a module's text takes.

    >>> [(one.line, one.what) for one in faults("def double(x):\n    return 2 * x\n")]
    [(2, 'Mult to Div'), (2, '2 to 3')]
    """
    return [
        Fault(line=getattr(node, "lineno", 0), what=what, node=place, change=index)
        for place, node in enumerate(_code(ast.parse(text)))
        for index, (what, _) in enumerate(_changes(node))
    ]


def planted(text: str, fault: Fault) -> str:
    r"""The module's text with the fault in it (comments are lost).

    >>> text = "def double(x):\n    return 2 * x\n"
    >>> print(planted(text, faults(text)[0]))
    def double(x):
        return 2 / x
    """
    tree = ast.parse(text)
    node = _code(tree)[fault.node]
    list(_changes(copy.copy(node)))[fault.change][1](node)
    return ast.unparse(tree)
