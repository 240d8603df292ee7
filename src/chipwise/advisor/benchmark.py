"""What to run before deciding: for each option the engine's start line and a load that is the question's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.question import TrainingDemand
from chipwise.engines import command_arguments, engine_flags, load_engine

if TYPE_CHECKING:
    from chipwise.decide import Advice, Option, Question


def benchmark_object(question: Question, advice: Advice) -> dict[str, Any]:
    """Start and load commands for every option, and by what to decide.

    The model is named as the question named it; the load is the question's concurrency or rate on one replica.
    """
    if isinstance(question.demand, TrainingDemand):
        return _training(question, advice)
    commands: list[str] = []
    for option in advice.options:
        commands += [f"# option {option.rank}: {option.instance}", _start(question, option), _load(question, option)]
    bars = [
        f"P99 {name} at most {bar * 1e3:.0f} ms"
        for name, bar in (("TTFT", question.serving.ttft_p99_s), ("TPOT", question.serving.tpot_p99_s))
        if bar
    ]
    decide_by = "; ".join([*bars, f"then {question.order_by} ({' then '.join(question.policy.goals)})"])
    return {"commands": commands, "decide_by": decide_by}


def _training(question: Question, advice: Advice) -> dict[str, Any]:
    """A hundred steps tell a run's rate; the flags are the trainer's own and not made up here."""
    run = question.training
    commands = [
        f"# option {option.rank}: {option.engine} on {option.instances} x {option.instance}: 100 steps with "
        f"tp={option.parallelism.tp} pp={option.parallelism.pp} dp={option.parallelism.dp} "
        f"micro-batch {option.settings['micro_batch']}, global batch {run.global_batch:.0f}, "
        f"sequence {run.seq_len:.0f}, recompute {option.settings['recompute']}, shard {option.settings['shard']}; "
        "read tokens/s, MFU and peak memory of the last 50"
        for option in advice.options
    ]
    bars = ["within the deadline" if run.deadline_s else "", "within the budget" if question.budget_usd else ""]
    return {"commands": commands, "decide_by": "; ".join([*filter(None, bars), f"then {question.order_by}"])}


def _start(question: Question, option: Option) -> str:
    flags = engine_flags(load_engine(option.engine))
    wanted: dict[str, str | int | float | bool] = {
        "model": question.model.name,
        "tp": option.parallelism.tp,
        "pp": option.parallelism.pp,
        "dp": option.parallelism.dp,
        "ep": option.parallelism.ep > 1,
        "context": option.settings["max_model_len"],
        "max_num_seqs": option.settings["max_num_seqs"],
        "utilization": option.settings["gpu_memory_utilization"],
    }
    if option.parallelism.dp == 1:
        del wanted["dp"]
    if option.parallelism.pp == 1:
        del wanted["pp"]
    known = {name: value for name, value in wanted.items() if name in flags.by_setting}
    return " ".join([flags.launcher, *command_arguments(flags, known)])


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
        f"vllm bench serve --model {question.model.name} --dataset-name random {shape} {load} --num-prompts {prompts} "
        "--percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,95,99"
    )
