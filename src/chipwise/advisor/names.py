"""Whether the names of a question mean something, and whether its flags go together: refused before any work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.catalog.lookup import fold
from chipwise.decide.screen import matches
from chipwise.engines import load_engine
from chipwise.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.catalog import Catalog, Instance

VENDORS = {"nvidia": "nvidia", "neuron": "aws"}
"""What `--vendor` says, as the catalog names the maker of a chip."""
LISTING = "see chipwise catalog list"


def checked(request: Request, catalog: Catalog) -> Request:
    """The request with its names as the catalog spells them.

    `--only` and `--exclude` take a size, a family, a family prefix with `*`, or a chip by its name or alias;
    `--price` takes a size.

    Raises:
        InputError: a name that no size answers to; flags that together leave nothing of what one of them names.
    """
    named = replace(
        request,
        only=tuple(_word("--only", word, catalog) for word in request.only),
        exclude=tuple(_word("--exclude", word, catalog) for word in request.exclude),
        prices_usd_per_hour={
            _size(name, catalog): usd_per_hour for name, usd_per_hour in request.prices_usd_per_hour.items()
        },
    )
    _vendor_and_engine(named)
    for word in named.only:
        _only(word, named, catalog)
    return named


def _unknown(flag: str, error: UnknownNameError) -> InputError:
    return InputError(f"{flag}: {error.what}", why=error.why, fix=error.fix)


def _size(name: str, catalog: Catalog) -> str:
    if fold(name) not in catalog.instances:
        raise _unknown("--price", UnknownNameError("size", name, catalog.instances, listing=LISTING))
    return fold(name)


def _word(flag: str, word: str, catalog: Catalog) -> str:
    folded = fold(word)
    alias = catalog.aliases.get(folded)
    meant = alias.chip if alias is not None and alias.chip is not None else folded
    if not _sizes(meant, catalog):
        families = {one.family for one in catalog.instances.values()}
        known = [*catalog.instances, *families, *catalog.chips]
        raise _unknown(flag, UnknownNameError("size, family or chip", word, known, listing=LISTING))
    return meant


def _sizes(word: str, catalog: Catalog) -> list[Instance]:
    return [one for one in catalog.instances.values() if matches(one, word)]


def _vendor_and_engine(request: Request) -> None:
    if request.engine is None or request.vendor not in VENDORS:
        return
    engine = load_engine(request.engine)
    if VENDORS[request.vendor] not in engine.vendors:
        raise InputError(
            f"--engine {request.engine} does not go with --vendor {request.vendor}",
            why=f"{engine.title} does not run on {request.vendor} chips",
            fix=f"leave out --engine {request.engine} or --vendor {request.vendor}",
        )


def _only(word: str, request: Request, catalog: Catalog) -> None:
    """Refuse a word of `--only` of which the other flags leave nothing."""
    sizes = _sizes(word, catalog)
    for flag, left in (
        (f"--exclude {','.join(request.exclude)}", [one for one in sizes if not _excluded(one, request)]),
        (f"--vendor {request.vendor}", [one for one in sizes if _of_vendor(one, request, catalog)]),
        (f"--engine {request.engine}", [one for one in sizes if _runs(one, request, catalog)]),
    ):
        if not left:
            raise InputError(
                f"--only {word} does not go with {flag}",
                why=f"{flag} leaves no size of {word}",
                fix="leave out one of the two, or name other sizes with --only",
            )


def _excluded(size: Instance, request: Request) -> bool:
    return any(matches(size, word) for word in request.exclude)


def _maker(size: Instance, catalog: Catalog) -> str | None:
    return None if size.chip is None else catalog.chips[size.chip].vendor


def _of_vendor(size: Instance, request: Request, catalog: Catalog) -> bool:
    return request.vendor not in VENDORS or _maker(size, catalog) == VENDORS[request.vendor]


def _runs(size: Instance, request: Request, catalog: Catalog) -> bool:
    return request.engine is None or _maker(size, catalog) in load_engine(request.engine).vendors
