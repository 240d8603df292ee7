"""The other shapes of the same deployment: Kustomize with overlays, or values of the vLLM production stack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chipwise.deploy.facts import kinds, number
from chipwise.deploy.kinds.deployment import Deployment
from chipwise.deploy.kinds.pod import container_resources, placement
from chipwise.deploy.kinds.scaled_object import ScaledObject
from chipwise.deploy.manifest import Said, manifest_of, plain, present
from chipwise.deploy.written.bundle import File
from chipwise.deploy.written.render import document_text
from chipwise.errors import InputError

_NOT_APPLIED = frozenset({"ClusterConfig"})
_WORKLOADS = ("Deployment", "LeaderWorkerSet")
KUSTOMIZATION = "Kustomization"


def kustomized(files: list[File], name: str) -> list[File]:
    """The same files as a base, an overlay as planned, and for a service one of a single replica to try it."""
    applied = [file for file in files if file.kind not in _NOT_APPLIED]
    kept = [file for file in files if file.kind in _NOT_APPLIED]
    base = [_moved(file, f"base/{file.path}") for file in applied]
    made = [*kept, *base, _kustomization("base", {"resources": [file.path for file in applied]}, "All objects.")]
    production = {"resources": ["../../base"]}
    made.append(_kustomization("overlays/production", production, "As planned."))
    patches = [patch for file in applied for patch in _single(file, name)]
    if patches:
        trial = {"resources": ["../../base"], "patches": patches}
        made.append(_kustomization("overlays/trial", trial, "One replica, to try it; the autoscaler keeps it there."))
    return made


def _moved(file: File, path: str) -> File:
    return File(path=path, text=file.text, kind=file.kind, api_version=file.api_version, about=file.about)


def _kustomization(folder: str, content: dict[str, Any], about: str) -> File:
    version = kinds()[KUSTOMIZATION].api_version
    text = document_text({"apiVersion": version, "kind": KUSTOMIZATION, **content}, about=about)
    path = f"{folder}/kustomization.yaml"
    return File(path=path, text=text, kind=KUSTOMIZATION, api_version=version, about=about)


def _single(file: File, name: str) -> Iterable[dict[str, Any]]:
    """The patches that bring a workload and its autoscaler to one replica."""
    paths = {
        **dict.fromkeys(_WORKLOADS, ("/spec/replicas",)),
        "ScaledObject": ("/spec/minReplicaCount", "/spec/maxReplicaCount"),
        "HorizontalPodAutoscaler": ("/spec/minReplicas", "/spec/maxReplicas"),
    }.get(file.kind or "", ())
    if paths:
        steps = "".join(f"- {{op: replace, path: {path}, value: 1}}\n" for path in paths)
        yield {"target": {"kind": file.kind, "name": name}, "patch": steps}


def production_stack(objects: list[object]) -> File:
    """The values of the vLLM production stack for a Deployment of vLLM.

    Raises:
        InputError: the replica spans nodes or its engine is not vLLM's server.
    """
    workload = next((one for one in objects if isinstance(one, Deployment)), None)
    command = workload.pod.container.command if workload else ()
    if workload is None or tuple(command) != ("vllm", "serve"):
        raise InputError(
            "the Helm form does not fit this option",
            why="the chart of the vLLM production stack runs vllm serve, one node a replica",
            fix="use --form plain or --form kustomize",
        )
    scaler = next((one for one in objects if isinstance(one, ScaledObject)), None)
    text = document_text({"servingEngineSpec": _engine(workload, scaler)}, about=workload.about)
    return File(path="values.yaml", text=text, kind=None, api_version=None, about="Values of the Helm chart.")


def _engine(workload: Deployment, scaler: ScaledObject | None) -> dict[str, Any]:
    container = workload.pod.container
    probes = {"startupProbe": container.startup, "readinessProbe": container.ready, "livenessProbe": container.live}
    port = container.port
    return {
        "runtimeClassName": Said(value="", why="the EKS images need no runtime class"),
        "containerPort": port,
        "servicePort": port,
        **{
            name: {
                "initialDelaySeconds": 0,
                "periodSeconds": probe.period_s,
                "failureThreshold": probe.failures,
                "httpGet": {"path": probe.path, "port": port},
            }
            for name, probe in probes.items()
            if probe
        },
        "modelSpec": [_model(workload, scaler)],
    }


def _model(workload: Deployment, scaler: ScaledObject | None) -> dict[str, Any]:
    container, place = workload.pod.container, placement(workload.pod.place)
    repository, _, tag = container.image.rpartition(":")
    model, *flags = container.args
    port = f"--port={int(number('serve', 'port'))}"
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in (place["nodeSelector"] or {}).items()]
    shared = next(volume for volume in container.volumes if volume.memory)
    return present(
        {
            "name": workload.meta.name,
            "podAnnotations": dict(workload.annotations),
            "repository": repository,
            "tag": tag,
            "modelURL": model,
            "replicaCount": workload.replicas,
            "resources": container_resources(container),
            "vllmConfig": _flags([str(flag) for flag in flags if flag != port]),
            "hf_token": _token(workload),
            "shmSize": shared.size,
            "affinity": place["affinity"],
            "nodeSelectorTerms": [{"matchExpressions": terms}] if terms else None,
            "tolerations": place["tolerations"],
            "keda": _keda(scaler),
        }
    )


_OWN_KEYS: dict[str, tuple[str, type]] = {
    "--tensor-parallel-size": ("tensorParallelSize", int),
    "--max-model-len": ("maxModelLen", int),
    "--max-num-seqs": ("maxNumSeqs", int),
    "--gpu-memory-utilization": ("gpuMemoryUtilization", float),
    "--dtype": ("dtype", str),
}
"""Flags that the chart has a key of its own for; by tensorParallelSize it decides on /dev/shm."""


def _flags(flags: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    rest = []
    for flag in flags:
        name, _, value = flag.partition("=")
        if name in _OWN_KEYS:
            key, kind = _OWN_KEYS[name]
            made[key] = kind(value)
        else:
            rest.append(flag)
    return {**made, "extraArgs": rest} if rest else made


def _token(workload: Deployment) -> dict[str, str] | None:
    for one in workload.pod.container.env:
        reference = plain(one).get("valueFrom", {}).get("secretKeyRef")
        if reference:
            return {"secretName": reference["name"], "secretKey": reference["key"]}
    return None


def _keda(scaler: ScaledObject | None) -> dict[str, Any] | None:
    if scaler is None:
        return None
    spec = manifest_of(scaler).body["spec"]
    names = ("minReplicaCount", "maxReplicaCount", "cooldownPeriod", "triggers")
    return {"enabled": True, **{name: spec[name] for name in names}}
