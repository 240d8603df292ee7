"""Job: something done once."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.kinds.pod import Pod, pod_spec
from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One pod, tried again at most `retries` times."""

    meta: Meta
    pod: Pod
    retries: int
    about: str


@manifest_of.register
def job(made: Job) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="Job",
        meta=made.meta,
        body={"spec": {"backoffLimit": made.retries, "template": {"spec": pod_spec(made.pod)}}},
        about=made.about,
    )
