"""Pure state-space and recurrent models: Mamba 1 and 2, Falcon-Mamba, RWKV, RecurrentGemma, Jamba, Zamba."""

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
    matrix,
    mlp,
    norm,
    norms,
    vector,
)
from chipwise.model.decoder import Dims, Style, causal_lm, dims
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys, divide
from chipwise.model.mixture import Mix, mixture
from chipwise.model.recurrent import (
    STATE_BYTES,
    Mamba1,
    Mamba2,
    mamba1,
    mamba2,
    recurrent_attention,
    state_bytes,
)

_EMPTY = {"none": Block()}
_NO_HEADS = Heads(hidden=0, query=0, kv=0, dim=0)


def _stateful(keys: Keys) -> Dims:
    keys.need(k.HIDDEN, k.LAYERS, k.VOCAB)
    hidden = keys.size(*k.HIDDEN, least=1)
    return Dims(hidden=hidden, layers=keys.layers(), heads=_NO_HEADS, ffn=0, vocab=keys.size(*k.VOCAB))


def _alone(keys: Keys, size: Dims, mixer: Block, style: Style) -> Draft:
    plan = [("mixer", "none")] * size.layers
    layers = assemble(plan, {"mixer": mixer}, _EMPTY, norms(("norm",), size.hidden))
    return causal_lm(keys, size, layers, style)


def _rank(keys: Keys, name: str, hidden: int) -> int:
    value = keys.raw(name)
    return value if isinstance(value, int) else -(-hidden // 16)


def pure_mamba1(keys: Keys) -> Draft:
    """Mamba 1 and Falcon-Mamba; the step rank is hidden / 16 where it is `auto`."""
    size = _stateful(keys)
    inner = keys.maybe("intermediate_size", "d_inner") or keys.size("expand", default=2) * size.hidden
    shape = Mamba1(
        hidden=size.hidden,
        inner=inner,
        state=keys.size("state_size"),
        rank=_rank(keys, "time_step_rank", size.hidden),
        kernel=keys.size("conv_kernel"),
        bias=keys.flag("use_bias"),
        conv_bias=keys.flag("use_conv_bias", default=True),
    )
    return _alone(keys, size, mamba1(shape), Style(tied=True))


def pure_mamba2(keys: Keys) -> Draft:
    """Mamba 2."""
    size = _stateful(keys)
    keys.need(("state_size",), ("n_groups",), ("conv_kernel",))
    head_dim = keys.size("head_dim", default=64)
    heads = keys.maybe("num_heads") or divide(keys, keys.size("expand", default=2) * size.hidden, head_dim, "head_dim")
    shape = Mamba2(
        hidden=size.hidden,
        heads=heads,
        head_dim=head_dim,
        state=keys.size("state_size"),
        groups=keys.size("n_groups"),
        kernel=keys.size("conv_kernel"),
        bias=keys.flag("use_bias"),
        conv_bias=keys.flag("use_conv_bias", default=True),
    )
    return _alone(keys, size, mamba2(shape), Style())


def jamba(keys: Keys) -> Draft:
    """Jamba: attention every `attn_layer_period`, experts every `expert_layer_period`, Mamba 1 with inner norms."""
    size = dims(keys)
    names = ("attn_layer_period", "attn_layer_offset", "expert_layer_period", "expert_layer_offset")
    keys.need(*((name,) for name in names))
    a_every, a_first, e_every, e_first = (keys.size(name) for name in names)
    shape = Mamba1(
        hidden=size.hidden,
        inner=keys.size("mamba_expand", default=2) * size.hidden,
        state=keys.size("mamba_d_state"),
        rank=_rank(keys, "mamba_dt_rank", size.hidden),
        kernel=keys.size("mamba_d_conv"),
        bias=keys.flag("mamba_proj_bias"),
        conv_bias=keys.flag("mamba_conv_bias", default=True),
        inner_norms=True,
        prefix="mamba",
    )
    mixers = {
        "full": Block(weights=attention_weights(size.heads), attention=size.heads.attention()),
        "mamba": mamba1(shape),
    }
    plan = [
        ("full" if index % a_every == a_first else "mamba", "moe" if index % e_every == e_first else "dense")
        for index in range(size.layers)
    ]
    mix = Mix(width=k.FFN, prefix="feed_forward", router="feed_forward.router")
    ffns = mixture(keys, size.hidden, mix) if keys.size(*k.EXPERTS, default=1) > 1 else _dense(size)
    around = norms(("input_layernorm", "pre_ff_layernorm"), size.hidden)
    return causal_lm(keys, size, assemble(plan, mixers, ffns, around))


def _dense(size: Dims) -> dict[str, Block]:
    block = Block(weights=mlp(size.hidden, size.ffn, prefix="feed_forward"))
    return {"dense": block, "moe": block}


def recurrent_gemma(keys: Keys) -> Draft:
    """RecurrentGemma: two gated linear recurrences to each layer of windowed attention."""
    size = dims(keys)
    lru = keys.size("lru_width", default=size.hidden)
    kernel = keys.size("conv1d_width", default=4)
    window = keys.size("attention_window_size", "sliding_window")
    bias = "qkvo" if keys.flag("attention_bias") else "o"
    mixers = {
        "attention": Block(
            weights=attention_weights(size.heads, Projections(bias=bias, prefix="temporal_block")),
            attention=size.heads.attention("sliding", window_tokens=window),
        ),
        "recurrent": Block(
            weights=_lru_weights(size.hidden, lru, size.heads.query, kernel),
            attention=recurrent_attention("linear", 0, 0, state_bytes(recurrent=lru, channels=lru, kernel=kernel)),
        ),
    }
    pattern = keys.items("block_types", "_block_types") or ["recurrent", "recurrent", "attention"]
    plan = [(str(pattern[index % len(pattern)]), "dense") for index in range(size.layers)]
    ffn = Block(weights=mlp(size.hidden, size.ffn // 2, bias=True, prefix="mlp_block"))
    around = norms(("temporal_pre_norm", "channel_pre_norm"), size.hidden)
    layers = assemble(plan, mixers, {"dense": ffn}, around)
    return causal_lm(keys, size, layers, Style(tied=True))


def _lru_weights(hidden: int, lru: int, heads: int, kernel: int) -> Weights:
    block = lru // max(heads, 1)
    at = "temporal_block"
    gates = tuple(
        weight
        for name in ("input_gate", "recurrent_gate")
        for weight in matrix(f"{at}.rg_lru.{name}", (lru, block), "attention", bias=True, units=heads)
    )
    return (
        *matrix(f"{at}.linear_y", (lru, hidden), "attention", bias=True, units=lru),
        *matrix(f"{at}.linear_x", (lru, hidden), "attention", bias=True, units=lru),
        *matrix(f"{at}.linear_out", (hidden, lru), "attention", bias=True, units=lru, cut="in"),
        vector(f"{at}.conv_1d", lru * (kernel + 1), "attention"),
        vector(f"{at}.rg_lru.recurrent_param", lru, "attention"),
        *gates,
    )


def rwkv4(keys: Keys) -> Draft:
    """RWKV 4: a state of five vectors a layer."""
    size = _stateful(keys)
    inner = keys.size("attention_hidden_size", default=size.hidden)
    width = keys.size("intermediate_size", default=4 * size.hidden)
    h = size.hidden
    weights: Weights = (
        *(w for name in ("key", "value", "receptance") for w in matrix(f"attention.{name}", (inner, h), "attention")),
        *matrix("attention.output", (h, inner), "attention"),
        vector("attention.time", 2 * inner + 3 * h, "attention"),
        *matrix("feed_forward.key", (width, h), "mlp"),
        *matrix("feed_forward.receptance", (h, h), "mlp"),
        *matrix("feed_forward.value", (h, width), "mlp"),
        vector("feed_forward.time_mix", 2 * h, "mlp"),
    )
    block = Block(weights=weights, attention=recurrent_attention("linear", 0, 0, 5 * h * 4))
    return _rwkv(keys, size, block)


def _rwkv(keys: Keys, size: Dims, block: Block) -> Draft:
    around = norms(("ln1", "ln2"), size.hidden, "layer")
    layers = assemble([("mixer", "none")] * size.layers, {"mixer": block}, _EMPTY, around)
    draft = causal_lm(keys, size, layers, Style(norm="layer"))
    return replace(draft, outer=(*draft.outer, *norms(("pre_ln",), size.hidden, "layer")))


def rwkv5(keys: Keys) -> Draft:
    """RWKV 5: a matrix state a head of `head_size`; the head is never tied, whatever the config says."""
    size = _stateful(keys)
    head = keys.size("head_size", default=64)
    h, inner = size.hidden, keys.size("attention_hidden_size", default=size.hidden)
    width = keys.size("intermediate_size", default=int(h * 3.5) // 32 * 32)
    heads = divide(keys, inner, head, "attention_hidden_size")
    names = ("key", "value", "receptance", "gate")
    weights: Weights = (
        *(w for name in names for w in matrix(f"attention.{name}", (inner, h), "attention", units=heads)),
        *matrix("attention.output", (h, inner), "attention", units=heads, cut="in"),
        vector("attention.time", 2 * inner + 4 * h, "attention"),
        *norms(("attention.ln_x",), inner, "layer"),
        *matrix("feed_forward.key", (width, h), "mlp"),
        *matrix("feed_forward.receptance", (h, h), "mlp"),
        *matrix("feed_forward.value", (h, width), "mlp"),
        vector("feed_forward.time_mix", 2 * h, "mlp"),
    )
    state = heads * head * head * 4 + 2 * h * 2
    block = Block(weights=weights, attention=recurrent_attention("linear", heads, head, state))
    return _rwkv(keys.also(tie_word_embeddings=False), size, block)


def xlstm(keys: Keys) -> Draft:
    """xLSTM: a matrix of memory for each head, scalar gates, a gated MLP; no cache but the state."""
    known = keys.also(num_hidden_layers=keys.raw("num_hidden_layers", "num_blocks"))
    size = _stateful(known)
    heads = keys.size("num_heads", least=1)
    keyed, valued, wide = (
        _rounded(size.hidden * keys.number(f"{name}_factor", default=usual), keys.size(multiple, default=64))
        for name, usual, multiple in _XLSTM
    )
    bias = keys.flag("use_bias")
    weights = (
        *_memory(size.hidden, heads, keyed, valued, bias=bias),
        *mlp(size.hidden, wide, bias=bias, prefix="ffn"),
        *norms(("norm_mlstm", "norm_ffn"), size.hidden),
    )
    state = (keyed * valued // heads + keyed + heads) * STATE_BYTES
    layers = stack(size.layers, weights, recurrent_attention("linear", heads, keyed // heads, state))
    return causal_lm(keys, size, layers, Style(final_norm=keys.flag("add_out_norm", default=True)))


_XLSTM = (
    ("qk_dim", 0.5, "mlstm_round_up_to_multiple_of"),
    ("v_dim", 1.0, "mlstm_round_up_to_multiple_of"),
    ("ffn_proj", 2.667, "ffn_round_up_to_multiple_of"),
)


def _memory(hidden: int, heads: int, keyed: int, valued: int, *, bias: bool) -> Weights:
    at = "mlstm_layer"
    named = (("q", keyed), ("k", keyed), ("v", valued), ("ogate_preact", valued))
    wide = [matrix(f"{at}.{name}", (width, hidden), "attention", bias=bias, units=heads) for name, width in named]
    gates = [matrix(f"{at}.{name}gate_preact", (heads, hidden), "attention", bias=True) for name in ("i", "f")]
    return (
        *(weight for pair in (*wide, *gates) for weight in pair),
        *norm(f"{at}.multihead_norm", valued),
        *matrix(f"{at}.out_proj", (hidden, valued), "attention", bias=bias, units=heads, cut="in"),
    )


def _rounded(width: float, multiple: int) -> int:
    """`width` rounded up to a multiple.

    >>> _rounded(4096 * 2.667, 64)
    10944
    """
    return -(-int(width) // max(multiple, 1)) * max(multiple, 1)


READERS = {
    "xlstm": xlstm,
    "mamba": pure_mamba1,
    "falcon_mamba": pure_mamba1,
    "mamba2": pure_mamba2,
    "jamba": jamba,
    "recurrent_gemma": recurrent_gemma,
    "rwkv": rwkv4,
    "rwkv5": rwkv5,
}
