"""A cold start pays for nothing it does not use: the package and the command line load no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "yaml", "rich", "pydantic", "scipy", "pandas", "matplotlib", "importlib.metadata")


def loaded(statement: str) -> set[str]:
    """Which heavy libraries a fresh interpreter holds after the statement."""
    code = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    # -S would hide site-packages; -I keeps PYTHON* variables of the caller (coverage, debuggers) out.
    result = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    return set(result.stdout.split())


@pytest.mark.parametrize("module", ["chipwise", "chipwise.interfaces.cli"])
def test_importing_is_light(module: str) -> None:
    assert loaded(f"import {module}") - loaded("pass") == set()


def test_a_heavy_import_is_seen() -> None:
    assert "yaml" in loaded("import chipwise.errors, yaml")
