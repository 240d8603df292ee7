"""XLNet: attention relative to distance and segment; what it remembers of the past are hidden states, not K and V."""

from __future__ import annotations

from chipwise.model.blocks import Heads, Weights, matrix, mlp, norms, table, vector
from chipwise.model.decoder import Dims, dims, head
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.spec import Attention


def xlnet(keys: Keys) -> Draft:
    """The layers, a mask embedding and the head that the architecture names; positions are computed.

    Source: Yang et al., XLNet, 2019, arXiv:1906.08237; transformers, `modeling_xlnet.py` (`cache_mem`: without
    `mem_len` all past hidden states are kept).
    """
    size = dims(keys.also(head_dim=keys.raw("d_head"), intermediate_size=keys.raw("d_inner")))
    weights = (
        *_relative(size.heads),
        *mlp(size.hidden, size.ffn, gated=False, bias=True, prefix="ff"),
        *norms(("rel_attn.layer_norm", "ff.layer_norm"), size.hidden, "layer"),
    )
    outer = (
        vector("transformer.mask_emb", size.hidden, "embedding"),
        table("transformer.word_embedding", size.vocab, size.hidden, units=size.vocab),
        *_head(keys, size),
    )
    return Draft(
        kind="llm",
        layers=stack(size.layers, weights, _memory(keys, size.heads)),
        outer=outer,
        hidden_size=size.hidden,
        vocab_size=size.vocab,
    )


def _relative(heads: Heads) -> Weights:
    """Projections of query, key, value and distance, what each head adds to its query, and the two segments."""
    width = heads.query * heads.dim
    projections = (
        weight
        for name in "qkvr"
        for weight in matrix(f"rel_attn.{name}", (width, heads.hidden), "attention", units=heads.query)
    )
    biases = (vector(f"rel_attn.r_{name}_bias", width, "attention", units=heads.query) for name in "rsw")
    out = matrix("rel_attn.o", (heads.hidden, width), "attention", units=heads.query, cut="in")
    return (*projections, *out, *biases, table("rel_attn.seg_embed", 2, width, part="attention", units=heads.query))


def _memory(keys: Keys, heads: Heads) -> Attention:
    """One hidden state a token and layer, for `mem_len` tokens where the config says how many."""
    window = keys.maybe("mem_len") or None
    return Attention(
        kind="sliding" if window else "full",
        query_heads=heads.query,
        kv_heads=heads.query,
        head_dim=heads.dim,
        value_head_dim=heads.dim,
        window_tokens=window,
        values_cached=False,
    )


def _head(keys: Keys, size: Dims) -> Weights:
    labels, hidden = keys.labels, size.hidden
    if keys.head.endswith("ForSequenceClassification"):
        summary = matrix("sequence_summary.summary", (hidden, hidden), "head", bias=True)
        return (*summary, *matrix("logits_proj", (labels, hidden), "head", bias=True))
    if keys.head.endswith("ForTokenClassification"):
        return matrix("classifier", (labels, hidden), "head", bias=True)
    if keys.head.endswith("Model") and not keys.head.endswith("LMHeadModel"):
        return ()
    tied = keys.also(tie_word_embeddings=keys.flag("tie_word_embeddings", default=True))
    return (*head(tied, size), vector("lm_loss.bias", size.vocab, "head"))


READERS = {"xlnet": xlnet}
