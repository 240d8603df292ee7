"""What to run before deciding: for each option the engine's start line and a load that is the question's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.models import checkpoint_of
from chipwise.decide.advice import Parallelism
from chipwise.decide.question import OtherDemand, TrainingDemand
from chipwise.engines import command_arguments, engine_flags, load_engine
from chipwise.precision import format_facts, stored_format

if TYPE_CHECKING:
    from chipwise.decide import Advice, Option, Question


def benchmark_object(question: Question, advice: Advice) -> dict[str, Any]:
    """Start and load commands for every option, and by what to decide.

    The model is named by the Hugging Face id that was asked for; where the option's precision is not the checkpoint's,
    the engine is told to quantise while loading, or `CHECKPOINT` stands for one made beforehand and a remark says
    which. The load is the question's concurrency or rate on one replica.
    """
    if isinstance(question.demand, TrainingDemand):
        return _training(question, advice)
    if isinstance(question.demand, OtherDemand):
        return _other(question, advice)
    commands: list[str] = []
    for option in advice.options:
        commands += [f"# option {option.rank}: {option.instance}", *_serving(question, option)]
    bars = [
        f"P99 {name} at most {bar * 1e3:.0f} ms"
        for name, bar in (("TTFT", question.serving.ttft_p99_s), ("TPOT", question.serving.tpot_p99_s))
        if bar
    ]
    decide_by = "; ".join([*bars, f"then {question.order_by} ({' then '.join(question.policy.goals)})"])
    return {"commands": commands, "decide_by": decide_by}


def _serving(question: Question, option: Option) -> list[str]:
    """One engine and its load; two pools behind a proxy and the load on it; or every tenant's engine and its load."""
    if option.pools is not None:
        pools = [line for pool in option.pools for line in _pool(question, option, pool)]
        return [*pools, "# the load goes to the proxy in front of both pools", _load(question, option)]
    if question.tenants and option.sharing is not None:
        pairs = zip(question.tenants, option.sharing["models"], strict=True)
        return [line for tenant, one in pairs for line in _tenant(tenant, option, one)]
    return [*_start(question, option), _load(question, option)]


def _pool(question: Question, option: Option, pool: dict[str, Any]) -> list[str]:
    """The start line of one pool's replica."""
    role = pool["role"]
    alone = replace(option, parallelism=pool["parallelism"], settings=pool["settings"])
    words = f"# {role} pool: {pool['replicas']} replicas on {pool['instances'] or 'the same'} x {pool['instance']}"
    return [words, *_start(question, alone, role)]


def _tenant(tenant: Question, option: Option, one: dict[str, Any]) -> list[str]:
    """The start line of one tenant's engine, and its load."""
    alone = replace(
        option,
        parallelism=Parallelism(**one["parallelism"]),
        settings=one["settings"],
        precision=one["precision"],
        replicas=one["replicas"],
        engine=one["engine"],
    )
    return [f"# {one['model']}: {one['replicas']} replicas", *_start(tenant, alone), _load(tenant, alone)]


def _other(question: Question, advice: Advice) -> dict[str, Any]:
    """What to time on each option: no load generator is shared by such services, so none is made up here."""
    demand = question.other
    arrival, unit = demand.arrival, demand.item.unit
    load = {
        "rate": f"{arrival.rate_per_s:g} requests a second",
        "offline": "a queue that never empties",
        "throughput": f"a queue that never empties, of which {arrival.rate_per_s:g} {unit}s a second must leave",
    }
    asked = load.get(arrival.kind, f"{arrival.users:g} requests in flight")
    commands = [
        f"# option {option.rank}: {option.engine} on {option.instances} x {option.instance}, "
        f"batches of up to {option.settings['max_batch']}: {asked} for ten minutes; "
        f"read P99 latency and {unit}s a second"
        for option in advice.options
    ]
    bar = f"P99 latency at most {demand.latency_p99_s * 1e3:.0f} ms" if demand.latency_p99_s else ""
    return {"commands": commands, "decide_by": "; ".join([*filter(None, [bar]), f"then {question.order_by}"])}


def _training(question: Question, advice: Advice) -> dict[str, Any]:
    """A hundred steps tell a run's rate; the flags are the trainer's own and not made up here."""
    run = question.training
    commands = [
        f"# option {option.rank}: {option.engine} on {option.instances} x {option.instance}: 100 steps with "
        f"tp={option.parallelism.tp} pp={option.parallelism.pp} dp={option.parallelism.dp} "
        f"micro-batch {option.settings['micro_batch']}, global batch {run.global_batch:.0f}, "
        f"{_measures(option)}, recompute {option.settings['recompute']}, shard {option.settings['shard']}; "
        f"read {'token' if run.sample is None else 'sample'}s/s, MFU and peak memory of the last 50"
        for option in advice.options
    ]
    bars = ["within the deadline" if run.deadline_s else "", "within the budget" if question.budget_usd else ""]
    return {"commands": commands, "decide_by": "; ".join([*filter(None, bars), f"then {question.order_by}"])}


def _measures(option: Option) -> str:
    """What goes in at a time: a sequence's tokens, or the sizes of a sample."""
    sizes = {name: option.settings[name] for name in ("image_px", "frames", "audio_s") if name in option.settings}
    if "seq_len" in option.settings:
        return f"sequence {option.settings['seq_len']}"
    return ", ".join(f"{name} {value:g}" for name, value in sizes.items()) or "a row a sample"


def _start(question: Question, option: Option, role: str = "") -> list[str]:
    flags = engine_flags(load_engine(option.engine))
    served = _Served.of(question, option)
    wanted: dict[str, str | int | float | bool] = {
        "model": served.name,
        served.switch: True,
        role: True,
        "dtype": "float16" if option.precision.compute == "fp16" else "",
        "kv": option.precision.kv if option.precision.kv not in {"bf16", "fp16"} else "",
        "tp": option.parallelism.tp,
        "pp": option.parallelism.pp,
        "dp": option.parallelism.dp,
        "ep": option.parallelism.ep > 1,
        "context": option.settings["max_model_len"],
        "max_num_seqs": option.settings["max_num_seqs"],
        "chunk_tokens": option.settings["max_num_batched_tokens"],
        "utilization": option.settings["gpu_memory_utilization"],
    }
    idle = {"pp": 1, "dp": 1, "dtype": "", "kv": ""}
    known = {name: value for name, value in wanted.items() if name in flags.by_setting and value != idle.get(name)}
    return [*served.remarks, " ".join([flags.launcher, *command_arguments(flags, known)])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """What an engine is told to load: the hub's id, quantised while loading or made beforehand where it must be."""

    name: str
    switch: str = "as-stored"
    remarks: tuple[str, ...] = ()

    @staticmethod
    def of(question: Question, option: Option) -> _Served:
        name, weights = checkpoint_of(question.model), option.precision.weights
        if weights == stored_format(question.model).name:
            return _Served(name=name)
        switch = f"quantize_{format_facts(weights).family}"
        if switch in engine_flags(load_engine(option.engine)).by_setting:
            return _Served(name=name, switch=switch)
        remark = (
            f"# CHECKPOINT is {name} at {weights}: {option.precision.quality.get('condition') or 'made beforehand'}"
        )
        return _Served(name="CHECKPOINT", remarks=(remark,))


def _load(question: Question, option: Option) -> str:
    demand = question.serving
    each = max(1, round(demand.users / option.replicas))
    shape = f"--random-input-len {demand.isl_tokens:.0f} --random-output-len {demand.osl_tokens:.0f}"
    load = f"--max-concurrency {each}"
    if demand.kind == "rate":
        load = f"--request-rate {demand.rate_per_s / option.replicas:.3g}"
    elif demand.kind == "offline":
        load = "--request-rate inf"
    prompts = max(200, each * 10)
    return (
        f"vllm bench serve --model {_Served.of(question, option).name} --dataset-name random {shape} {load} "
        f"--num-prompts {prompts} --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,95,99"
    )
