"""Finds a Hugging Face id in the local hub cache (`HF_HUB_CACHE`, `HF_HOME/hub`, `~/.cache/huggingface/hub`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

DESCRIPTIONS = ("config.json", "params.json", "model_index.json")
_ID = re.compile(r"^[\w.-]{1,96}(/[\w.-]{1,96})?$")


def cache_root() -> Path:
    """Where the hub's files are kept on this machine."""
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def cached_folder(model_id: str, revision: str = "main") -> Path | None:
    """The snapshot of `model_id` that describes a model; None where the cache has none.

    The one that `revision` points to (a branch, a tag, a commit); for `main` the newest, where the cache holds no
    pointers at all.
    """
    if not _ID.match(model_id) or ".." in model_id or ".." in revision:
        return None
    repo = cache_root() / f"models--{model_id.replace('/', '--')}"
    snapshots = repo / "snapshots"
    if not snapshots.is_dir():
        return None
    pointer = repo / "refs" / revision
    commit = pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else revision
    named = snapshots / commit
    if _describes(named):
        return named
    if revision != "main" or (repo / "refs").is_dir():
        return None
    dated = sorted(snapshots.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    return next((folder for folder in dated if _describes(folder)), None)


def _describes(folder: Path) -> bool:
    """Whether a snapshot holds a config, or a weight file whose header tells as much."""
    if not folder.is_dir():
        return False
    return any((folder / name).is_file() for name in DESCRIPTIONS) or any(
        next(folder.glob(kind), None) for kind in ("*.gguf", "*.safetensors")
    )
