"""The commands as verbs of every door that is not a terminal: a mapping of flags in, an answer out.

A body is what `--workload` files hold: flags without their dashes, and the arguments by name. What reads files of the
machine or asks the hub is refused here unless the door was opened with leave (`Leave`).
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.errors import InputError, KnowledgeError, UnknownNameError
from chipwise.interfaces.cli.answering import AnsweringCommand
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.question_file import fields_of
from chipwise.interfaces.sent import CONFIG, SENT, Sent, placed

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan",),
    "model": ("model", "model_list"),
    "memory": ("memory",),
    "estimate": ("estimate",),
    "why": ("why",),
    "compare": ("compare",),
    "plot": (),
    "deploy": ("deploy",),
    "deploy/lint": ("deploy_lint",),
    "validate/params": ("validate",),
    "validate/memory": ("validate",),
    "validate/inference": ("validate",),
    "validate/training": ("validate",),
    "validate/decisions": ("validate",),
    "catalog/list": (),
    "catalog/show": (),
    "catalog/check": (),
    "guide/show": (),
    "guide/errata": ("guide_errata",),
    "guide/presets": (),
    "guide/check": ("guide_check",),
    "guide/ask": ("plan",),
    "explain": (),
    "schema": (),
}
"""Every verb, with the schemas that its answers follow where they are published."""

WRITES = frozenset({"output", "deploy", "rows", "force"})
"""Flags that write: no door but the terminal does."""
TOUCHES_FILES = WRITES | {"models", "workload", "lengths", "file"}
"""Names of what lies on the machine that answers."""
NAMES_MODELS = frozenset({"model", "draft"})
"""Names that may be a path or an id of the hub."""
ALWAYS: Mapping[str, Mapping[str, Any]] = {"deploy": {"dry_run": True}}
"""Fields that a verb has whatever is asked."""


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

    def emit_data(self, content: Mapping[str, Any]) -> None:
        """Keep it; no page shows it."""
        self.kept.append((dict(content), ""))

    def tell(self, words: str) -> None:
        """Nobody reads it."""


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
    if not isinstance(found, AnsweringCommand):
        found = found.commands[""]  # what a group does where no command of its is named
    command: AnsweringCommand = found
    return command


def _unheard(words: str) -> None:
    """Where nobody follows how far an answer is."""
    del words


def ask(verb: str, body: Mapping[str, Any], leave: Leave, say: Callable[[str], None] = _unheard) -> Reply:
    """The answer of a verb to a body; `say` hears how far a long one is, and may raise to break it off.

    Raises:
        ChipwiseError: whatever its command raises, and an InputError for what there is no leave to read.

    >>> ask("explain", {"term": "ttft"}, Leave()).content["term"]
    'ttft'
    """
    command = command_of(verb)
    with _with_sent(verb, body) as (said, sent):
        _check_files(said, leave)
        fields = {**_fields(command, verb, said, sent), **sent, **ALWAYS.get(verb, {})}
        for name in NAMES_MODELS & said.keys():
            check_model(str(said[name]), leave)
        kept: list[tuple[dict[str, Any], str]] = []
        status = command.run(fields, _Kept(format="json", color=False, kept=kept, say=say))
    content, page = kept[0]
    return Reply(content=content, page=page, status=status)


def sent_with(verb: str) -> Sent | None:
    """What can be sent with a verb in place of a file."""
    command = command_of(verb)
    if verb in SENT:
        return SENT[verb]
    takes_model = NAMES_MODELS & {*(one.field for one in command.places), *(flag.key for flag in command.flags)}
    return CONFIG if takes_model else None


@contextmanager
def _with_sent(verb: str, body: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The body without what was sent along, and the fields that name it.

    Raises:
        InputError: it is missing, malformed, or a name stands beside it.
    """
    one, said = sent_with(verb), dict(body)
    content = said.pop(one.name, None) if one else None
    if one is None or (one is CONFIG and content is None):
        yield said, {}
        return
    if content is None:
        raise InputError(f'"{one.name}" is missing', why=f"{verb} needs it", fix=f"send it. {one.about}")
    if one.field in said:
        raise InputError(f'"{one.name}" beside "{one.field}"', why="each names the same", fix="send one of the two")
    with placed(one, content) as fields:
        yield said, fields


def _fields(command: AnsweringCommand, verb: str, said: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Field path to value of a body: its arguments by name, and its flags."""
    places = {place.field: place for place in command.places if place.field not in sent}
    flags = {name: value for name, value in said.items() if name not in places}
    found: dict[str, Any] = fields_of(flags, command.flags)
    for field, place in places.items():
        value = said.get(field)
        if value is None and place.required:
            raise InputError(f"{field} is missing", why=f"{verb} needs it", fix=f'send "{field}"')
        if value is not None and not isinstance(value, str):
            raise InputError(f"{field} is no text", why=f"it is {type(value).__name__}", fix=f'send "{field}": "…"')
        found |= place.read({field: value})
    return found


def _check_files(said: Mapping[str, Any], leave: Leave) -> None:
    names = {str(name).lstrip("-").replace("-", "_") for name in said}
    if names & WRITES:
        raise InputError(
            f"{min(names & WRITES)} writes a file of this server",
            why="it writes none, whoever asks",
            fix="take the answer and keep it, or ask on the command line",
        )
    named = sorted(TOUCHES_FILES & names)
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
        fix=f"{hint}Send its config.json as {CONFIG.name}, describe it as params:70b, or ask on the command line",
    )


def _on_disk(reference: str) -> bool:
    try:
        return Path(reference).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
