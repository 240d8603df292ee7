"""Small: nine functions in ten have at most 25 lines of code, none over 50; files 400; six parameters."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Mapping
from typing import NamedTuple

USUAL, MOST, FILE_MOST, PARAMETERS = 25, 50, 400, 6
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Function(NamedTuple):
    where: str
    lines: int
    parameters: int


def code_lines(source: str) -> set[int]:
    """Numbers of the lines that hold code: no blank, no comment, no docstring."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def functions(name: str, source: str) -> list[Function]:
    """Every function with its lines of code (signature included) and parameters (self and cls aside)."""
    code = code_lines(source)
    found = []
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            given += [argument for argument in (node.args.vararg, node.args.kwarg) if argument]
            count = sum(argument.arg not in {"self", "cls"} for argument in given)
            found.append(Function(f"{name}:{node.lineno} {node.name}", len(own), count))
    return found


def share_over(found: list[Function]) -> float:
    return sum(function.lines > USUAL for function in found) / max(len(found), 1)


def every_function(files: Mapping[str, str]) -> list[Function]:
    return [function for name, text in files.items() for function in functions(name, text)]


def test_no_function_is_long(python: Mapping[str, str]) -> None:
    assert [f"{f.where}: {f.lines}" for f in every_function(python) if f.lines > MOST] == []


def test_nine_functions_in_ten_are_short(product: Mapping[str, str]) -> None:
    found = every_function(product)
    longest = sorted(found, key=lambda function: -function.lines)[:20]
    assert share_over(found) <= 0.1, longest


def test_no_file_is_long(python: Mapping[str, str]) -> None:
    sizes = {name: len(code_lines(text)) for name, text in python.items()}
    assert {name: size for name, size in sizes.items() if size > FILE_MOST} == {}


def test_no_function_takes_many_parameters(python: Mapping[str, str]) -> None:
    assert [f"{f.where}: {f.parameters}" for f in every_function(python) if f.parameters > PARAMETERS] == []


def test_lines_of_code_are_counted_without_docstring_comment_and_blank() -> None:
    source = '''
        def area(self, a, *, b=1, **rest):
            """A docstring

            of three lines."""
            # a comment

            text = """two
            lines"""
            return text
        '''
    (found,) = functions("x.py", textwrap.dedent(source))
    assert (found.lines, found.parameters) == (4, 3)


def test_a_long_function_is_seen() -> None:
    body = "\n".join(f"    x{i} = {i}" for i in range(MOST))
    (found,) = functions("x.py", f"def long():\n{body}\n")
    assert found.lines == MOST + 1
    assert share_over([found]) == 1.0


def test_a_crowd_of_parameters_is_seen() -> None:
    (found,) = functions("x.py", "def f(a, b, /, c, *, d, e, f, g): ...\n")
    assert found.parameters == PARAMETERS + 1
