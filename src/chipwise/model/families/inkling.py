"""Inkling 1, 2 and 2 Loop: relative positions from the hidden state, short convolutions around every projection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    Moe,
    Projections,
    Weights,
    assemble,
    attention_weights,
    conv,
    lm_head,
    matrix,
    mlp,
    moe,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.decoder import NORM_PAIR, Dims, causal_lm, dims
from chipwise.model.draft import Draft
from chipwise.model.families.looped import passes
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import PER_TOKEN, SHARED_COUNT, WIDTH
from chipwise.model.recurrent import CONV_BYTES
from chipwise.model.spec import Layer

_A = "self_attn"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What every layer shares: the two kinds of heads, the window, taps of the convolutions, relative positions."""

    heads: dict[str, Heads]
    window: int
    kernel: int
    relative: int
    extent: int

    def extent_of(self, kind: str) -> int:
        """How far relative positions reach in a kind of layer."""
        return self.window if kind == "sliding" else self.extent


def _shape(keys: Keys, size: Dims) -> _Shape:
    slide = Heads(
        hidden=size.hidden,
        query=keys.size("swa_num_attention_heads", default=size.heads.query),
        kv=keys.size("swa_num_key_value_heads", default=size.heads.kv),
        dim=keys.size("swa_head_dim", default=size.heads.dim),
    )
    return _Shape(
        heads={"full": size.heads, "sliding": slide},
        window=keys.size("sliding_window_size", "sliding_window"),
        kernel=keys.size("conv_kernel_size", default=4),
        relative=keys.size("d_rel", default=16),
        extent=keys.size("rel_extent", default=1024),
    )


def _kinds(keys: Keys, layers: int) -> list[str]:
    listed = keys.items("layer_types")
    if listed:
        return ["sliding" if item == "hybrid_sliding" else "full" for item in listed[:layers]]
    local = keys.sizes("local_layer_ids")
    near = set(local) if local else {index for index in range(layers) if (index + 1) % 6}
    return ["sliding" if index in near else "full" for index in range(layers)]


def _attention(shape: _Shape, kind: str, weights: Weights) -> Block:
    """Cache of a kind, and the last columns that its four convolutions keep."""
    heads = shape.heads[kind]
    columns = 2 * heads.kv * heads.dim + 2 * heads.hidden
    kept = columns * (shape.kernel - 1) * CONV_BYTES
    window = shape.window if kind == "sliding" else None
    attention = heads.attention("sliding" if kind == "sliding" else "full", window_tokens=window)
    return Block(weights=weights, attention=replace(attention, state_bytes_per_sequence=kept))


def inkling(keys: Keys) -> Draft:
    """Inkling: windowed layers with heads of their own, shared experts that the router weighs too."""
    keys.need(k.EXPERTS, PER_TOKEN, WIDTH)
    size = dims(keys, ffn=False)
    shape = _shape(keys, size)
    mixers = {kind: _attention(shape, kind, _first_weights(shape, kind)) for kind in ("full", "sliding")}
    ffns = {"moe": _first_moe(keys, size), "dense": Block(weights=mlp(size.hidden, keys.size(*k.FFN, default=0)))}
    kinds = keys.items("mlp_layer_types")
    plan = side_by_side(
        keys,
        "mlp_layer_types",
        _kinds(keys, size.layers),
        ["dense" if item == "dense" else "moe" for item in kinds[: size.layers]] or ["moe"] * size.layers,
    )
    sconv = tuple(
        weight
        for name in ("attn_sconv", "mlp_sconv")
        for weight in conv(f"{name}.conv1d", (size.hidden, 1), shape.kernel, bias=False)
    )
    layers = assemble(plan, mixers, ffns, (*norms(NORM_PAIR, size.hidden), *sconv))
    draft = causal_lm(keys, size, layers)
    return replace(draft, outer=(*draft.outer, *norm("model.embed_tokens.embed_norm", size.hidden)))


def _first_weights(shape: _Shape, kind: str) -> Weights:
    heads = shape.heads[kind]
    return (
        *attention_weights(heads, Projections(qk_norm="head")),
        *matrix(f"{_A}.r_proj", (heads.query * shape.relative, heads.hidden), "attention", units=heads.query),
        *conv(f"{_A}.k_sconv.conv1d", (heads.kv * heads.dim, 1), shape.kernel, bias=False, part="attention"),
        *conv(f"{_A}.v_sconv.conv1d", (heads.kv * heads.dim, 1), shape.kernel, bias=False, part="attention"),
        table(f"{_A}.rel_logits_proj", shape.relative, shape.extent_of(kind), part="attention"),
    )


def _first_moe(keys: Keys, size: Dims) -> Block:
    shared, width = keys.size(*SHARED_COUNT, default=0), keys.size(*WIDTH)
    routed = keys.size(*k.EXPERTS)
    block = moe(
        Moe(
            hidden=size.hidden,
            routed=routed,
            per_token=keys.size(*PER_TOKEN),
            width=width,
            shared=shared * width,
            shared_count=shared,
        )
    )
    more = (
        *matrix("mlp.gate.shared", (shared, size.hidden), "router"),
        vector("mlp.gate.global_scale", 1, "router"),
    )
    return replace(block, weights=(*block.weights, *more))


def inkling2(keys: Keys) -> Draft:
    """Inkling 2: layers that read a learned mix of earlier ones; gates, sinks and scales for each head."""
    keys.need(k.EXPERTS, PER_TOKEN, WIDTH)
    size = dims(keys, ffn=False)
    shape = _shape(keys, size)
    kinds = _kinds(keys, size.layers)
    first = "" if not kinds else f"{kinds[0]}/first"
    mixers = {kind: _attention(shape, kind, _second_weights(shape, kind)) for kind in ("full", "sliding")}
    if first:
        bare = tuple(w for w in mixers[kinds[0]].weights if w.name != "attention_input.query")
        mixers[first] = replace(mixers[kinds[0]], weights=bare)
    mix = Moe(
        hidden=size.hidden, routed=keys.size(*k.EXPERTS), per_token=keys.size(*PER_TOKEN), width=keys.size(*WIDTH)
    )
    sconv = tuple(
        weight
        for name in ("post_attention_convolution", "post_mlp_convolution")
        for weight in conv(f"{name}.conv1d", (size.hidden, 1), shape.kernel, bias=False)
    )
    around = (*norm(NORM_PAIR[1], size.hidden), vector("mlp_input.query", size.hidden, "other"), *sconv)
    plan = [(first if index == 0 else kind, "moe") for index, kind in enumerate(kinds)]
    layers = assemble(plan, mixers, {"moe": moe(mix)}, around)
    rows = keys.size("unpadded_vocab_size", default=size.vocab)
    draft = causal_lm(replace(keys, head="Model"), size, layers)
    more = (*norm("model.embed_tokens.embed_norm", size.hidden), vector("final_input.query", size.hidden, "other"))
    head = () if keys.head.endswith("Model") else lm_head(rows, size.hidden, is_tied=False)
    return replace(draft, outer=(*draft.outer, *more, *head))


def _second_weights(shape: _Shape, kind: str) -> Weights:
    heads = shape.heads[kind]
    kv, hidden = heads.kv * heads.dim, heads.hidden
    near = kind == "sliding"
    # A full layer mixes earlier ones apart for queries, keys and values, and makes its taps from the hidden state.
    mixed = 1 if near else 3
    named = ("input_layernorm",) if near else ("q_input_layernorm", "k_input_layernorm", "v_input_layernorm")
    return (
        *attention_weights(heads, Projections()),
        *(weight for name in ("k_proj", "v_proj") for weight in _taps(shape, f"{_A}.{name}.sconv", kv, hidden, kind)),
        vector(f"{_A}.q_proj.norm.scale", heads.query * heads.dim, "attention", units=heads.query),
        *matrix(f"{_A}.o_proj.gate_proj", (heads.query * heads.dim, hidden), "attention", units=heads.query),
        *matrix(f"{_A}.sink_proj", (heads.query, hidden), "attention", units=heads.query),
        *matrix(f"{_A}.relative.linear", (heads.query * shape.relative, hidden), "attention", units=heads.query),
        vector(f"{_A}.relative.norm.scale", heads.query * shape.relative, "attention", units=heads.query),
        table(f"{_A}.relative.proj", shape.relative, shape.extent_of(kind), part="attention"),
        *norms(named, hidden),
        vector("attention_input.query", mixed * hidden, "other"),
    )


def _taps(shape: _Shape, at: str, kv: int, hidden: int, kind: str) -> Weights:
    if kind == "sliding":
        return conv(f"{at}.conv1d", (kv, 1), shape.kernel, bias=False, part="attention")
    groups = shape.heads["full"].kv
    return (
        table(f"{at}.static_weight", shape.kernel, kv, part="attention"),
        *matrix(f"{at}.weight_proj", (shape.kernel * groups, hidden), "attention"),
    )


def inkling2_loop(keys: Keys) -> Draft:
    """Inkling 2 Loop: a stretch of layers is run several times, gated messages between the passes."""
    keys.need(("loop_layer_index_start",), ("loop_layer_index_end",), ("loop_num_passes",))
    draft = inkling2(keys)
    start, end = keys.size("loop_layer_index_start"), keys.size("loop_layer_index_end")
    rank = keys.size("loop_gate_rank", default=64)
    gates = tuple(
        weight
        for name in ("q", "k", "v", "mlp")
        for weight in _message_gate(f"{name}_message_gate", draft.hidden_size, rank)
    )
    layers = tuple(
        part for layer in draft.layers for part in _split(layer, range(start, end), gates, keys.size("loop_num_passes"))
    )
    looped = sum(layer.stored_count or 0 for layer in layers)
    messages = table("message_input.query", looped * 4, draft.hidden_size, part="other")
    return replace(draft, layers=layers, outer=(*draft.outer, messages))


def _split(layer: Layer, looped: range, gates: Weights, times: int) -> list[Layer]:
    inside = tuple(index for index in layer.indices if index in looped)
    outside = tuple(index for index in layer.indices if index not in looped)
    out = [replace(layer, count=len(outside), indices=outside)] if outside else []
    if inside:
        once = replace(layer, count=len(inside), indices=inside, weights=(*layer.weights, *gates))
        out.append(passes(once, times))
    return out


def _message_gate(at: str, hidden: int, rank: int) -> Weights:
    return (
        *matrix(f"{at}.down_proj", (rank, 2 * hidden), "other"),
        *matrix(f"{at}.forget_gate_proj", (hidden, rank), "other"),
        *matrix(f"{at}.message_gate_proj", (hidden, rank), "other"),
    )


READERS = {"inkling_text": inkling, "inkling2_text": inkling2, "inkling2_loop_text": inkling2_loop}
