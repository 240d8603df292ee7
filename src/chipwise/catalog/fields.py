"""Reads one field of one subject as the type it must have; a value of another type is a broken table."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.errors import KnowledgeError
from chipwise.facts import Value

Values = Mapping[str, Value]


def _wrong(key: str, value: Value, wanted: str) -> KnowledgeError:
    return KnowledgeError(
        f"the fact {key!r} is {value!r}, not {wanted}",
        why="the catalog's tables are broken",
        fix=f"correct the line of {key!r} in the catalog's data",
    )


def text(values: Values, key: str) -> str | None:
    """Text, or None where no source gives it.

    >>> text({"cpu_arch": "arm64"}, "cpu_arch"), text({}, "cpu_arch")
    ('arm64', None)
    """
    value = values.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(key, value, "text")


def required(values: Values, key: str, subject: str) -> str:
    """Text that every subject must have.

    Raises:
        KnowledgeError: the subject has no such fact.
    """
    value = text(values, key)
    if value is None:
        why = "the catalog's tables are broken"
        raise KnowledgeError(f"{subject} has no fact {key!r}", why=why, fix=f"add {key!r} to its data")
    return value


def whole(values: Values, key: str) -> int | None:
    """A whole number: bytes or a count."""
    value = values.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _wrong(key, value, "a whole number with a unit")


def real(values: Values, key: str) -> float | None:
    """A number, as a float."""
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(key, value, "a number with a unit")
    return float(value)


def flag(values: Values, key: str) -> bool | None:
    """Yes, no, or not known."""
    value = values.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise _wrong(key, value, "true or false")


def words(values: Values, key: str) -> tuple[str, ...]:
    """A list written `a|b|c`; empty where no source gives it.

    >>> words({"native": "fp16|int8"}, "native")
    ('fp16', 'int8')
    """
    value = text(values, key)
    return tuple(value.split("|")) if value else ()


def one_of(values: Values, key: str, subject: str, allowed: tuple[str, ...]) -> str:
    """Text that must be one of a fixed list.

    Raises:
        KnowledgeError: it is missing, or it is none of them.
    """
    value = required(values, key, subject)
    if value not in allowed:
        raise _wrong(key, value, " or ".join(allowed))
    return value
