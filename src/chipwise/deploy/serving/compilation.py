"""The Job that compiles a model for Neuron on CPU, so that no replica waits for it; by the SDK that serves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, text
from chipwise.deploy.kinds.job import Job
from chipwise.deploy.kinds.pod import Container, Place, Pod, Volume, secret_variable, variable
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes.shape import Shape, memory_text
from chipwise.deploy.serving.launch import Launch

_SCRIPT = "import json, sys; from vllm import LLM; LLM(**json.loads(sys.argv[1]))"
"""Builds the engine, which compiles every graph, and ends."""
_ONLY_OF_SERVERS = frozenset({"port"})
_RETRIES = 1


def compilation_job(name: str, parameters: Parameters, launch: Launch, shape: Shape, cache: Volume) -> Job:
    """The Job; `cache` is the volume that the replicas mount as well."""
    folder = f"{cache.mount}/{text('compile', 'cache')}"
    container = Container(
        name="compile",
        image=launch.image,
        command=("python3", "-c", _SCRIPT),
        args=(json.dumps(engine_arguments(launch.args)),),
        env=(
            variable("VLLM_NEURON_CPU_COMPILE", "1", "compiles and does not run: no Neuron device is needed"),
            variable("NEURON_PLATFORM_TARGET_OVERRIDE", shape.node.instance.partition(".")[0]),
            variable("NEURON_LOGICAL_NC_CONFIG", str(shape.node.lnc or 1), "as the replicas run"),
            variable("NEURON_LIBTORCH_REMOTE_CACHE", folder),
            variable("HF_HOME", cache.mount),
            secret_variable("HF_TOKEN", parameters.secret, "token"),
        ),
        cpu=f"{number('compile', 'cpu'):g}",
        limits={"memory": memory_text(number("compile", "memory"))},
        volumes=(cache,),
    )
    return Job(
        meta=Meta(name=f"{name}-compile", namespace=parameters.namespace, labels=marks.own_labels(f"{name}-compile")),
        pod=Pod(container=container, place=Place(instances=(), taint=None), restart="Never"),
        retries=_RETRIES,
        about="Compiles the model on a CPU node with so much memory, which your cluster must have or launch; wait for "
        "it before you apply the replicas, or the first one compiles.",
    )


def engine_arguments(words: Sequence[Any]) -> dict[str, Any]:
    """The arguments of `vllm serve` as those of the engine in Python.

    >>> engine_arguments(["m", "--tensor-parallel-size=4", "--enable-prefix-caching", "--port=8000"])
    {'model': 'm', 'tensor_parallel_size': 4, 'enable_prefix_caching': True}
    """
    made: dict[str, Any] = {}
    for word in words:
        name, equals, value = str(word).partition("=")
        if not name.startswith("--"):
            made["model"] = word
            continue
        key = name.removeprefix("--").replace("-", "_")
        if key not in _ONLY_OF_SERVERS:
            made[key] = _value(value) if equals else True
    return made


def _value(said: str) -> Any:
    try:
        return json.loads(said)
    except ValueError:
        return said
