"""The commands as verbs of every door that is not a terminal: a mapping of flags in, an answer out.

A body is what `--workload` files hold: flags without their dashes, and the arguments by name. What reads files of the
machine or asks the hub is refused here unless the door was opened with leave (`Leave`).
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chipwise.errors import InputError, KnowledgeError, UnknownNameError
from chipwise.interfaces.cli.answering import AnsweringCommand
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.question_file import fields_of

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan",),
    "model": ("model", "model_list"),
    "memory": ("memory",),
    "estimate": ("estimate",),
    "why": ("why",),
    "compare": ("compare",),
    "plot": (),
    "catalog/list": (),
    "catalog/show": (),
    "catalog/check": (),
    "guide/show": (),
    "guide/errata": ("guide_errata",),
    "guide/presets": (),
    "explain": (),
}
"""Every verb, with the schemas that its answers follow where they are published."""

TOUCHES_FILES = frozenset({"models", "workload", "lengths", "output", "deploy"})
"""Flags that name a file of the machine that answers."""
NAMES_MODELS = frozenset({"model", "draft"})
"""Names that may be a path or an id of the hub."""
CONFIG = "config"
"""A model's description sent along in place of a name: an object, its JSON, or what `packed` makes of it."""
MOST_BYTES = 1_000_000
"""Of a description, unpacked."""
PASTED = "config"
"""What a model whose description was sent along is called."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """What a question may reach for: files of this machine, and the hub."""

    files: bool = False
    hub: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer as JSON-ready data, the page that draws it, and the exit status of its command."""

    content: dict[str, Any]
    page: str
    status: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Kept(Output):
    """An output that keeps what a command emits."""

    kept: list[tuple[dict[str, Any], str]]

    def emit(self, answer: Any, page: str) -> None:
        """Keep the answer and the name of its page."""
        from chipwise.report.json import as_json

        self.kept.append((as_json(answer), page))


@cache
def command_of(verb: str) -> AnsweringCommand:
    """The command behind a verb.

    Raises:
        UnknownNameError: no such verb.

    >>> command_of("catalog/show").places[0].field
    'name'
    """
    if verb not in PUBLISHED:
        raise UnknownNameError("verb", verb, PUBLISHED, listing=f"the verbs are {', '.join(PUBLISHED)}")
    name, *inner = verb.split("/")
    found: Any = importlib.import_module(f"chipwise.interfaces.cli.commands.{name}").command
    for name in inner:
        found = found.commands[name]
    command: AnsweringCommand = found
    return command


def ask(verb: str, body: Mapping[str, Any], leave: Leave) -> Reply:
    """The answer of a verb to a body.

    Raises:
        ChipwiseError: whatever its command raises, and an InputError for what there is no leave to read.

    >>> ask("explain", {"term": "ttft"}, Leave()).content["term"]
    'ttft'
    """
    command = command_of(verb)
    with _described(body) as (said, described):
        fields = {**_fields(command, verb, said, sent=bool(described)), **described}
        _check_files(said, leave)
        for name in NAMES_MODELS & said.keys():
            check_model(str(said[name]), leave)
        kept: list[tuple[dict[str, Any], str]] = []
        status = command.run(fields, _Kept(format="json", color=False, kept=kept))
    content, page = kept[0]
    return Reply(content=content, page=page, status=status)


def _fields(command: AnsweringCommand, verb: str, said: Mapping[str, Any], *, sent: bool) -> dict[str, Any]:
    """Field path to value of a body: its arguments by name, and its flags."""
    places = {place.field: place for place in command.places}
    flags = {name: value for name, value in said.items() if name not in places}
    found: dict[str, Any] = fields_of(flags, command.flags)
    for field, place in places.items():
        value = said.get(field)
        if value is None and place.required and not (field == "model" and sent):
            raise InputError(f"{field} is missing", why=f"{verb} needs it", fix=f'send "{field}"')
        if value is not None and not isinstance(value, str):
            raise InputError(f"{field} is no text", why=f"it is {type(value).__name__}", fix=f'send "{field}": "…"')
        found |= place.read({field: value})
    return found


def _check_files(said: Mapping[str, Any], leave: Leave) -> None:
    named = sorted(TOUCHES_FILES & {str(name).lstrip("-").replace("-", "_") for name in said})
    if named and not leave.files:
        raise InputError(
            f"{named[0]} names a file of this server",
            why="it touches none for those who ask",
            fix="send the values themselves, ask on the command line, or start the server with --allow-files",
        )


def check_model(reference: str, leave: Leave) -> None:
    """Built-in names and notations are free; whether anything else is there is not told without leave."""
    from chipwise.model.registry import find, near

    if reference.startswith(("params:", "sklearn:")):
        return
    known, here = find(reference) is not None, _on_disk(reference)
    if (leave.files and here) or (not here and (known or leave.hub)):
        return
    close = near(reference)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    raise KnowledgeError(
        f"no model {reference!r} is built in",
        why="this server reads no files and asks no hub for those who ask",
        fix=f"{hint}Send its config.json as {CONFIG}, describe it as params:70b, or ask on the command line",
    )


def _on_disk(reference: str) -> bool:
    try:
        return Path(reference).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


@contextmanager
def _described(body: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The body without a description sent along, and the fields that name it while it stands in a file.

    Raises:
        InputError: it is no object, or a name stands beside it.
    """
    said = dict(body)
    config = said.pop(CONFIG, None)
    if config is None:
        yield said, {}
        return
    if "model" in said:
        raise InputError(f'"{CONFIG}" beside "model"', why="each names the model", fix="send one of the two")
    config = unpacked(config) if isinstance(config, str) else config
    if not isinstance(config, dict):
        raise InputError(f'"{CONFIG}" is no object', why="it is the content of a config.json", fix="send that file")
    with TemporaryDirectory(prefix="chipwise-") as folder:
        (Path(folder) / f"{PASTED}.json").write_text(json.dumps(config), encoding="utf-8")
        yield said, {"model": PASTED, "models": folder}


def packed(config: Mapping[str, Any]) -> str:
    """A description short enough for an address: deflated JSON in the letters that addresses allow.

    >>> unpacked(packed({"model_type": "llama"}))
    {'model_type': 'llama'}
    """
    small = zlib.compress(json.dumps(config, separators=(",", ":")).encode(), level=9, wbits=-zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(small).decode().rstrip("=")


def unpacked(text: str) -> Any:
    """What a text describes: JSON as it stands, or packed.

    Raises:
        InputError: it is neither, or larger than `MOST_BYTES`.
    """
    try:
        raw = text.encode() if text.lstrip().startswith("{") else _inflated(text)
        return json.loads(raw)
    except (ValueError, zlib.error, RecursionError) as error:
        fix = "send the content of a config.json"
        raise InputError(f'"{CONFIG}" cannot be read', why=" ".join(str(error).split())[:200], fix=fix) from error


def _inflated(text: str) -> bytes:
    small = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    reader = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    raw = reader.decompress(small, MOST_BYTES)
    if reader.unconsumed_tail:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return raw
