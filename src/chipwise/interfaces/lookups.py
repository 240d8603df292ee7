"""What can be looked up without a question, in the shape every door prints: models, catalog, one thing, a check."""

from __future__ import annotations

from typing import Any

from chipwise.catalog import Catalog, load_catalog
from chipwise.catalog.check import check_catalog
from chipwise.errors import UnknownNameError
from chipwise.facts import Fact


def list_models() -> dict[str, Any]:
    """Every built-in model with its other names and where its config was read."""
    from chipwise.model import all_known

    names = ("name", "aliases", "source", "read_on")
    return {
        "schema_version": 1,
        "models": [{name: getattr(known, name) for name in names} for known in all_known()],
    }


def list_catalog() -> dict[str, Any]:
    """Every chip, size and region."""
    catalog = load_catalog()
    return {
        "schema_version": 1,
        "facts_as_of": catalog.facts_as_of,
        "instances": list(catalog.instances.values()),
        "chips": list(catalog.chips.values()),
        "regions": list(catalog.regions.values()),
    }


def show_name(name: str) -> dict[str, Any]:
    """One size or chip: every fact with its source, and for a size its prices and where it is offered.

    Raises:
        UnknownNameError: neither a size nor a chip.
    """
    catalog = load_catalog()
    kind, subject = _subject(catalog, name)
    facts = catalog.facts_of(subject)
    cited = {one.source for fact in facts for one in (fact, *fact.conflicts)}
    return {
        "schema_version": 1,
        "name": subject,
        "kind": kind,
        "facts": [_fact(fact) for fact in facts],
        "prices": catalog.prices(subject) if kind == "instance" else (),
        "offerings": catalog.offerings(subject) if kind == "instance" else (),
        "sources": {key: catalog.sources[key] for key in sorted(cited) if key in catalog.sources},
    }


def check() -> dict[str, Any]:
    """Whether the catalog is whole and plausible."""
    catalog = load_catalog()
    findings = check_catalog(catalog)
    return {
        "schema_version": 1,
        "ok": all(finding.severity != "error" for finding in findings),
        "facts_as_of": catalog.facts_as_of,
        "counts": {
            "chips": len(catalog.chips),
            "instances": len(catalog.instances),
            "regions": len(catalog.regions),
            "prices": sum(map(len, catalog.prices_by_instance.values())),
        },
        "findings": findings,
    }


def _subject(catalog: Catalog, name: str) -> tuple[str, str]:
    """Whether it is a size or a chip, and the name it stands under."""
    try:
        return "instance", catalog.instance(name).name
    except UnknownNameError:
        pass
    try:
        return "chip", catalog.chip(name).id
    except UnknownNameError as error:
        known = [*catalog.instances, *catalog.chips]
        raise UnknownNameError("size or chip", name, known, listing="see chipwise catalog list") from error


def _fact(fact: Fact) -> dict[str, Any]:
    names = ("key", "value", "unit", "kind", "source", "where", "read_on", "why")
    return {name: getattr(fact, name) for name in names} | {"conflicts": [_fact(one) for one in fact.conflicts]}
