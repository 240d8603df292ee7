"""The rooms import downwards only: pyproject.toml's contract, run on the package and on planted mistakes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def lint_imports(folder: Path, config: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", str(config)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


@pytest.fixture
def small(repo: Path, tmp_path: Path) -> Path:
    """A package with the required rooms, empty."""
    for room in ("errors", "units"):
        folder = tmp_path / "chipwise" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (tmp_path / "chipwise" / "__init__.py").touch()
    return tmp_path


def test_the_rooms_import_downwards_only(repo: Path) -> None:
    result = lint_imports(repo / "src", repo / "pyproject.toml")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("room", "line", "kept"),
    [
        ("interfaces", "import chipwise.units", True),
        ("errors", "import chipwise.units", False),  # upwards
        ("facts", "import chipwise.interfaces", False),  # far upwards
        ("cost", "import chipwise.capacity", False),  # a sibling
        ("attic", "", False),  # a room the contract does not know
    ],
)
def test_a_broken_contract_is_seen(repo: Path, small: Path, room: str, line: str, *, kept: bool) -> None:
    for name in ("interfaces", "capacity", room):
        folder = small / "chipwise" / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    (small / "chipwise" / room / "__init__.py").write_text(line)
    result = lint_imports(small, repo / "pyproject.toml")
    assert (result.returncode == 0) is kept, result.stdout
    assert "contracts" in result.stdout.lower()
