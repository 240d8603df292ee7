"""What leaves the room: files with their text, and what a reader must be told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chipwise.deploy.facts import kinds
from chipwise.deploy.manifest import Manifest, manifest_of
from chipwise.deploy.written.render import yaml_text


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file: a manifest, or a text beside the manifests (then kind and api_version are None)."""

    path: str
    """Below the folder that is written, with forward slashes."""
    text: str
    kind: str | None
    api_version: str | None
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """All files of one deployment."""

    files: tuple[File, ...]
    warnings: tuple[str, ...]


def files_of(folder: str, objects: Iterable[object]) -> list[File]:
    """A file for every object, numbered in the order in which they are applied.

    >>> from chipwise.deploy.kinds.namespace import Namespace
    >>> from chipwise.deploy.manifest import Meta
    >>> [file.path for file in files_of("setup", [Namespace(meta=Meta(name="chat"))])]
    ['setup/00-namespace.yaml']
    """
    manifests = sorted((manifest_of(one) for one in objects), key=lambda one: kinds()[one.kind].apply_order)
    names = [one.kind for one in manifests]
    return [_file(folder, one, several=names.count(one.kind) > 1) for one in manifests]


def _file(folder: str, manifest: Manifest, *, several: bool) -> File:
    kind = kinds()[manifest.kind]
    stem = f"{kind.apply_order:02}-{kebab(manifest.kind)}" + (f"-{manifest.meta.name}" if several else "")
    return File(
        path=f"{folder}/{stem}.yaml",
        text=yaml_text(manifest),
        kind=manifest.kind,
        api_version=manifest.api_version,
        about=manifest.about.partition("\n")[0],
    )


def kebab(kind: str) -> str:
    """A kind as a file is named.

    >>> kebab("LeaderWorkerSet"), kebab("EC2NodeClass")
    ('leader-worker-set', 'ec2-node-class')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind).lower()
