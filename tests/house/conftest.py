"""The texts that the house rules read. Each check is a plain function on text, in its own test file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest


def _texts(repo: Path, names: list[str]) -> dict[str, str]:
    texts = {}
    for name in names:
        path = repo / name
        raw = path.read_bytes() if path.is_file() else b"\0"
        if b"\0" not in raw:
            texts[name] = raw.decode("utf-8", errors="replace")
    return texts


@pytest.fixture(scope="session")
def tracked(repo: Path) -> Mapping[str, str]:
    """Name to text of every text file that is tracked, or would be by `git add`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True).stdout
    return _texts(repo, [name for name in listed.split("\0") if name])


@pytest.fixture(scope="session")
def python(tracked: Mapping[str, str]) -> Mapping[str, str]:
    """Every Python file of the repository."""
    return {name: text for name, text in tracked.items() if name.endswith(".py")}


@pytest.fixture(scope="session")
def product(python: Mapping[str, str]) -> Mapping[str, str]:
    """The Python files of the package."""
    return {name: text for name, text in python.items() if name.startswith("src/")}
