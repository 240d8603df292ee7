"""Draft models for speculative decoding: EAGLE, EAGLE-3, DFlash, Medusa. They borrow parts of their target."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import (
    Heads,
    Projections,
    Weights,
    attention_weights,
    lm_head,
    matrix,
    mlp,
    norms,
    tied,
    vocabulary,
)
from chipwise.model.decoder import dims
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.spec import Layer

_NOTE = "a draft model: what it borrows from its target is not counted"


def eagle3(keys: Keys) -> Draft:
    """EAGLE-3: three hidden states of the target become one; the layer reads it beside the token, twice as wide."""
    size = dims(keys)
    vocab = keys.maybe("draft_vocab_size") or size.vocab
    wide = Heads(hidden=2 * size.hidden, query=size.heads.query, kv=size.heads.kv, dim=size.heads.dim)
    out = attention_weights(size.heads, Projections(no="qkv"))
    weights: Weights = (
        *attention_weights(wide, Projections(bias="qkv" if keys.flag("attention_bias") else "", no="o")),
        *out,
        *mlp(size.hidden, size.ffn),
        *norms(("hidden_norm", "input_layernorm", "post_attention_layernorm"), size.hidden),
    )
    outer = (
        replace(vocabulary(size.vocab, size.hidden), stored=False),
        *matrix("fc", (size.hidden, 3 * keys.size("target_hidden_size", default=size.hidden)), "other"),
        *norms(("norm",), size.hidden),
        *lm_head(vocab, size.hidden, is_tied=False),
    )
    return _drafting(keys, stack(size.layers, weights, size.heads.attention()), outer)


def eagle(keys: Keys) -> Draft:
    """EAGLE: token and hidden state become one vector; layers of the target's kind; its head is borrowed."""
    size = dims(keys)
    bias = "qkv" if keys.flag("attention_bias") or keys.flag("qkv_bias") else ""
    weights: Weights = (
        *attention_weights(size.heads, Projections(bias=bias)),
        *mlp(size.hidden, size.ffn),
        *norms(("post_attention_layernorm",), size.hidden),
    )
    outer = (
        vocabulary(size.vocab, size.hidden),
        *matrix("fc", (size.hidden, 2 * size.hidden), "other", bias=keys.flag("bias", default=True)),
        *map(tied, lm_head(size.vocab, size.hidden, is_tied=False)),
    )
    return _drafting(keys, stack(size.layers, weights, size.heads.attention()), outer)


def dflash(keys: Keys) -> Draft:
    """DFlash: Qwen 3 layers that fill a block at once, over the joined states of some layers of the target."""
    size = dims(keys)
    inner = Keys(data=keys.mapping("dflash_config"), path=f"{keys.path}dflash_config.")
    picked = len(inner.items("target_layer_ids")) or inner.maybe("num_target_layers") or 0
    if not picked:
        raise keys.missing("dflash_config.target_layer_ids")
    weights: Weights = (
        *attention_weights(size.heads, Projections(qk_norm="head", bias="qkvo" if keys.flag("attention_bias") else "")),
        *mlp(size.hidden, size.ffn),
        *norms(("input_layernorm", "post_attention_layernorm"), size.hidden),
    )
    outer = (
        *matrix("fc", (size.hidden, picked * size.hidden), "other"),
        *norms(("hidden_norm", "norm"), size.hidden),
    )
    return _drafting(keys, stack(size.layers, weights, size.heads.attention()), outer)


def medusa(keys: Keys) -> Draft:
    """Medusa: heads beside the target's own, each some residual layers and a projection to the vocabulary."""
    keys.need(("medusa_num_heads",), ("hidden_size",), ("vocab_size",))
    hidden, vocab = keys.size("hidden_size"), keys.size("vocab_size")
    block = matrix("medusa_head.linear", (hidden, hidden), "other", bias=True)
    one = (*(block * keys.size("medusa_num_layers", default=1)), *matrix("medusa_head.out", (vocab, hidden), "head"))
    return _drafting(keys, (), one * min(keys.size("medusa_num_heads"), 1000))


def _drafting(keys: Keys, layers: tuple[Layer, ...], outer: Weights) -> Draft:
    return Draft(
        kind="llm",
        layers=layers,
        outer=outer,
        hidden_size=keys.size("hidden_size"),
        vocab_size=keys.size("vocab_size"),
        max_context_tokens=keys.maybe("max_position_embeddings"),
        warnings=(_NOTE,),
    )


READERS = {"eagle3": eagle3, "eagle": eagle, "dflash": dflash, "medusa": medusa}
