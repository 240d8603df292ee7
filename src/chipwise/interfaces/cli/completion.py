"""What a shell proposes after TAB: names of models, sizes, chips, regions and presets, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Names = Callable[[], Iterable[str]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def models() -> Iterable[str]:
    """Built-in models."""
    from chipwise.model import all_known

    return [known.name for known in all_known()]


def sizes() -> Iterable[str]:
    """Instance sizes."""
    from chipwise.catalog import load_catalog

    return load_catalog().instances


def chips() -> Iterable[str]:
    """Chips."""
    from chipwise.catalog import load_catalog

    return load_catalog().chips


def slices() -> Iterable[str]:
    """MIG profiles of any chip."""
    from chipwise.catalog import load_catalog

    chips = load_catalog().chips.values()
    return dict.fromkeys(profile.name for chip in chips for profile in chip.mig_profiles)


def things() -> Iterable[str]:
    """Sizes and chips."""
    return [*sizes(), *chips()]


def regions() -> Iterable[str]:
    """Regions."""
    from chipwise.catalog import load_catalog

    return load_catalog().regions


def presets() -> Iterable[str]:
    """Presets of `--for`."""
    from chipwise.workload import presets as known

    return [preset.name for preset in known()]


def schemas() -> Iterable[str]:
    """Published schemas."""
    from chipwise.report.schema import PUBLISHED

    return PUBLISHED


def matching(names: Iterable[str], typed: str, *, listed: bool = False) -> list[str]:
    """The names that go on what was typed; where values are listed, after the last comma.

    >>> matching(["us-east-1", "us-west-2"], "us-e")
    ['us-east-1']
    >>> matching(["us-east-1", "us-west-2"], "us-east-1,us-w", listed=True)
    ['us-east-1,us-west-2']
    """
    head, comma, last = typed.rpartition(",") if listed else ("", "", typed)
    return [f"{head}{comma}{name}" for name in names if name.startswith(last)]


def completing(names: Names | None, *, listed: bool = False, files: bool = False) -> Complete | None:
    """How click asks for the names; the shell's own files where none fits and `files` may be given."""
    if names is None and not files:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        found = matching(names(), incomplete, listed=listed) if names else []
        if not found and files:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in found]

    return complete
