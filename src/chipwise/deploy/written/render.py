"""From a manifest to YAML with comments. ruamel.yaml (the extra `deploy`) writes it; it is imported when used."""

from __future__ import annotations

import importlib
import io
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml as pyyaml

from chipwise.deploy.manifest import Manifest, Said
from chipwise.errors import KnowledgeError

_WIDTH = 110
_STEP = 2
_IN_LINE = 60
"""A list of plain words up to this width stands in one line."""
_STRING = "tag:yaml.org,2002:str"


def yaml_text(manifest: Manifest) -> str:
    """The file of a manifest: what it is, then the object.

    >>> from chipwise.deploy.manifest import Meta
    >>> print(yaml_text(Manifest(kind="Namespace", meta=Meta(name="chat"), body={}, about="Where it lives.")), end="")
    # Where it lives.
    apiVersion: v1
    kind: Namespace
    metadata:
      name: chat
    """
    return document_text(manifest.content(), about=manifest.about)


def document_text(content: Mapping[str, Any], *, about: str = "") -> str:
    """Any mapping as a YAML document with a comment at its head."""
    tree = _tree(content, indent=0)
    if about:
        tree.yaml_set_start_comment(_wrapped(about, _WIDTH))
    stream = io.StringIO()
    _writer().dump(tree, stream)
    return stream.getvalue()


@cache
def _ruamel() -> tuple[Any, Any, Any]:
    """The modules of ruamel.yaml that are used here.

    Raises:
        KnowledgeError: the extra is not installed.
    """
    try:
        found = [importlib.import_module(f"ruamel.yaml.{name}") for name in ("main", "comments", "scalarstring")]
    except ImportError as error:
        raise KnowledgeError(
            "ruamel.yaml is not installed",
            why="manifests are written with their comments by it",
            fix="pip install 'chipwise[deploy]'",
        ) from error
    return (found[0], found[1], found[2])


def _writer() -> Any:
    main, *_ = _ruamel()
    writer = main.YAML()
    writer.indent(mapping=_STEP, sequence=2 * _STEP, offset=_STEP)
    writer.width = 4096  # a folded scalar is harder to read than a long line
    return writer


def _tree(value: Any, *, indent: int) -> Any:
    if isinstance(value, Said):
        return _tree(value.value, indent=indent)
    if isinstance(value, Mapping):
        return _mapping(value, indent)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _sequence(value, indent)
    return _scalar(value) if isinstance(value, str) else value


def _mapping(fields: Mapping[str, Any], indent: int) -> Any:
    _, comments, _ = _ruamel()
    made = comments.CommentedMap()
    for key, value in fields.items():
        made[_scalar(key)] = _tree(value, indent=indent + _STEP)
        if isinstance(value, Said):
            made.yaml_set_comment_before_after_key(key, before=_wrapped(value.why, _WIDTH - indent), indent=indent)
    if not made:
        made.fa.set_flow_style()
    return made


def _sequence(items: Sequence[Any], indent: int) -> Any:
    _, comments, _ = _ruamel()
    made = comments.CommentedSeq(_tree(item, indent=indent + _STEP) for item in items)
    for place, item in enumerate(items):
        if isinstance(item, Said):
            made.yaml_set_comment_before_after_key(place, before=_wrapped(item.why, _WIDTH - indent), indent=indent)
    if _is_short(items):
        made.fa.set_flow_style()
    return made


def _is_short(items: Sequence[Any]) -> bool:
    """Whether a list reads better in one line: few words, no remark."""
    plain = all(isinstance(item, str | int | float) and "\n" not in str(item) for item in items)
    return plain and sum(len(str(item)) + 2 for item in items) <= _IN_LINE


def _scalar(text: str) -> Any:
    """Text as text for every reader: what YAML 1.1 takes for a number, a date or a truth value is quoted."""
    *_, scalars = _ruamel()
    if "\n" in text:
        return scalars.LiteralScalarString(text)
    if _resolved(text) != _STRING:
        return scalars.DoubleQuotedScalarString(text)
    return text


def _resolved(text: str) -> str:
    """The tag that YAML 1.1 gives a bare word."""
    resolver: Any = pyyaml.resolver.Resolver()
    return str(resolver.resolve(pyyaml.ScalarNode, text, (True, False)))


def _wrapped(text: str, width: int) -> str:
    return "\n".join(line for part in text.splitlines() for line in textwrap.wrap(part, max(width, 40)))
