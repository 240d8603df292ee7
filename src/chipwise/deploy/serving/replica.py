"""One replica of a service: what it starts, asks for and mounts, and how long its probes wait."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, text
from chipwise.deploy.kinds.pod import Container, Place, Pod, Probe, Volume, secret_variable, variable
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes.shape import GIB, Shape, cpu_text
from chipwise.deploy.pods import cache_bytes, limits_of, network_environment, shared_memory, why_requests
from chipwise.deploy.serving.launch import OPTIONS_FOLDER, Launch, data_parallel_step, serving_launch, worker_args
from chipwise.deploy.serving.startup import PERIOD_S, Startup, startup_of
from chipwise.engines.flags import engine_flags_of

CONTAINER = "engine"
CACHE = "/cache"
_LIVE_FAILURES = 6
_READY_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What the parts of a service share."""

    chosen: Chosen
    parameters: Parameters
    name: str
    shape: Shape
    place: Place
    cpu_m: int
    memory_bytes: int
    cache_claim: str | None
    most_replicas: int
    memory_fraction: float = 1.0
    """The part of a GPU that an engine may take where pods share it."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Claim to its template, where drivers hand out the devices."""

    @property
    def meta(self) -> Meta:
        """The metadata that its objects share."""
        return marks.own_meta(self.name, self.parameters.namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The pods of one replica: the one that answers, and for several nodes the others."""

    leader: Pod
    worker: Pod
    launch: Launch
    start: Startup


def replica_of(of: Serving) -> Replica:
    """The pods of a replica and how long it takes to answer."""
    launch = serving_launch(of.chosen, of.parameters, of.shape, memory_fraction=of.memory_fraction)
    start = startup_of(
        weights_bytes=of.chosen.loaded_bytes, params=float(of.chosen.model.params), compiles=launch.compiles
    )
    leader = _pod(of, launch, start)
    return Replica(leader=leader, worker=_worker(of, launch, leader), launch=launch, start=start)


def _worker(of: Serving, launch: Launch, leader: Pod) -> Pod:
    """A node that computes with the leader and answers nobody; the leader again where a replica fits one node."""
    if not of.shape.spans:
        return leader
    flags = engine_flags_of(of.chosen.engine, of.chosen.engine_version)
    follower = dataclasses.replace(launch, args=worker_args(launch.args, flags))
    command, args = _command(of, follower)
    silent = dataclasses.replace(
        leader.container, command=command, args=args, port=None, startup=None, ready=None, live=None
    )
    return dataclasses.replace(leader, container=silent, spread={})


def pod_annotations(of: Serving) -> dict[str, str]:
    """What the plan says of the pods; a group on several nodes is not moved for the sake of a cheaper one."""
    kept = {"karpenter.sh/do-not-disrupt": "true"} if of.shape.spans else {}
    return {**marks.plan_annotations(of.chosen), **kept}


def about_replicas(of: Serving, start: Startup) -> str:
    """What the replicas are, for the head of the file."""
    chosen, shape = of.chosen, of.shape
    nodes = f"{shape.pods_per_replica} nodes" if shape.spans else "one node"
    split = ", ".join(f"{axis}={getattr(chosen.split, axis)}" for axis in ("tp", "pp", "ep", "dp", "cp"))
    devices = marks.several(chosen.devices_per_replica, "device")
    return (
        f"{chosen.model.name} on {chosen.engine}: {marks.several(chosen.replicas, 'replica')}, each {devices} "
        f"({split}) on {nodes} of {chosen.instance}; weights {chosen.precision.weights}, cache {chosen.precision.kv}.\n"
        f"A replica is predicted to answer {math.ceil(start.start_s / 60)} minutes after its container starts."
    )


def _pod(of: Serving, launch: Launch, start: Startup) -> Pod:
    return Pod(
        container=_container(of, launch, start),
        place=of.place,
        grace_s=int(number("pod", "grace")),
        claims=of.claims,
        spread=marks.selector(of.name) if of.chosen.replicas > 1 and not of.shape.spans else {},
    )


def _container(of: Serving, launch: Launch, start: Startup) -> Container:
    health, port = text("serve", "health"), int(number("serve", "port"))
    command, args = _command(of, launch)
    return Container(
        name=CONTAINER,
        image=launch.image,
        command=command,
        args=args,
        env=(*_environment(of), *launch.env),
        port=port,
        cpu=cpu_text(of.cpu_m),
        limits=limits_of(of.shape, memory_bytes=of.memory_bytes),
        claims=tuple(of.claims),
        startup=Probe(path=health, period_s=PERIOD_S, failures=start.failures),
        ready=Probe(path=health, period_s=PERIOD_S, failures=_READY_FAILURES),
        live=Probe(path=health, period_s=PERIOD_S, failures=_LIVE_FAILURES),
        lock_memory=of.shape.efa > 0,
        volumes=_volumes(of, launch),
        why_resources=why_requests(of.shape),
    )


def _command(of: Serving, launch: Launch) -> tuple[Sequence[str], Sequence[str]]:
    """The engine itself; a shell only where a rank must be reckoned, and then the words pass it untouched."""
    step = data_parallel_step(of.chosen, of.shape)
    if step is None:
        return launch.command, launch.args
    script = f'exec "$@" --data-parallel-start-rank=$((LWS_WORKER_INDEX * {step}))'
    return ("sh", "-c", script, "sh"), (*launch.command, *launch.args)


def _environment(of: Serving) -> tuple[Mapping[str, Any], ...]:
    made = [variable("HF_HOME", CACHE), secret_variable("HF_TOKEN", of.parameters.secret, "token")]
    if of.cache_claim and of.shape.node.vendor == "aws":
        folder = f"{CACHE}/{text('compile', 'cache')}"
        made.append(variable("NEURON_LIBTORCH_REMOTE_CACHE", folder, "what one replica compiles, the others find"))
    return (*made, *network_environment(of.shape))


def _volumes(of: Serving, launch: Launch) -> tuple[Volume, ...]:
    settings = Volume(name="options", mount=OPTIONS_FOLDER, config=options_name(of))
    return (shared_memory(of.shape, of.memory_bytes), cache_volume(of), *((settings,) if launch.options else ()))


def options_name(of: Serving) -> str:
    """The ConfigMap with what the engine reads from a file."""
    return f"{of.name}-engine"


def cache_volume(of: Serving) -> Volume:
    """Where weights and compiled graphs lie: the shared file system, else the node's own disk."""
    if of.cache_claim:
        return Volume(name="cache", mount=CACHE, claim=of.cache_claim)
    size = f"{math.ceil(cache_bytes(of.chosen) / GIB) + 10}Gi"
    return Volume(name="cache", mount=CACHE, size=size, why="weights, on the node's own disk")
