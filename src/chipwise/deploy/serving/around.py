"""What stands around the replicas: address, guard, metrics, scaler, and the way in from a Gateway."""

from __future__ import annotations

from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.facts import kinds, number, text, told, vendor_text
from chipwise.deploy.kinds.horizontal_pod_autoscaler import HorizontalPodAutoscaler, PodMetric
from chipwise.deploy.kinds.http_route import HTTPRoute
from chipwise.deploy.kinds.inference_pool import InferencePool
from chipwise.deploy.kinds.leader_worker_set import ROLE
from chipwise.deploy.kinds.pod_disruption_budget import PodDisruptionBudget
from chipwise.deploy.kinds.pod_monitor import PodMonitor
from chipwise.deploy.kinds.scaled_object import ScaledObject, Trigger
from chipwise.deploy.kinds.service import Service
from chipwise.deploy.manifest import Meta
from chipwise.deploy.serving.replica import Serving


def around(of: Serving) -> list[object]:
    """Address, guard, metrics and scaler. Of replicas on several nodes, only the leaders answer."""
    answering = {**marks.selector(of.name), **({ROLE: "leader"} if of.shape.spans else {})}
    made: list[object] = [
        Service(meta=of.meta, selector=answering, port=int(number("serve", "port"))),
        PodDisruptionBudget(meta=of.meta, selector=answering),
    ]
    if of.chosen.engine not in text("serve", "metered").split():
        return made
    monitor = PodMonitor(meta=of.meta, selector=answering, path=text("serve", "metrics"))
    return [*made, monitor, *_scaler(of), *gateway(of, answering)]


def device_monitor(meta: Meta, vendor: str, *, operated: bool = False) -> PodMonitor:
    """Prometheus reads what the chips do from their own exporter, wherever that runs; `operated`: an operator's."""
    label = vendor_text(vendor, "operated_monitor_label" if operated else "monitor_label")
    name, _, value = label.partition("=")
    port, exporter = vendor_text(vendor, "monitor_port"), told(vendor_text(vendor, "monitor"), "title")
    return PodMonitor(
        meta=meta,
        selector={name: value},
        path=text("serve", "metrics"),
        port=int(port) if port.isdigit() else port,
        everywhere=True,
        about=f"Prometheus reads use, memory and errors of the chips from {exporter}.",
    )


def gateway(of: Serving, answering: dict[str, str]) -> list[object]:
    """The way in from your Gateway, where you name one: a pool of endpoints and a route to it."""
    if of.parameters.gateway is None:
        return []
    pool = InferencePool(
        meta=of.meta,
        selector=answering,
        port=int(number("serve", "port")),
        picker=f"{of.name}-epp",
        picker_port=int(number("gie", "picker_port")),
    )
    return [pool, HTTPRoute(meta=of.meta, gateway=of.parameters.gateway, pool=of.name)]


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
