"""From an option that serves to its objects: the workload, on Neuron its compilation, and what stands around it."""

from __future__ import annotations

from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.kinds.config_map import ConfigMap
from chipwise.deploy.kinds.deployment import Deployment
from chipwise.deploy.kinds.leader_worker_set import LeaderWorkerSet
from chipwise.deploy.serving.around import around
from chipwise.deploy.serving.compilation import compilation_job
from chipwise.deploy.serving.launch import OPTIONS_FILE
from chipwise.deploy.serving.replica import (
    Replica,
    Serving,
    about_replicas,
    cache_volume,
    options_name,
    pod_annotations,
    replica_of,
)
from chipwise.deploy.written.render import document_text

_COMPILES_ON_CPU = "vllm-neuron"


def serving_objects(of: Serving) -> tuple[list[object], tuple[str, ...]]:
    """The objects, and what a reader must be told."""
    replica = replica_of(of)
    before = [*_options(of, replica), *_compilation(of, replica)]
    return [*before, _workload(of, replica), *around(of)], tuple(_remarks(of, replica))


def _options(of: Serving, replica: Replica) -> list[object]:
    """What the engine reads from a file."""
    if not replica.launch.options:
        return []
    meta = marks.own_meta(of.name, of.parameters.namespace, called=options_name(of))
    text = document_text(replica.launch.options)
    about = "Settings that the engine takes from a file, not from its command line."
    return [ConfigMap(meta=meta, files={OPTIONS_FILE.rpartition("/")[2]: text}, about=about)]


def _workload(of: Serving, replica: Replica) -> object:
    """A Deployment where a replica fits one node, else a LeaderWorkerSet."""
    common: dict[str, Any] = {
        "meta": of.meta,
        "annotations": pod_annotations(of),
        "replicas": of.chosen.replicas,
        "about": about_replicas(of, replica.start),
    }
    if of.shape.spans:
        size = of.shape.pods_per_replica
        return LeaderWorkerSet(**common, size=size, leader=replica.leader, worker=replica.worker)
    selector = marks.selector(of.name)
    return Deployment(**common, selector=selector, deadline_s=replica.start.deadline_s, pod=replica.leader)


def _compilation(of: Serving, replica: Replica) -> list[object]:
    """Compilation beforehand needs a file system that both sides mount."""
    if of.chosen.engine != _COMPILES_ON_CPU or not of.cache_claim:
        return []
    return [compilation_job(of.name, of.parameters, replica.launch, of.shape, cache_volume(of))]


def _remarks(of: Serving, replica: Replica) -> list[str]:
    said = list(replica.launch.remarks)
    if replica.launch.compiles and not of.cache_claim:
        said.append(
            "every replica compiles for itself when it first starts: --file-system and --mount-name name an FSx for "
            "Lustre file system, on which a Job compiles beforehand"
        )
    if of.shape.spans and of.shape.efa and not of.parameters.zone:
        said.append("the nodes of a replica must stand in one zone: --zone names it")
    if of.parameters.gateway:
        said.append(f"the endpoint picker must run as the Service {of.name}-epp: its chart brings it")
    return said
