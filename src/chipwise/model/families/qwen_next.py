"""Qwen 3-Next and 3.5: three layers of gated delta rule to each layer of gated attention."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import (
    Block,
    Projections,
    Weights,
    assemble,
    attention_weights,
    matrix,
    mlp,
    norm,
    norms,
)
from chipwise.model.decoder import NORM_PAIR, Dims, Style, attention_mixers, causal_lm, dims, moe_plan
from chipwise.model.draft import Draft, stack
from chipwise.model.families.qwen import QWEN2_MIX
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture
from chipwise.model.nested import part_keys, read_part
from chipwise.model.recurrent import Delta, gated_delta
from chipwise.model.spec import Layer


def delta_of(keys: Keys, hidden: int) -> Delta:
    """The shape of the linear layers."""
    names = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    keys.need(*((f"linear_{name}",) for name in names))
    values = [keys.size(f"linear_{name}") for name in names]
    return Delta(
        hidden=hidden,
        key_heads=values[0],
        value_heads=values[1],
        key_dim=values[2],
        value_dim=values[3],
        kernel=values[4],
    )


def gated_attention(keys: Keys, size: Dims) -> Block:
    """Full attention whose query projection makes a gate of the same width."""
    style = Projections(bias="qkvo" if keys.flag("attention_bias") else "", qk_norm="head")
    width = size.heads.query * size.heads.dim
    gate = matrix("self_attn.q_proj_gate", (width, size.hidden), "attention", units=size.heads.query)
    return Block(weights=(*attention_weights(size.heads, style), *gate), attention=size.heads.attention())


def linear_plan(keys: Keys, layers: int) -> list[str]:
    """`layer_types`, else every `full_attention_interval`-th (4th) layer is full."""
    listed = keys.items("layer_types", "layers_block_type")
    if listed:
        return ["linear" if "linear" in str(item) else "full" for item in listed[:layers]]
    every = keys.size("full_attention_interval", default=4) or 4
    return ["full" if (index + 1) % every == 0 else "linear" for index in range(layers)]


def hybrid(keys: Keys, size: Dims, ffns: dict[str, Block], plan: list[str]) -> Draft:
    """The stack of both kinds, with its multi-token-prediction layers."""
    mixers = {"full": gated_attention(keys, size), "linear": gated_delta(delta_of(keys, size.hidden))}
    kinds = side_by_side(keys, "layer_types", linear_plan(keys, size.layers), plan)
    layers = assemble(kinds, mixers, ffns, norms(NORM_PAIR, size.hidden))
    draft = causal_lm(keys, size, layers)
    last = mixers["full"], ffns[plan[-1] if plan else "dense"]
    return replace(draft, mtp=_mtp(keys, size, *last))


def _mtp(keys: Keys, size: Dims, mixer: Block, ffn: Block) -> tuple[Layer, ...]:
    count = keys.size("mtp_num_hidden_layers", default=0)
    shared: Weights = (
        *matrix("fc", (size.hidden, 2 * size.hidden), "other"),
        *norms(("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"), size.hidden),
    )
    weights = (*mixer.weights, *ffn.weights, *norms(NORM_PAIR, size.hidden), *shared)
    return tuple(replace(layer, experts=ffn.experts) for layer in stack(count, weights, mixer.attention))


def qwen3_next(keys: Keys) -> Draft:
    """Qwen 3-Next and Qwen 3.5 MoE: every feed-forward is a mixture with a gated shared expert."""
    size = dims(keys, ffn=False)
    return hybrid(keys, size, mixture(keys, size.hidden, QWEN2_MIX), moe_plan(keys, size.layers))


def qwen3_5(keys: Keys) -> Draft:
    """Qwen 3.5, dense."""
    size = dims(keys)
    return hybrid(keys, size, {"dense": Block(weights=mlp(size.hidden, size.ffn))}, ["dense"] * size.layers)


def lara_mini(keys: Keys) -> Draft:
    """Lara Mini: gated delta rule, windowed and full attention by `layer_types`, a shared expert without a gate."""
    if not keys.items("layer_types"):
        raise keys.missing(f"{keys.path}layer_types")
    size = dims(keys, ffn=False)
    mixers = {
        **attention_mixers(
            keys, size.heads, Projections(bias="qkvo" if keys.flag("attention_bias") else "", qk_norm="head")
        ),
        "linear": gated_delta(delta_of(keys, size.hidden)),
    }
    words = {"linear_attention": "linear", "sliding_attention": "sliding"}
    kinds = [words.get(str(item), "full") for item in keys.items("layer_types")[: size.layers]]
    mix = Mix(shared=("shared_expert_intermediate_size",), shared_name="mlp.shared_expert")
    ffns = {"moe": mixture(keys, size.hidden, mix)["moe"]}
    plan = [(kind, "moe") for kind in kinds]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def jev(keys: Keys) -> Draft:
    """Jev: Qwen 3.5 that answers with one of `num_verbalizers` words."""
    text = read_part(part_keys(keys, "text_config", default="qwen3_5_text", head="Model"))
    words = matrix("proj", (keys.size("num_verbalizers", default=24), text.hidden_size), "head", bias=True)
    return replace(text, outer=(*text.outer, *words))


def qwen4_exp(keys: Keys) -> Draft:
    """Qwen 4 Exp: Qwen 3.5 MoE with several residual streams; full layers pick what they read with an indexer."""
    if keys.items("ple_layer_ids"):
        raise keys.missing(f"{keys.path}ple_layer_ids' tables of n-grams (their rows are primes)")
    keys.need(("hc_count",), ("hc_lowrank",), ("indexer_n_heads",), ("indexer_head_dim",))
    size = dims(keys, ffn=False)
    mixers = {"full": _indexed(keys, gated_attention(keys, size)), "linear": gated_delta(delta_of(keys, size.hidden))}
    kinds = side_by_side(keys, "layer_types", linear_plan(keys, size.layers), moe_plan(keys, size.layers))
    streams = tuple(weight for name in ("attn", "mlp") for weight in _streams(keys, f"{name}_hyper_connection", size))
    inject = tuple(
        weight
        for name in ("attn", "mlp")
        for weight in matrix(
            f"{name}_hyper_connection.block_inject_weight",
            (keys.size("hc_count"), keys.size("hc_count") * size.hidden),
            "other",
        )
    )
    layers = assemble(kinds, mixers, mixture(keys, size.hidden, QWEN2_MIX), (*streams, *inject))
    draft = causal_lm(keys, size, layers, Style(final_norm=False))
    return replace(draft, outer=(*draft.outer, *_streams(keys, "hyper_connection_mixer", size)))


def _streams(keys: Keys, at: str, size: Dims) -> Weights:
    """What makes one input of all residual streams: a norm over all of them and a low-rank mix."""
    wide, rank = keys.size("hc_count") * size.hidden, keys.size("hc_lowrank")
    return (
        *norm(f"{at}.hc_norm", wide),
        *matrix(f"{at}.input_mix_weight_down", (rank, wide), "other"),
        *matrix(f"{at}.input_mix_weight_up", (wide, rank), "other"),
    )


def _indexed(keys: Keys, block: Block) -> Block:
    heads, kv = keys.size("indexer_n_heads"), keys.size("indexer_kv_heads", default=1)
    dim, every = keys.size("indexer_head_dim"), keys.size("indexer_compress_ratio", default=1, least=1)
    at = "self_attn.indexer"
    weights = (
        *matrix(f"{at}.index_qk_proj", ((heads + kv) * dim, keys.size("hidden_size")), "attention"),
        *norms((f"{at}.q_layernorm", f"{at}.k_layernorm"), dim),
    )
    attention = replace(block.attention, indexer_dim=kv * dim // every, sparse_tokens=keys.maybe("indexer_budget"))
    return Block(weights=(*block.weights, *weights), attention=attention)


READERS = {
    "qwen4_exp_text": qwen4_exp,
    "qwen3_next": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
    "qwen3_5_text": qwen3_5,
    "lara_mini": lara_mini,
    "jev": jev,
}
