"""Checks of groups of pods that serve one replica together: who waits for whom, and who answers requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.deploy.lint.documents import at
from chipwise.deploy.lint.engine import devices_of, serves, split_of
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import Container, Pod
from chipwise.deploy.lint.scene import Scene, found

_LEADER, _WORKER = "leaderTemplate", "workerTemplate"
_NODES = ("--nnodes", "--node-rank", "--node_rank")
_FIRST_RANK = ("--data-parallel-start-rank", "-dpr")
_OWN_SERVERS = ("--data-parallel-hybrid-lb", "-dph", "--data-parallel-external-lb", "-dpe")
"""Flags by which every node answers requests itself."""


def group_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for pod in scene.pods:
        for container in pod.containers():
            if serves(container):
                yield from _waits(scene, pod, container)
                yield from _answers(pod, container)


def _waits(scene: Scene, pod: Pod, container: Container) -> Iterator[Finding]:
    """A leader that is ready only with its workers, which are created only once it is ready."""
    document = pod.document
    late = document.kind == "LeaderWorkerSet" and at(document.data, "spec", "startupPolicy") == "LeaderReady"
    if not late or not _leads(pod) or (pod.nodes or 1) < 2:
        return
    probed = container.data.get("startupProbe") or container.data.get("readinessProbe")
    devices = devices_of(scene.tree, pod)
    spans = _names(container, _NODES) or (devices is not None and split_of(container.words).devices > devices)
    if probed and spans:
        why = "the leader is ready only once its workers have joined, and they are created only once it is ready"
        fix = "set startupPolicy to LeaderCreated, or leave it out"
        yield found(document, ("spec", "startupPolicy"), "leader-waits-for-workers", why=why, fix=fix)


def _answers(pod: Pod, container: Container) -> Iterator[Finding]:
    """A worker with a template of its own that starts vLLM over several nodes as if it led."""
    if _WORKER not in pod.path or _leads(pod) or not _is_vllm(container):
        return
    ranked = _names(container, _FIRST_RANK) and not _names(container, _OWN_SERVERS)
    if (_names(container, _NODES) or ranked) and not any("--headless" in word for word in container.words):
        key = "args" if container.data.get("args") else "command"
        why = "a worker of vLLM over several nodes computes for the leader and must not start a server of its own"
        fix = "add --headless to the worker"
        yield found(pod.document, (*container.path, key), "worker-not-headless", why=why, fix=fix)


def _leads(pod: Pod) -> bool:
    """Whether it is the leader: by its own template, or by the workers' where there is no other."""
    if _WORKER not in pod.path:
        return _LEADER in pod.path
    return at(pod.document.data, *pod.path[: pod.path.index(_WORKER)], _LEADER) is None


def _names(container: Container, flags: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in flags for word in container.words)


def _is_vllm(container: Container) -> bool:
    launched = any(word == "vllm" or word.startswith("vllm.entrypoints") for word in container.words)
    return launched or (not container.data.get("command") and "vllm" in container.image)
