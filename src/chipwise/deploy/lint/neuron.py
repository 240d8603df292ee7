"""Checks of vLLM on Neuron: flags that are gone, buckets that do not end at the limits, parts of a node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chipwise.deploy.facts import number, text
from chipwise.deploy.lint.documents import as_text, at, fields, items
from chipwise.deploy.lint.engine import serves, value_of
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import NEURON, Container, Pod
from chipwise.deploy.lint.pools import node_known
from chipwise.deploy.lint.scene import Scene, found

_PLUGIN = re.compile(r"vllm-neuronx?:0\.(2[0-9]|[3-9][0-9])\.")
"""Images of the plugin that needs no NxD Inference."""
_GONE_FLAGS = {"--quantization": "FP8 comes with the checkpoint", "--override-neuron-config": "use --additional-config"}
_GONE_VARIABLES = frozenset({"VLLM_NEURON_FRAMEWORK"})
_BUCKETS = {
    "num_batched_tokens_buckets": ("--max-num-batched-tokens",),
    "num_seqs_buckets": ("--max-num-seqs",),
}


def neuron_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for pod in scene.pods:
        yield from _part(pod)
        for container in pod.containers():
            if serves(container) and any(name.startswith(NEURON) for name in container.requests):
                yield from _host(pod, container)
            if _PLUGIN.search(container.image):
                yield from _gone(pod, container)
                yield from _buckets(pod, container)
                yield from _chip(pod, container)


def _gone(pod: Pod, container: Container) -> Iterator[Finding]:
    path = (*container.path, "args")
    for place, word in enumerate(container.words):
        name, equals, value = word.partition("=")
        following = value if equals else "".join(container.words[place + 1 : place + 2])
        if name in _GONE_FLAGS:
            why = f"the plugin takes no {name}: {_GONE_FLAGS[name]}"
            yield found(pod.document, path, "neuron-flag-gone", why=why, fix=f"leave {name} out")
        if name == "--device" and following == "neuron":
            why = "the plugin finds the devices itself; vLLM has no --device neuron any more"
            yield found(pod.document, path, "neuron-flag-gone", why=why, fix="leave --device out")
    for name in _GONE_VARIABLES & set(container.env):
        why = f"{name} belongs to the older plugin and is not read"
        yield found(pod.document, (*container.path, "env"), "neuron-flag-gone", why=why, fix="leave it out")


def _buckets(pod: Pod, container: Container) -> Iterator[Finding]:
    config = neuron_config(container.words)
    path = (*container.path, "args")
    for name, flags in _BUCKETS.items():
        buckets, limit = items(config.get(name)), value_of(container.words, flags)
        if buckets and limit is not None and buckets[-1] != limit:
            why = f"the last of {name} is {buckets[-1]}, {flags[0]} is {limit}; they must be the same"
            yield found(pod.document, path, "neuron-buckets", why=why, fix=f"end {name} with {limit}")
    allowed = [int(size) for size in text("vllm-neuron", "kv_segment_sizes").split()]
    wrong = [size for size in items(config.get("kv_segment_size_buckets")) if size not in allowed]
    if wrong:
        why = f"kv_segment_size_buckets holds {wrong[0]}; it takes {', '.join(map(str, allowed))}"
        yield found(pod.document, path, "neuron-buckets", why=why, fix="choose among those")


def neuron_config(words: Sequence[str]) -> Mapping[str, Any]:
    """The `neuron_config` of `--additional-config`; empty where it is none.

    >>> neuron_config(["--additional-config", '{"neuron_config": {"num_seqs_buckets": [8]}}'])
    {'num_seqs_buckets': [8]}
    """
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--additional-config":
            said = value if equals else "".join(words[place + 1 : place + 2])
            try:
                return fields(at(json.loads(said), "neuron_config"))
            except ValueError:
                return {}
    return {}


def _chip(pod: Pod, container: Container) -> Iterator[Finding]:
    old = [size for size in pod.instances if (size.startswith(("inf", "trn1")))]
    if old:
        why = f"the plugin's recipes are for Trn2 and Trn3; {old[0]} is served by NxD Inference images up to SDK 2.31"
        fix = "use an image of the older line, or a Trn2 size"
        yield found(pod.document, (*container.path, "image"), "neuron-chip-unsupported", why=why, fix=fix)


def _host(pod: Pod, container: Container) -> Iterator[Finding]:
    """The compiler holds weights and graphs in host memory; a pod that finds them compiled does not need it."""
    nodes = [node for node in map(node_known, pod.instances) if node]
    least = number("compile", "least_memory")
    small = [node for node in nodes if node.allocatable_memory_bytes <= least]
    finds = {"NEURON_COMPILED_ARTIFACTS", "VLLM_NEURON_DISABLE_WARMUP_COMPILE"} & set(container.env)
    if small and not finds:
        has = f"{small[0].instance} has {small[0].allocatable_memory_bytes / 2**30:.0f}Gi of host memory"
        why = f"{has}: compilers of language models ran out of {least / 2**30:.0f}Gi"
        path = (*container.path, "resources")
        fix = "compile elsewhere and share the artefacts, or take a larger size"
        yield found(pod.document, path, "compile-memory", why=why, fix=fix)


def _part(pod: Pod) -> Iterator[Finding]:
    asked = pod.requests.get(NEURON, 0.0)
    nodes = [node for node in map(node_known, pod.instances) if node]
    partial = asked and nodes and all(asked < node.accelerators for node in nodes)
    if partial and not as_text(pod.spec.get("schedulerName")):
        of = f"{asked:g} of {nodes[0].accelerators} Neuron devices"
        why = f"{of}: they must be neighbours, and the default scheduler does not know"
        fix = f"set schedulerName: {text('aws', 'scheduler')} and install the Neuron scheduler extension"
        yield found(pod.document, pod.path, "neuron-part-without-scheduler", why=why, fix=fix)
