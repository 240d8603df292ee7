"""DeepSeek V4: one shared latent key-value head, compressed attention by layer, hyper-connections, hashed routing."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, Weights, assemble, hyper_connections, hyper_head, matrix, norm, norms, vector
from chipwise.model.decoder import NORM_PAIR, Dims, causal_lm, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import mixture

_A = "self_attn"


def deepseek_v4(keys: Keys) -> Draft:
    """Each layer compresses the past by `compress_ratios` (0: window only, 4: with an indexer, 128: heavily).

    One head of `head_dim` is both key and value, in the window and in the compressed entries.
    """
    keys.need(("q_lora_rank",), ("o_lora_rank",), ("o_groups",), ("head_dim",))
    size = dims(keys, ffn=False)
    ratios = _ratios(keys, size.layers)
    mixers = {str(ratio): _mixer(keys, size, ratio) for ratio in set(ratios)}
    ffns = mixture(keys, size.hidden)
    streams = keys.size("hc_mult")
    hyper = hyper_connections(streams, size.hidden, outputs=streams * (streams + 2), scales=3)
    plan = [(str(ratio), "moe") for ratio in ratios]
    layers = assemble(plan, mixers, ffns, (*norms(NORM_PAIR, size.hidden), *hyper))
    draft = causal_lm(keys, size, layers)
    return replace(draft, outer=(*draft.outer, *hyper_head(streams, size.hidden)))


def _ratios(keys: Keys, layers: int) -> tuple[int, ...]:
    """`compress_ratios`, or as transformers saves it again: a kind for each layer, a rate for each kind."""
    ratios = keys.sizes("compress_ratios")
    if not ratios:
        rates = Keys(data=keys.mapping("compress_rates"), path="compress_rates.")
        kinds = [str(item) for item in keys.items("layer_types")]
        ratios = tuple(0 if kind == "sliding_attention" else rates.size(kind) for kind in kinds)
    if len(ratios) < layers:
        raise keys.missing("compress_ratios")
    return ratios[:layers]


def _mixer(keys: Keys, size: Dims, ratio: int) -> Block:
    heads, dim = size.heads.query, size.heads.dim
    rank, o_rank, groups = keys.size("q_lora_rank"), keys.size("o_lora_rank"), keys.size("o_groups", least=1)
    weights: Weights = (
        vector(f"{_A}.sinks", heads, "attention", units=heads),
        *matrix(f"{_A}.q_a_proj", (rank, size.hidden), "attention"),
        *norm(f"{_A}.q_a_norm", rank),
        *matrix(f"{_A}.q_b_proj", (heads * dim, rank), "attention", units=heads),
        *matrix(f"{_A}.kv_proj", (dim, size.hidden), "attention"),
        *norm(f"{_A}.kv_norm", dim),
        *matrix(f"{_A}.o_a_proj", (groups * o_rank, heads * dim // groups), "attention", units=groups),
        *matrix(f"{_A}.o_b_proj", (size.hidden, groups * o_rank), "attention", units=groups, cut="in"),
        *(_compressor(f"{_A}.compressor", size.hidden, dim, ratio) if ratio else ()),
        *(_indexer(keys, size, ratio) if ratio == _INDEXED else ()),
    )
    window = keys.maybe("sliding_window")
    attention = replace(
        size.heads.attention("sliding", window_tokens=window), values_cached=False, compressed_every=ratio or None
    )
    if ratio == _INDEXED:
        attention = replace(attention, indexer_dim=keys.size("index_head_dim"), sparse_tokens=keys.size("index_topk"))
    return Block(weights=weights, attention=attention)


# Layers that compress this little pick what to read with an indexer, and overlap two windows.
_INDEXED = 4


def _compressor(at: str, hidden: int, dim: int, ratio: int) -> Weights:
    width = dim * (2 if ratio == _INDEXED else 1)
    return (
        vector(f"{at}.position_bias", ratio * width, "attention"),
        *matrix(f"{at}.kv_proj", (width, hidden), "attention"),
        *matrix(f"{at}.gate_proj", (width, hidden), "attention"),
        *norm(f"{at}.kv_norm", dim),
    )


def _indexer(keys: Keys, size: Dims, ratio: int) -> Weights:
    heads, dim = keys.size("index_n_heads"), keys.size("index_head_dim")
    at = f"{_A}.compressor.indexer"
    return (
        *_compressor(at, size.hidden, dim, ratio),
        *matrix(f"{at}.q_b_proj", (heads * dim, keys.size("q_lora_rank")), "attention"),
        *matrix(f"{at}.weights_proj", (heads, size.hidden), "router"),
    )


READERS = {"deepseek_v4": deepseek_v4, "deepseek_ref": deepseek_v4}
