"""JobSet: a run without a trainer's controller; torchrun finds its first node by name."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.kinds.replicated_job import ReplicatedJob, job_set_spec
from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSet:
    """One job on all nodes."""

    meta: Meta
    job: ReplicatedJob
    about: str


@manifest_of.register
def job_set(made: JobSet) -> Manifest:
    """Its manifest."""
    return Manifest(kind="JobSet", meta=made.meta, body={"spec": job_set_spec(made.job)}, about=made.about)
