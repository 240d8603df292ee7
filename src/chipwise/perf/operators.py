"""Seconds of one operation on one device: the slower of its FLOPs and its bytes, at the efficiencies given.

Every formula takes floats or arrays that broadcast. `Roofline` keeps both sides, so that the caller can say
which one bound and a test can check that no time is below either of them at the sheet rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallelism.arrays import Number

TINIEST = 1e-9
"""Stands for zero where a logarithm or a quotient needs more."""
CHUNK_OF_LINEAR_ATTENTION = 64
"""Tokens that chunked linear attention takes in together (flash-linear-attention's default block)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """FLOPs over the reachable rate and bytes over the reachable bandwidth, in seconds."""

    compute_s: Number
    bandwidth_s: Number

    @property
    def seconds(self) -> Number:
        """The longer of the two: they overlap."""
        return np.maximum(self.compute_s, self.bandwidth_s)


def roofline(*, flops: Number, flops_per_s: Number, size_bytes: Number, bytes_per_s: Number) -> Roofline:
    """`max(flops / rate, bytes / bandwidth)`.

    >>> float(roofline(flops=2e12, flops_per_s=1e15, size_bytes=8e9, bytes_per_s=4e12).seconds)
    0.002
    """
    return Roofline(compute_s=flops / flops_per_s, bandwidth_s=size_bytes / bytes_per_s)


def gemm_flops(*, tokens: Number, params: Number) -> Number:
    """`2 * tokens * params`: one multiplication and one addition a weight and token.

    >>> gemm_flops(tokens=3.0, params=100.0)
    600.0
    """
    return 2.0 * tokens * params


def gemm_bytes(*, tokens: Number, params: Number, weight_bytes: Number, activations: Number) -> Number:
    """Weights once, and 2-byte activations of every token in and out.

    >>> gemm_bytes(tokens=2.0, params=100.0, weight_bytes=1.0, activations=20.0)
    180.0
    """
    return params * weight_bytes + 2.0 * tokens * activations


def distinct_experts(
    *, tokens: Number, routed: Number, per_token: Number, local: Number, variance: Number = 0.0
) -> Number:
    """Expected number of a device's `local` experts that at least one of `tokens` picks.

    One token picks `m = per_token / routed` of them; an expert that it left out is left out by `t` further ones with
    probability `(1 + v * t * -ln(1 - m)) ** (-1 / v)` where its popularity follows a Gamma distribution with variance
    `v` over the squared mean: `(1 - m) ** t` where all are alike (`v = 0`). Of 8 experts, 2 a token, one token touches
    2 and ten touch 7.5, or 6.3 where popularity varies as much as its mean.

    >>> round(float(distinct_experts(tokens=10.0, routed=8, per_token=2, local=8.0)), 2)
    7.55
    >>> round(float(distinct_experts(tokens=10.0, routed=8, per_token=2, local=8.0, variance=1.0)), 2)
    6.33
    """
    left_out = np.maximum(1.0 - np.asarray(per_token, dtype=float) / routed, TINIEST)
    first, further = np.minimum(np.maximum(tokens, 0.0), 1.0), np.maximum(np.asarray(tokens) - 1.0, 0.0)
    spread = np.maximum(variance, TINIEST)
    touched: Number = local * (1.0 - left_out**first * np.exp(-np.log1p(-spread * further * np.log(left_out)) / spread))
    return touched


def compiled_experts(
    *, tokens: Number, routed: Number, per_token: Number, local: Number, tile: Number
) -> tuple[Number, Number]:
    """Tokens that a compiled graph computes in a device's experts, and experts whose weights it reads.

    Few tokens read the experts of each in turn, `tokens * per_token`, once a token even where two pick the same. From
    as many as there are experts on, each expert gets whole blocks of `tile` tokens, and a graph holds the blocks of
    the worst case: one almost empty block for every expert but one, or every token in every expert if that is less.

    Source: aws-neuron/neuronx-distributed, modules/moe/expert_mlps.py (`forward_blockwise`: N = ceil((T * k - (E - 1))
    / B) + (E - 1) blocks; selective loading below a threshold of T * k / E = 1).

    >>> [float(value) for value in compiled_experts(tokens=4.0, routed=128, per_token=8, local=128.0, tile=512.0)]
    [32.0, 32.0]
    >>> [float(value) for value in compiled_experts(tokens=2048.0, routed=128, per_token=8, local=128.0, tile=512.0)]
    [81408.0, 128.0]
    """
    pairs = tokens * per_token * local / routed
    few = tokens * np.asarray(per_token) < routed
    blocks = np.minimum(pairs + (local - 1.0) * tile, tokens * local)
    return np.where(few, pairs, blocks), np.where(few, np.minimum(pairs, local), local)


def compressed_entries(*, past: Number, every: int, at_most: int | None) -> Number:
    """Entries of a compressed past that one query reads: one for `every` tokens, or what its indexer picks of them.

    >>> float(compressed_entries(past=131072.0, every=4, at_most=512))
    512.0
    >>> float(compressed_entries(past=131072.0, every=128, at_most=None))
    1024.0
    """
    entries = past / every
    return entries if at_most is None else np.minimum(entries, at_most)


def prefill_attention_flops(
    *, query_heads: Number, head_dims: Number, tokens: Number, past: Number, window: Number | None
) -> Number:
    """Scores and values of one sequence's `tokens` new tokens over `past` earlier ones, causal.

    `2 * heads * (d_qk + d_v) * tokens * mean span`, span `past + tokens / 2`, at most the window.

    Args:
        query_heads: on the device.
        head_dims: query-key plus value dimension of a head.
        tokens: new tokens of the sequence.
        past: tokens of the sequence already cached.
        window: tokens a query looks back at most; None: all.
    """
    span = past + tokens / 2.0
    if window is not None:
        span = np.minimum(span, window)
    return 2.0 * query_heads * head_dims * tokens * span


def decode_attention_flops(*, query_heads: Number, head_dims: Number, sequences: Number, context: Number) -> Number:
    """Scores and values of one new token of each of `sequences` over `context` tokens."""
    return 2.0 * query_heads * head_dims * sequences * context


def decode_attention_bytes(
    *, cache_elements: Number, element_bytes: Number, sequences: Number, context: Number
) -> Number:
    """The cache of every sequence, read once.

    >>> decode_attention_bytes(cache_elements=2048.0, element_bytes=2.0, sequences=4.0, context=1000.0)
    16384000.0
    """
    return cache_elements * element_bytes * sequences * context


def state_bytes(*, state_bytes_per_sequence: Number, sequences: Number, tokens: Number) -> Number:
    """Recurrent states read and written: once a decoding sequence, once a block of prefill tokens."""
    blocks = tokens / CHUNK_OF_LINEAR_ATTENTION
    return 2.0 * state_bytes_per_sequence * (sequences + blocks)


def elementwise_bytes(*, tokens: Number, hidden_size: Number) -> Number:
    """Norms, residuals and rotary of a layer: the hidden state moves 8 times in 2-byte elements."""
    return 2.0 * tokens * hidden_size * 8.0


def host_sampling_s(
    *, computed: Number, sampled: Number, vocab_size: Number, copy_s: Number, sample_s: Number
) -> Number:
    """Sampling on the host: logits of every computed sequence are copied there, those of the sampled ones sampled.

    `vocab * (computed * copy_s + sampled * sample_s)`.

    >>> round(host_sampling_s(computed=32.0, sampled=1.0, vocab_size=1e5, copy_s=4e-9, sample_s=2e-8), 4)
    0.0148
    """
    return vocab_size * (computed * copy_s + sampled * sample_s)


def padded(size: Number, multiple: Number) -> Number:
    """`size` as hardware computes it: the next whole multiple.

    >>> float(padded(24.0, 128.0)), float(padded(24.0, 1.0))
    (128.0, 24.0)
    """
    return np.ceil(np.asarray(size) / multiple) * multiple


def sampling_bytes(*, sequences: Number, vocab_size: Number) -> Number:
    """Logits in 4-byte elements, written, read by the softmax and by the sampler."""
    return 4.0 * 3.0 * sequences * vocab_size
