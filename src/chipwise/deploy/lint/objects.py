"""Checks of one object by itself: its head, its names, its secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chipwise.deploy.facts import DATA
from chipwise.deploy.lint.documents import Document, Path_, Tree, as_text, at, fields
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.scene import Scene, found
from chipwise.facts import read_rows

_COLUMNS = ("kind", "api_version", "status", "instead", "source")
_NONE = frozenset({"None", "none", "null", "nil", "undefined", "NaN", ""})
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_FREE_NAMES = frozenset({"ClusterConfig", "Kustomization", "NodeConfig"})
"""Kinds whose names no API server checks so."""
_STAND_INS = frozenset({"IMAGE", "CHECKPOINT", "CAPACITY-RESERVATION-ID", "CHANGEME"})
_SECRET = re.compile(
    r"hf_[A-Za-z0-9]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|nvapi-[\w-]{20,}|ghp_[A-Za-z0-9]{30,}|sk-[\w-]{20,}"
)
_SECRET_NAMES = re.compile(r"(?i)(?:^|_)(?:token|secret|password|passwd|api_key|secret_access_key)$")


def object_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for document in scene.tree.documents:
        yield from _head(document)
        yield from _namespace(document)
        yield from _values(document, document.data, ())
    yield from _duplicates(scene.tree)


def _at(document: Document, path: Path_, rule: str, why: str, fix: str) -> Finding:
    return found(document, path, rule, why=why, fix=fix)


def _head(document: Document) -> Iterator[Finding]:
    if not document.kind or not document.api_version:
        yield _at(document, (), "not-an-object", "it has no apiVersion or no kind", "write both, or move the file")
        return
    change = _changes().get((document.kind, document.api_version))
    if change:
        status, instead = change
        rule = "api-version-gone" if status == "gone" else "api-version-old"
        why = f"{document.kind} of {document.api_version} is {'no longer served' if status == 'gone' else 'superseded'}"
        yield _at(document, ("apiVersion",), rule, why, f"use {instead}")
    generate = at(document.data, "metadata", "generateName")
    if document.kind not in _FREE_NAMES and not generate and not _NAME.fullmatch(document.name):
        why = f"{document.name or 'no name'!r} is no name that the API server takes"
        yield _at(document, ("metadata", "name"), "name-invalid", why, "lower-case letters, digits, hyphens and dots")


def _namespace(document: Document) -> Iterator[Finding]:
    metadata = fields(document.data.get("metadata"))
    if "namespace" not in metadata:
        return
    value = metadata["namespace"]
    path = ("metadata", "namespace")
    if value is None or str(value) in _NONE:
        why = f"the namespace is {value!r}: a template was filled with nothing"
        yield _at(document, path, "namespace-none", why, "name the namespace, or leave the line out")
    elif not _LABEL.fullmatch(str(value)):
        yield _at(
            document, path, "name-invalid", f"{value!r} is no namespace", "lower-case letters, digits and hyphens"
        )


def _values(document: Document, value: Any, path: Path_) -> Iterator[Finding]:
    """Secrets and stand-ins, wherever they stand."""
    if isinstance(value, Mapping):
        yield from _named_secret(document, value, path)
        for key, inner in value.items():
            yield from _values(document, inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _values(document, inner, (*path, place))
    elif isinstance(value, str):
        yield from _text(document, value, path)


def _text(document: Document, value: str, path: Path_) -> Iterator[Finding]:
    if _SECRET.search(value) and document.kind != "Secret":
        fix = "put it into a Secret and refer to it: valueFrom.secretKeyRef"
        yield _at(document, path, "secret-in-plain-text", "a token or key stands in the file", fix)
    word = value.strip("<>${}")
    if word in _STAND_INS:
        yield _at(document, path, "stand-in", f"{word} stands for something only you know", "write what it stands for")


def _named_secret(document: Document, value: Mapping[str, Any], path: Path_) -> Iterator[Finding]:
    name, said = as_text(value.get("name")), value.get("value")
    if "env" in path and _SECRET_NAMES.search(name) and isinstance(said, str) and said and "$(" not in said:
        fix = "put it into a Secret and refer to it: valueFrom.secretKeyRef"
        yield _at(document, (*path, "value"), "secret-in-plain-text", f"{name} is written into the file", fix)


def _duplicates(tree: Tree) -> Iterator[Finding]:
    seen: dict[tuple[str, str, str, str], Document] = {}
    for document in tree.documents:
        key = (document.group, document.kind, document.namespace, document.name)
        first = seen.setdefault(key, document)
        if first is not document and document.name and "/overlays/" not in f"/{document.file}":
            why = f"{document.kind} {document.name} stands in {first.file}, too: the later one wins"
            yield _at(document, ("metadata", "name"), "duplicate-object", why, "keep one of the two")


@cache
def _changes() -> Mapping[tuple[str, str], tuple[str, str]]:
    rows = read_rows(DATA / "api_changes.csv", _COLUMNS)
    return {(kind, version): (status, instead) for _, (kind, version, status, instead, _source) in rows}
