"""An engine at a version: what its sources say of its defaults, each fact with the version it holds from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from chipwise.engines.versions import Version, at_least, parse_version
from chipwise.errors import UnknownNameError
from chipwise.facts import Kind, Source, Value, read_rows, read_sources

DATA = Path(__file__).parent / "data"
EngineKind = Literal["serve", "train"]
SpareLayers = Literal["before-last", "last", "last-each", "first-each"]
"""Which pipeline stages take the layers that do not divide: one each before the last, all the last, one each the last
or the first ones."""
ENGINE_COLUMNS = ("name", "title", "kind", "vendors", "aliases", "versions", "source", "where")
FACT_COLUMNS = (
    "engine",
    "since",
    "key",
    "value",
    "unit",
    "when",
    "kind",
    "source",
    "where",
    "read_on",
    "why",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """When a default holds: every stated bound must. Sizes in GiB, as engines compare them; None: any."""

    memory_from_gib: float | None = None
    memory_below_gib: float | None = None
    tp_from: int | None = None
    tp_below: int | None = None
    usage: str | None = None
    device: str | None = None
    """Part of the device's name that the engine looks for."""
    not_device: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFact:
    """One default or limit of an engine, from version `since` on until a newer one replaces it."""

    key: str
    value: Value
    unit: str | None
    since: Version
    condition: Condition
    kind: Kind
    source: str
    """A key of `data/sources.csv`."""
    where: str
    read_on: str
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """One engine at one version."""

    name: str
    title: str
    kind: EngineKind
    vendors: frozenset[str]
    """Chip vendors it runs on: `nvidia`, `aws`, `amd`."""
    version: str
    """The version whose facts these are."""
    asked_version: str | None
    facts: tuple[EngineFact, ...]
    """The facts that hold at `version`, newest first within a key."""
    notes: tuple[str, ...]
    """What was assumed: another version's facts, a version that could not be read."""

    def __hash__(self) -> int:
        """By name and version: quick, as engines are keys of what is remembered of them."""
        return hash((self.name, self.version))


@cache
def load_engine(name: str, version: str | None = None) -> EngineProfile:
    """The engine of that name at that version; without one, the newest whose sources were read.

    A version that no source was read for takes the facts of the nearest lower one, and `notes` say so; one
    below all takes the lowest.

    Raises:
        UnknownNameError: no engine of that name; proposes near ones.

    >>> load_engine("vLLM", "0.9.1").name
    'vllm'
    >>> load_engine("sglang", "99.0").notes != ()
    True
    """
    row, renamed = _engine_row(name)
    known = [cast("Version", parse_version(text)) for text in row["versions"].split()]
    used, notes = _nearest(row["title"], known, version)
    return EngineProfile(
        name=row["name"],
        title=row["title"],
        kind=cast("EngineKind", row["kind"]),
        vendors=frozenset(row["vendors"].split()),
        version=".".join(str(part) for part in used),
        asked_version=version,
        facts=tuple(fact for fact in _facts()[row["name"]] if at_least(used, fact.since)),
        notes=(renamed, *notes) if renamed else notes,
    )


def engine_names(kind: EngineKind | None = None) -> tuple[str, ...]:
    """Canonical names of all engines, or of those that serve or train."""
    return tuple(name for name, row in _engines().items() if kind in {None, row["kind"]})


def sources() -> Mapping[str, Source]:
    """The documents that the tables of this room cite, by key."""
    return _sources()


def _nearest(title: str, known: list[Version], asked: str | None) -> tuple[Version, tuple[str, ...]]:
    newest = max(known)
    if asked is None:
        return newest, ()
    wanted = parse_version(asked)
    if wanted is None:
        return newest, (f"version {asked!r} of {title} has no number: the facts of {_text(newest)} stand in",)
    lower = [version for version in known if at_least(wanted, version)]
    used = max(lower) if lower else min(known)
    exact = at_least(used, wanted) and bool(lower)
    return used, () if exact else (f"no source was read for {title} {asked}: the facts of {_text(used)} stand in",)


def _text(version: Version) -> str:
    return ".".join(str(part) for part in version)


def kv_formats(profile: EngineProfile) -> tuple[str, ...]:
    """What the engine keeps a KV cache in, the default first; empty where no source says.

    >>> kv_formats(load_engine("sglang"))
    ('bf16', 'fp16', 'fp8')
    """
    listed = next((str(fact.value) for fact in profile.facts if fact.key == "kv_formats"), "")
    return tuple(listed.split())


def spare_layers(profile: EngineProfile) -> SpareLayers:
    """Where the engine puts the layers that its pipeline stages do not share evenly; as vLLM where no source says.

    >>> spare_layers(load_engine("vllm", "0.7.3")), spare_layers(load_engine("vllm", "0.8.0"))
    ('last', 'before-last')
    """
    said = next((str(fact.value) for fact in profile.facts if fact.key == "spare_layers"), "before-last")
    return cast("SpareLayers", said)


def _engine_row(name: str) -> tuple[Mapping[str, str], str | None]:
    """The engine a name means, and a note where it only occurs in a longer name (`vllm (a fork)`)."""
    wanted = _words(name)
    inside: list[tuple[int, Mapping[str, str]]] = []
    for row in _engines().values():
        for known in (row["name"], *row["aliases"].split()):
            if _words(known) == wanted:
                return row, None
            if f"-{_words(known)}-" in f"-{wanted}-":
                inside.append((len(known), row))
    if inside:
        row = max(inside, key=lambda pair: pair[0])[1]
        return row, f"{name!r} is read as {row['title']}"
    raise UnknownNameError("engine", name, _engines(), listing="known: " + ", ".join(_engines()))


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


@cache
def _engines() -> Mapping[str, Mapping[str, str]]:
    rows = read_rows(DATA / "engines.csv", ENGINE_COLUMNS)
    named = [dict(zip(ENGINE_COLUMNS, row, strict=True)) for _, row in rows]
    return MappingProxyType({row["name"]: row for row in named})


@cache
def _sources() -> Mapping[str, Source]:
    return MappingProxyType(read_sources(DATA / "sources.csv"))


@cache
def _facts() -> Mapping[str, tuple[EngineFact, ...]]:
    """All facts by engine, newest and most particular first: the first match of a key is the one that holds."""
    grouped: dict[str, list[EngineFact]] = {name: [] for name in _engines()}
    for _, row in read_rows(DATA / "engine_facts.csv", FACT_COLUMNS):
        grouped[row[0]].append(_fact(dict(zip(FACT_COLUMNS, row, strict=True))))
    newest_first = {name: sorted(facts, key=_precedence, reverse=True) for name, facts in grouped.items()}
    return MappingProxyType({name: tuple(facts) for name, facts in newest_first.items()})


def _precedence(fact: EngineFact) -> tuple[Version, int]:
    bounds = (getattr(fact.condition, field.name) for field in fields(fact.condition))
    return fact.since, sum(bound is not None for bound in bounds)


def _fact(row: Mapping[str, str]) -> EngineFact:
    return EngineFact(
        key=row["key"],
        value=_value(row["value"], row["unit"]),
        unit=row["unit"] or None,
        since=parse_version(row["since"]) or (0,),
        condition=_condition(row["when"]),
        kind=cast("Kind", row["kind"]),
        source=row["source"],
        where=row["where"],
        read_on=row["read_on"],
        why=row["why"] or None,
    )


def _value(text: str, unit: str) -> Value:
    if unit:
        return float(text) if unit == "fraction" or "." in text else int(text)
    return {"true": True, "false": False}.get(text, text)


def _condition(text: str) -> Condition:
    """`memory>=70 tp<4 usage=server device!=a100` as a condition; empty: always.

    >>> _condition("memory>=70 device!=a100").memory_from_gib
    70.0
    """
    bounds: dict[str, str] = {}
    for part in text.split():
        sign = next(sign for sign in (">=", "!=", "<", "=") if sign in part)
        key, _, value = part.partition(sign)
        bounds[key + sign] = value
    return Condition(
        memory_from_gib=_number(bounds.get("memory>=")),
        memory_below_gib=_number(bounds.get("memory<")),
        tp_from=int(bounds["tp>="]) if "tp>=" in bounds else None,
        tp_below=int(bounds["tp<"]) if "tp<" in bounds else None,
        usage=bounds.get("usage="),
        device=bounds.get("device="),
        not_device=bounds.get("device!="),
    )


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
