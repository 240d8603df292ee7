"""The command line as the guide's tests ask it: arguments in, the JSON answer out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from chipwise.catalog import Catalog, load_catalog
from chipwise.interfaces.cli import cli

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """`ask("model", "glm-5")` is what `chipwise model glm-5 --json` prints; status 0 or 1."""

    def asked(*arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(cli, [*arguments, "--json"], prog_name="chipwise")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in {0, 1}, result.stderr
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    return asked


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The catalog."""
    return load_catalog()
