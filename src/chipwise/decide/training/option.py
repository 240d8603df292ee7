"""From a picked run to a full option: its memory, step, duration, cost, checks, reasons and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.capacity import blocks_for
from chipwise.decide.advice import Cost, Option, PrecisionChoice, Scale, Sizing
from chipwise.decide.effects import Effect, checkpoint_effect, communication_effects, spent, term_seconds
from chipwise.decide.infrastructure import Site, discouraged, feature_checks
from chipwise.decide.money import caveats_of, offered_here, purchase_lines
from chipwise.decide.training.answers import Row, memory_object, other_object, roles_words, training_object
from chipwise.decide.training.deployment import run_of
from chipwise.decide.training.runs import checkpoint_write_s
from chipwise.decide.training.scaling import user_bars
from chipwise.decide.training.skew import skew_words
from chipwise.guide import grade
from chipwise.guide.tables import limit
from chipwise.precision import legal_precisions
from chipwise.units import show_count, show_seconds, show_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.decide.question import Question
    from chipwise.decide.training.deployment import TrainingDeployment
    from chipwise.perf.other.passes import Item


def training_option(question: Question, deployment: TrainingDeployment, rank: int, ties: tuple[int, ...]) -> Option:
    """The full option of a picked run."""
    platform, row = deployment.way.platform, Row(trial=deployment.trial, row=deployment.row)
    memory = memory_object(row, deployment.notes)
    training = training_object(row)
    pretrain = question.training.method == "pretrain"
    site = Site(instance=deployment.instance, chip=platform.chip, nodes=deployment.instances, chips=deployment.chips)
    checks = feature_checks(
        site,
        params=float(question.model.params_total),
        training=True,
        pretrain=pretrain,
        effects=_effects(deployment, training),
    )
    run = run_of(deployment)
    return Option(
        rank=rank,
        tied_with=ties,
        instance=deployment.instance.name,
        instances=deployment.instances,
        chip=platform.chip.id,
        chips=deployment.chips,
        chips_used=deployment.chips,
        replicas=1,
        devices_per_replica=deployment.way.devices,
        parallelism=deployment.parallelism,
        precision=_precision(question, deployment),
        engine=deployment.trial.scheme.trainer,
        settings=_settings(question, deployment),
        memory=memory,
        performance=_performance(deployment, training, memory),
        latency=None,
        rating_throughput=None,
        rating_mfu=grade("mfu", "mean", training["mfu_fraction"].mid),
        run=run,
        sizing=_sizing(deployment),
        cost=_cost(question, deployment),
        infrastructure=tuple(checks),
        pools=None,
        sharing=None,
        scale=_scale(deployment),
        regions=offered_here(question, deployment),
        reasons=tuple(_reasons(question, deployment, training)),
        risks=tuple(_risks(question, deployment, training)),
        discouraged_by=(
            *deployment.discouraged_by,
            *discouraged(checks, 1.0 - training["communication_efficiency"].overall.mid),
        ),
        evidence=deployment.trial.evidence(deployment.row),
    )


def _effects(deployment: TrainingDeployment, training: dict[str, Any]) -> dict[str, Effect]:
    """What links, networks and direct storage do in seconds of a step and of a checkpoint."""
    seconds, wires = term_seconds(training["terms"], "seconds")
    way, course = deployment.way, deployment.course
    nodes, inside = way.nodes, {"tp", "cp", *(["ep"] if way.ep <= way.platform.devices else [])}
    step = spent(seconds, unit="a step", communication=wires, inside=inside, nodes=nodes)
    found = communication_effects(step, nodes=nodes, large_from=int(limit("ultracluster_nodes")))
    write_s = checkpoint_write_s(size_bytes=course.checkpoint_bytes, clients=nodes)
    found["gds"] = checkpoint_effect(
        size_bytes=course.checkpoint_bytes, clients=nodes, interval_s=course.checkpoint_interval_s, write_s=write_s
    )
    return found


def _performance(deployment: TrainingDeployment, training: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    return {
        "feasible": True,
        "config": {"instance": deployment.instance.name, "instances": deployment.instances},
        "serving": None,
        "training": training,
        "other": other_object(Row(trial=deployment.trial, row=deployment.row)),
        "memory": memory,
        "watts": None,
        "evidence": deployment.trial.evidence(deployment.row),
        "warnings": [],
    }


def _precision(question: Question, deployment: TrainingDeployment) -> PrecisionChoice:
    held, compute = deployment.precision, deployment.trial.job.precision
    quality = {"loss": "none", "source": "guide A:287: keep the precision the model is trained in"}
    if held != compute:
        quality = _loss_of(question, held)
    return PrecisionChoice(weights=held, kv=compute, compute=compute, quality=dict(quality))


def _loss_of(question: Question, held: str) -> dict[str, str]:
    """What is said of a frozen base held in fewer bits; that nothing is, where no source speaks of the checkpoint."""
    for one in legal_precisions(question.model):
        if one.format == held and "train" in one.use:
            return {"loss": f"{one.quality_loss} ({one.verdict})", "source": one.source}
    return {"loss": "not stated", "source": f"no source speaks of {held} made from this checkpoint"}


def _settings(question: Question, deployment: TrainingDeployment) -> dict[str, Any]:
    run, way = question.training, deployment.way
    sizes = {"seq_len": round(run.seq_len)} if run.sample is None else sizes_of(run.sample)
    return {
        "method": run.method,
        "micro_batch": way.micro_batch,
        "virtual_stages": way.vp,
        "global_batch": round(run.global_batch),
        **sizes,
        "optimizer": run.optimizer,
        "recompute": deployment.trial.recompute,
        "shard": deployment.trial.scheme.shard,
        "trainer": deployment.trial.scheme.trainer,
    }


def sizes_of(sample: Item) -> dict[str, Any]:
    """What a sample measures."""
    return {name: getattr(sample, name) for name in ("image_px", "frames", "audio_s") if getattr(sample, name)}


def _sizing(deployment: TrainingDeployment) -> Sizing:
    fewest = deployment.fewest
    return Sizing(
        chips_by_memory=fewest * (deployment.instance.chips or 1),
        instances_by_memory=fewest,
        instances_by_throughput=deployment.instances,
        ha_factor=1.0,
        binding="memory" if deployment.instances == fewest else "goal",
    )


def _cost(question: Question, deployment: TrainingDeployment) -> Cost:
    found = deployment.quote
    return Cost(
        usd_per_hour=deployment.usd_per_hour,
        usd_per_million_output_tokens=None,
        usd_per_million_at_capacity=None,
        usd_per_unit=None,
        usd_per_run=deployment.usd_per_run,
        price_as_of=found.as_of if found else None,
        price_kind=found.kind if found else None,
        purchase=purchase_lines(question, deployment),
        caveats=caveats_of(found),
    )


def _counted(deployment: TrainingDeployment) -> str:
    """What a run counts."""
    return "token" if deployment.trial.sample is None else "sample"


def _scale(deployment: TrainingDeployment) -> Scale:
    counted = _counted(deployment)
    return Scale(
        start_with=f"{deployment.instances} x {deployment.instance.name}",
        signal=f"{counted}s/s and MFU of the first hundred steps",
        threshold=f"below {show_count(deployment.value('tokens_per_s') / deployment.spread_factor)} {counted}s/s",
        next="check the step's terms (communication, bubble) before adding instances",
    )


def _reasons(question: Question, deployment: TrainingDeployment, training: dict[str, Any]) -> Iterator[str]:
    took, run, course = deployment.duration_s, question.training, deployment.course
    span = f"{show_seconds(took.low)} to {show_seconds(took.high)}"
    counted = _counted(deployment)
    yield f"{show_count(run.tokens)} {counted}s in {show_seconds(took.mid)} ({span})"
    lost = 1.0 - course.goodput_fraction
    start = f"{show_seconds(course.start_s)} to start (assumed: as a restart)"
    end = f"{show_seconds(course.finish_s)} to write what is left"
    yield f"of it {start}, {end}, and {lost:.1%} of the rest for checkpoints, failures and what they lose"
    deadline_s = user_bars(question).deadline_s
    if deadline_s is not None:
        yield f"deadline {show_seconds(deadline_s)}"
    yield f"{show_count(deployment.value('tokens_per_s'))} {counted}s/s, MFU {training['mfu_fraction'].mid:.0%}"
    roles = roles_words(question, Row(trial=deployment.trial, row=deployment.row), training)
    if roles is not None:
        yield roles
    if deployment.instances > deployment.fewest:
        kept = f"{deployment.efficiency_fraction:.0%} of the efficiency of {deployment.fewest}"
        yield f"{deployment.instances} instances keep {kept}, the fewest that hold the run"
    cost = deployment.usd_per_run
    if cost is not None and deployment.quote is not None:
        yield f"{show_usd(cost.mid)} for the run: {deployment.quote.why}"


def _each(deployment: TrainingDeployment) -> str:
    """Samples a second that each of the host's vCPUs prepares."""
    if not deployment.instance.vcpu:
        return ""
    each = deployment.value("samples_per_s") / deployment.instances / deployment.instance.vcpu
    return f" ({show_count(each)} a second and vCPU)"


def _had(deployment: TrainingDeployment) -> str:
    """How so many instances can be had for the same days."""
    quote, blocks = deployment.quote, blocks_for(deployment.instances)
    if quote is None or quote.term != "capacity-block" or blocks == 1:
        return "reserve them or take a Capacity Block"
    return f"{blocks} Capacity Blocks for the same days"


def _risks(question: Question, deployment: TrainingDeployment, training: dict[str, Any]) -> Iterator[str]:
    deadline_s = user_bars(question).deadline_s
    if deadline_s is not None and deployment.duration_s.high > deadline_s:
        yield f"may take {show_seconds(deployment.duration_s.high)} (upper end of the range), past the deadline"
    budget = question.budget_usd
    if budget is not None and deployment.usd_per_run is not None and deployment.usd_per_run.high > budget:
        yield f"may cost {show_usd(deployment.usd_per_run.high)} (upper end of the range), over the budget"
    if deployment.instances > 1:
        yield f"{deployment.instances} instances must be had at once: {_had(deployment)}"
    if deployment.instance.kind == "neuron":
        yield "the first compilation of the graphs is not counted: no source that was read times it"
    skew = skew_words(deployment, training)
    if skew is not None:
        yield skew
    yield from deployment.notes
    if deployment.trial.sample is not None:
        yield f"reading and decoding samples is not counted: the host's processors must keep up{_each(deployment)}"
        yield from deployment.trial.sample.passes.notes
