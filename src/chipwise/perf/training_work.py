"""FLOPs and bytes of one micro-batch on one device: what a forward pass asks for, whatever the chip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.memory.training_shapes import device_params, saved_elements
from chipwise.parallelism import GemmShard, LayerShard, LayerShards, Number, ceil_div
from chipwise.perf.operators import compressed_entries

ELEMENT_BYTES = 2.0
STATE_BYTES = 4.0
STATE_CHUNK_TOKENS = 256.0
TILE = 64.0
FULL_KINDS = frozenset({"full", "mla", "shared"})
WINDOW_KINDS = frozenset({"sliding", "chunked"})
RECURRENT_KINDS = frozenset({"mamba", "linear"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one forward pass of one micro-batch asks of one device; each field sums over the layers of its stage.

    `ragged_flops` are those of `gemm_flops` whose matrix has a side that is no multiple of `TILE`; `cast_bytes` are
    the inputs and outputs of matrices, which formats of few bits convert; `frozen_params` are held packed and unpacked
    where the base is quantised.
    """

    gemm_flops: Number
    ragged_flops: Number
    gemm_bytes: Number
    expert_flops: Number
    expert_bytes: Number
    cast_bytes: Number
    attention_flops: Number
    scan_flops: Number
    elementwise_bytes: Number
    score_bytes: Number
    routed_bytes: Number
    head_flops: Number
    head_bytes: Number
    frozen_params: Number


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
        every = cache.compressed_every
        past = compressed_entries(past=whole, every=every, at_most=cache.sparse_tokens) if every else 0.0
        return np.minimum(whole, cache.window_tokens or job.seq_len) + past
    return np.minimum(whole, STATE_CHUNK_TOKENS)


Parts = tuple[Number, Number, Number, Number]


def _gemm(gemm: GemmShard, rows: Number, copies: Number) -> Parts:
    """FLOPs, bytes, ragged FLOPs and bytes of rows in and out.

    Thin matrices (a router) are not worth a penalty: their bytes say enough.
    """
    flops = 2.0 * rows * gemm.rows_out * gemm.cols_in
    moved = ELEMENT_BYTES * rows * (gemm.rows_out + gemm.cols_in)
    off = (np.mod(gemm.rows_out, TILE) > 0) | (np.mod(gemm.cols_in, TILE) > 0)
    return flops, moved + ELEMENT_BYTES * copies * gemm.rows_out * gemm.cols_in, np.where(off, flops, 0.0), moved


def _sum(parts: list[Parts]) -> Parts:
    return (
        sum((part[0] for part in parts), start=0.0),
        sum((part[1] for part in parts), start=0.0),
        sum((part[2] for part in parts), start=0.0),
        sum((part[3] for part in parts), start=0.0),
    )


def _attention(layer: LayerShard, job: TrainingJob, tokens: Number) -> Number:
    cache = layer.cache
    if cache.kind == "none" or cache.kind in RECURRENT_KINDS:
        return 0.0
    return 2.0 * tokens * context_tokens(layer, job) * cache.query_heads * (cache.head_dim + cache.value_head_dim)


def _scan(layer: LayerShard, tokens: Number) -> Number:
    """A recurrent layer in chunks of c tokens: scores within a chunk, and building and reading a state of s elements.

    `2 tokens (c / 2 heads (key + value dimension) + 2 s)`.

    Source: Dao, Gu, "Transformers are SSMs", 2024, arXiv:2405.21060, section 6.
    """
    cache = layer.cache
    if cache.kind not in RECURRENT_KINDS:
        return 0.0
    within = STATE_CHUNK_TOKENS / 2.0 * cache.query_heads * (cache.head_dim + cache.value_head_dim)
    return 2.0 * tokens * (within + 2.0 * cache.state_bytes_per_sequence / STATE_BYTES)


def forward_work(*, shards: LayerShards, layout: TrainingLayout, job: TrainingJob) -> Work:
    """FLOPs and bytes of one forward pass of one micro-batch on one device of a stage.

    A GEMM of M tokens and a K x N weight is 2 M N K FLOPs and 2 (M N + M K + N K) bytes; attention
    2 M x context x heads x (key + value dimension), recurrent layers their scan. The head, M x vocabulary, is spread
    over the stages. tp deals the tokens of a micro-batch over its ranks before they go to experts, as far as ep
    keeps experts whole.

    Args:
        shards: one device, laid out with `training_shards`.
        layout: how the micro-batch is cut: cp cuts its tokens.
        job: sequence length and micro-batch.
    """
    tokens = job.tokens_per_micro_batch / layout.cp
    share = stage_share(shards, layout)
    gemms, experts, attention, scans = [], [], [], []
    for layer in shards.layers:
        count = layer.count_total * share
        gemms += [_times(_gemm(gemm, tokens, 1.0), count) for gemm in layer.gemms if gemm.gemm]
        attention.append(count * _attention(layer, job, tokens))
        scans.append(count * _scan(layer, tokens))
        if layer.experts is not None:
            routed = tokens * layer.experts.per_token / np.minimum(layout.ep, layout.tp)
            experts += [_times(_gemm(one, routed, layer.experts.local), count) for one in layer.experts.gemms]
    head = _sum([_gemm(gemm, tokens, 1.0) for gemm in shards.outer if gemm.part == "head"])
    gemm, expert, touched = _sum(gemms), _sum(experts), _touched(shards, layout, job)
    held = device_params(shards)
    return Work(
        gemm_flops=gemm[0],
        ragged_flops=gemm[2],
        gemm_bytes=gemm[1],
        expert_flops=expert[0],
        expert_bytes=expert[1],
        cast_bytes=gemm[3] + expert[3],
        attention_flops=sum(attention, start=0.0),
        scan_flops=sum(scans, start=0.0),
        elementwise_bytes=tokens * ELEMENT_BYTES * touched[0],
        score_bytes=tokens * ELEMENT_BYTES * touched[2],
        routed_bytes=tokens * ELEMENT_BYTES * touched[1],
        head_flops=head[0] / layout.pp,
        head_bytes=head[1] / layout.pp,
        frozen_params=held.dense + held.expert,
    )


def _times(part: Parts, count: Number) -> Parts:
    return part[0] * count, part[1] * count, part[2] * count, part[3] * count


def _touched(shards: LayerShards, layout: TrainingLayout, job: TrainingJob) -> tuple[Number, Number, Number]:
    """Elements a token leaves in its layers, evenly over the stages; those it leaves in routed experts; its scores.

    Norms, activations, casts and permutations touch them. Scores, heads x sequence a token, are written only without
    a fused attention kernel.
    """
    saved = saved_elements(shards, layout)
    held = sum((layer.count for layer in shards.layers), start=0.0)
    even = shards.layer_count * stage_share(shards, layout) / np.maximum(held, 1.0)
    scores = 0.0 if job.flash_attention else saved.scores * job.seq_len
    dealt = np.minimum(layout.ep, layout.tp)
    return (saved.stream + saved.inner) * even, saved.routed * even / dealt, scores * even


def backward_factor(job: TrainingJob) -> float:
    """Backward over forward GEMMs: 2 for trained weights (both gradients), 1 where the weights are frozen."""
    return 1.0 if job.adapts else 2.0


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
