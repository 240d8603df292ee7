"""Encoder-decoders with experts (NLLB-MoE, Switch) and those made of Gemma (T5Gemma 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    Projections,
    Weights,
    assemble,
    attention_weights,
    lm_head,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
    vocabulary,
)
from chipwise.model.decoder import Dims, attention_mixers, dims, window_plan
from chipwise.model.draft import Draft
from chipwise.model.families.encdec import Side, decoder_side, encoder_side, t5_side
from chipwise.model.families.llava import gemma3
from chipwise.model.keys import Keys, divide
from chipwise.model.nested import part_keys, tower_part
from chipwise.model.spec import Experts, Layer, Tower

Sparse = Callable[[int], bool]


def _mixed(layers: Sequence[Layer], side: Side, ffn: Block, is_sparse: Sparse) -> tuple[Layer, ...]:
    """A side's equal layers, in some of which the feed-forward is `ffn`, a choice of experts."""
    dense = {weight.name for weight in side.mlp()}
    out = []
    for layer in layers:
        sparse = tuple(index for index in layer.indices if is_sparse(index))
        plain = tuple(index for index in layer.indices if not is_sparse(index))
        kept = tuple(weight for weight in layer.weights if weight.name not in dense)
        chosen = replace(layer, count=len(sparse), indices=sparse, weights=(*kept, *ffn.weights), experts=ffn.experts)
        out += [replace(layer, count=len(plain), indices=plain)] if plain else []
        out += [chosen] if sparse else []
    return tuple(out)


def _experts(keys: Keys, side: Side, per_token: int) -> Block:
    hidden, routed = side.heads.hidden, keys.size("num_experts", least=1)
    weights = mlp(hidden, side.ffn, gated=side.gated, bias=side.mlp_bias, prefix="mlp.experts", part="expert")
    router = matrix("mlp.router.classifier", (routed, hidden), "router", bias=keys.flag("router_bias"))
    return Block(weights=router, experts=Experts(routed=routed, per_token=per_token, weights=weights))


def _two_sides(keys: Keys, encoder: Side, decoder: Side, layers: tuple[Layer, ...], coded: tuple[Layer, ...]) -> Draft:
    hidden, vocab = encoder.heads.hidden, keys.size(*k.VOCAB)
    tied = keys.flag("tie_word_embeddings", default=True)
    head = () if keys.head.endswith("Model") else lm_head(vocab, hidden, is_tied=tied)
    around = norms(("encoder.layer_norm", "decoder.layer_norm"), hidden, decoder.norm)
    return Draft(
        kind="llm",
        layers=layers,
        outer=(vocabulary(vocab, hidden, name="shared"), *around, *head),
        towers=(Tower(name="encoder", layers=coded),),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def nllb_moe(keys: Keys) -> Draft:
    """NLLB-MoE: M2M-100 with experts in every fourth layer, two of them for each token."""
    keys.need(("d_model",), ("encoder_layers",), ("decoder_layers",), ("num_experts",), k.VOCAB)
    encoder, decoder = _nllb_side(keys, "encoder"), _nllb_side(keys, "decoder")
    steps = [keys.size(f"{name}_sparse_step", default=4) for name in ("encoder", "decoder")]
    coded = _mixed(encoder_side(encoder).layers, encoder, _experts(keys, encoder, 2), _last_of(steps[0]))
    layers = _mixed(decoder_side(decoder), decoder, _experts(keys, decoder, 2), _last_of(steps[1]))
    return _two_sides(keys, encoder, decoder, layers, coded)


def _last_of(step: int) -> Sparse:
    return lambda index: step > 0 and (index + 1) % step == 0


def _second_of(step: int) -> Sparse:
    return lambda index: step > 0 and (step == 1 or index % step == 1)


def _nllb_side(keys: Keys, name: str) -> Side:
    hidden, count = keys.size("d_model", least=1), keys.size(f"{name}_attention_heads", least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "d_model"))
    return Side(count=keys.layers(f"{name}_layers"), heads=heads, ffn=keys.size(f"{name}_ffn_dim"))


def switch(keys: Keys) -> Draft:
    """Switch Transformers: T5 with experts in some layers of each side, one of them for each token."""
    keys.need(("d_model",), ("num_layers",), ("num_heads",), ("d_ff",), ("num_experts",), k.VOCAB)
    encoder = t5_side(keys, keys.layers("num_layers"))
    decoder = t5_side(keys, keys.layers("num_decoder_layers", "num_layers"))
    coded = _mixed(
        encoder_side(encoder).layers, encoder, _experts(keys, encoder, 1), _sparse(keys, "encoder", encoder.count)
    )
    layers = _mixed(decoder_side(decoder), decoder, _experts(keys, decoder, 1), _sparse(keys, "decoder", decoder.count))
    draft = _two_sides(keys, encoder, decoder, layers, coded)
    buckets = keys.size("relative_attention_num_buckets", default=32)
    relative = [
        table(f"{name}.relative_attention_bias", buckets, side.heads.query, part="attention")
        for name, side in (("encoder", encoder), ("decoder", decoder))
    ]
    return replace(draft, outer=(*draft.outer, *relative))


def _sparse(keys: Keys, name: str, layers: int) -> Sparse:
    count = keys.size(f"num_sparse_{name}_layers", default=3)
    return _second_of(keys.size(f"{name}_sparse_step", default=layers // count if count else layers))


_GEMMA_NORMS = (
    "pre_self_attn_layernorm",
    "post_self_attn_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


def _gemma_stack(keys: Keys, style: Projections, *, causal: bool, crossing: int = 0) -> tuple[tuple[Layer, ...], Dims]:
    """A stack of Gemma's layers; those of a decoder also attend to what an encoder `crossing` wide gives."""
    size = dims(keys)
    mixers = {
        kind: replace(block, attention=replace(block.attention, causal=causal))
        for kind, block in attention_mixers(keys, size.heads, style).items()
    }
    cross: Weights = ()
    if crossing:
        crossed = Projections(bias=style.bias, prefix="cross_attn", kv_hidden=crossing)
        cross = (
            *attention_weights(size.heads, crossed),
            *norms(("pre_cross_attn_layernorm", "post_cross_attn_layernorm"), size.hidden),
        )
    plan = [(kind, "dense") for kind in window_plan(keys, size.layers)]
    ffn = {"dense": Block(weights=mlp(size.hidden, size.ffn))}
    return assemble(plan, mixers, ffn, (*norms(_GEMMA_NORMS, size.hidden), *cross)), size


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def t5gemma(keys: Keys) -> Draft:
    """T5Gemma: Gemma 2 as an encoder and as a decoder that also attends to it, an embedding for each."""
    coding = part_keys(keys, "encoder", default="t5gemma")
    making = part_keys(keys, "decoder", default="t5gemma")
    coded, seen = _gemma_stack(coding, Projections(bias=_bias(coding)), causal=False)
    crossing = making.size("cross_attention_hidden_size", default=seen.hidden)
    layers, size = _gemma_stack(making, Projections(bias=_bias(making)), causal=True, crossing=crossing)
    encoder = Tower(
        name="encoder",
        layers=coded,
        weights=(vocabulary(seen.vocab, seen.hidden, name="encoder.embed_tokens"), *norm("encoder.norm", seen.hidden)),
    )
    own = vocabulary(size.vocab, size.hidden, name="decoder.embed_tokens")
    return _gemma_draft(keys, making, layers, size, (own,)).beside(encoder)


def _gemma_draft(keys: Keys, making: Keys, layers: tuple[Layer, ...], size: Dims, more: Weights) -> Draft:
    head: Weights = ()
    if keys.head.endswith("Classification"):
        head = matrix("score", (keys.labels, size.hidden), "head", bias=True)
    elif not keys.head.endswith("Model"):
        head = lm_head(size.vocab, size.hidden, is_tied=keys.flag("tie_word_embeddings", default=True))
    return Draft(
        kind="llm",
        layers=layers,
        outer=(*more, *norm("decoder.norm", size.hidden), *head),
        hidden_size=size.hidden,
        vocab_size=size.vocab,
        max_context_tokens=making.maybe(*k.CONTEXT),
    )


def t5gemma2(keys: Keys) -> Draft:
    """T5Gemma 2: Gemma 3 on both sides, which share one embedding and, in the decoder, one attention; it sees too."""
    outer = part_keys(keys, "encoder", default="t5gemma2")
    coding = part_keys(outer, "text_config", default="t5gemma2")
    making = part_keys(keys, "decoder", default="t5gemma2")
    coded, seen = _gemma_stack(coding, Projections(bias=_bias(coding), qk_norm="head"), causal=False)
    layers, size = _gemma_stack(making, Projections(bias=_bias(making), qk_norm="head"), causal=True)
    tower, width = tower_part(outer, "vision_config", default="siglip_vision_model")
    encoder = Tower(name="encoder", layers=coded, weights=norm("encoder.norm", seen.hidden))
    between = Tower(name="multi_modal_projector", weights=gemma3(keys, width, seen.hidden))
    shared = (vocabulary(seen.vocab, seen.hidden), vector("embed_tokens.eoi_embedding", seen.hidden, "embedding"))
    return _gemma_draft(keys, making, layers, size, shared).beside(encoder, tower, between, kind="vision-language")


READERS = {"nllb-moe": nllb_moe, "switch_transformers": switch, "t5gemma": t5gemma, "t5gemma2": t5gemma2}
