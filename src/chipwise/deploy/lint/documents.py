"""Reads a folder of manifests: every object as plain data, with the line on which each of its fields stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chipwise.deploy.lint.findings import Finding, found_at
from chipwise.errors import InputError

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_MOST_FILES, _MOST_BYTES, _MOST_VALUES = 5000, 16 * 2**20, 400_000
_NO_OBJECTS = frozenset({"kustomization.yaml", "kustomization.yml", "values.yaml", "Chart.yaml"})
"""Files beside manifests that hold no object."""
Path_ = tuple[str | int, ...]
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, ten times as fast, where PyYAML was built with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file."""

    file: str
    data: Mapping[str, Any]
    lines: Mapping[Path_, int]

    def line(self, path: Path_) -> int:
        """The line of a field, or of the nearest field around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    @property
    def kind(self) -> str:
        """Its kind; empty where it has none."""
        return as_text(self.data.get("kind"))

    @property
    def api_version(self) -> str:
        """Its API version; empty where it has none."""
        return as_text(self.data.get("apiVersion"))

    @property
    def group(self) -> str:
        """The group of its API version: `apps`; empty for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name; empty where it has none."""
        return as_text(at(self.data, "metadata", "name"))

    @property
    def namespace(self) -> str:
        """Its namespace; `default` where it names none."""
        return as_text(at(self.data, "metadata", "namespace")) or "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All objects of a folder."""

    documents: tuple[Document, ...]

    def of_kind(self, *kinds: str) -> Iterator[Document]:
        """The objects of these kinds."""
        return (one for one in self.documents if one.kind in kinds)


def as_text(value: object) -> str:
    """A text; anything else is the empty one."""
    return value if isinstance(value, str) else ""


def at(value: Any, *path: str | int) -> Any:
    """What stands at a path; None where a step is missing or is no mapping or list.

    >>> at({"spec": {"ports": [{"port": 80}]}}, "spec", "ports", 0, "port")
    80
    """
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def items(value: Any) -> list[Any]:
    """A list; anything else is the empty one."""
    return value if isinstance(value, list) else []


def fields(value: Any) -> Mapping[str, Any]:
    """A mapping; anything else is the empty one."""
    return value if isinstance(value, Mapping) else {}


def read_tree(folder: Path) -> tuple[Tree, list[Finding]]:
    """Every object below a folder, or of one file, and what cannot be read.

    Raises:
        InputError: there is no such folder, or too much in it.
    """
    if not folder.exists():
        raise InputError(f"{folder} is not there", why="there is nothing to check", fix="name a folder of manifests")
    root = folder if folder.is_dir() else folder.parent
    documents: list[Document] = []
    findings: list[Finding] = []
    for path in _files(folder):
        name = path.relative_to(root).as_posix()
        read, wrong = read_text(name, _text_of(path))
        documents += [] if path.name in _NO_OBJECTS else read
        findings += wrong
    return Tree(documents=tuple(documents)), findings


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    found = [path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file()]
    kept = sorted(path for path in found if not _hidden(path.relative_to(folder)))
    if len(kept) > _MOST_FILES:
        raise InputError(f"{folder} holds {len(kept)} files", why=f"{_MOST_FILES} are read", fix="name a folder in it")
    return kept


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is too large", why=f"{_MOST_BYTES // 2**20} MiB are read", fix="split it")
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=str(error.strerror or error), fix="check its rights") from error


def read_text(name: str, text: str) -> tuple[list[Document], list[Finding]]:
    """The objects of one file's text.

    >>> documents, findings = read_text("a.yaml", "kind: Service")
    >>> documents[0].kind, documents[0].line(("kind",)), findings
    ('Service', 1, [])
    """
    documents: list[Document] = []
    findings: list[Finding] = []
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
        template = next((line for node in nodes for line in _templated(node)), None)
        if template is not None:
            return [], [_template(name, template)]
        for node in nodes:
            documents += _objects(name, node, findings)
    except yaml.YAMLError as error:
        findings.append(_unreadable(name, text, error))
    except RecursionError:
        findings.append(found_at(name, 1, "not-yaml", why="it is nested without end", fix="write it flat"))
    return documents, findings


def _unreadable(name: str, text: str, error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else 1
    if "{{" in text:
        return _template(name, line)
    problem = getattr(error, "problem", None) or "the text is no YAML"
    return found_at(name, line, "not-yaml", why=f"it cannot be read: {problem}", fix="mend the file")


def _template(name: str, line: int) -> Finding:
    fix = "render it first: helm template … > manifests.yaml"
    return found_at(name, line, "helm-template", why="it is a template, not YAML", fix=fix)


def _templated(node: yaml.Node | None) -> Iterator[int]:
    """Lines of mappings that are keys of mappings: YAML takes the braces of a template for such."""
    waiting, seen = [node], set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.MappingNode):
            yield from (key.start_mark.line + 1 for key, _ in one.value if isinstance(key, yaml.MappingNode))
            waiting += [value for _, value in one.value]
        elif isinstance(one, yaml.SequenceNode):
            waiting += one.value


def _objects(name: str, node: yaml.Node | None, findings: list[Finding]) -> Iterator[Document]:
    reader = _Reader(name=name, lines={}, findings=findings, left=_MOST_VALUES)
    data = reader.value(node, ())
    if reader.left <= 0:
        findings.append(found_at(name, 1, "not-yaml", why="its aliases expand without end", fix="write it out"))
        return
    if data is None:
        return
    if isinstance(data, Mapping) and data.get("kind") == "List":
        for place, item in enumerate(items(data.get("items"))):
            start: Path_ = ("items", place)
            lines = {path[2:]: line for path, line in reader.lines.items() if path[:2] == start}
            yield Document(file=name, data=fields(item), lines=lines)
    elif isinstance(data, Mapping):
        yield Document(file=name, data=data, lines=reader.lines)
    else:
        findings.append(
            found_at(name, reader.lines.get((), 1), "not-an-object", why="it is no mapping", fix="write an object")
        )


class _Reader:
    """Turns the nodes of one document into plain data and notes the line of each."""

    def __init__(self, *, name: str, lines: dict[Path_, int], findings: list[Finding], left: int) -> None:
        self.name = name
        self.lines = lines
        self.findings = findings
        self.left = left
        """How many values may still be read: aliases of aliases would expand without end."""
        self.loader: Any = yaml.SafeLoader("")

    def value(self, node: yaml.Node | None, path: Path_) -> Any:
        self.left -= 1
        if node is None or self.left <= 0:
            return None
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, place)) for place, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = self.value(value_node, path)
                made = {**fields(merged), **made}
                continue
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in made:
                why = f"{key} stands twice here: only the last one counts, and the API server refuses it"
                self.findings.append(found_at(self.name, line, "duplicate-key", why=why, fix="keep one of the two"))
            self.lines[(*path, key)] = line
            made[key] = self.value(value_node, (*path, key))
        return made

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            return str(node.value)
