"""Latent attention with something added: A.X K2, HunYuan 4, dots3 Note, Mistral Large 4, GLM 5 Next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chipwise.model.blocks import (
    Block,
    Weights,
    assemble,
    hyper_connections,
    hyper_head,
    matrix,
    norm,
    norms,
    vector,
)
from chipwise.model.decoder import NORM_PAIR, Dims, causal_lm, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import mixture, with_weights
from chipwise.model.mla import Mla, indexer_of, mla_attention, mla_block, mla_of
from chipwise.model.recurrent import Kda, kimi_delta
from chipwise.model.spec import Attention

_A = "self_attn"


def _gate(shape: Mla, width: int, name: str = "gate_proj") -> Weights:
    return matrix(f"{_A}.{name}", (width, shape.hidden), "attention", units=shape.heads)


def _stack(keys: Keys, size: Dims, kinds: Sequence[str], mixers: Mapping[str, Block], more: Weights = ()) -> Draft:
    plan = side_by_side(keys, "layer_types", kinds, _ffn_plan(keys, size.layers))
    layers = assemble(plan, mixers, mixture(keys, size.hidden), (*norms(NORM_PAIR, size.hidden), *more))
    return causal_lm(keys, size, layers)


def _ffn_plan(keys: Keys, layers: int) -> list[str]:
    """As `moe_plan`; one dense layer first where nothing is said."""
    said = keys.has("mlp_layer_types", "first_k_dense_replace")
    return moe_plan(keys if said else keys.also(first_k_dense_replace=1), layers)


def axk2(keys: Keys) -> Draft:
    """A.X K2: an indexer in every layer, queries and gates from one matrix, low-rank gates on the norms."""
    size = dims(keys, ffn=False)
    shape = mla_of(keys, size.hidden, bias=keys.flag("attention_bias"))
    block = mla_block(shape, indexer=indexer_of(keys))
    width = shape.heads * (shape.nope_dim + shape.rope_dim + shape.value_dim)
    fused = matrix(f"{_A}.q_gate_proj", (width, 2 * shape.q_lora_rank), "attention", units=shape.heads)
    kept = tuple(weight for weight in block.weights if not weight.name.endswith(".q_b_proj"))
    mixer = replace(block, weights=(*kept, *fused, *_norm_gate(keys, size, "input_layernorm")))
    ffns = mixture(keys, size.hidden)
    ffns["moe"] = with_weights(ffns["moe"], _norm_gate(keys, size, "post_attention_layernorm"))
    plan = [("mla", kind) for kind in _ffn_plan(keys, size.layers)]
    return causal_lm(keys, size, assemble(plan, {"mla": mixer}, ffns, norms(NORM_PAIR, size.hidden)))


def _norm_gate(keys: Keys, size: Dims, name: str) -> Weights:
    rank = keys.size("gated_norm_rank", default=16)
    return (
        *matrix(f"{name}.mlp.fc1", (rank, size.hidden), "other"),
        *matrix(f"{name}.mlp.fc2", (size.hidden, rank), "other"),
    )


def hy_v4(keys: Keys) -> Draft:
    """HunYuan 4: sinks, gates as wide as the values, several residual streams, one indexer for a few layers."""
    keys.need(("hc_mult",))
    size = dims(keys, ffn=False)
    shape = mla_of(keys, size.hidden, bias=keys.flag("attention_bias"))
    sinks = vector(f"{_A}.sinks", shape.heads, "attention", units=shape.heads)
    more = (sinks, *_gate(shape, shape.heads * shape.value_dim))
    sparse = keys.maybe("index_topk")
    without = Block(weights=mla_block(shape, more).weights, attention=mla_attention(shape, sparse_tokens=sparse))
    mixers = {"full": mla_block(shape, more, indexer_of(keys)), "shared": without}
    streams = keys.size("hc_mult")
    hyper = hyper_connections(streams, size.hidden, outputs=2 * streams, scales=2)
    draft = _stack(keys, size, _index_kinds(keys, size.layers), mixers, hyper)
    return replace(draft, outer=(*draft.outer, *hyper_head(streams, size.hidden)))


def _index_kinds(keys: Keys, layers: int) -> list[str]:
    listed = keys.items("indexer_types")
    return ["shared" if item == "shared" else "full" for item in listed[:layers]] if listed else ["full"] * layers


def dots3_note(keys: Keys) -> Draft:
    """dots3 Note: layers with an indexer and windowed ones, a norm over the rotary key, a gate for each head."""
    size = dims(keys, ffn=False)
    shape = mla_of(keys, size.hidden, bias=keys.flag("attention_bias"))
    more = (*_gate(shape, shape.heads, "g_proj"), *norm(f"{_A}.k_rope_only_layernorm", shape.rope_dim))
    window = mla_block(shape, more)
    mixers = {
        "indexed": mla_block(shape, more, indexer_of(keys)),
        "sliding": replace(window, attention=windowed_latent(shape, keys.size("sliding_window"))),
    }
    kinds = ["sliding" if item == "sliding_attention" else "indexed" for item in keys.items("layer_types")]
    return _stack(keys, size, (kinds or ["indexed"] * size.layers)[: size.layers], mixers)


def windowed_latent(shape: Mla, window_tokens: int) -> Attention:
    """The attention of a latent that is kept for a window only: one head of `kv_lora_rank + rope_dim`."""
    return replace(
        mla_attention(shape),
        kind="sliding",
        head_dim=shape.kv_lora_rank + shape.rope_dim,
        value_head_dim=shape.kv_lora_rank,
        values_cached=False,
        window_tokens=window_tokens,
    )


def mistral_large4(keys: Keys) -> Draft:
    """Mistral Large 4: layers without positions between, indexers that read the hidden state, learned scales."""
    size = dims(keys, ffn=False)
    roped = [bool(item) for item in keys.items("no_rope_layers")[: size.layers]] or [True] * size.layers
    own = keys.sizes("kv_source_layers") or tuple(range(size.layers))
    indexed = _index_kinds(keys, size.layers)
    labels = [
        f"{'rope' if rope else 'nope'}/{kind}{'' if source == index else '/shared'}"
        for index, (rope, source, kind) in enumerate(side_by_side(keys, "no_rope_layers", roped, own, indexed))
    ]
    mixers = {label: _large4_mixer(keys, size, label) for label in set(labels)}
    draft = _stack(keys, size, labels, mixers)
    alpha = vector("rotary_emb.alpha", keys.size("qk_rope_head_dim") // 2, "other")
    return replace(draft, outer=(*draft.outer, alpha))


def _large4_mixer(keys: Keys, size: Dims, label: str) -> Block:
    position, index, *shared = label.split("/")
    shape = mla_of(keys.also(q_lora_rank=0), size.hidden, bias=keys.flag("attention_bias"))
    if position == "nope":
        shape = replace(shape, nope_dim=shape.nope_dim + shape.rope_dim, rope_dim=0)
    scale = vector(f"{_A}.softmax_scaling", 2 * shape.heads, "attention", units=shape.heads)
    indexer = indexer_of(keys) if index == "full" else None
    own: Weights = ()
    if indexer:
        own = (
            *norm(f"{_A}.indexer.q_input_norm", shape.hidden, "layer"),
            vector(f"{_A}.indexer.softmax_scaling", 2 * indexer.heads, "attention"),
        )
    block = mla_block(shape, (scale, *own), indexer)
    if shared:
        kept = tuple(weight for weight in block.weights if ".kv_a_" not in weight.name)
        return Block(weights=kept, attention=replace(block.attention, kind="shared"))
    return block


def glm5_next(keys: Keys) -> Draft:
    """GLM 5 Next: Kimi delta attention, latent attention whose indexer pools its keys, several residual streams."""
    keys.need(("hc_mult",), ("linear_num_heads",), ("linear_head_dim",))
    size = dims(keys.also(head_dim=None), ffn=False)
    shape = mla_of(keys, size.hidden, bias=keys.flag("attention_bias"))
    indexer = indexer_of(keys)
    pool, dim = keys.size("index_kpool", default=1), keys.size("index_head_dim", default=0)
    pooling = (
        vector(f"{_A}.indexer.index_kpool_compress_ape", pool * dim, "attention"),
        *matrix(f"{_A}.indexer.index_kpool_compress_gate", (dim, size.hidden), "attention"),
    )
    linear = Kda(
        hidden=size.hidden,
        heads=keys.size("linear_num_heads"),
        dim=keys.size("linear_head_dim"),
        kernel=keys.size("linear_conv_kernel_dim", default=4),
    )
    mixers = {"mla": mla_block(shape, pooling if indexer else (), indexer), "linear": kimi_delta(linear)}
    kinds = ["linear" if item == "linear_attention" else "mla" for item in keys.items("layer_types")[: size.layers]]
    if not kinds:
        raise keys.missing(f"{keys.path}layer_types")
    streams = keys.size("hc_mult")
    hyper = hyper_connections(streams, size.hidden, outputs=streams * (streams + 2), scales=3)
    return _stack(keys, size, kinds, mixers, hyper)


READERS = {
    "axk2": axk2,
    "hy_v4": hy_v4,
    "hy_v4_vl_text": hy_v4,
    "dots3_note_text": dots3_note,
    "mistral_large4_text": mistral_large4,
    "glm5_next_text": glm5_next,
}
