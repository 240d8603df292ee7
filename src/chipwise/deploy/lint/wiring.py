"""Checks between objects: who selects whom, who scales what, which files refer to which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.deploy.lint.documents import Document, Path_, Tree, as_text, at, fields, items
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import Pod, accelerators
from chipwise.deploy.lint.scene import Scene, found

_SELECTING: Mapping[str, Path_] = {
    "Service": ("spec", "selector"),
    "PodMonitor": ("spec", "selector", "matchLabels"),
    "PodDisruptionBudget": ("spec", "selector", "matchLabels"),
    "InferencePool": ("spec", "selector", "matchLabels"),
}
_OWNERS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_SCALABLE = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet", "ReplicaSet"})
_GONE = {
    "gpu_cache_usage_perc": "kv_cache_usage_perc",
    "cpu_cache_usage_perc": "kv_cache_usage_perc",
    "time_per_output_token_seconds": "inter_token_latency_seconds",
    "num_requests_swapped": "num_preemptions",
}
"""Metrics of older vLLM, and what took their place."""
_METRIC = re.compile(r"vllm[:_]([a-z_]+?)(?:_bucket|_sum|_count)?\b")


def wiring_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    tree, pods = scene.tree, list(scene.pods)
    for document in tree.documents:
        yield from _service(document)
        yield from _selects(document, pods)
        yield from _targets(document, pods)
        yield from _owns(document, pods)
        yield from _scales(document, tree, pods)
        yield from _metrics(document)
        yield from _budget(document, tree)
    for pod in pods:
        yield from _refers(pod, tree)


def _at(document: Document, path: Path_, rule: str, why: str, fix: str) -> Finding:
    return found(document, path, rule, why=why, fix=fix)


def _service(document: Document) -> Iterator[Finding]:
    if document.kind == "Service" and document.name == "vllm":
        why = (
            "Kubernetes sets VLLM_PORT=tcp://… and VLLM_HOST in every pod of the namespace, which vLLM reads as its own"
        )
        fix = "give it another name; enableServiceLinks: false helps only the pods that say so"
        yield _at(document, ("metadata", "name"), "service-named-vllm", why, fix)


def _selects(document: Document, pods: list[Pod]) -> Iterator[Finding]:
    path = _SELECTING.get(document.kind)
    wanted = fields(at(document.data, *path)) if path else {}
    around = [pod for pod in pods if pod.document.namespace == document.namespace]
    if path is None or not wanted or not around or at(document.data, "spec", "namespaceSelector"):
        return
    if not any(_has(pod.labels, wanted) for pod in around):
        said = ", ".join(f"{key}={value}" for key, value in wanted.items())
        why = f"no pod of namespace {document.namespace} here has {said}"
        yield _at(document, path, "selector-mismatch", why, "select labels of the pod template")


def _targets(document: Document, pods: list[Pod]) -> Iterator[Finding]:
    """A Service that sends to a port by a name which none of the pods it selects gives."""
    wanted = fields(at(document.data, "spec", "selector"))
    if document.kind != "Service" or not wanted:
        return
    own = [pod for pod in pods if pod.document.namespace == document.namespace and _has(pod.labels, wanted)]
    named = {
        as_text(at(port, "name"))
        for pod in own
        for container in pod.containers()
        for port in items(container.data.get("ports"))
    }
    for place, port in enumerate(items(at(document.data, "spec", "ports"))):
        target = as_text(at(port, "targetPort"))
        if own and target and target not in named:
            known = ", ".join(sorted(filter(None, named)))
            path: Path_ = ("spec", "ports", place)
            why = f"no container of the pods it selects names a port {target}: nothing is behind the Service"
            fix = f"name one of {known}" if known else f"name the container's port {target}, or write its number"
            yield _at(document, path, "target-port-missing", why, fix)


def _owns(document: Document, pods: list[Pod]) -> Iterator[Finding]:
    if document.kind not in _OWNERS:
        return
    wanted = fields(at(document.data, "spec", "selector", "matchLabels"))
    own = next((pod for pod in pods if pod.document is document), None)
    if own and wanted and not _has(own.labels, wanted):
        path: Path_ = ("spec", "selector", "matchLabels")
        why = "the API server refuses a selector that does not match the labels of the template"
        yield _at(document, path, "selector-mismatch", why, "make the two the same")


def _has(labels: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(str(labels.get(key)) == str(value) for key, value in wanted.items())


def _scales(document: Document, tree: Tree, pods: list[Pod]) -> Iterator[Finding]:
    target = fields(at(document.data, "spec", "scaleTargetRef"))
    if document.kind not in {"ScaledObject", "HorizontalPodAutoscaler"} or not target:
        return
    kind, name = as_text(target.get("kind")) or "Deployment", as_text(target.get("name"))
    there = [one for one in tree.of_kind(*_SCALABLE) if one.namespace == document.namespace]
    found = next((one for one in there if (one.kind, one.name) == (kind, name)), None)
    if there and found is None:
        why = f"no file defines {kind} {name} in namespace {document.namespace}"
        path: Path_ = ("spec", "scaleTargetRef", "name")
        yield _at(document, path, "scale-target-missing", why, "name the workload that is here")
    own = [pod for pod in pods if pod.document is found]
    if any(accelerators(pod.requests) for pod in own):
        yield from _by_cpu(document)


def _by_cpu(document: Document) -> Iterator[Finding]:
    why = "an engine that waits for its accelerator shows no load on its CPU"
    fix = "scale by waiting requests and KV-cache use"
    for place, one in enumerate(items(at(document.data, "spec", "triggers"))):
        if at(one, "type") in {"cpu", "memory"}:
            yield _at(document, ("spec", "triggers", place, "type"), "scale-on-cpu", why, fix)
    for place, one in enumerate(items(at(document.data, "spec", "metrics"))):
        if at(one, "resource", "name") in {"cpu", "memory"}:
            yield _at(document, ("spec", "metrics", place), "scale-on-cpu", why, fix)


def _metrics(document: Document) -> Iterator[Finding]:
    queries: dict[Path_, Any] = {
        ("spec", "triggers", place, "metadata", "query"): at(one, "metadata", "query")
        for place, one in enumerate(items(at(document.data, "spec", "triggers")))
    }
    names: dict[Path_, Any] = {
        ("spec", "metrics", place, "pods", "metric", "name"): at(one, "pods", "metric", "name")
        for place, one in enumerate(items(at(document.data, "spec", "metrics")))
    }
    for path, said in {**queries, **names}.items():
        for name in _METRIC.findall(as_text(said)):
            if name in _GONE:
                why = f"vLLM exports vllm:{name} no longer: the query finds nothing and nothing scales"
                yield _at(document, path, "metric-gone", why, f"use vllm:{_GONE[name]}")


def _budget(document: Document, tree: Tree) -> Iterator[Finding]:
    if document.kind != "PodDisruptionBudget":
        return
    least, most = (at(document.data, "spec", key) for key in ("minAvailable", "maxUnavailable"))
    wanted = fields(at(document.data, "spec", "selector", "matchLabels"))
    replicas = [
        at(one.data, "spec", "replicas") or 1
        for one in tree.of_kind(*_SCALABLE)
        if _has(fields(at(one.data, "spec", "template", "metadata", "labels")), wanted)
    ]
    stuck = most in {0, "0", "0%"} or least == "100%" or (isinstance(least, int) and any(least >= n for n in replicas))
    if stuck:
        why = "it lets no pod go: a drain, an upgrade or a consolidation waits for ever"
        yield _at(document, ("spec",), "budget-blocks-drain", why, "use maxUnavailable: 1")


def _refers(pod: Pod, tree: Tree) -> Iterator[Finding]:
    for place, volume in enumerate(items(pod.spec.get("volumes"))):
        claim = at(volume, "persistentVolumeClaim", "claimName")
        config = at(volume, "configMap", "name")
        for kind, name in (("PersistentVolumeClaim", claim), ("ConfigMap", config)):
            there = {one.name for one in tree.of_kind(kind) if one.namespace == pod.document.namespace}
            if name and there and name not in there:
                why = f"no file defines {kind} {name} in namespace {pod.document.namespace}, though others are here"
                path: Path_ = (*pod.path, "volumes", place)
                yield _at(pod.document, path, "reference-missing", why, f"name one of {', '.join(sorted(there))}")
