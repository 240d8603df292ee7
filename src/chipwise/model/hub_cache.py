"""Finds a Hugging Face id in the local hub cache (`HF_HUB_CACHE`, `HF_HOME/hub`, `~/.cache/huggingface/hub`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ID = re.compile(r"^[\w.-]{1,96}(/[\w.-]{1,96})?$")


def cache_root() -> Path:
    """Where the hub's files are kept on this machine."""
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def cached_folder(model_id: str) -> Path | None:
    """The snapshot of `model_id` that `main` points to (else the newest with a config); None where there is none."""
    if not _ID.match(model_id) or ".." in model_id:
        return None
    repo = cache_root() / f"models--{model_id.replace('/', '--')}"
    snapshots = repo / "snapshots"
    if not snapshots.is_dir():
        return None
    pointer = repo / "refs" / "main"
    if pointer.is_file():
        named = snapshots / pointer.read_text(encoding="utf-8").strip()
        if named.is_dir():
            return named
    dated = sorted(snapshots.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    return next((folder for folder in dated if folder.is_dir()), None)
