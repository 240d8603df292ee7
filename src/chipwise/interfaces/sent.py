"""What is sent along in place of a file: it stands in a folder of its own while the question is answered.

A door that is not a terminal takes the content where the command line takes a path, so no file of the machine that
answers is named: a model's config.json, a plan to deploy, manifests to check, the answers to the guide's questions.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chipwise.errors import InputError

MOST_BYTES = 1_000_000
"""Of a content, unpacked."""
MOST_FILES = 500
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*){0,8}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A content: its name in a body, what it is, the field it stands for; `file` None: several files, name to text."""

    name: str
    about: str
    field: str
    file: str | None


CONFIG = Sent(
    name="config", about="The content of a config.json, in place of model.", field="model", file="config.json"
)
"""For every verb that takes a model."""
SENT: Mapping[str, Sent] = {
    "deploy": Sent(name="plan", about="The answer of plan.", field="plan", file="plan.json"),
    "deploy/lint": Sent(name="manifests", about="Name of each file to its text.", field="folder", file=None),
    "guide/ask": Sent(
        name="answers", about="Answers by the names of the questions.", field="answers", file="answers.yaml"
    ),
}
"""Verb to what must be sent with it."""


@contextmanager
def placed(sent: Sent, content: Any) -> Iterator[dict[str, Any]]:
    """The fields that name the content while it stands in a folder.

    Raises:
        InputError: it is no object, or holds a file name that leads elsewhere.
    """
    content = unpacked(content, sent.name) if isinstance(content, str) else content
    if not isinstance(content, dict):
        raise InputError(f'"{sent.name}" is no object', why=f"it is: {sent.about}", fix="send that")
    with TemporaryDirectory(prefix="chipwise-") as name:
        folder = Path(name)
        if sent.file is None:
            _write_all(folder, content, sent.name)
            yield {sent.field: name}
        else:
            path = folder / sent.file
            path.write_text(json.dumps(content), encoding="utf-8")
            in_place = {"model": path.stem, "models": name} if sent is CONFIG else {sent.field: str(path)}
            yield in_place


def _write_all(folder: Path, files: Mapping[str, Any], name: str) -> None:
    if len(files) > MOST_FILES:
        raise InputError(f'"{name}" holds {len(files)} files', why=f"at most {MOST_FILES} are read", fix="send fewer")
    for path, text in files.items():
        if not _NAME.fullmatch(path) or ".." in path or not isinstance(text, str):
            raise InputError(
                f'"{name}" holds {path[:80]!r}',
                why="it is no plain name of a file with its text",
                fix='send {"serving/deployment.yaml": "apiVersion: …"}',
            )
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            why = "another file stands where its folder would, or the name is too long"
            raise InputError(f'"{name}" holds {path[:80]!r}', why=why, fix="name it otherwise") from error


def packed(content: Mapping[str, Any]) -> str:
    """A content short enough for an address: deflated JSON in the letters that addresses allow.

    >>> unpacked(packed({"model_type": "llama"}))
    {'model_type': 'llama'}
    """
    small = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), level=9, wbits=-zlib.MAX_WBITS)
    return base64.urlsafe_b64encode(small).decode().rstrip("=")


def unpacked(text: str, name: str = CONFIG.name) -> Any:
    """What a text holds: JSON as it stands, or packed.

    Raises:
        InputError: it is neither, or larger than `MOST_BYTES`.
    """
    try:
        raw = text.encode() if text.lstrip().startswith("{") else _inflated(text)
        return json.loads(raw)
    except (ValueError, zlib.error, RecursionError) as error:
        fix = "send the content as it stands in its file"
        raise InputError(f'"{name}" cannot be read', why=" ".join(str(error).split())[:200], fix=fix) from error


def _inflated(text: str) -> bytes:
    small = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    reader = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    raw = reader.decompress(small, MOST_BYTES)
    if reader.unconsumed_tail:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    return raw
