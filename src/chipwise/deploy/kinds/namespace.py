"""Namespace: where the objects live."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace."""

    meta: Meta


@manifest_of.register
def namespace(made: Namespace) -> Manifest:
    """Its manifest."""
    return Manifest(kind="Namespace", meta=made.meta, body={}, about="Where the objects live.")
