"""A pod: what runs, on which node, with what. No kind of its own: the workloads embed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.manifest import Said, present

Quantities = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Asks a path of the port `http` every `period_s`; gives up after `failures`."""

    path: str
    period_s: int
    failures: int
    timeout_s: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume and where it is mounted: a claim, memory, or a folder of the node."""

    name: str
    mount: str
    claim: str | None = None
    memory: bool = False
    size: str | None = None
    config: str | None = None
    """The ConfigMap it shows."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The one container of a pod. `limits` holds memory and devices; requests hold them too, and the CPU."""

    name: str
    image: str
    command: Sequence[str] = ()
    args: Sequence[Any] = ()
    env: Sequence[Mapping[str, Any]] = ()
    port: int | None = None
    port_name: str = "http"
    cpu: str | None = None
    limits: Quantities = field(default_factory=dict)
    claims: Sequence[str] = ()
    startup: Probe | None = None
    ready: Probe | None = None
    live: Probe | None = None
    lock_memory: bool = False
    volumes: Sequence[Volume] = ()
    why_resources: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which nodes a pod may go to, and by which scheduler."""

    instances: Sequence[str]
    """Sizes, the preferred one first."""
    taint: str | None
    labels: Mapping[str, str] = field(default_factory=dict)
    scheduler: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The whole pod."""

    container: Container
    place: Place
    grace_s: int | None = None
    spread: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods that should not crowd one zone or node."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Name in the pod to the ResourceClaimTemplate."""
    restart: str | None = None
    sidecars: Sequence[Container] = ()
    """Containers that run beside it from before its start to after its end."""


def pod_spec(pod: Pod) -> dict[str, Any]:
    """The `spec` of a pod."""
    return present(
        {
            "enableServiceLinks": Said(
                value=False, why="a Service named vllm would set VLLM_PORT here, which vLLM reads as its own setting"
            ),
            "schedulerName": pod.place.scheduler,
            **placement(pod.place),
            "topologySpreadConstraints": _spread(pod.spread) or None,
            "restartPolicy": pod.restart,
            "terminationGracePeriodSeconds": pod.grace_s,
            "resourceClaims": [
                {"name": name, "resourceClaimTemplateName": template} for name, template in pod.claims.items()
            ]
            or None,
            "volumes": [_volume(one) for one in pod.container.volumes] or None,
            "initContainers": [{**container_spec(one), "restartPolicy": "Always"} for one in pod.sidecars] or None,
            "containers": [container_spec(pod.container)],
        }
    )


def placement(place: Place) -> dict[str, Any]:
    """What steers a pod: one size by a node selector, several by affinity; and the taint it bears."""
    selector: dict[str, Any] = dict(place.labels)
    affinity = None
    if len(place.instances) == 1:
        selector["node.kubernetes.io/instance-type"] = place.instances[0]
    elif place.instances:
        term = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(place.instances)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    tolerations = [{"key": place.taint, "operator": "Exists", "effect": "NoSchedule"}] if place.taint else None
    return {"nodeSelector": selector or None, "affinity": affinity, "tolerations": tolerations}


def container_spec(container: Container) -> dict[str, Any]:
    """One container."""
    probes = {"startupProbe": container.startup, "readinessProbe": container.ready, "livenessProbe": container.live}
    ports = [{"name": container.port_name, "containerPort": container.port}] if container.port else None
    security = {"capabilities": {"add": ["IPC_LOCK"]}} if container.lock_memory else None
    return present(
        {
            "name": container.name,
            "image": container.image,
            "command": list(container.command) or None,
            "args": list(container.args) or None,
            "env": list(container.env) or None,
            "ports": ports,
            "securityContext": security and Said(value=security, why="EFA pins memory"),
            "resources": container_resources(container),
            **{name: _probe(probe) for name, probe in probes.items() if probe},
            "volumeMounts": [{"name": one.name, "mountPath": one.mount} for one in container.volumes] or None,
        }
    )


def variable(name: str, value: str, why: str = "") -> dict[str, Any]:
    """An environment variable."""
    return {"name": name, "value": Said(value=value, why=why) if why else value}


def field_variable(name: str, path: str) -> dict[str, Any]:
    """An environment variable that holds a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def secret_variable(name: str, secret: str, key: str) -> dict[str, Any]:
    """An environment variable whose value a Secret holds; the pod starts without it, too."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}


def container_resources(container: Container) -> Any:
    """What a container asks for: CPU, memory and devices; limits repeat all but the CPU."""
    requests = present({"cpu": container.cpu, **container.limits})
    claims = [{"name": name} for name in container.claims] or None
    found = present({"requests": requests or None, "limits": dict(container.limits) or None, "claims": claims})
    if not found:
        return None
    return Said(value=found, why=container.why_resources) if container.why_resources else found


def _probe(probe: Probe) -> Any:
    return {
        "httpGet": {"path": probe.path, "port": "http"},
        "periodSeconds": probe.period_s,
        "timeoutSeconds": probe.timeout_s,
        "failureThreshold": probe.failures,
    }


def _volume(volume: Volume) -> Any:
    made: dict[str, Any] = {"name": volume.name}
    if volume.claim:
        made["persistentVolumeClaim"] = {"claimName": volume.claim}
    elif volume.config:
        made["configMap"] = {"name": volume.config}
    else:
        made["emptyDir"] = present({"medium": "Memory" if volume.memory else None, "sizeLimit": volume.size})
    return Said(value=made, why=volume.why) if volume.why else made


def _spread(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    keys = ("topology.kubernetes.io/zone", "kubernetes.io/hostname") if labels else ()
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(labels)},
        }
        for key in keys
    ]
