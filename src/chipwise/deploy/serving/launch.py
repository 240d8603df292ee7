"""What a container starts: the engine's command line and environment that realise a plan's option, and no more."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.asked.chosen import Chosen, Scalar
from chipwise.deploy.asked.parameters import Parameters, is_checkpoint
from chipwise.deploy.facts import image_of, number, text, told
from chipwise.deploy.kinds.pod import variable
from chipwise.deploy.nodes.shape import Shape
from chipwise.engines import EngineFlags, command_arguments
from chipwise.engines.flags import engine_flags_of
from chipwise.errors import KnowledgeError, UnknownNameError
from chipwise.precision import format_facts

IMAGE = "IMAGE"
"""Stands for an image that only you can name."""
CHECKPOINT = "CHECKPOINT"
"""Stands for a checkpoint that is made beforehand."""
OPTIONS_FOLDER = "/etc/engine"
OPTIONS_FILE = f"{OPTIONS_FOLDER}/options.yaml"
RANK, LEADER = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"
"""Variables that LeaderWorkerSet sets; Kubernetes fills them in, no shell does."""
_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_CACHE_AS_WEIGHTS = frozenset({"bf16", "fp16"})
_SIXTEEN_BITS = 16

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command line, its environment, and what a reader must be told about them."""

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...]
    compiles: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the engine reads from a file, under its own dotted keys, nested."""


def serving_launch(chosen: Chosen, parameters: Parameters, shape: Shape, *, memory_fraction: float = 1.0) -> Launch:
    """The launch of a replica on one node, or of the first node of several.

    Args:
        chosen: the option.
        parameters: yours.
        shape: its pods.
        memory_fraction: the part of a GPU that the engine may take where pods share it.

    Raises:
        KnowledgeError: replicas span nodes, and no flags are known by which the engine does that.
    """
    vendor = shape.node.vendor
    image = parameters.image or published_image(chosen, vendor)
    try:
        flags = engine_flags_of(chosen.engine, chosen.engine_version or None)
    except UnknownNameError:
        flags = EngineFlags(engine=chosen.engine, launcher="", by_setting={})
    if "model" not in flags.by_setting:
        remark = f"no command line is known for {chosen.engine}: the image's own entry point starts it"
        return _bare(image, (remark,))
    _refuse_unspoken(chosen, flags)
    loaded, remarks = _loaded(chosen, parameters, flags)
    settings = {**loaded, **_settings(chosen, flags, memory_fraction), **_nodes(chosen, shape, flags)}
    spoken = {name: value for name, value in settings.items() if flags.by_setting[name].form != "config"}
    options = _options(flags, {name: value for name, value in settings.items() if name not in spoken})
    args = [arguments(flags, {name: value}) for name, value in spoken.items()]
    args += [f"{told(chosen.engine, 'options_flag')}={OPTIONS_FILE}"] if options else []
    extra, env = _neuron(chosen, shape) if vendor == "aws" else ((), ())
    return Launch(
        image=image,
        command=tuple(flags.launcher.split()),
        args=(*args, *extra),
        env=env,
        remarks=(*remarks, *_image_remarks(chosen, parameters, shape)),
        compiles=vendor == "aws",
        options=options,
    )


def _options(flags: EngineFlags, settings: Settings) -> dict[str, Any]:
    """Settings that belong into the engine's file, as nested mappings."""
    made: dict[str, Any] = {}
    for name, value in settings.items():
        *path, last = flags.by_setting[name].flag.split(".")
        below = made
        for part in path:
            below = below.setdefault(part, {})
        below[last] = value
    return made


def published_image(chosen: Chosen, vendor: str) -> str:
    """The engine's published image, or the stand-in for one."""
    found = image_of(chosen.engine, chosen.engine_version, vendor)
    return found.name if found else IMAGE


def arguments(flags: EngineFlags, setting: Settings) -> str:
    """One setting as one word of the command line: `--flag=value`.

    >>> arguments(engine_flags_of("vllm"), {"tp": 8})
    '--tensor-parallel-size=8'
    """
    return "=".join(command_arguments(flags, setting))


def worker_args(args: tuple[str, ...], flags: EngineFlags) -> tuple[str, ...]:
    """The arguments of the other nodes of a replica: the same, and that they serve nobody, where that must be said."""
    return (*args, arguments(flags, {"headless": True})) if "headless" in flags.by_setting else args


def _refuse_unspoken(chosen: Chosen, flags: EngineFlags) -> None:
    """A split or a cache format that the engine's command line has no words for must not be dropped in silence.

    Data-parallel attention counts against tp in some engines and beside it in others: only those are spoken for whose
    counting is known.
    """
    forms = {"value", "switch", "config"} if told(chosen.engine, "options_flag") else {"value", "switch"}
    spoken = {name for name, flag in flags.by_setting.items() if flag.form in forms}
    if chosen.engine not in text("serve", "data_parallel_beside_tensor").split():
        spoken -= {"dp"}
    wanted = {axis: getattr(chosen.split, axis) for axis in ("tp", "pp", "dp", "cp", "ep")}
    missing = [f"{axis}={size}" for axis, size in wanted.items() if size > 1 and axis not in spoken]
    if chosen.precision.kv not in _CACHE_AS_WEIGHTS and "kv" not in spoken:
        missing.append(f"a cache in {chosen.precision.kv}")
    if missing:
        raise KnowledgeError(
            f"no flag of {chosen.engine} {chosen.engine_version} is known for {missing[0]}",
            why=f"option {chosen.rank} is sized so, and the engine's table names no way to say it on a command line",
            fix="choose another option, or plan with --engine vllm",
        )


def _bare(image: str, remarks: tuple[str, ...]) -> Launch:
    return Launch(image=image, command=(), args=(), env=(), remarks=remarks, compiles=False)


def _loaded(chosen: Chosen, parameters: Parameters, flags: EngineFlags) -> tuple[Settings, tuple[str, ...]]:
    """What the engine loads and how it gets to the plan's format: as stored, cast, quantised, or made beforehand."""
    wanted, stored = chosen.precision.weights, chosen.model.stored_format
    given, own = parameters.checkpoint, chosen.model.checkpoint
    remarks: tuple[str, ...] = ()
    if not given and not ("/" in own and is_checkpoint(own)):
        own = CHECKPOINT
        remarks = (f"{own} stands for {chosen.model.name}, which no engine finds by that name: --checkpoint names it",)
    casts = _casts(chosen) if "dtype" in flags.by_setting else {}
    if given or wanted == stored:
        return {"model": given or own, **casts}, remarks
    facts = format_facts(wanted)
    if facts.bits >= _SIXTEEN_BITS and "dtype" in flags.by_setting:
        return {"model": own, **casts}, remarks
    switch = f"quantize_{facts.family}"
    if switch in flags.by_setting:
        return {"model": own, switch: True, **casts}, remarks
    remark = f"{CHECKPOINT} stands for {chosen.model.checkpoint} at {wanted}, made beforehand: --checkpoint names it"
    return {"model": CHECKPOINT, **casts}, (remark,)


def _casts(chosen: Chosen) -> Settings:
    """The 16-bit type of computation, where it is not what the checkpoint says."""
    weights, compute, stored = chosen.precision.weights, chosen.precision.compute, chosen.model.stored_format
    cast = compute if compute == "fp16" else weights
    return {"dtype": _DTYPES[cast]} if cast in _DTYPES and cast != stored else {}


def _settings(chosen: Chosen, flags: EngineFlags, memory_fraction: float) -> Settings:
    split, said = chosen.split, chosen.settings
    wanted: dict[str, Any] = {
        "kv": chosen.precision.kv if chosen.precision.kv not in _CACHE_AS_WEIGHTS else None,
        "tp": split.tp,
        "pp": split.pp if split.pp > 1 else None,
        "dp": split.dp if split.dp > 1 else None,
        "cp": split.cp if split.cp > 1 else None,
        "ep": split.ep > 1 or None,
        "context": said.get("max_model_len"),
        "max_num_seqs": said.get("max_num_seqs") or said.get("max_batch"),
        "chunk_tokens": said.get("max_num_batched_tokens"),
        "utilization": _part(said.get("gpu_memory_utilization"), memory_fraction),
        "port": int(number("serve", "port")),
        "host": text("serve", "host"),
    }
    return {name: value for name, value in wanted.items() if value is not None and name in flags.by_setting}


def _part(utilization: Scalar, fraction: float) -> float | None:
    """The engine's share of the memory, rounded down where several engines share it."""
    if not isinstance(utilization, int | float):
        return None
    return utilization if fraction == 1.0 else math.floor(utilization * fraction * 100) / 100


def _nodes(chosen: Chosen, shape: Shape, flags: EngineFlags) -> Settings:
    """How the nodes of one replica find each other: data-parallel ranks by address, one model by rank."""
    if not shape.spans:
        return {}
    local, left = divmod(chosen.split.dp, shape.pods_per_replica)
    by_data = chosen.split.dp > 1 and not left
    wanted: Settings = (
        {"dp_local": local, "dp_address": LEADER}
        if by_data
        else {"nodes": shape.pods_per_replica, "node_rank": RANK, "master": LEADER + _master_port(chosen)}
    )
    missing = [name for name in wanted if name not in flags.by_setting]
    if missing:
        raise KnowledgeError(
            f"a replica of option {chosen.rank} spans {shape.pods_per_replica} nodes, and no way is known to start "
            f"{chosen.engine} {chosen.engine_version} so",
            why="its table of flags names none for several nodes",
            fix="choose an option whose replica fits one instance, or plan with --engine vllm",
        )
    return wanted


def _master_port(chosen: Chosen) -> str:
    """The port behind the first node's address, where the engine's flag wants both in one word."""
    port = told(chosen.engine, "master_port")
    return f":{port}" if port else ""


def data_parallel_step(chosen: Chosen, shape: Shape) -> int | None:
    """Data-parallel ranks of one node, by which the next node's first rank is reckoned; None without."""
    local, left = divmod(chosen.split.dp, shape.pods_per_replica)
    return local if shape.spans and chosen.split.dp > 1 and not left else None


def _neuron(chosen: Chosen, shape: Shape) -> tuple[tuple[str, ...], tuple[Mapping[str, Any], ...]]:
    """What vLLM on Neuron needs beside the common flags: buckets that end at the limits, room to compile."""
    env = [variable("NEURON_LOGICAL_NC_CONFIG", str(shape.node.lnc or 1), "build and serve with the same value")]
    if chosen.engine != "vllm-neuron":
        return (), tuple(env)
    timeout = str(int(number("vllm-neuron", "timeout")))
    env += [
        variable(f"VLLM_{name}", timeout) for name in ("NEURON_COMPILATION_TIMEOUT", "EXECUTE_MODEL_TIMEOUT_SECONDS")
    ]
    if not shape.efa:
        env.append(variable("NEURON_SKIP_EFA_AFFINITY", "1", "this pod has no EFA interface"))
    return _buckets(chosen), tuple(env)


def _buckets(chosen: Chosen) -> tuple[str, ...]:
    chunk, seqs = (int(chosen.settings.get(name) or 0) for name in ("max_num_batched_tokens", "max_num_seqs"))
    sizes = [int(size) for size in text("vllm-neuron", "kv_segment_sizes").split()]
    segment = max((size for size in sizes if size <= max(chunk, sizes[0])), default=sizes[0])
    config: dict[str, Any] = {
        "kv_segment_size_buckets": [segment],
        "num_batched_tokens_buckets": [chunk],
        "num_seqs_buckets": [seqs],
    }
    if format_facts(chosen.precision.kv).family == "fp8":
        config["fp8_packed_kv"] = True
    block = f"--block-size={int(number('vllm-neuron', 'block_size'))}"
    return (block, "--enable-prefix-caching", f"--additional-config={json.dumps({'neuron_config': config})}")


def _image_remarks(chosen: Chosen, parameters: Parameters, shape: Shape) -> tuple[str, ...]:
    found = image_of(chosen.engine, chosen.engine_version, shape.node.vendor)
    remarks = []
    if not parameters.image and found is None:
        remarks.append(f"{IMAGE} stands for an image of {chosen.engine}, of which none is published: --image names it")
    if shape.spans and shape.efa and not parameters.image and found and not found.efa:
        remarks.append(
            f"{found.name} carries no EFA libraries: NCCL falls back to TCP between nodes; "
            "--image names one that does (aws-ofi-nccl, libfabric)"
        )
    return tuple(remarks)
