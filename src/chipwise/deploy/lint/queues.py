"""Checks of Kueue: whether the queue of a run is here, covers what it asks for, and can see its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.deploy.lint.documents import Document, as_text, at, fields, items
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.scene import Scene, found

_LABEL = "kueue.x-k8s.io/queue-name"


def queue_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for document in scene.tree.documents:
        name = as_text(at(document.data, "metadata", "labels", _LABEL))
        if name:
            yield from _queue(scene, document, name)
    for document in scene.tree.of_kind("ResourceFlavor"):
        yield from _topology(scene, document)


def _queue(scene: Scene, document: Document, name: str) -> Iterator[Finding]:
    local = [one for one in scene.tree.of_kind("LocalQueue") if one.namespace == document.namespace]
    path = ("metadata", "labels", _LABEL)
    own = next((one for one in local if one.name == name), None)
    if own is None:
        if local:
            why = f"no file defines LocalQueue {name} in namespace {document.namespace}"
            fix = f"name one of {', '.join(one.name for one in local)}"
            yield found(document, path, "queue-missing", why=why, fix=fix)
        return
    cluster = next(
        (one for one in scene.tree.of_kind("ClusterQueue") if one.name == at(own.data, "spec", "clusterQueue")), None
    )
    if cluster is None:
        return
    groups = items(at(cluster.data, "spec", "resourceGroups"))
    covered = {resource for group in groups for resource in items(at(group, "coveredResources"))}
    asked = {name for pod in scene.pods if pod.document is document for name in pod.requests}
    for resource in sorted(asked - covered):
        why = f"ClusterQueue {cluster.name} does not cover {resource}: the run is never admitted"
        fix = f"add {resource} to coveredResources with a quota"
        yield found(cluster, ("spec", "resourceGroups"), "queue-covers-not", why=why, fix=fix)


def _topology(scene: Scene, document: Document) -> Iterator[Finding]:
    """Kueue weighs nodes that stand; it cannot weigh those that are launched when a pod waits."""
    if not at(document.data, "spec", "topologyName"):
        return
    wanted = {str(key): (str(value),) for key, value in fields(at(document.data, "spec", "nodeLabels")).items()}
    pools = [pool for pool in scene.pools if all(pool.offers(key, values) for key, values in wanted.items())]
    if pools and not any(pool.static for pool in pools):
        why = "its nodes are launched when pods wait, and Kueue admits pods only onto nodes that stand: neither begins"
        fix = "use a pool of fixed size or a managed node group, or leave topologyName out"
        yield found(document, ("spec", "topologyName"), "topology-without-nodes", why=why, fix=fix)
