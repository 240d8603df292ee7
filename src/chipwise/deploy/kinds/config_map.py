"""ConfigMap: settings as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap:
    """Files by name."""

    meta: Meta
    files: Mapping[str, str]
    about: str


@manifest_of.register
def config_map(made: ConfigMap) -> Manifest:
    """Its manifest."""
    return Manifest(kind="ConfigMap", meta=made.meta, body={"data": dict(made.files)}, about=made.about)
