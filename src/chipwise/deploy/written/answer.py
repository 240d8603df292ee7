"""What `chipwise deploy` answers: the files with their kinds, and the warnings."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from chipwise.deploy.written.bundle import Bundle


def answer_of(bundle: Bundle, folder: str | None, *, dry_run: bool) -> dict[str, Any]:
    """The answer; a path leads through the folder that was written. A dry run holds the texts."""
    return {
        "files": [
            {
                "path": (PurePath(folder or "") / file.path).as_posix(),
                "kind": file.kind,
                "api_version": file.api_version,
                **({"text": file.text} if dry_run else {}),
            }
            for file in bundle.files
        ],
        "warnings": list(bundle.warnings),
        "dry_run": dry_run,
    }
