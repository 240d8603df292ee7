"""Writes a bundle into a folder and never over a file that it did not write itself, or that was changed since."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from chipwise.deploy.written.bundle import Bundle
from chipwise.errors import InputError

RECORD = ".chipwise-deploy.json"
"""What was written, by path and digest: what has another digest today is somebody's work."""


def write(bundle: Bundle, folder: Path, *, force: bool = False) -> None:
    """Write every file; files of an earlier run that are no longer wanted go, if nobody touched them.

    Args:
        bundle: what to write.
        folder: made where it is missing.
        force: write over files that are not ours, too.

    Raises:
        InputError: a file stands in the way, or the folder cannot be written.
    """
    texts = {file.path: file.text for file in bundle.files}
    try:
        written = _record(folder)
        if not force:
            _refuse_foreign(folder, texts, written)
        _remove(folder, {path: digest for path, digest in written.items() if path not in texts})
        for path, text in texts.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        record = {path: _digest(text.encode()) for path, text in texts.items()}
        (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written", why=str(error.strerror or error), fix="name a folder you may write: -o DIR"
        ) from error


def _record(folder: Path) -> dict[str, str]:
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return record if isinstance(record, dict) and all(isinstance(one, str) for one in record.values()) else {}


def _refuse_foreign(folder: Path, texts: dict[str, str], written: dict[str, str]) -> None:
    for path, text in texts.items():
        target = folder / path
        if not target.exists() and not target.is_symlink():
            continue
        there = target.read_bytes() if target.is_file() else b""
        if target.is_file() and _digest(there) in {written.get(path), _digest(text.encode())}:
            continue
        why = "it was changed since chipwise wrote it" if path in written else "chipwise did not write it"
        raise InputError(f"{target} is in the way", why=why, fix="choose another folder, or write over it: --force")


def _remove(folder: Path, stale: dict[str, str]) -> None:
    """Delete what an earlier run left; the record may have been written by anybody, so it must lie in the folder."""
    root = folder.resolve()
    for path, digest in stale.items():
        target = folder / path
        inside = target.resolve().is_relative_to(root)
        if inside and target.is_file() and not target.is_symlink() and _digest(target.read_bytes()) == digest:
            target.unlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
