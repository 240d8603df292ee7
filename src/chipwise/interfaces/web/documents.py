"""The pages of the command line by name, for a browser."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def document_of(page: str, content: Mapping[str, Any]) -> Any:
    """The page of that name, as the command line prints it."""
    return getattr(import_module(f"chipwise.report.{page.partition('_')[0]}"), f"{page}_page")(content)
