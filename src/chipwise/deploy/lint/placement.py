"""Checks of pods against pools: whether any pool has the labels, and whether the pod tolerates its taint."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.deploy.facts import text
from chipwise.deploy.lint.claims import claimed_classes
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import GPU, NEURON, Pod, accelerators, selected
from chipwise.deploy.lint.pools import Pool, node_known
from chipwise.deploy.lint.scene import Scene, found


def placement_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for pod in scene.pods:
        pools = _meant(scene, pod)
        if not pools:
            continue
        takers = [pool for pool in pools if not pool.selects(pod)]
        if not takers:
            yield from _unlabelled(scene, pod, pools)
        elif not any(pool.tolerated(pod) for pool in takers):
            yield from _untolerated(pod, takers)
        else:
            yield from _too_large(pod, takers)


def _meant(scene: Scene, pod: Pod) -> list[Pool]:
    """The pools with the kind of accelerator that the pod asks for; every pool for a pod that only names labels."""
    vendor = _vendor(scene, pod)
    if vendor is None or not pod.whole:
        return []
    return [pool for pool in scene.pools if vendor in {node.vendor for node in map(node_known, pool.sizes) if node}]


def _vendor(scene: Scene, pod: Pod) -> str | None:
    """Whose accelerators the pod asks the plugin or a driver for; None for nobody's."""
    asked = accelerators(pod.requests)
    if asked:
        return "aws" if any(name.startswith(NEURON) for name in asked) else "nvidia"
    classes = claimed_classes(scene.tree.documents, pod)
    if text("aws", "device_class") in classes:
        return "aws"
    return "nvidia" if classes & {text("nvidia", "device_class"), text("nvidia", "mig_class")} else None


def _unlabelled(scene: Scene, pod: Pod, pools: list[Pool]) -> Iterator[Finding]:
    """A folder with pools of several provisioners describes several clusters: which one is meant cannot be told."""
    if len({pool.provisioner for pool in scene.pools}) > 1:
        return
    nearest = min(pools, key=lambda pool: len(pool.selects(pod)))
    for key in nearest.selects(pod):
        values = selected(pod.spec)[key]
        why = f"no pool here launches a node with {key} {' or '.join(values)}: the pod stays Pending"
        offered = nearest.labels.get(key) or " or ".join(nearest.requirements.get(key, ()))
        fix = f"pool {nearest.name} has {key} {offered}" if offered else f"add the label to pool {nearest.name}"
        in_selector = (*pod.path, "nodeSelector", key)
        path = in_selector if in_selector in pod.document.lines else (*pod.path, "affinity")
        yield found(pod.document, path, "label-no-pool-provides", why=why, fix=fix)


def _untolerated(pod: Pod, takers: list[Pool]) -> Iterator[Finding]:
    pool = takers[0]
    taints = ", ".join(f"{taint.get('key')}:{taint.get('effect')}" for taint in pool.taints)
    why = f"nodes of pool {pool.name} bear {taints}, which the pod does not tolerate: it stays Pending"
    key = pool.taints[0].get("key") if pool.taints else ""
    fix = f"add tolerations: [{{key: {key}, operator: Exists, effect: NoSchedule}}]"
    path = (*pod.path, "tolerations")
    yield found(pod.document, path, "taint-without-toleration", why=why, fix=fix)


def _too_large(pod: Pod, takers: list[Pool]) -> Iterator[Finding]:
    """One GPU of a node of eight: seven idle, unless other pods fill them."""
    replicas = pod.document.data.get("spec", {}).get("replicas", 1) if isinstance(pod.document.data, dict) else 1
    sizes = [node for pool in takers for node in map(node_known, pool.sizes) if node]
    wanted = accelerators(pod.requests).get(GPU, 0.0)
    wide = sizes and all(node.accelerators > wanted for node in sizes)
    if wanted == 1 and replicas == 1 and wide and not pod.instances:
        least = min(sizes, key=lambda node: node.accelerators)
        why = f"one GPU is asked for and {least.instance}, the smallest size here, has {least.accelerators}"
        fix = "add a pool of a size with one GPU, or name the size you want"
        yield found(pod.document, pod.path, "pool-too-large", why=why, fix=fix)
