"""MiniMax M1 (lightning attention), M2 (norms over all heads), M3 (block-sparse attention with an indexer)."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Projections, Weights, assemble, attention_weights, matrix, norm, norms
from chipwise.model.decoder import NORM_PAIR, Dims, Style, causal_lm, decoder, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture
from chipwise.model.recurrent import recurrent_attention


def minimax(keys: Keys) -> Draft:
    """MiniMax-Text-01 and M1: lightning attention but for some full layers, every MLP a choice of experts."""
    size = dims(keys)
    heads = size.heads
    mixers = {
        "full": Block(weights=attention_weights(heads), attention=heads.attention()),
        "linear": _lightning(size),
    }
    listed = keys.items("layer_types")
    types = keys.items("attn_type_list")
    if types:
        kinds = ["full" if item == 1 else "linear" for item in types]
    elif listed:
        kinds = ["linear" if "linear" in str(item) else "full" for item in listed]
    else:
        kinds = ["full" if index % 2 == 0 else "linear" for index in range(size.layers)]
    mix = Mix(width=k.FFN)
    ffns = {"moe": mixture(keys, size.hidden, mix)["moe"]}
    plan = [(kind, "moe") for kind in kinds[: size.layers]]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _lightning(size: Dims) -> Block:
    heads, inner = size.heads, size.heads.query * size.heads.dim
    weights: Weights = (
        *matrix("self_attn.qkv_proj", (3 * inner, size.hidden), "attention", units=heads.query),
        *matrix("self_attn.output_gate", (inner, size.hidden), "attention", units=heads.query),
        *matrix("self_attn.out_proj", (size.hidden, inner), "attention", units=heads.query, cut="in"),
        *norm("self_attn.norm", inner),
    )
    state = heads.query * heads.dim * heads.dim * 4
    return Block(weights=weights, attention=recurrent_attention("linear", heads.query, heads.dim, state))


def minimax_m2(keys: Keys) -> Draft:
    """MiniMax M2: experts of the full width in every layer, norms over all heads."""
    size = dims(keys)
    style = Style(qk_norm="head" if keys.text("qk_norm_type") == "per_head" else "full")
    mix = Mix(width=k.FFN, prefix="block_sparse_moe", router="block_sparse_moe.gate")
    return decoder(keys, style, ffns={"moe": mixture(keys, size.hidden, mix)["moe"]})


def minimax_m3(keys: Keys) -> Draft:
    """MiniMax M3: dense layers first, a shared expert, and an indexer in the sparse layers."""
    size = dims(keys, ffn=False)
    heads = size.heads
    plain = attention_weights(heads, Projections(qk_norm="head"))
    index = _index_weights(keys, size)
    mixers = {
        "full": Block(weights=plain, attention=heads.attention()),
        "sparse": Block(
            weights=(*plain, *index[0]),
            attention=replace(heads.attention(), indexer_dim=index[1], sparse_tokens=index[2]),
        ),
    }
    mix = Mix(
        width=("moe_intermediate_size", "intermediate_size"),
        shared=("shared_intermediate_size",),
        prefix="block_sparse_moe",
        router="block_sparse_moe.gate",
    )
    ffns = mixture(keys, size.hidden, mix, dense=("dense_intermediate_size", *k.FFN))
    plan = side_by_side(keys, "moe_layer_freq", _sparse_plan(keys, size), moe_plan(keys, size.layers))
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _sparse_plan(keys: Keys, size: Dims) -> list[str]:
    flags = keys.mapping("sparse_attention_config").get("sparse_attention_freq")
    listed = keys.items("layer_types")
    if isinstance(flags, list):
        return ["sparse" if flag else "full" for flag in flags[: size.layers]]
    if listed:
        return ["full" if item == "full_attention" else "sparse" for item in listed[: size.layers]]
    return ["full"] * size.layers


def _index_weights(keys: Keys, size: Dims) -> tuple[Weights, int, int | None]:
    """Weights of the indexer, elements it keeps a token, how many tokens a query then reads."""
    inner = keys.mapping("sparse_attention_config")
    known = keys.also(
        index_head_dim=inner.get("sparse_index_dim") or keys.raw("index_head_dim"),
        index_n_heads=inner.get("sparse_num_index_heads") or keys.raw("index_n_heads"),
        index_block_size=inner.get("sparse_block_size") or keys.raw("index_block_size"),
        index_topk_blocks=inner.get("sparse_topk_blocks") or keys.raw("index_topk_blocks"),
    )
    heads, dim = known.size("index_n_heads", default=0), known.size("index_head_dim", default=0)
    if not heads or not dim:
        return (), 0, None
    weights = (
        *matrix("self_attn.index_q_proj", (heads * dim, size.hidden), "attention"),
        *matrix("self_attn.index_k_proj", (dim, size.hidden), "attention"),
        *norms(("self_attn.index_q_norm", "self_attn.index_k_norm"), dim),
    )
    read = known.size("index_topk_blocks", default=0) * known.size("index_block_size", default=0)
    return weights, dim, read


READERS = {
    "minimax": minimax,
    "minimax_text_01": minimax,
    "minimax_m1": minimax,
    "minimax_m2": minimax_m2,
    "minimax_m3": minimax_m3,
    "minimax_m3_vl_text": minimax_m3,
}
