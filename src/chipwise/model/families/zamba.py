"""Zamba 1 and 2: Mamba in every layer; some also pass through one of a few shared transformer blocks."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    Projections,
    Weights,
    assemble,
    attention_weights,
    conv,
    matrix,
    mlp,
    norm,
    tied,
    vector,
)
from chipwise.model.decoder import Dims, Style, causal_lm
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.recurrent import Mamba2, mamba2, recurrent_attention, state_bytes

_NOTHING = {"none": Block()}


def zamba2(keys: Keys) -> Draft:
    """Zamba 2: the shared blocks read hidden state and embedding side by side, twice as wide."""
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, k.VOCAB, k.FFN)
    hidden, count = keys.size(*k.HIDDEN, least=1), keys.layers()
    query = keys.size("num_attention_heads", least=1)
    dim = keys.maybe("attention_head_dim") or 2 * hidden // query
    heads = Heads(hidden=2 * hidden, query=query, kv=keys.size("num_key_value_heads", default=query), dim=dim)
    ssm = mamba2(_mamba(keys, hidden))
    shared = _shared(keys, heads, hidden)
    own = (*_adapters(keys, hidden), *matrix("linear", (hidden, hidden), "other"))
    attention = replace(heads.attention(), state_bytes_per_sequence=ssm.attention.state_bytes_per_sequence)
    mixers = {
        "mamba": Block(weights=(*ssm.weights, *norm("input_layernorm", hidden)), attention=ssm.attention),
        "hybrid": Block(
            weights=(*ssm.weights, *norm("input_layernorm", hidden), *own, *map(tied, shared)), attention=attention
        ),
    }
    plan = [(kind, "none") for kind in _kinds(keys, count)]
    size = Dims(hidden=hidden, layers=count, heads=heads, ffn=0, vocab=keys.size(*k.VOCAB))
    draft = causal_lm(keys, size, assemble(plan, mixers, _NOTHING), Style(tied=True))
    copies = keys.size("num_mem_blocks", default=1)
    return replace(draft, outer=(*draft.outer, *(shared * copies)))


def _kinds(keys: Keys, count: int) -> list[str]:
    listed = keys.items("layers_block_type", "layer_types")
    if listed:
        return ["hybrid" if item == "hybrid" else "mamba" for item in listed[:count]]
    full = set(keys.sizes("hybrid_layer_ids"))
    if not full:
        raise keys.missing("layers_block_type or hybrid_layer_ids")
    return ["hybrid" if index in full else "mamba" for index in range(count)]


def _mamba(keys: Keys, hidden: int) -> Mamba2:
    heads = keys.size("n_mamba_heads", least=1)
    return Mamba2(
        hidden=hidden,
        heads=heads,
        head_dim=keys.size("mamba_expand", default=2) * hidden // heads,
        state=keys.size("mamba_d_state", "state_size", default=64),
        groups=keys.size("mamba_ngroups", default=1),
        kernel=keys.size("mamba_d_conv", default=4),
        bias=keys.flag("add_bias_linear"),
        conv_bias=keys.flag("use_conv_bias", default=True),
        prefix="mamba",
    )


def _shared(keys: Keys, heads: Heads, hidden: int) -> Weights:
    inside = tuple(
        replace(weight, out_features=hidden) if weight.name.endswith("o_proj") else weight
        for weight in attention_weights(heads, Projections(prefix="shared_transformer.self_attn"))
    )
    return (
        *inside,
        *mlp(hidden, keys.size(*k.FFN), prefix="shared_transformer.feed_forward"),
        *norm("shared_transformer.input_layernorm", 2 * hidden),
        *norm("shared_transformer.pre_ff_layernorm", hidden),
    )


def _adapters(keys: Keys, hidden: int) -> Weights:
    """Each use of a shared block has low-rank matrices of its own over the MLP, and over Q, K, V where said."""
    rank = keys.size("adapter_rank", default=128)
    out: Weights = (
        *matrix("gate_up_proj_adapter.0", (rank, hidden), "mlp"),
        *matrix("gate_up_proj_adapter.1", (2 * keys.size(*k.FFN), rank), "mlp"),
    )
    if keys.flag("use_shared_attention_adapter"):
        for name in ("q", "k", "v"):
            out += matrix(f"linear_{name}_adapter.0", (rank, 2 * hidden), "attention")
            out += matrix(f"linear_{name}_adapter.1", (2 * hidden, rank), "attention")
    return out


def zamba(keys: Keys) -> Draft:
    """Zamba 1: heads of Mamba 1, one shared block before every sixth layer, a matrix of the layer's own behind."""
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, k.VOCAB, k.FFN)
    hidden, count = keys.size(*k.HIDDEN, least=1), keys.layers()
    query = keys.size("num_attention_heads", least=1)
    wide = keys.maybe("attention_hidden_size") or 2 * hidden
    dim = keys.maybe("attention_head_dim") or 2 * hidden // query
    heads = Heads(hidden=wide, query=query, kv=keys.size("num_key_value_heads", default=query), dim=dim)
    ssm = _headed_mamba(keys, hidden)
    shared = _shared(keys, heads, hidden)
    own = matrix("linear", (hidden, hidden), "other")
    attention = replace(heads.attention(), state_bytes_per_sequence=ssm.attention.state_bytes_per_sequence)
    around = (*ssm.weights, *norm("input_layernorm", hidden))
    mixers = {
        "mamba": Block(weights=around, attention=ssm.attention),
        "hybrid": Block(weights=(*around, *own, *map(tied, shared)), attention=attention),
    }
    plan = [(kind, "none") for kind in _periodic(keys, count)]
    size = Dims(hidden=hidden, layers=count, heads=heads, ffn=0, vocab=keys.size(*k.VOCAB))
    draft = causal_lm(keys, size, assemble(plan, mixers, _NOTHING), Style(tied=True))
    return replace(draft, outer=(*draft.outer, *shared))


def _periodic(keys: Keys, count: int) -> list[str]:
    if keys.items("layers_block_type", "layer_types"):
        return _kinds(keys, count)
    every, first = keys.size("attn_layer_period", default=6, least=1), keys.size("attn_layer_offset", default=4)
    rest = ["hybrid" if index % every == first else "mamba" for index in range(max(count - 3, 0))]
    return ["mamba", "mamba", "hybrid", *rest]


def _headed_mamba(keys: Keys, hidden: int) -> Block:
    """Mamba 1 cut into heads, each with a step, B and C of its own."""
    inner, heads = keys.size("mamba_expand", default=2) * hidden, keys.size("n_mamba_heads", default=2, least=1)
    state, kernel = keys.size("mamba_d_state", default=16), keys.size("mamba_d_conv", default=4)
    rank = keys.raw("mamba_dt_rank")
    rank = rank if isinstance(rank, int) else -(-hidden // 16)
    bias = keys.flag("mamba_proj_bias")
    weights = (
        *matrix("mamba.in_proj", (2 * inner, hidden), "attention", bias=bias, units=heads),
        *conv("mamba.conv1d", (inner, 1), kernel, bias=keys.flag("mamba_conv_bias", default=True), part="attention"),
        *matrix("mamba.x_proj", (rank + 2 * state, inner), "attention", units=heads, cut="in"),
        *matrix("mamba.dt_proj", (inner, rank), "attention", bias=True, units=heads),
        vector("mamba.A_log", inner * state, "attention", units=heads),
        vector("mamba.D", inner, "attention", units=heads),
        *matrix("mamba.out_proj", (hidden, inner), "attention", bias=bias, units=heads, cut="in"),
    )
    kept = state_bytes(recurrent=inner * state, channels=inner, kernel=kernel)
    return Block(weights=weights, attention=recurrent_attention("mamba", 0, 0, kept))


READERS = {"zamba": zamba, "zamba2": zamba2}
