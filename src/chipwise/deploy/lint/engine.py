"""Checks of what a container starts: the split against its devices, its probes, its memory, its image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chipwise.deploy.facts import number
from chipwise.deploy.lint.claims import claimed_devices
from chipwise.deploy.lint.documents import Path_, Tree, as_text, at, fields, items
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import (
    GPU,
    MIG,
    NEURON,
    NEURON_CORE,
    SHARED_GPU,
    Container,
    Pod,
    accelerators,
)
from chipwise.deploy.lint.pools import node_known
from chipwise.deploy.lint.scene import Scene, found

_FLAGS: Mapping[str, Sequence[str]] = {
    "tp": ("--tensor-parallel-size", "-tp", "--tp-size", "--tp", "--tp_size"),
    "pp": ("--pipeline-parallel-size", "-pp", "--pp-size", "--pp_size"),
    "dp": ("--data-parallel-size", "-dp", "--dp-size"),
    "dp_local": ("--data-parallel-size-local", "-dpl"),
    "nodes": ("--nnodes", "--nnodes="),
}
_IMAGES = re.compile(r"vllm|sglang|tensorrt-llm|trtllm")
_LAUNCHERS = re.compile(r"vllm|trtllm-serve|sglang(\.launch_server)?|vllm\.entrypoints\..+")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount point in a container
_RANKS_SHARE = 2
_SHORTEST_S = 300.0
"""An engine that gives up sooner than this cannot load any model worth an accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The split that a command line names; 1 where it says nothing."""

    tp: int
    pp: int
    dp: int
    dp_local: int | None
    nodes: int

    @property
    def devices(self) -> int:
        """All devices of a replica."""
        return self.tp * self.pp * self.dp


def engine_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for pod in scene.pods:
        for container in pod.containers():
            yield from _image(pod, container)
            if serves(container):
                yield from _devices(scene.tree, pod, container)
                yield from _group(pod, container)
                yield from _shared_memory(pod, container)
                yield from _probes(pod, container)
        if pod.document.kind == "TrainJob":
            yield from _ranks(scene.tree, pod)


def _at(pod: Pod, path: Path_, rule: str, why: str, fix: str) -> Finding:
    return found(pod.document, path, rule, why=why, fix=fix)


def serves(container: Container) -> bool:
    """Whether it starts a serving engine."""
    launched = any(_LAUNCHERS.fullmatch(word) for word in container.words)
    return launched or (bool(_IMAGES.search(container.image)) and not container.data.get("command"))


def split_of(words: Sequence[str]) -> Split:
    """The split of a command line.

    >>> split_of(["vllm", "serve", "m", "--tensor-parallel-size", "8", "--pipeline-parallel-size=2"]).devices
    16
    """
    found = {name: value_of(words, flags) for name, flags in _FLAGS.items()}
    return Split(
        tp=found["tp"] or 1,
        pp=found["pp"] or 1,
        dp=found["dp"] or 1,
        dp_local=found["dp_local"],
        nodes=found["nodes"] or 1,
    )


def value_of(words: Sequence[str], flags: Sequence[str]) -> int | None:
    """The whole number that follows a flag; None where it is not there."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in flags:
            value = value if equals else (words[place + 1] if place + 1 < len(words) else "")
            return int(value) if value.isdigit() else None
    return None


def devices_of(tree: Tree, pod: Pod) -> int | None:
    """How many devices tp counts in one such pod; None where it cannot be told."""
    asked = accelerators(pod.requests)
    nodes = [node for node in map(node_known, pod.instances) if node]
    cores = {node.cores for node in nodes if node.vendor == "aws"}
    lnc = {node.lnc or 1 for node in nodes if node.vendor == "aws"}
    if NEURON in asked:
        return int(asked[NEURON]) * cores.pop() if len(cores) == 1 else None
    if NEURON_CORE in asked:
        return int(asked[NEURON_CORE]) // lnc.pop() if len(lnc) == 1 else None
    plugin = sum(int(amount) for name, amount in asked.items() if name in {GPU, SHARED_GPU} or name.startswith(MIG))
    claimed = claimed_devices(tree.documents, pod)
    return plugin or (claimed * (cores.pop() if len(cores) == 1 else 1) if claimed else None)


def _devices(tree: Tree, pod: Pod, container: Container) -> Iterator[Finding]:
    devices, split = devices_of(tree, pod), split_of(container.words)
    named = any(word.partition("=")[0] in flags for word in container.words for flags in _FLAGS.values())
    if devices is None or not named:
        return
    pods = pod.nodes or split.nodes
    needed = split.tp * split.pp * split.dp_local if split.dp_local else -(-split.devices // pods)
    if needed == devices:
        return
    said = f"tp={split.tp} pp={split.pp} dp={split.dp}"
    why = f"{said} over {pods} pods needs {needed} devices a pod; the pod asks for {devices}"
    fix = (
        f"ask for {needed} devices, or change the split"
        if needed > devices
        else f"{devices - needed} are idle: ask for {needed}"
    )
    yield _at(pod, _command(container), "devices-against-split", why, fix)


def _command(container: Container) -> Path_:
    return (*container.path, "args" if container.data.get("args") else "command")


def _group(pod: Pod, container: Container) -> Iterator[Finding]:
    named = value_of(container.words, _FLAGS["nodes"])
    if pod.nodes is not None and pod.nodes < 1:
        why = f"a group of {pod.nodes} pods runs nothing"
        path: Path_ = ("spec", "leaderWorkerTemplate", "size")
        yield _at(pod, path, "group-size", why, "set size to the nodes of a replica")
    elif named and pod.nodes is not None and named != pod.nodes:
        why = f"the command names {named} nodes, the group has {pod.nodes} pods"
        yield _at(pod, _command(container), "group-size", why, f"make both {pod.nodes}")


def _ranks(tree: Tree, pod: Pod) -> Iterator[Finding]:
    ranks = at(pod.document.data, "spec", "trainer", "numProcPerNode")
    devices = devices_of(tree, pod)
    if isinstance(ranks, int) and devices is not None and ranks != devices:
        why = f"{ranks} ranks a node on {devices} devices"
        path: Path_ = ("spec", "trainer", "numProcPerNode")
        yield _at(pod, path, "processes-against-devices", why, f"set it to {devices}")


def _shared_memory(pod: Pod, container: Container) -> Iterator[Finding]:
    split, neuron = split_of(container.words), any(name.startswith(NEURON) for name in container.requests)
    mounts = {as_text(at(one, "mountPath")).rstrip("/") for one in items(container.data.get("volumeMounts"))}
    if split.tp * split.pp < _RANKS_SHARE or neuron or pod.spec.get("hostIPC") or _SHARED_MEMORY in mounts:
        return
    why = (
        f"{split.tp * split.pp} ranks pass tensors through {_SHARED_MEMORY}, which is 64 MB unless a volume is mounted"
    )
    fix = f"mount an emptyDir with medium: Memory at {_SHARED_MEMORY}"
    yield _at(pod, container.path, "no-shared-memory", why, fix)


def _probes(pod: Pod, container: Container) -> Iterator[Finding]:
    start, live = (fields(container.data.get(key)) for key in ("startupProbe", "livenessProbe"))
    neuron = any(name.startswith(NEURON) for name in container.requests)
    shortest = number("startup", "compile_floor") / 2 if neuron else _SHORTEST_S
    if not start:
        if live and _patience(live) < shortest:
            why = f"without a startup probe the liveness probe kills the engine after {_patience(live):.0f} s"
            path: Path_ = (*container.path, "livenessProbe")
            yield _at(pod, path, "startup-probe-too-short", why, "add a startupProbe that waits for download and load")
        elif "--headless" not in container.words and container.data.get("ports"):
            why = "loading takes minutes, and nothing says how long is too long"
            yield _at(pod, container.path, "no-startup-probe", why, "add a startupProbe on /health")
    elif _patience(start) < shortest:
        slow = "the first compilation" if neuron else "loading"
        why = f"it gives up after {_patience(start):.0f} s; {slow} takes longer"
        path = (*container.path, "startupProbe")
        yield _at(pod, path, "startup-probe-too-short", why, "raise failureThreshold")


def _patience(probe: Mapping[str, object]) -> float:
    """Seconds until a probe gives up, by the defaults of Kubernetes."""
    delay, period, failures = (
        value if isinstance(value := probe.get(name), int) else default
        for name, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
    )
    return float(delay + period * failures)


def _image(pod: Pod, container: Container) -> Iterator[Finding]:
    image, asked = container.image, accelerators(container.requests)
    neuron = any(name.startswith(NEURON) for name in asked)
    gpu = any(name.startswith("nvidia.com/") for name in asked)
    path: Path_ = (*container.path, "image")
    if neuron and re.search(r"vllm-openai|cuda|nvcr\.io|(?<![a-z])gpu(?![a-z])", image) and "neuron" not in image:
        why = f"{image} is built for NVIDIA GPUs; the pod asks for Neuron devices"
        yield _at(pod, path, "image-against-chip", why, "use a Neuron image")
    if gpu and "neuron" in image:
        why = f"{image} is built for Neuron; the pod asks for NVIDIA GPUs"
        yield _at(pod, path, "image-against-chip", why, "use an image with CUDA")
