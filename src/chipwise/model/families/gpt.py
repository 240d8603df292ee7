"""GPT-2 and what came of it: learned positions, norms with shifts, MLPs four times as wide, no gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chipwise.model import keys as k
from chipwise.model.blocks import Heads, matrix, norm, table, vector
from chipwise.model.decoder import Dims, Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys


def _style(**more: Any) -> Style:
    base = Style(bias="qkvo", norm="layer", gated=False, mlp_bias=True, tied=True)
    return replace(base, **more)


def gpt2(keys: Keys) -> Draft:
    """GPT-2: learned positions."""
    size = dims(keys, ffn_times=4)
    return decoder(keys, _style(positions=keys.size(*k.CONTEXT)), size=size)


def gpt_bigcode(keys: Keys) -> Draft:
    """StarCoder and SantaCoder: GPT-2 with one KV head where `multi_query` (true where unsaid)."""
    size = dims(keys, ffn_times=4)
    if keys.flag("multi_query", default=True):
        size = replace(size, heads=replace(size.heads, kv=1))
    return decoder(keys, _style(positions=keys.size(*k.CONTEXT)), size=size)


def gpt_neo(keys: Keys) -> Draft:
    """GPT-Neo: local and global layers by turns, bias only on the output projection."""
    size = dims(keys, ffn_times=4)
    pattern = _pattern(keys)
    known = keys.also(layer_types=pattern, sliding_window=keys.size("window_size", default=256))
    return decoder(known, _style(bias="o", positions=keys.size(*k.CONTEXT)), size=size)


def _pattern(keys: Keys) -> list[str]:
    """`[[["global", "local"], 12]]` is twelve times the pair."""
    out: list[str] = []
    for item in keys.items("attention_types"):
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and type(item[1]) is int):
            raise keys.wrong("attention_types", item, "a list of kinds and how often they come")
        if len(item[0]) * item[1] > k.MOST_LAYERS:
            raise keys.wrong("attention_types", item, f"at most {k.MOST_LAYERS} layers")
        out += [str(kind) for kind in item[0]] * item[1]
    return out


def gpt_neox(keys: Keys) -> Draft:
    """GPT-NeoX, Pythia: rotary positions, head not tied."""
    bias = "qkvo" if keys.flag("attention_bias", default=True) else ""
    return decoder(keys, _style(bias=bias, tied=False))


def gptj(keys: Keys) -> Draft:
    """GPT-J and CodeGen: one norm a layer, biases on MLP and head only."""
    size = dims(keys, ffn_times=4)
    style = _style(bias="", norm_names=("ln_1",), head_bias=True, tied=False)
    return decoder(keys, style, size=size)


def bloom(keys: Keys) -> Draft:
    """BLOOM: ALiBi, a norm over the embedding."""
    size = dims(keys, ffn_times=4)
    size = replace(size, ffn=4 * size.hidden)
    draft = decoder(keys, _style(), size=size)
    return replace(draft, outer=(*draft.outer, *norm("word_embeddings_layernorm", size.hidden, "layer")))


def mpt(keys: Keys) -> Draft:
    """MPT: ALiBi, no biases, tied head; `attn_config.kv_n_heads` where keys are grouped."""
    size = dims(keys, ffn=False)
    inner = keys.mapping("attn_config")
    kv = inner.get("kv_n_heads")
    heads = replace(size.heads, kv=kv) if isinstance(kv, int) and kv else size.heads
    ratio = keys.number("expansion_ratio", default=4)
    size = replace(size, heads=heads, ffn=int(size.hidden * ratio))
    no_bias = keys.flag("no_bias", default=True)
    style = Style(
        bias="" if no_bias else "qkvo",
        mlp_bias=not no_bias,
        norm="rms" if no_bias else "layer",
        gated=False,
        tied=True,
    )
    return decoder(keys, style, size=size)


def opt(keys: Keys) -> Draft:
    """OPT: learned positions with two rows of offset; 350M projects a narrower embedding."""
    size = dims(keys)
    bias = keys.flag("enable_bias", default=True)
    affine = keys.flag("layer_norm_elementwise_affine", default=True)
    style = _style(
        bias="qkvo" if bias else "",
        mlp_bias=bias,
        norm="layer" if affine else "none",
        positions=keys.size(*k.CONTEXT) + 2,
        final_norm=keys.flag("do_layer_norm_before", default=True) and not keys.flag("_remove_final_layer_norm"),
    )
    draft = decoder(keys, style)
    width = keys.size("word_embed_proj_dim", default=size.hidden)
    return draft if width == size.hidden else _projected(draft, size, width)


def _projected(draft: Draft, size: Dims, width: int) -> Draft:
    outer = [
        replace(weight, in_features=width)
        if weight.part in {"embedding", "head"} and weight.out_features == size.vocab
        else weight
        for weight in draft.outer
    ]
    both = (*matrix("project_in", (size.hidden, width), "other"), *matrix("project_out", (width, size.hidden), "other"))
    return replace(draft, outer=(*outer, *both))


def offset_positions(keys: Keys) -> Draft:
    """BioGPT: OPT's layers."""
    return decoder(keys, _style(positions=keys.size(*k.CONTEXT) + 2))


def xglm(keys: Keys) -> Draft:
    """XGLM: OPT's layers with computed positions; heads stand under `attention_heads`."""
    return decoder(keys.also(num_attention_heads=keys.size("attention_heads", *k.HEADS)), _style())


def ctrl(keys: Keys) -> Draft:
    """CTRL: GPT-2's layers, width under `dff`, a bias on the tied head."""
    return decoder(keys.also(intermediate_size=keys.size("dff")), _style(head_bias=True))


def openai_gpt(keys: Keys) -> Draft:
    """GPT-1: GPT-2 without a final norm."""
    size = dims(keys, ffn_times=4)
    style = _style(positions=keys.size(*k.CONTEXT), final_norm=False)
    return decoder(keys, style, size=size)


def falcon(keys: Keys) -> Draft:
    """Falcon 7B (one KV head, one norm), 40B and 180B (`new_decoder_architecture`: KV heads, two norms)."""
    size = dims(keys, ffn_times=4)
    new = keys.flag("new_decoder_architecture")
    kv = keys.size("num_kv_heads", "n_head_kv", default=size.heads.query) if new else size.heads.query
    if not new and keys.flag("multi_query", default=True):
        kv = 1
    size = replace(size, heads=Heads(hidden=size.hidden, query=size.heads.query, kv=kv, dim=size.heads.dim))
    bias = keys.flag("bias")
    norms_in_parallel = keys.size("num_ln_in_parallel_attn", default=2 if new else 1)
    one = keys.flag("parallel_attn", default=True) and norms_in_parallel == 1
    style = _style(
        bias="qkvo" if bias else "",
        mlp_bias=bias,
        norm_names=("input_layernorm",) if one else ("ln_attn", "ln_mlp"),
    )
    return decoder(keys, style, size=size)


def gpt_neox_japanese(keys: Keys) -> Draft:
    """GPT-NeoX Japanese: no biases but one on the attention of the last layer, head tied."""
    size = dims(keys, ffn=False)
    size = replace(size, ffn=size.hidden * keys.size("intermediate_multiple_size", default=4))
    draft = decoder(keys, _style(bias="", mlp_bias=False), size=size)
    return replace(draft, outer=(*draft.outer, vector("attention.dense_bias", size.hidden, "attention")))


def cpmant(keys: Keys) -> Draft:
    """CPM-Ant: gated MLP, norms with scales only, learned segments, prompts and relative positions."""
    size = dims(keys.also(head_dim=keys.raw("dim_head"), intermediate_size=keys.raw("dim_ff")))
    kinds, length = keys.size("prompt_types", default=32), keys.size("prompt_length", default=32)
    segments = keys.size("segment_types", default=32)
    buckets = keys.size("position_bias_num_buckets", default=512) + segments * segments
    # Its table is longer than its head by the prompts, so that the two are not one.
    draft = decoder(keys.also(tie_word_embeddings=False), Style(), size=size)
    more = (
        table("input_embedding.prompts", kinds * length, size.hidden),
        table("segment_embedding", segments, size.hidden),
        table("position_bias.relative_attention_bias", buckets, size.heads.query, part="attention"),
    )
    return replace(draft, outer=(*draft.outer, *more))


READERS = {
    "gpt_neox_japanese": gpt_neox_japanese,
    "cpmant": cpmant,
    "gpt2": gpt2,
    "gpt-sw3": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "gptj": gptj,
    "codegen": gptj,
    "bloom": bloom,
    "mpt": mpt,
    "opt": opt,
    "biogpt": offset_positions,
    "xglm": xglm,
    "ctrl": ctrl,
    "openai-gpt": openai_gpt,
    "falcon": falcon,
}
