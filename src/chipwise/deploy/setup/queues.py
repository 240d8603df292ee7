"""The queue of a run that spans nodes: all its pods start, or none, and near to one another where nodes stand ready."""

from __future__ import annotations

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import text
from chipwise.deploy.kinds.pod import Place
from chipwise.deploy.kinds.queue import ClusterQueue, LocalQueue, ResourceFlavor, Topology
from chipwise.deploy.nodes.shape import Shape, cpu_text
from chipwise.deploy.pods import limits_of

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
NO_QUEUE = "none"


def queue_name(name: str, parameters: Parameters, *, spans: bool) -> str | None:
    """The LocalQueue of the run: yours, or the one that is written for a run on several nodes."""
    if parameters.queue == NO_QUEUE:
        return None
    return parameters.queue or (name if spans else None)


def queue_objects(name: str, parameters: Parameters, shape: Shape, place: Place, *, topology: bool) -> list[object]:
    """The queue's objects, where no LocalQueue of yours is named.

    Near nodes are chosen only among those that stand ready: Kueue cannot weigh nodes that are yet to be launched.
    """
    if parameters.queue or not shape.spans:
        return []
    near = f"{name}-network" if topology else None
    made: list[object] = [
        ResourceFlavor(
            meta=marks.own_meta(name, called=name),
            topology=near,
            node_labels={"node.kubernetes.io/instance-type": shape.node.instance},
            taint=place.taint or "",
        ),
        ClusterQueue(
            meta=marks.own_meta(name), namespace=parameters.namespace or "default", flavor=name, quota=_quota(shape)
        ),
        LocalQueue(meta=marks.own_meta(name, parameters.namespace), cluster_queue=name),
    ]
    levels = text("kueue", "topology_levels").split()
    return [Topology(meta=marks.own_meta(name, called=near), levels=levels), *made] if near else made


def _quota(shape: Shape) -> dict[str, str]:
    """What all pods of the run ask for together."""
    each = {"cpu": cpu_text(shape.cpu_m), **limits_of(shape, memory_bytes=shape.memory_bytes)}
    return {name: _times(amount, shape.pods_per_replica) for name, amount in each.items()}


def _times(amount: str, count: int) -> str:
    """A quantity so many times over.

    >>> _times("185", 4), _times("1880Gi", 2), _times("3700m", 2)
    ('740', '3760Gi', '7400m')
    """
    digits = amount.rstrip("GiMm")
    return f"{int(digits) * count}{amount[len(digits) :]}"
