"""How an answer leaves: one JSON document, Markdown, one HTML file, or text. Rich is loaded for text only."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from chipwise.errors import InputError
from chipwise.interfaces.cli.parsers import choice

FORMATS = ("text", "md", "html", "json")
_ASCII = str.maketrans(
    {
        "\u00d7": "x",
        "\u2013": "-",
        "\u2264": "<=",
        "\u2265": ">=",
        "\u2713": "+",
        "\u2717": "!",
        "\u2192": "->",
    }
    | {"\u2588": "#", "\u2593": "=", "\u2592": "+", "\u2591": "-", "\u00b7": ".", "\u2026": "..."}
)
_NARROWEST, _WIDEST, _UNKNOWN_WIDTH = 60, 120, 100


def _nothing() -> None:
    """What is done before printing where nothing was drawn."""


def _unread(words: str) -> None:
    """What is done with words of progress where nothing is drawn."""
    del words


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What the user asked for: `format` is one of FORMATS; `color` None leaves it to the terminal.

    `before` is called before anything is printed: it takes the line that says how long it takes away. `say` changes
    what that line says.
    """

    format: str
    color: bool | None
    before: Callable[[], None] = _nothing
    say: Callable[[str], None] = _unread

    def emit(self, answer: Any, page: str) -> None:
        """Print `answer` as JSON, or as the page of that name: `catalog_list` is in `report/catalog.py`."""
        from chipwise.report.json import as_json

        content = as_json(answer)
        self.before()
        if self.format == "json":
            write(json_text(content))
            return
        module = importlib.import_module(f"chipwise.report.{page.partition('_')[0]}")
        document = getattr(module, f"{page}_page")(content)
        if self.format == "md":
            from chipwise.report.markdown import markdown

            write(markdown(document))
        elif self.format == "html":
            from chipwise.report import html

            write(html.file(f"chipwise {page.replace('_', ' ')}", html.html(document)))
        else:
            from chipwise.report.text import text

            write(text(document, width=width(), color=colored(asked=self.color)))

    def emit_data(self, content: Mapping[str, Any]) -> None:
        """Print what is JSON in every format."""
        self.before()
        write(json_text(content))

    def tell(self, words: str) -> None:
        """Words to the person beside the answer, on stderr."""
        click.echo(words, err=True)


def options(*, short: str = "-o") -> list[click.Parameter]:
    """The flags every answering command has; `short` is that of `--format`, none where -o names a folder."""
    return [
        click.Option(
            [*filter(None, [short]), "--format", "output_format"], metavar="|".join(FORMATS), help="How to print."
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="One JSON document on stdout."),
        click.Option(["--color/--no-color", "color"], default=None, help="Force colour, or forbid it."),
    ]


def take(values: dict[str, Any]) -> Output:
    """Take the values of `options()` out of click's and check them."""
    wanted, as_json, color = (values.pop(key) for key in ("output_format", "as_json", "color"))
    if wanted is not None:
        wanted = choice(*FORMATS)(wanted)
    if as_json and wanted not in {None, "json"}:
        raise InputError(f"--json and --format {wanted}", why="they contradict", fix="keep one of the two")
    return Output(format="json" if as_json else wanted or FORMATS[0], color=color)


def json_text(answer: Mapping[str, Any]) -> str:
    """One JSON document; beyond ASCII only where stdout can write it."""
    text = json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return json.dumps(answer, indent=2, allow_nan=False)
    return text


def write(text: str) -> None:
    """One text to stdout. A reader who has left (`| head`) is met here, in silence, and not at exit.

    Raises:
        InputError: the disk that stdout is sent to is full, or gone.
    """
    try:
        sys.stdout.write(writable(text.rstrip("\n")) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _to_nowhere()
    except OSError as error:
        _to_nowhere()
        raise InputError(
            "the answer could not be written", why=str(error.strerror or error), fix="send stdout where there is room"
        ) from error


def _to_nowhere() -> None:
    """What is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def writable(text: str) -> str:
    """The text with what stdout cannot encode in signs that every keyboard has."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def width() -> int:
    """Columns of the terminal (or COLUMNS), within what reads well."""
    columns = shutil.get_terminal_size((_UNKNOWN_WIDTH, 24)).columns
    return max(_NARROWEST, min(columns, _WIDEST))


def colored(*, asked: bool | None) -> bool:
    """Whether to colour: the flag, then NO_COLOR, then FORCE_COLOR, then whether stdout is a terminal."""
    if asked is not None:
        return asked
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
