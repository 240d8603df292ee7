"""Prefill and decode on pools of their own: one DisaggregatedSet, the cache handed over by NIXL.

Every pod runs the same engine with a transfer connector. Requests come to the decode pods, whose sidecar sends the
prompt to a prefill pod first and then lets its own engine fetch the cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen, Pool
from chipwise.deploy.facts import image_of, number, text
from chipwise.deploy.kinds.disaggregated_set import ROLE_LABEL, DisaggregatedSet, Role
from chipwise.deploy.kinds.pod import Container, Pod, field_variable, variable
from chipwise.deploy.kinds.pod_disruption_budget import PodDisruptionBudget
from chipwise.deploy.kinds.pod_monitor import PodMonitor
from chipwise.deploy.kinds.service import Service
from chipwise.deploy.serving.replica import Serving, pod_annotations, replica_of

DECODE = "decode"


def of_pool(chosen: Chosen, pool: Pool) -> Chosen:
    """The option as one of its pools has it."""
    return dataclasses.replace(
        chosen,
        instance=pool.instance,
        instances=pool.instances,
        replicas=pool.replicas,
        devices_per_replica=pool.devices_per_replica,
        split=pool.split,
    )


def disaggregated_objects(parts: Sequence[tuple[Pool, Serving]]) -> tuple[list[object], tuple[str, ...]]:
    """The set and what stands around it, and what a reader must be told. Each pool comes with its own replicas."""
    first = parts[0][1]
    roles = [_role(pool, of) for pool, of in parts]
    about = " and ".join(f"{pool.replicas} x {pool.role} on {pool.instance}" for pool, _ in parts)
    answering = {**marks.selector(first.name), ROLE_LABEL: DECODE}
    everybody = marks.selector(first.name)
    objects: list[object] = [
        DisaggregatedSet(meta=first.meta, roles=roles, about=f"{first.chosen.model.name}: {about}."),
        Service(meta=first.meta, selector=answering, port=int(number("serve", "port")), target="proxy"),
        PodDisruptionBudget(meta=first.meta, selector=everybody),
        PodMonitor(meta=first.meta, selector=everybody, path=text("serve", "metrics")),
    ]
    return objects, _remarks(first)


def _role(pool: Pool, of: Serving) -> Role:
    replica = replica_of(of)
    return Role(
        name=pool.role,
        replicas=pool.replicas,
        size=of.shape.pods_per_replica,
        leader=_handing_over(replica.leader, of, decode=pool.role == DECODE),
        worker=_handing_over(replica.worker, of, decode=pool.role == DECODE),
        annotations=pod_annotations(of),
    )


def _handing_over(pod: Pod, of: Serving, *, decode: bool) -> Pod:
    """The pod with the transfer connector; a decode pod that answers stands behind its sidecar."""
    serve, engine = int(number("serve", "port")), int(number("transfer", "engine_port"))
    behind = decode and pod.container.port is not None
    port = engine if behind else serve
    args = [f"--port={port}" if str(arg).startswith("--port=") else arg for arg in pod.container.args]
    container = dataclasses.replace(
        pod.container,
        image=of.parameters.image or text("transfer", "image"),
        args=(*args, f"--kv-transfer-config={text('transfer', 'config')}"),
        env=(*pod.container.env, *_transfer()),
        port=port if pod.container.port else None,
    )
    return dataclasses.replace(pod, container=container, sidecars=(_sidecar(serve, engine),) if behind else ())


def _transfer() -> tuple[dict[str, object], ...]:
    return (
        field_variable("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP"),
        variable("VLLM_NIXL_SIDE_CHANNEL_PORT", f"{number('transfer', 'port'):g}"),
    )


def _sidecar(serve: int, engine: int) -> Container:
    return Container(
        name="router",
        image=text("transfer", "sidecar"),
        args=(f"--port={serve}", f"--vllm-port={engine}", f"--connector={text('transfer', 'connector')}"),
        port=serve,
        port_name="proxy",
    )


def _remarks(of: Serving) -> tuple[str, ...]:
    said = ["roles are scaled by hand: change their replicas together, so that prefill keeps up with decode"]
    published = image_of(of.chosen.engine, of.chosen.engine_version, of.shape.node.vendor)
    if not of.parameters.image:
        name = published.name if published else of.chosen.engine
        said.append(
            f"{text('transfer', 'image')} stands in for {name}, which carries no NIXL: its vLLM may be another version"
        )
    return tuple(said)
