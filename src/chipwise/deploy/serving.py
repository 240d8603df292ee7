"""From an option that serves to its objects: the workload, its address, its guard, its metrics, its scaler."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.chosen import Chosen
from chipwise.deploy.facts import kinds, number, text
from chipwise.deploy.kinds.deployment import Deployment
from chipwise.deploy.kinds.horizontal_pod_autoscaler import HorizontalPodAutoscaler, PodMetric
from chipwise.deploy.kinds.leader_worker_set import ROLE, LeaderWorkerSet
from chipwise.deploy.kinds.pod import Container, Place, Pod, Probe, Volume, secret_variable, variable
from chipwise.deploy.kinds.pod_disruption_budget import PodDisruptionBudget
from chipwise.deploy.kinds.pod_monitor import PodMonitor
from chipwise.deploy.kinds.scaled_object import ScaledObject, Trigger
from chipwise.deploy.kinds.service import Service
from chipwise.deploy.launch import Launch, data_parallel_step, serving_launch, worker_args
from chipwise.deploy.manifest import Meta
from chipwise.deploy.parameters import Parameters
from chipwise.deploy.pods import limits_of, network_environment, shared_memory, why_requests
from chipwise.deploy.shape import GIB, Shape, cpu_text
from chipwise.deploy.startup import PERIOD_S, Startup, startup_of
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

    @property
    def meta(self) -> Meta:
        """The metadata that its objects share."""
        return marks.own_meta(self.name, self.parameters.namespace)


def serving_objects(of: Serving) -> tuple[list[object], tuple[str, ...]]:
    """The objects, and what a reader must be told."""
    launch = serving_launch(of.chosen, of.parameters, of.shape)
    start = startup_of(
        weights_bytes=of.chosen.loaded_bytes, params=float(of.chosen.model.params), compiles=launch.compiles
    )
    objects = [_workload(of, launch, start), *_around(of)]
    return objects, launch.remarks


def _workload(of: Serving, launch: Launch, start: Startup) -> object:
    about = _about(of, start)
    common: dict[str, Any] = {
        "meta": of.meta,
        "annotations": {**marks.plan_annotations(of.chosen), **_undisturbed(of)},
        "replicas": of.chosen.replicas,
        "about": about,
    }
    if not of.shape.spans:
        pod = _pod(of, launch, start)
        return Deployment(**common, selector=marks.selector(of.name), deadline_s=start.deadline_s, pod=pod)
    flags = engine_flags_of(of.chosen.engine, of.chosen.engine_version)
    follower = dataclasses.replace(launch, args=worker_args(launch.args, flags))
    worker = _pod(of, follower, start)
    silent = dataclasses.replace(worker.container, port=None, startup=None, ready=None, live=None)
    return LeaderWorkerSet(
        **common,
        size=of.shape.pods_per_replica,
        leader=_pod(of, launch, start),
        worker=dataclasses.replace(worker, container=silent, spread={}),
    )


def _undisturbed(of: Serving) -> dict[str, str]:
    """A group on several nodes is not moved for the sake of a cheaper node."""
    return {"karpenter.sh/do-not-disrupt": "true"} if of.shape.spans else {}


def _about(of: Serving, start: Startup) -> str:
    chosen, shape = of.chosen, of.shape
    nodes = f"{shape.pods_per_replica} nodes" if shape.spans else "one node"
    split = ", ".join(f"{axis}={getattr(chosen.split, axis)}" for axis in ("tp", "pp", "ep", "dp", "cp"))
    return (
        f"{chosen.model.name} on {chosen.engine}: {chosen.replicas} replicas, each {chosen.devices_per_replica} "
        f"devices ({split}) on {nodes} of {chosen.instance}; weights {chosen.precision.weights}, cache "
        f"{chosen.precision.kv}.\n"
        f"A replica is predicted to answer {math.ceil(start.start_s / 60)} minutes after its container starts."
    )


def _pod(of: Serving, launch: Launch, start: Startup) -> Pod:
    return Pod(
        container=_container(of, launch, start),
        place=of.place,
        grace_s=int(number("pod", "grace")),
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
        startup=Probe(path=health, period_s=PERIOD_S, failures=start.failures),
        ready=Probe(path=health, period_s=PERIOD_S, failures=_READY_FAILURES),
        live=Probe(path=health, period_s=PERIOD_S, failures=_LIVE_FAILURES),
        lock_memory=of.shape.efa > 0,
        volumes=_volumes(of),
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
    return (*made, *network_environment(of.shape))


def cache_bytes(chosen: Chosen) -> float:
    """Room for a replica's weights on disk while they are downloaded."""
    return chosen.loaded_bytes * number("startup", "cache_factor")


def _volumes(of: Serving) -> tuple[Volume, ...]:
    shared = shared_memory(of.shape, of.memory_bytes)
    if of.cache_claim:
        return shared, Volume(name="cache", mount=CACHE, claim=of.cache_claim)
    size = f"{math.ceil(cache_bytes(of.chosen) / GIB) + 10}Gi"
    return shared, Volume(name="cache", mount=CACHE, size=size, why="weights, on the node's own disk")


def _around(of: Serving) -> list[object]:
    """Address, guard, metrics and scaler. Of replicas on several nodes, only the leaders answer."""
    answering = {**marks.selector(of.name), **({ROLE: "leader"} if of.shape.spans else {})}
    made: list[object] = [
        Service(meta=of.meta, selector=answering, port=int(number("serve", "port"))),
        PodDisruptionBudget(meta=of.meta, selector=answering),
    ]
    if of.chosen.engine not in text("serve", "metered").split():
        return made
    return [*made, PodMonitor(meta=of.meta, selector=answering, path=text("serve", "metrics")), *_scaler(of)]


def _scaler(of: Serving) -> list[object]:
    if of.parameters.scaler == "none" or of.most_replicas <= of.chosen.replicas:
        return []
    kind = "LeaderWorkerSet" if of.shape.spans else "Deployment"
    bounds: dict[str, Any] = {
        "meta": of.meta,
        "target_kind": kind,
        "target_api_version": kinds()[kind].api_version,
        "least": of.chosen.replicas,
        "most": of.most_replicas,
        "cooldown_s": int(number("scale", "cooldown")),
    }
    if of.parameters.scaler == "hpa":
        return [HorizontalPodAutoscaler(**bounds, metrics=_metrics())]
    server = of.parameters.prometheus or text("prometheus", "server")
    return [ScaledObject(**bounds, prometheus=server, triggers=_triggers(of))]


def _triggers(of: Serving) -> tuple[Trigger, ...]:
    where = f'{{namespace="{of.parameters.namespace}",pod=~"{of.name}-.*"}}'
    waiting, cache = text("serve", "waiting_metric"), text("serve", "cache_metric")
    return (
        Trigger(
            query=f"sum({waiting}{where})",
            threshold=f"{number('scale', 'waiting_per_replica'):g}",
            why="requests waiting in the engines, for each replica",
        ),
        Trigger(
            query=f"sum({cache}{where})",
            threshold=f"{number('scale', 'kv_use'):g}",
            why="share of the KV cache in use, for each replica: above it the engine preempts",
        ),
    )


def _metrics() -> tuple[PodMetric, ...]:
    names = [text("serve", key).replace(":", "_") for key in ("waiting_metric", "cache_metric")]
    waiting, cache = number("scale", "waiting_per_replica"), number("scale", "kv_use")
    return (
        PodMetric(name=names[0], average=f"{waiting:g}", why="requests waiting in the engine"),
        PodMetric(name=names[1], average=f"{round(cache * 1000)}m", why="share of the KV cache in use"),
    )
