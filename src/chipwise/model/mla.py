"""Multi-head latent attention: one compressed vector a token is cached instead of keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.model import keys as k
from chipwise.model.blocks import Block, NormKind, Weights, matrix, norm
from chipwise.model.keys import Keys
from chipwise.model.spec import Attention, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """The ranks and head sizes of an MLA. `q_lora_rank` 0: queries are projected directly."""

    hidden: int
    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False
    norm: NormKind = "rms"


def mla_of(keys: Keys, hidden: int, *, bias: bool = False) -> Mla:
    """Read the shape of an MLA."""
    keys.need(k.HEADS, ("kv_lora_rank",), ("qk_nope_head_dim",), ("qk_rope_head_dim",), ("v_head_dim",))
    return Mla(
        hidden=hidden,
        heads=keys.size(*k.HEADS, least=1),
        q_lora_rank=keys.size("q_lora_rank", default=0),
        kv_lora_rank=keys.size("kv_lora_rank", least=1),
        nope_dim=keys.size("qk_nope_head_dim"),
        rope_dim=keys.size("qk_rope_head_dim"),
        value_dim=keys.size("v_head_dim"),
        bias=bias,
    )


def mla_weights(shape: Mla, prefix: str = "self_attn") -> Weights:
    """Projections down to the ranks (whole on every device) and up to the heads (cut by heads).

    >>> shape = Mla(hidden=7168, heads=128, q_lora_rank=1536, kv_lora_rank=512, nope_dim=128, rope_dim=64,
    ...             value_dim=128)
    >>> sum(weight.params for weight in mla_weights(shape))
    187107328
    """
    heads = shape.heads
    part: Part = "attention"
    q_width = heads * (shape.nope_dim + shape.rope_dim)
    if shape.q_lora_rank:
        query = (
            *matrix(f"{prefix}.q_a_proj", (shape.q_lora_rank, shape.hidden), part, bias=shape.bias),
            *norm(f"{prefix}.q_a_layernorm", shape.q_lora_rank, shape.norm),
            *matrix(f"{prefix}.q_b_proj", (q_width, shape.q_lora_rank), part, units=heads),
        )
    else:
        query = matrix(f"{prefix}.q_proj", (q_width, shape.hidden), part, units=heads)
    kv_width = heads * (shape.nope_dim + shape.value_dim)
    compressed = (shape.kv_lora_rank + shape.rope_dim, shape.hidden)
    output = (shape.hidden, heads * shape.value_dim)
    return (
        *query,
        *matrix(f"{prefix}.kv_a_proj_with_mqa", compressed, part, bias=shape.bias),
        *norm(f"{prefix}.kv_a_layernorm", shape.kv_lora_rank, shape.norm),
        *matrix(f"{prefix}.kv_b_proj", (kv_width, shape.kv_lora_rank), part, units=heads),
        *matrix(f"{prefix}.o_proj", output, part, bias=shape.bias, units=heads, cut="in"),
    )


def mla_attention(shape: Mla, *, indexer_dim: int = 0, sparse_tokens: int | None = None) -> Attention:
    """What an MLA layer caches: `kv_lora_rank + rope_dim` elements a token, whatever the heads."""
    return Attention(
        kind="mla",
        query_heads=shape.heads,
        kv_heads=1,
        head_dim=shape.nope_dim + shape.rope_dim,
        value_head_dim=shape.value_dim,
        kv_lora_rank=shape.kv_lora_rank,
        rope_head_dim=shape.rope_dim,
        indexer_dim=indexer_dim,
        sparse_tokens=sparse_tokens,
    )


def mla_block(shape: Mla, more: Weights = (), indexer: Indexer | None = None) -> Block:
    """Weights and attention of an MLA layer, with a sparse-attention indexer where there is one."""
    if indexer is None:
        return Block(weights=(*mla_weights(shape), *more), attention=mla_attention(shape))
    return Block(
        weights=(*mla_weights(shape), *more, *indexer_weights(shape, indexer)),
        attention=mla_attention(shape, indexer_dim=indexer.head_dim, sparse_tokens=indexer.top_tokens),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A lightning indexer: `heads` small heads that pick which `top_tokens` past tokens a query reads."""

    heads: int
    head_dim: int
    top_tokens: int


def indexer_of(keys: Keys) -> Indexer | None:
    """The indexer a config describes; None where it has none."""
    if keys.maybe("index_head_dim") is None:
        return None
    return Indexer(
        heads=keys.size("index_n_heads"), head_dim=keys.size("index_head_dim"), top_tokens=keys.size("index_topk")
    )


def indexer_weights(shape: Mla, indexer: Indexer, prefix: str = "self_attn.indexer") -> Weights:
    """Queries from the query rank, one key head with its norm, a weight for each head."""
    source = shape.q_lora_rank or shape.hidden
    return (
        *matrix(f"{prefix}.wq_b", (indexer.heads * indexer.head_dim, source), "attention"),
        *matrix(f"{prefix}.wk", (indexer.head_dim, shape.hidden), "attention"),
        *norm(f"{prefix}.k_norm", indexer.head_dim, "layer"),
        *matrix(f"{prefix}.weights_proj", (indexer.heads, shape.hidden), "router"),
    )
