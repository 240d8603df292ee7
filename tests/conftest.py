"""What every test may use: the folder `shared` beside the repository, and the profiles of hypothesis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPO = Path(__file__).resolve().parent.parent

# No deadline: a time limit fails on a busy machine, not on wrong code. CI draws the same examples each time.
_CALM = [HealthCheck.too_slow]
settings.register_profile("local", deadline=None, max_examples=60, suppress_health_check=_CALM)
settings.register_profile(
    "ci", deadline=None, max_examples=100, derandomize=True, database=None, suppress_health_check=_CALM
)


def on_ci() -> bool:
    """CI says so by CI=true."""
    return os.environ.get("CI") == "true"


settings.load_profile("ci" if on_ci() else "local")


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the repository (published measurements). Absent: a skip, on CI a failure."""
    folder = REPO.parent / "shared"
    if not folder.is_dir():
        reason = "the folder 'shared' with the published measurements is not beside the repository"
        if on_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
