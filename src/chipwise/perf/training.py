"""Seconds of one optimizer step: compute, what collectives add to it, the pipeline's bubble, the optimizer."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout, training_shards
from chipwise.memory.training_recipes import Recipe, optimizer_of, recipe_of
from chipwise.memory.training_shapes import DeviceParams, adapter_params, device_params
from chipwise.model import ModelSpec
from chipwise.parallelism import LayerShards, Number
from chipwise.perf.training_coefficients import TrainingCoefficients
from chipwise.perf.training_communication import Fabric, MicroCommunication, gradient_sync_s, micro_communication
from chipwise.perf.training_operators import Extra, Seconds, micro_batch_seconds
from chipwise.perf.training_samples import Sampled, sample_communication, sample_flops, sample_seconds
from chipwise.perf.training_work import backward_factor, forward_work, model_flops, stage_layers

OPTIMIZER_PASSES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The generation phase of reinforcement learning: seconds a step, from the serving model.

    `overlapped`: it runs beside the update on devices of its own, one step behind; else in turn on the same ones.
    `loop_factor`: times the step takes of its parts.
    """

    seconds_s: Number
    overlapped: bool = False
    loop_factor: Number = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInput:
    """A job laid out on hardware.

    `tokens_per_sequence` is the mean where sequences are padded to `job.seq_len`; `recomputed_fraction` of the layers
    are recomputed under full recomputation. `sample` is there where the model is no language model: a sequence is then
    a sample, and has one token.
    """

    model: ModelSpec
    layout: TrainingLayout
    job: TrainingJob
    fabric: Fabric
    coefficients: TrainingCoefficients
    devices_per_chip: Number = 1.0
    rollout: Rollout | None = None
    tokens_per_sequence: Number | None = None
    recomputed_fraction: Number = 1.0
    sample: Sampled | None = None

    @property
    def again_fraction(self) -> Number:
        """Share of the forward pass that is done again."""
        return self.recomputed_fraction if self.job.recompute == "full" else 0.0

    @property
    def spread_factor(self) -> Number:
        """What a time is multiplied and divided by for its range."""
        return self.coefficients.spread(mixture=any(layer.experts for layer in self.model.layers))

    @property
    def expert_load(self) -> Number:
        """Load of the fullest device's experts over the mean; 1 where every device holds all of them."""
        dealt = np.asarray(self.layout.ep) > 1
        return np.where(dealt & (not self.job.even_routing), self.coefficients.imbalance_factor, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTerms:
    """Seconds of one step by what they are spent on; they add up to the step."""

    gemm_s: Number
    expert_s: Number
    attention_s: Number
    elementwise_s: Number
    head_s: Number
    unpacking_s: Number
    recompute_s: Number
    host_s: Number
    tp_s: Number
    ep_s: Number
    cp_s: Number
    gather_s: Number
    pp_s: Number
    bubble_s: Number
    dp_s: Number
    optimizer_s: Number
    other_passes_s: Number
    rollout_s: Number
    loop_s: Number
    overhead_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingArrays:
    """What a step takes and gives, mid values, of the broadcast shape of the input.

    `peak_fraction`: share of the step that its multiplications would take at the peak of the hardware.
    """

    step_s: Number
    tokens_per_s: Number
    tokens_per_s_per_chip: Number
    samples_per_s: Number
    mfu_fraction: Number
    hfu_fraction: Number
    pipeline_bubble_fraction: Number
    peak_fraction: Number
    terms: StepTerms


def exposed_s(*, communication_s: Number, compute_s: Number, overlap_fraction: Number) -> Number:
    """What compute does not hide: `max(c (1 - overlap), c - overlap x compute)`.

    >>> float(exposed_s(communication_s=1.0, compute_s=10.0, overlap_fraction=0.5))
    0.5
    >>> float(exposed_s(communication_s=10.0, compute_s=4.0, overlap_fraction=0.5))
    8.0
    """
    hidden = np.minimum(communication_s * overlap_fraction, compute_s * overlap_fraction)
    return communication_s - hidden


def bubble_fraction(*, pp: Number, vp: Number, micro_batches: Number) -> Number:
    """Idle share of a pipelined step: `(pp - 1) / (vp m + pp - 1)`.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
    2021, arXiv:2104.04473, section 2.2.

    >>> round(float(bubble_fraction(pp=8, vp=1, micro_batches=64)), 4)
    0.0986
    """
    idle = np.asarray(pp, dtype=float) - 1.0
    return idle / (np.asarray(vp) * micro_batches + idle)


def _hidden(given: TrainingInput, whole: MicroCommunication, busy: Seconds) -> MicroCommunication:
    own = given.coefficients
    return MicroCommunication(
        tp_s=exposed_s(communication_s=whole.tp_s, compute_s=busy.device_s, overlap_fraction=own.tp_overlap_fraction),
        ep_s=exposed_s(
            communication_s=whole.ep_s * given.expert_load,
            compute_s=busy.device_s,
            overlap_fraction=own.ep_overlap_fraction,
        ),
        cp_s=exposed_s(
            communication_s=whole.cp_s, compute_s=busy.attention_s, overlap_fraction=own.dp_overlap_fraction
        ),
        gather_s=exposed_s(
            communication_s=whole.gather_s, compute_s=busy.device_s, overlap_fraction=own.dp_overlap_fraction
        ),
        pp_s=exposed_s(communication_s=whole.pp_s, compute_s=busy.device_s, overlap_fraction=own.dp_overlap_fraction),
    )


def _trained(shards: LayerShards, job: TrainingJob) -> DeviceParams:
    if job.adapts:
        return DeviceParams(dense=adapter_params(shards, job.adapter), expert=0.0, outer=0.0)
    return device_params(shards)


def _optimizer_s(given: TrainingInput, trained: DeviceParams, recipe: Recipe) -> Number:
    """States, gradients and weights are read and written once, over the device's bandwidth or on the host."""
    layout = given.layout
    over = layout.replicas if layout.shard != "none" else 1.0
    optimizer = optimizer_of(given.job)
    states = recipe.master_bytes * optimizer.needs_master + optimizer.moments * recipe.moment_bytes
    moved = states + optimizer.state_bytes + recipe.gradient_bytes + recipe.weight_bytes
    routed = layout.expert_replicas if layout.shard != "none" else 1.0
    params = (trained.dense + trained.outer) / over + trained.expert / routed
    if given.job.offload != "none":
        beside = np.minimum(layout.devices, np.maximum(given.fabric.hardware.node_devices, 1.0))
        return host_update_s(params=params * beside, micro_batches=given.job.micro_batches)
    bandwidth = given.fabric.hardware.memory_bandwidth_bytes_per_s * given.coefficients.bandwidth_fraction
    return OPTIMIZER_PASSES * params * moved / bandwidth


def host_update_s(*, params: Number, micro_batches: Number) -> Number:
    """Seconds in which the processors of one host add up gradients and update so many parameters.

    `params (30 + 10 m) / rate`: CPU Adam once a step, a sum of gradients for each of m micro-batches.

    Source: Ren et al., "ZeRO-Offload", 2021, arXiv:2101.06840; the rate is in `data/training_host.csv`.

    >>> round(float(host_update_s(params=6.74e9, micro_batches=4)), 1)
    14.3
    """
    known = _host()
    return params * (known["update_bytes"] + known["sum_bytes"] * micro_batches) / known["host_rate"]


@cache
def _host() -> dict[str, float]:
    text = resources.files("chipwise.perf").joinpath("data/training_host.csv").read_text(encoding="utf-8")
    return {row["key"]: float(row["value"]) for row in csv.DictReader(text.splitlines())}


def _other_passes(job: TrainingJob, busy: Seconds) -> Number:
    """Passes beside the update, a micro-batch.

    The reference of DPO (both answers are in the batch); reference and old policy of GRPO; in PPO these, the reward
    model and a critic that is trained (three passes).
    """
    forward = (busy.device_s - busy.recompute_s) / 3.0
    return forward * {"dpo": 1.0, "grpo": 2.0, "ppo": 6.0}.get(job.method, 0.0)


def step_arrays(given: TrainingInput) -> TrainingArrays:
    """The step's seconds and rates, mid values.

    `step = m (compute + exposed tp, ep, cp, gather, pp) (1 + (pp - 1) / (vp m)) + exposed dp + optimizer +
    rollout + overhead` with m micro-batches a step.

    Returns:
        Rates of the whole run; `tokens_per_s` counts tokens of sequences, padding aside where the mean is known.
    """
    layout, job = given.layout, given.job
    if given.sample is not None:
        return _sample_arrays(given, given.sample)
    recipe = recipe_of(job)
    shards = training_shards(given.model, layout)
    busy = micro_batch_seconds(
        work=forward_work(shards=shards, layout=layout, job=job),
        job=job,
        layers=stage_layers(shards, layout),
        hardware=given.fabric.hardware,
        coefficients=given.coefficients,
        extra=Extra(again_fraction=given.again_fraction, expert_load=given.expert_load),
    )
    whole = micro_communication(
        shards=shards, layout=layout, job=job, fabric=given.fabric, passes=2.0 + given.again_fraction
    )
    flops = model_flops(shards=shards, layout=layout, job=job)
    return _rates(given, flops, _terms(given, busy, whole, _trained(shards, job), recipe))


def _sample_arrays(given: TrainingInput, sample: Sampled) -> TrainingArrays:
    """The same of a model that is trained on samples: nothing is split, so that nothing but dp and gathering waits."""
    job = given.job
    busy = sample_seconds(
        sample=sample,
        job=job,
        hardware=given.fabric.hardware,
        coefficients=given.coefficients,
        extra=Extra(again_fraction=given.again_fraction),
    )
    whole = sample_communication(sample=sample, job=job, layout=given.layout, fabric=given.fabric)
    trained = DeviceParams(dense=sample.counts.trained_params(job), expert=0.0, outer=0.0)
    return _rates(given, sample_flops(sample, job), _terms(given, busy, whole, trained, recipe_of(job)))


def _terms(
    given: TrainingInput, busy: Seconds, whole: MicroCommunication, trained: DeviceParams, recipe: Recipe
) -> StepTerms:
    layout, job, m = given.layout, given.job, given.job.micro_batches
    waits = _hidden(given, whole, busy)
    other = _other_passes(job, busy)
    micro = busy.total_s + waits.tp_s + waits.ep_s + waits.cp_s + waits.gather_s + waits.pp_s + other
    sync = gradient_sync_s(trained=trained, layout=layout, recipe=recipe, fabric=given.fabric, micro_batches=m)
    update = m * micro * (1.0 + (np.asarray(layout.pp, dtype=float) - 1.0) / (layout.vp * m))
    with np.errstate(invalid="ignore"):  # devices without a link wait for ever: infinite less infinite
        bubble = update - m * micro
    rollout = given.rollout.seconds_s if given.rollout is not None else 0.0
    if given.rollout is not None and given.rollout.overlapped:
        rollout = np.maximum(rollout - update, 0.0)
    parts = StepTerms(
        gemm_s=m * busy.gemm_s,
        expert_s=m * busy.expert_s,
        attention_s=m * busy.attention_s,
        elementwise_s=m * busy.elementwise_s,
        head_s=m * busy.head_s,
        unpacking_s=m * busy.unpacking_s,
        recompute_s=m * busy.recompute_s,
        host_s=m * busy.host_s,
        tp_s=m * waits.tp_s,
        ep_s=m * waits.ep_s,
        cp_s=m * waits.cp_s,
        gather_s=m * waits.gather_s,
        pp_s=m * waits.pp_s,
        bubble_s=bubble,
        dp_s=exposed_s(
            communication_s=sync,
            compute_s=busy.device_s * (m if layout.shard == "zero2" else 1.0),
            overlap_fraction=given.coefficients.dp_overlap_fraction,
        ),
        optimizer_s=_optimizer_s(given, trained, recipe),
        other_passes_s=m * other,
        rollout_s=rollout,
        loop_s=0.0,
        overhead_s=given.coefficients.step_s,
    )
    longer = given.rollout.loop_factor - 1.0 if given.rollout is not None else 0.0
    return replace(parts, loop_s=longer * sum(term_seconds(parts).values(), start=0.0))


def term_seconds(terms: StepTerms) -> dict[str, Number]:
    """The terms by name, in the order they are printed."""
    return {one.name: getattr(terms, one.name) for one in fields(terms)}


def _rates(given: TrainingInput, micro_flops: Number, terms: StepTerms) -> TrainingArrays:
    layout, job = given.layout, given.job
    step = sum(term_seconds(terms).values(), start=0.0)
    samples = job.micro_batch * job.micro_batches * layout.dp
    real = job.seq_len if given.tokens_per_sequence is None else given.tokens_per_sequence
    chips = layout.devices / given.devices_per_chip
    flops = micro_flops * job.micro_batches * layout.dp
    hardware = given.fabric.hardware
    peak = hardware.attention_flops_per_s * layout.devices
    fastest = np.maximum(hardware.gemm_flops_per_s[job.precision], hardware.attention_flops_per_s)
    again = 1.0 + given.again_fraction / (1.0 + backward_factor(job))
    mfu = flops / step / peak
    return TrainingArrays(
        step_s=step,
        tokens_per_s=samples * real / step,
        tokens_per_s_per_chip=samples * real / step / chips,
        samples_per_s=samples / step,
        mfu_fraction=mfu,
        hfu_fraction=mfu * again,
        pipeline_bubble_fraction=terms.bubble_s / step,
        peak_fraction=mfu * again * hardware.attention_flops_per_s / fastest,
        terms=terms,
    )
