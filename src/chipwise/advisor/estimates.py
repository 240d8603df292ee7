"""`estimate(EstimateRequest)`: how fast one layout is under one load, with ranges and terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.advisor.layout import DEFAULT_ENGINES, Laid, Target, lay, platform_for, read_model
from chipwise.advisor.limits import check_context, check_split, check_version
from chipwise.advisor.whole import answers_whole
from chipwise.capacity import Packing, pack
from chipwise.decide.question import Demand, LoadKind
from chipwise.decide.serving.answers import question_of, serving_object
from chipwise.decide.serving.holding import hold, memory_object
from chipwise.errors import InputError
from chipwise.perf.serving import explain_serving

if TYPE_CHECKING:
    from chipwise.advisor.request import EstimateRequest
    from chipwise.model import ModelSpec


def estimate(request: EstimateRequest) -> dict[str, Any]:
    """Latency and throughput of a model laid out as asked, in CONTRACT's shape.

    Raises:
        InputError: no load, two loads, no lengths, lengths beyond the model's context, an illegal split, an unknown
            version of the engine.
        InfeasibleError, KnowledgeError: see `lay`.
    """
    model = read_model(request.model, request.models)
    _check(model, request)
    if request.training.method is not None:
        return _training(model, request)
    if answers_whole(model) and not _streams(model, request):
        from chipwise.advisor.other import estimate_other  # opened for such models alone

        return estimate_other(model, request)
    demand = demand_of(request)
    target = Target(chip=request.chip, instance=request.instance)
    wanted = request.split
    devices = (wanted.tp or 1) * (wanted.pp or 1) * (wanted.cp or 1) * (wanted.dp or 1)
    platform = platform_for(target, devices)
    check_version(request.engine.engine or DEFAULT_ENGINES.get(platform.chip.vendor, "vllm"), request.engine.version)
    laid = lay(model, platform, wanted, request.engine, models=request.models)
    replicas = replicas_of(request, laid)
    held = hold(laid.model, laid.layout, context_tokens=demand.context_tokens, concurrency=1.0)
    memory = memory_object(laid.model, laid.layout, held)
    feasible = bool(held.answer.fits)
    asked = question_of(laid.model, laid.layout, held, demand, float(replicas))
    return {
        "schema_version": 1,
        "feasible": feasible,
        "config": _config(request, laid, replicas),
        "serving": serving_object(laid.layout, asked, demand, explain_serving(asked)) if feasible else None,
        "training": None,
        "other": None,
        "memory": memory,
        "watts": None,
        "evidence": laid.layout.seat.evidence,
        "warnings": [*model.warnings, *laid.layout.seat.notes],
    }


def _check(model: ModelSpec, request: EstimateRequest) -> None:
    """Refuse what is said beyond the model's limits."""
    check_split(model, request.split)
    check_context(model, request.training.seq_len, "--seq-len")
    check_context(model, request.context_tokens, "--context")
    check_context(model, (request.isl_tokens or 0) + (request.osl_tokens or 0), "--isl and --osl together")


def _streams(model: ModelSpec, request: EstimateRequest) -> bool:
    """Whether prompt and answer lengths make a stream of a model that decodes behind its encoder."""
    decodes = any(layer.attention.causal for layer in model.layers)
    return decodes and request.isl_tokens is not None and request.osl_tokens is not None


def _training(model: ModelSpec, request: EstimateRequest) -> dict[str, Any]:
    from chipwise.advisor.training import train  # a heavy door, opened for runs alone

    found = train(model, request, request.instances or 1)
    return {
        "schema_version": 1,
        "feasible": found["memory"]["fits"],
        "config": found["config"],
        "serving": None,
        "training": found["training"],
        "other": found["other"],
        "memory": found["memory"],
        "watts": None,
        "evidence": found["evidence"],
        "warnings": [*model.warnings, *found["warnings"]],
    }


def demand_of(request: EstimateRequest) -> Demand:
    """The one load a request states.

    Raises:
        InputError: none or more than one of concurrency, rate, batch and offline; a missing length.
    """
    loads = {
        "--concurrency": request.concurrency is not None,
        "--rate": request.rate_per_s is not None,
        "--batch": request.batch is not None,
        "--offline": request.offline,
    }
    stated = [name for name, given in loads.items() if given]
    if len(stated) > 1:
        raise InputError(
            f"{' and '.join(stated)} state the load twice", why="each alone says how requests arrive", fix="leave one"
        )
    if request.isl_tokens is None or request.osl_tokens is None:
        raise InputError(
            "--isl and --osl are needed", why="a request has a prompt and an answer", fix="--isl 1024 --osl 256"
        )
    kinds: dict[str, LoadKind] = {
        "--concurrency": "closed", "--rate": "rate", "--batch": "static", "--offline": "offline",
    }  # fmt: skip
    lengths = float(request.isl_tokens), float(request.osl_tokens)
    single = not stated or (stated == ["--concurrency"] and request.concurrency == 1)
    return Demand(
        kind="single" if single else kinds[stated[0]],
        isl_tokens=lengths[0],
        osl_tokens=lengths[1],
        context_tokens=float(request.context_tokens or sum(lengths)),
        users=float(request.concurrency or request.batch or 1),
        rate_per_s=request.rate_per_s or 0.0,
        prefix_hit_fraction=request.engine.prefix_hit_fraction,
    )


def replicas_of(request: EstimateRequest, laid: Laid) -> int:
    """Copies that share the load: as said, else as many as the instances said hold, else one.

    Raises:
        InputError: the instances said do not hold the replicas said.
    """
    if request.instances is None:
        return request.replicas or 1
    packing = _packing(laid)
    held = request.instances // packing.instances_per_unit * packing.replicas_per_unit
    if (request.replicas or 1) > held:
        raise InputError(
            f"{request.instances} instances hold {held} replicas of {laid.layout.devices} devices",
            why=f"{request.replicas or 1} were asked for",
            fix=f"--instances {instances_of(request.replicas or 1, laid)}",
        )
    return request.replicas or held


def instances_of(replicas: int, laid: Laid) -> int:
    """Whole instances that hold so many replicas."""
    packing = _packing(laid)
    return -(-replicas // packing.replicas_per_unit) * packing.instances_per_unit


def _packing(laid: Laid) -> Packing:
    return pack(devices_per_replica=laid.layout.devices, devices_per_instance=laid.layout.seat.platform.devices)


def _config(request: EstimateRequest, laid: Laid, replicas: int) -> dict[str, Any]:
    split, seat = laid.layout.split, laid.layout.seat
    return {
        "model": laid.model.name,
        "instance": request.instance,
        "instances": request.instances or (instances_of(replicas, laid) if request.instance else None),
        "chip": seat.platform.chip.id,
        "replicas": replicas,
        "devices_per_replica": laid.layout.devices,
        "parallelism": {name: int(getattr(split, name)) for name in ("tp", "pp", "ep", "dp", "cp")},
        "precision": {
            "weights": seat.capability.weight_format,
            "kv": seat.limits.kv_format,
            "compute": seat.capability.compute_format,
        },
        "engine": seat.engine.name,
        "engine_version": seat.engine.version,
        "settings": {
            "utilization": seat.limits.utilization,
            "max_num_seqs": seat.limits.max_num_seqs,
            "chunk_tokens": seat.limits.chunk_tokens,
            "eager": seat.limits.eager,
        },
    }
