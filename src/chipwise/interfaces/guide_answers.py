"""What the guide's commands answer, in the shape every door prints: a section, the errata, the presets, a term."""

from __future__ import annotations

from typing import Any

from chipwise.guide import boxes, claim_object, claims, explain_term, section, section_list, topics
from chipwise.guide.claims import DOCUMENTS, twenty


def show_section(name: str | None) -> dict[str, Any]:
    """One section of the guide; without a name, the list of them.

    Raises:
        UnknownNameError: no such section.
    """
    if name is None:
        return {"schema_version": 1, "sections": section_list()}
    return {"schema_version": 1, **section(name)}


def errata() -> dict[str, Any]:
    """Every claim of the guide with its verdict."""
    return {
        "schema_version": 1,
        "documents": DOCUMENTS,
        "twenty": twenty(),
        "claims": [claim_object(one) for one in claims()],
    }


def coverage() -> dict[str, Any]:
    """What serves each claim and each box of the guide."""
    served = [one for one in topics().values() if not one.background]
    return {
        "topics": [[one.topic, one.file, f"chipwise {one.command}", one.test] for one in served],
        "claims": errata()["claims"],
        "boxes": [{"id": one.id, "where": one.where, "text": one.text, "topic": one.topic} for one in boxes().values()],
    }


def list_presets() -> dict[str, Any]:
    """Every preset with its values and their reasons, and the goals."""
    from chipwise.workload import goals, presets

    return {"schema_version": 1, "presets": list(presets()), "goals": list(goals())}


def explain(term: str) -> dict[str, Any]:
    """A term explained.

    Raises:
        UnknownNameError: no such term.
    """
    found = explain_term(term)
    names = found.__dataclass_fields__
    return {"schema_version": 1, **{name: getattr(found, name) for name in names}}
