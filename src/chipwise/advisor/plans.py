"""`advise(Request) -> Advice`: resolve names, gather facts, ask `decide`, and add what to benchmark next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.advisor.availability import availability_warnings, check_availability, headroom, workload_entries
from chipwise.advisor.benchmark import benchmark_object
from chipwise.advisor.models import checkpoint_warnings, model_object
from chipwise.advisor.names import checked
from chipwise.advisor.other import engines_named, fitted, other_demand, sample_of
from chipwise.advisor.places import region_warnings, weighed
from chipwise.advisor.tenants import (
    for_tenants,
    joint_model,
    joint_question,
    model_names,
    shares_of,
    split_words,
)
from chipwise.advisor.whole import class_of, made_for
from chipwise.capacity import known_regions
from chipwise.catalog import load_catalog
from chipwise.decide import Demand, Policy, Question, TrainingDemand, decide, unheard
from chipwise.engines import load_engine
from chipwise.errors import InputError
from chipwise.guide import precision_floor
from chipwise.model import load_model
from chipwise.workload import (
    ModelHints,
    OtherWorkload,
    ServingWorkload,
    TrainingWorkload,
    WorkloadRequest,
    as_json,
    resolve_workload,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from chipwise.advisor.request import Request
    from chipwise.catalog import Catalog
    from chipwise.decide import Advice
    from chipwise.decide.question import OtherDemand
    from chipwise.engines import EngineProfile
    from chipwise.model import ModelSpec
    from chipwise.workload import Workload

TEXTS = frozenset({"embed", "classify", "rerank"})
DEFAULT_ENGINES = {"nvidia": "vllm", "aws": "vllm-neuron"}


def advise(request: Request, say: Callable[[str], None] = unheard) -> Advice:
    """Which instances for this model and this workload, how many, split how, bought how, and why not the others.

    Args:
        request: the question, in base units; what it leaves out the preset fills in.
        say: hears how far it is; what it raises breaks the work off.

    Returns:
        At most three options that differ; every other size of the catalog stands once with its reason.

    Raises:
        InputError: contradictory or impossible values, unknown names.
        KnowledgeError: the model's file does not say enough.
    """
    catalog = load_catalog()
    request = checked(request, catalog)
    names = model_names(request.model)
    asked = asked_alone(request, catalog) if len(names) == 1 else _asked_together(request, names, catalog)
    regions = asked.question.policy.regions if request.regions else ()
    advice = weighed(regions, decide(asked.question, say), catalog)
    return replace(
        advice,
        model=joint_model(asked.question) if asked.question.tenants else model_object(asked.question.model),
        benchmark=benchmark_object(asked.question, advice),
        warnings=(
            *asked.warnings,
            *advice.warnings,
            *availability_warnings(request, advice, catalog),
            *region_warnings(regions, advice, catalog),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with what was noticed while it was put together."""

    question: Question
    warnings: tuple[str, ...]


def asked_alone(request: Request, catalog: Catalog) -> Asked:
    """The question about one model: its file read, its workload resolved."""
    model = load_model(request.model, models=Path(request.models) if request.models else None)
    workload = resolve_workload(_wish(request), hints_of(model, request.purpose))
    _check_run(request, workload)
    if isinstance(workload, OtherWorkload):
        workload = fitted(workload, model)
    demand, sizes = _demand(workload), {}
    sample = sample_of(model, _wish(request)) if isinstance(demand, TrainingDemand) else None
    if sample is not None and isinstance(demand, TrainingDemand):
        demand, sizes = replace(demand, sample=sample[0]), sample[1]
    question = Question(
        model=model,
        demand=demand,
        policy=_policy(request, workload, known_regions(catalog.regions, request.regions)),
        catalog=catalog,
        engines=engines_named(request.engine) if isinstance(workload, OtherWorkload) else engines_of(request.engine),
        workload={**as_json(workload), **sizes, **workload_entries(request)},
        purpose=workload.preset.value,
        budget_usd=workload.budget_usd.value if workload.budget_usd else None,
        engine_named=request.engine,
    )
    taken = checkpoint_warnings(request.model, model)
    return Asked(question=question, warnings=(*taken, *model.warnings, *workload.warnings))


def _asked_together(request: Request, names: tuple[str, ...], catalog: Catalog) -> Asked:
    """The question about several models: each a question of its own, with its share of the load."""
    shared = for_tenants(request)
    whole = asked_alone(replace(shared, model=names[0]), catalog)
    each = [asked_alone(one, catalog) for one in shares_of(shared, names, whole.question)]
    noticed = dict.fromkeys(text for one in each for text in one.warnings)
    return Asked(
        question=joint_question(shared, whole.question, [one.question for one in each]),
        warnings=(*noticed, split_words(shared, [one.question for one in each])),
    )


def _check_run(request: Request, workload: Workload) -> None:
    """Refuse what a training run has not.

    Raises:
        InputError: a serving engine or headroom for failures with a training preset.
    """
    training = isinstance(workload, TrainingWorkload)
    check_availability(request, training=training)
    if training and request.engine is not None:
        raise InputError(
            f"--engine {request.engine} does not go with --for {workload.preset.value}",
            why="an engine answers requests, and a training run answers none",
            fix="leave out --engine, or choose a serving preset",
        )


def _demand(workload: Workload) -> Demand | TrainingDemand | OtherDemand:
    if isinstance(workload, OtherWorkload):
        return other_demand(workload)
    return training_demand(workload) if isinstance(workload, TrainingWorkload) else demand_of(workload)


def hints_of(model: ModelSpec, purpose: str | None = None) -> ModelHints:
    """What a workload needs to know of a model; what only sees and reads counts as a model that sees, or that reads."""
    return ModelHints(
        architecture=model.architecture if purpose in TEXTS else class_of(model),
        max_context_tokens=model.max_context_tokens,
        params_total=model.params_total,
        params_active=model.params_active,
        made_for=made_for(model),
    )


def engines_of(name: str | None) -> dict[str, EngineProfile]:
    """The serving engine of each chip vendor; a named engine replaces that of the vendors it runs on.

    Raises:
        UnknownNameError: no such engine.
    """
    chosen = {vendor: load_engine(engine) for vendor, engine in DEFAULT_ENGINES.items()}
    if name is not None:
        named = load_engine(name)
        chosen = {vendor: named for vendor in DEFAULT_ENGINES if vendor in named.vendors}
    return chosen


def _wish(request: Request) -> WorkloadRequest:
    return WorkloadRequest(
        preset=request.purpose,
        goal=request.goal,
        ttft_p99_s=request.ttft_p99_s,
        tpot_p99_s=request.tpot_p99_s,
        users=request.users,
        think_s=request.think_s,
        rate_per_s=request.rate_per_s,
        throughput_tokens_per_s=request.throughput_tokens_per_s,
        isl=request.isl_tokens,
        osl=request.osl_tokens,
        context=request.context_tokens,
        lengths=Path(request.lengths) if request.lengths else None,
        prefix_hit_fraction=request.prefix_hit_fraction,
        image_size=request.image_size,
        steps=request.steps,
        frames=request.frames,
        audio_s=request.audio_s,
        tokens=request.tokens,
        epochs=request.epochs,
        global_batch=request.global_batch,
        deadline_s=request.deadline_s,
        budget_usd=request.budget_usd,
    )


def demand_of(workload: ServingWorkload) -> Demand:
    """The workload as `decide` asks it.

    A throughput to reach under a latency bar is the rate of requests that produces it, throughput / osl; without a
    latency bar it is asked of the highest steady state.
    """
    throughput = workload.throughput_tokens_per_s
    bars = workload.ttft_p99_s or workload.tpot_p99_s
    kind = "offline" if workload.load.value == "throughput" else workload.load.value
    rate_per_s = workload.rate_per_s.value if workload.rate_per_s else 0.0
    if workload.load.value == "throughput" and throughput and bars:
        kind, rate_per_s = "rate", throughput.value / float(workload.osl.value)
    return Demand(
        kind=kind,
        isl_tokens=float(workload.isl.value),
        osl_tokens=float(workload.osl.value),
        context_tokens=float(workload.context.value),
        users=workload.users.value if workload.users else float(workload.batch.value if workload.batch else 1),
        rate_per_s=rate_per_s,
        throughput_tokens_per_s=throughput.value if throughput and kind == "offline" else None,
        ttft_p99_s=workload.ttft_p99_s.value if workload.ttft_p99_s and kind != "offline" else None,
        tpot_p99_s=workload.tpot_p99_s.value if workload.tpot_p99_s else None,
        prefix_hit_fraction=workload.prefix_hit_fraction.value if workload.prefix_hit_fraction else 0.0,
    )


def training_demand(workload: TrainingWorkload) -> TrainingDemand:
    """The run as `decide` asks it.

    Raises:
        InputError: nobody said how many tokens are trained.
    """
    tokens = workload.tokens_total
    if tokens is None:
        raise InputError(
            "how many tokens are trained is not known", why="time and cost follow from it", fix="--tokens 1B"
        )
    asked = {name: given.origin for name in ("micro_batch", "recompute") if (given := getattr(workload, name))}
    return TrainingDemand(
        method=workload.method.value,
        tokens=tokens,
        seq_len=float(workload.seq_len.value) if workload.seq_len else 1.0,
        global_batch=float(workload.global_batch.value),
        micro_batch=workload.micro_batch.value if asked["micro_batch"] == "user" else None,
        optimizer=workload.optimizer.value,
        recompute=workload.recompute.value if asked["recompute"] == "user" else None,
        shard=workload.shard.value if workload.shard else None,
        lora_rank=workload.lora_rank.value if workload.lora_rank else 16,
        isl_tokens=float(workload.isl.value) if workload.isl else None,
        osl_tokens=float(workload.osl.value) if workload.osl else None,
        group=workload.group.value if workload.group else 1,
        deadline_s=workload.deadline_s.value if workload.deadline_s else None,
    )


def _policy(request: Request, workload: Workload, regions: tuple[str, ...]) -> Policy:
    goals = workload.goals.value
    floor = precision_floor(goals[0])
    stated = request.min_precision
    return Policy(
        goals=goals,
        regions=regions,
        purchase=request.purchase,
        prices_usd_per_hour=request.prices_usd_per_hour,
        vendor=request.vendor,
        only=request.only,
        exclude=request.exclude,
        needs=request.needs,
        min_precision=stated or (floor.floor if floor else None),
        precision_stated=stated is not None,
        precision_why="--min-precision" if stated else floor.why if floor else "",
        ha_factor=headroom(request),
        interruptible=isinstance(workload, TrainingWorkload) or workload.load.value == "offline",
        custom_kernels=request.custom_kernels,
        strict_guide=request.strict_guide,
        isolation=request.isolation,
        team=request.team,
        timeline_weeks=request.timeline_weeks,
        stability=request.stability,
    )
