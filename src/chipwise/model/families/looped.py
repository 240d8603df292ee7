"""Decoders that run some layers several times: Dory, HRM-Text. Weights are stored once, every pass keeps a cache."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, Projections, Weights, assemble, attention_weights, matrix, mlp, vector
from chipwise.model.decoder import Dims, Style, attention_mixers, causal_lm, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.spec import Layer


def passes(layer: Layer, times: int) -> Layer:
    """A layer that runs `times` times: so many layers to the cache, one to the store.

    >>> from chipwise.model.draft import NO_ATTENTION
    >>> twice = passes(Layer(count=3, attention=NO_ATTENTION, weights=()), 2)
    >>> twice.count, twice.stored_count
    (6, 3)
    """
    return replace(layer, count=layer.count * times, stored_count=layer.count)


def dory(keys: Keys) -> Draft:
    """Dory: normalised weights with a scale for every channel, a middle stretch of layers that is run in loops."""
    keys.need(("n_input_layers",), ("n_output_layers",), ("sliding_window",))
    size = dims(keys)
    known, size, halves = _paired(keys, size)
    inner = size.heads.query * size.heads.dim
    bias = "qkvo" if keys.flag("attention_bias") else ""
    gate = (
        *matrix("self_attn.gate_proj", (inner, size.hidden), "attention", units=size.heads.query),
        *(vector(f"self_attn.{name}", inner, "attention", units=size.heads.query) for name in ("sqk", "s_gate")),
        *(vector(name, size.hidden, "other") for name in ("lambda_1", "lambda_2")),
    )
    mixers = {
        kind: replace(block, weights=(*block.weights, *gate))
        for kind, block in attention_mixers(known, size.heads, Projections(bias=bias)).items()
    }
    ffn = (
        *mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias")),
        *(vector(f"mlp.suv_{name}", size.ffn, "mlp", units=size.ffn) for name in ("gate", "up")),
    )
    first, last = (keys.size(name) // halves for name in ("n_input_layers", "n_output_layers"))
    looped = range(first, max(size.layers - last, first))
    kinds = _kinds(known, size.layers)
    plan = [(kind, "looped" if index in looped else "once") for index, kind in enumerate(kinds)]
    layers = assemble(plan, mixers, {"once": Block(weights=ffn), "looped": Block(weights=ffn)})
    times = 1 if keys.text("recurrent_kv_cache_mode") == "last_loop" else keys.size("n_recurrent_loops", default=2)
    layers = tuple(passes(layer, times) if set(layer.indices) <= set(looped) else layer for layer in layers)
    draft = causal_lm(known, size, layers, Style(final_norm=False))
    return replace(draft, outer=(*draft.outer, vector("lm_head.logit_scale", size.vocab, "head", units=size.vocab)))


def _paired(keys: Keys, size: Dims) -> tuple[Keys, Dims, int]:
    """Released configs list attention and MLP as layers of their own: two of them are one layer here."""
    listed = keys.items("layer_types")
    if "mlp" not in listed:
        return keys, size, 1
    return keys.also(layer_types=list(listed[::2])), replace(size, layers=size.layers // 2), 2


def _kinds(keys: Keys, layers: int) -> list[str]:
    listed = keys.items("layer_types")
    if listed:
        return ["sliding" if item == "sliding_attention" else "full" for item in listed[:layers]]
    return ["full" if (index + 1) % 4 == 0 else "sliding" for index in range(layers)]


def hrm_text(keys: Keys) -> Draft:
    """HRM-Text: two stacks, a quick one run `L_cycles` times for each run of the slow one, `H_cycles` times over."""
    high, low = keys.size("H_cycles", default=2), keys.size("L_cycles", default=3)
    size = dims(keys)
    count = keys.size("num_layers_per_stack", default=size.layers)
    inner = size.heads.query * size.heads.dim
    bias = "qkvo" if keys.flag("attention_bias") else ""
    weights: Weights = (
        *attention_weights(size.heads, Projections(bias=bias)),
        *matrix("self_attn.gate_proj", (inner, size.hidden), "attention", units=size.heads.query),
        *mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias")),
    )
    layer = Layer(count=count, attention=size.heads.attention(), weights=weights, indices=tuple(range(count)))
    layers = (passes(layer, high * low), passes(layer, high))
    draft = causal_lm(keys, size, layers, Style(final_norm=False))
    return replace(draft, outer=(*draft.outer, vector("model.z_L_init", size.hidden, "other")))


READERS = {"dory": dory, "hrm_text": hrm_text}
