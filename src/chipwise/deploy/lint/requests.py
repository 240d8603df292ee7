"""Checks of what a pod asks for against what a node of its size has: CPU, memory, devices, EFA."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.deploy.facts import text
from chipwise.deploy.lint.documents import Path_
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import EFA, GPU, Container, Pod, accelerators
from chipwise.deploy.lint.pools import Pool, asked_of, node_known
from chipwise.deploy.lint.quantities import quantity
from chipwise.deploy.lint.scene import Scene, found
from chipwise.deploy.nodes.node import Node

_PAGES = "hugepages-2Mi"


def request_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    pods, pools = list(scene.pods), list(scene.pools)
    for pod in pods:
        for container in pod.containers():
            yield from _limits(pod, container)
            yield from _pages(pod, container)
        yield from _fits(pod, pools)
        yield from _paged(scene, pod)
        yield from _between_nodes(pod)
    yield from _whole_groups(pods)


def _at(pod: Pod, path: Path_, rule: str, why: str, fix: str) -> Finding:
    return found(pod.document, path, rule, why=why, fix=fix)


def _limits(pod: Pod, container: Container) -> Iterator[Finding]:
    """Devices and huge pages cannot be overcommitted: what is asked for is the limit."""
    asked = container.data.get("resources")
    requests = container.requests if asked else {}
    for name, amount in requests.items():
        if "/" not in name and not name.startswith("hugepages-"):
            continue
        limit = container.limits.get(name)
        if limit is None or quantity(limit) != quantity(amount):
            said = "missing" if limit is None else limit
            why = f"{name}: asked for {amount}, limit {said}; the two must be the same"
            path = (*_resources(container), "requests", name)
            yield _at(pod, path, "device-request-not-limit", why, f"write limits: {{{name}: {amount}}}")


def _resources(container: Container) -> Path_:
    key = "resourcesPerNode" if "resourcesPerNode" in container.data else "resources"
    path = container.path
    return (*(path[:-2] if key == "resourcesPerNode" else path), key)


def _pages(pod: Pod, container: Container) -> Iterator[Finding]:
    requests, without = container.requests, text("efa", "without_pages")
    if EFA in requests and _PAGES not in requests and str(container.env.get(without)) != "0":
        why = "libfabric reserves huge pages for EFA and fails without; Karpenter does not know of them either"
        fix = f"set {without}=0, or, where nodes stand already, ask for {_PAGES}: 5120Mi"
        yield _at(pod, _resources(container), "efa-without-huge-pages", why, fix)


def _paged(scene: Scene, pod: Pod) -> Iterator[Finding]:
    """Nobody launches a node for huge pages, which a node has only once it runs."""
    pools = [pool for pool in scene.taking(pod) if pool.provisioner != "eksctl" and pool.tolerated(pod)]
    if _PAGES in pod.requests and pools and not any(pool.static for pool in pools):
        why = f"Karpenter does not know of {_PAGES}: no instance type has them, so it launches no node for this pod"
        fix = f"drop the request and set {text('efa', 'without_pages')}=0, or use a pool of fixed size"
        yield _at(pod, _where(pod, _PAGES), "huge-pages-on-dynamic-pool", why, fix)


def _candidates(pod: Pod, pools: list[Pool]) -> list[Node]:
    """The nodes that the pod may stand on: its own sizes, else those of the pools that take it."""
    taking = pools if pod.whole and accelerators(pod.requests) else []
    sizes = pod.instances or tuple(size for pool in taking if not pool.selects(pod) for size in pool.sizes)
    return [node for node in map(node_known, dict.fromkeys(sizes)) if node]


def _fits(pod: Pod, pools: list[Pool]) -> Iterator[Finding]:
    nodes = _candidates(pod, pools)
    if not nodes or not pod.requests:
        return
    short = {node.instance: asked_of(pod, node) for node in nodes}
    if all(short.values()):
        node = min(nodes, key=lambda one: len(short[one.instance]))
        for name, amount, has in short[node.instance]:
            why = (
                f"{name}: asked for {_shown(name, amount)}, a node of {node.instance} can allocate {_shown(name, has)}"
            )
            fix = "ask for less, leave room for DaemonSets, or choose a larger size"
            yield _at(pod, _where(pod, name), "request-above-allocatable", why, fix)
    asked = pod.requests.get(EFA, 0.0)
    if asked and all(asked > node.efa for node in nodes):
        node = max(nodes, key=lambda one: one.efa)
        why = f"{asked:g} EFA interfaces are asked for, {node.instance} has {node.efa}"
        yield _at(
            pod, _where(pod, EFA), "efa-count", why, f"ask for {node.efa}" if node.efa else "choose a size with EFA"
        )


def _shown(name: str, amount: float) -> str:
    return f"{amount / 2**30:.0f}Gi" if name == "memory" else f"{amount:g}"


def _where(pod: Pod, name: str) -> Path_:
    """The line of the first container that asks for it."""
    for container in pod.containers():
        if name in container.requests:
            own = _resources(container)
            lines = pod.document.lines
            return next((path for key in ("requests", "limits") if (path := (*own, key, name)) in lines), own)
    return pod.path


def _between_nodes(pod: Pod) -> Iterator[Finding]:
    nodes = [node for node in map(node_known, pod.instances) if node]
    several = (pod.nodes or 1) > 1 and nodes and all(node.efa for node in nodes)
    whole = any(pod.requests.get(GPU, 0.0) >= node.accelerators for node in nodes)
    if several and whole and EFA not in pod.requests and not pod.claims:
        why = f"{pod.nodes} nodes work on one replica over TCP; {nodes[0].instance} has {nodes[0].efa} EFA interfaces"
        yield _at(pod, pod.path, "nodes-without-efa", why, f"ask for {EFA}: {nodes[0].efa}")


def _whole_groups(pods: list[Pod]) -> Iterator[Finding]:
    """The leader and the workers of a group speak to one another: both need EFA, or none."""
    for document in {id(pod.document): pod.document for pod in pods if (pod.nodes or 1) > 1}.values():
        own = [pod for pod in pods if pod.document is document]
        having = [pod for pod in own if EFA in pod.requests]
        if having and len(having) < len(own):
            bare = next(pod for pod in own if pod not in having)
            why = "one template of the group asks for EFA and the other does not: the ranks do not meet over it"
            yield _at(bare, bare.path, "efa-on-part-of-group", why, f"ask for {EFA} in both")
