"""FLOPs, bytes and seconds of one micro-batch on one device: forward, backward and what is done again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.memory.training_shapes import saved_elements
from chipwise.parallelism import GemmShard, LayerShard, LayerShards, Number, ceil_div
from chipwise.perf.hardware import Hardware
from chipwise.perf.training_coefficients import TrainingCoefficients

ELEMENT_BYTES = 2.0
ATTENTION_BACKWARD = 2.5
STATE_CHUNK_TOKENS = 256.0
TILE = 64.0
FULL_KINDS = frozenset({"full", "mla", "shared"})
WINDOW_KINDS = frozenset({"sliding", "chunked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one forward pass of one micro-batch asks of one device; each field sums over the layers of its stage.

    `ragged_flops` are those of `gemm_flops` whose matrix has a side that is no multiple of `TILE`.
    """

    gemm_flops: Number
    ragged_flops: Number
    gemm_bytes: Number
    expert_flops: Number
    expert_bytes: Number
    attention_flops: Number
    elementwise_bytes: Number
    routed_bytes: Number
    head_flops: Number
    head_bytes: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Seconds of one micro-batch on one device, communication aside: the terms add up to `total_s`."""

    gemm_s: Number
    expert_s: Number
    attention_s: Number
    elementwise_s: Number
    head_s: Number
    recompute_s: Number
    host_s: Number

    @property
    def device_s(self) -> Number:
        """What the device is busy for."""
        return self.gemm_s + self.expert_s + self.attention_s + self.elementwise_s + self.head_s + self.recompute_s

    @property
    def total_s(self) -> Number:
        """Busy time plus what the host makes it wait."""
        return self.device_s + self.host_s


def stage_share(shards: LayerShards, layout: TrainingLayout) -> Number:
    """Share of the model's layers on the slowest stage: `ceil(L / pp) / L`.

    Trainers place layers evenly by time, so every kind of layer is taken in this share.
    """
    total = max(shards.layer_count, 1)
    return ceil_div(total, np.minimum(layout.pp, total)) / total


def context_tokens(layer: LayerShard, job: TrainingJob) -> Number:
    """Tokens one query looks at on average.

    Half of a causal sequence (all of it without a fused kernel), at most the window of a windowed layer. Recurrent
    layers work in chunks and count their chunk.
    """
    cache = layer.cache
    whole = job.seq_len * (0.5 if cache.causal and job.flash_attention else 1.0)
    if cache.kind in FULL_KINDS:
        return whole
    if cache.kind in WINDOW_KINDS:
        return np.minimum(whole, cache.window_tokens or job.seq_len)
    return np.minimum(whole, STATE_CHUNK_TOKENS)


Triple = tuple[Number, Number, Number]


def _gemm(gemm: GemmShard, rows: Number, copies: Number) -> Triple:
    """FLOPs, bytes and ragged FLOPs. Thin matrices (a router) are not worth a penalty: their bytes say enough."""
    flops = 2.0 * rows * gemm.rows_out * gemm.cols_in
    moved = rows * (gemm.rows_out + gemm.cols_in) + copies * gemm.rows_out * gemm.cols_in
    off = (np.mod(gemm.rows_out, TILE) > 0) | (np.mod(gemm.cols_in, TILE) > 0)
    return flops, ELEMENT_BYTES * moved, np.where(off, flops, 0.0)


def _sum(parts: list[Triple]) -> Triple:
    return (
        sum((part[0] for part in parts), start=0.0),
        sum((part[1] for part in parts), start=0.0),
        sum((part[2] for part in parts), start=0.0),
    )


def _attention(layer: LayerShard, job: TrainingJob, tokens: Number) -> Number:
    cache = layer.cache
    if cache.kind == "none":
        return 0.0
    return 2.0 * tokens * context_tokens(layer, job) * cache.query_heads * (cache.head_dim + cache.value_head_dim)


def forward_work(*, shards: LayerShards, layout: TrainingLayout, job: TrainingJob) -> Work:
    """FLOPs and bytes of one forward pass of one micro-batch on one device of a stage.

    A GEMM of M tokens and a K x N weight is 2 M N K FLOPs and 2 (M N + M K + N K) bytes; attention
    2 M x context x heads x (key + value dimension). The head, M x vocabulary, is spread over the stages.

    Args:
        shards: one device, laid out with `training_shards`.
        layout: how the micro-batch is cut: cp cuts its tokens.
        job: sequence length and micro-batch.
    """
    tokens = job.tokens_per_micro_batch / layout.cp
    share = stage_share(shards, layout)
    gemms, experts, attention = [], [], []
    for layer in shards.layers:
        count = layer.count_total * share
        gemms += [_times(_gemm(gemm, tokens, 1.0), count) for gemm in layer.gemms if gemm.gemm]
        attention.append(count * _attention(layer, job, tokens))
        if layer.experts is not None:
            routed = tokens * layer.experts.per_token
            experts += [_times(_gemm(one, routed, layer.experts.local), count) for one in layer.experts.gemms]
    head = _sum([_gemm(gemm, tokens, 1.0) for gemm in shards.outer if gemm.part == "head"])
    gemm, expert, touched = _sum(gemms), _sum(experts), _touched(shards, layout, job)
    return Work(
        gemm_flops=gemm[0],
        ragged_flops=gemm[2],
        gemm_bytes=gemm[1],
        expert_flops=expert[0],
        expert_bytes=expert[1],
        attention_flops=sum(attention, start=0.0),
        elementwise_bytes=tokens * ELEMENT_BYTES * touched[0],
        routed_bytes=tokens * ELEMENT_BYTES * touched[1],
        head_flops=head[0] / layout.pp,
        head_bytes=head[1] / layout.pp,
    )


def _times(part: Triple, count: Number) -> Triple:
    return part[0] * count, part[1] * count, part[2] * count


def _touched(shards: LayerShards, layout: TrainingLayout, job: TrainingJob) -> tuple[Number, Number]:
    """Elements a token leaves in its layers, evenly over the stages, and those it leaves in routed experts.

    Norms, activations, casts and permutations touch them. Without a fused attention kernel the scores,
    heads x sequence a token, are among the first.
    """
    saved = saved_elements(shards, layout)
    held = sum((layer.count for layer in shards.layers), start=0.0)
    even = shards.layer_count * stage_share(shards, layout) / np.maximum(held, 1.0)
    scores = 0.0 if job.flash_attention else saved.scores * job.seq_len
    return (saved.stream + saved.inner + scores) * even, saved.routed * even


def backward_factor(job: TrainingJob) -> float:
    """Backward over forward GEMMs: 2 for trained weights (both gradients), 1 where the weights are frozen."""
    return 1.0 if job.adapts else 2.0


def micro_batch_seconds(
    *,
    work: Work,
    job: TrainingJob,
    layers: tuple[Number, Number],
    hardware: Hardware,
    coefficients: TrainingCoefficients,
) -> Seconds:
    """Seconds of forward, backward and recomputation of one micro-batch on one device.

    `t = FLOPs / (peak x fraction) + bytes / (bandwidth x fraction)` for GEMMs, `FLOPs / (peak x fraction)` for
    attention (a GEMM like others without a fused kernel), bytes over bandwidth for the rest. The host waits where
    launching takes longer than computing.

    Args:
        work: of one forward pass.
        job: method, recomputation and precision.
        layers: layers of the stage, and how many of them route to experts.
        hardware: one device; `gemm_flops_per_s` must hold the job's precision.
        coefficients: fitted fractions and overheads.
    """
    peak = hardware.gemm_flops_per_s[job.precision] * coefficients.gemm_fraction
    bandwidth = hardware.memory_bandwidth_bytes_per_s * coefficients.bandwidth_fraction
    passes = 1.0 + backward_factor(job)
    padded = work.gemm_flops + work.ragged_flops * (1.0 / coefficients.ragged_fraction - 1.0)
    gemm = padded / peak + work.gemm_bytes / bandwidth
    expert = work.expert_flops / (peak * coefficients.expert_fraction) + work.expert_bytes / bandwidth
    reached = coefficients.attention_fraction if job.flash_attention else coefficients.gemm_fraction
    attention = work.attention_flops / (hardware.attention_flops_per_s * reached)
    moved = coefficients.elementwise_factor * work.elementwise_bytes + coefficients.routed_factor * work.routed_bytes
    elementwise = moved / bandwidth
    again = 1.0 if job.recompute == "full" else 0.0
    light = 1.0 if job.recompute != "none" else 0.0
    head_peak = hardware.attention_flops_per_s * coefficients.head_fraction
    busy = Seconds(
        gemm_s=gemm * passes,
        expert_s=expert * passes,
        attention_s=attention * (1.0 + ATTENTION_BACKWARD),
        elementwise_s=elementwise * 3.0,
        head_s=(work.head_flops / head_peak + work.head_bytes / bandwidth) * passes,
        recompute_s=(gemm + expert + attention) * again + elementwise * light,
        host_s=0.0,
    )
    launched = (layers[0] * coefficients.layer_s + layers[1] * coefficients.moe_layer_s) * (3.0 + again)
    return Seconds(
        gemm_s=busy.gemm_s,
        expert_s=busy.expert_s,
        attention_s=busy.attention_s,
        elementwise_s=busy.elementwise_s,
        head_s=busy.head_s,
        recompute_s=busy.recompute_s,
        host_s=np.maximum(launched - busy.device_s, 0.0),
    )


def stage_layers(shards: LayerShards, layout: TrainingLayout) -> tuple[Number, Number]:
    """Layers of the slowest stage, and how many of them route to experts."""
    share = stage_share(shards, layout)
    routing = sum((layer.count_total for layer in shards.layers if layer.experts is not None), start=0)
    return shards.layer_count * share, routing * share


def _uncausal(layer: LayerShard, job: TrainingJob, *, causal: bool) -> float:
    halved = layer.cache.causal and job.flash_attention
    if causal:
        return 1.0 if halved or not layer.cache.causal else 0.5
    return 2.0 if halved else 1.0


def model_flops(*, shards: LayerShards, layout: TrainingLayout, job: TrainingJob, causal: bool = False) -> Number:
    """FLOPs that one micro-batch of the whole model needs by the definition of MFU, forward and backward.

    `tokens (6 N + 12 layers heads head_dim context)`: N counts the matrices a token meets (embedding look-ups
    do not multiply, the head does), attention the whole context unless `causal` halves it. Recomputation does not
    count; a frozen weight counts 4 instead of 6.

    Source: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, arXiv:2204.02311, appendix B.
    """
    tokens = job.tokens_per_micro_batch
    active: Number = sum((g.rows_out * g.cols_in for g in shards.outer if g.part == "head"), start=0.0) * layout.tp
    looked: Number = 0.0
    for layer in shards.layers:
        own = sum((g.rows_out * g.cols_in for g in layer.gemms if g.gemm), start=0.0) * layout.tp
        routed: Number = 0.0
        if layer.experts is not None:
            cut = np.maximum(layout.tp / np.maximum(layout.ep, 1.0), 1.0)
            each = sum((g.rows_out * g.cols_in for g in layer.experts.gemms), start=0.0) * cut
            routed = each * layer.experts.per_token
        active = active + layer.count_total * (own + routed)
        full = context_tokens(layer, job) * _uncausal(layer, job, causal=causal)
        heads = layer.cache.query_heads * layout.tp * (layer.cache.head_dim + layer.cache.value_head_dim)
        looked = looked + layer.count_total * 2.0 * full * heads
    return tokens * (2.0 * active * (1.0 + backward_factor(job)) + 3.0 * looked)
