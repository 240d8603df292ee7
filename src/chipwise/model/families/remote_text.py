"""Decoders whose code ships with their weights: OpenELM, Arctic, Grok 1, PLaMo, TeleChat, CodeShell, Jais, Step 3.

Source: the modeling file beside each checkpoint on Hugging Face, named in the reader's docstring.
"""

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
from chipwise.model.decoder import NORM_PAIR, Dims, Style, causal_lm, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.families.gpt import falcon
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture, with_weights


def openelm(keys: Keys) -> Draft:
    """OpenELM (apple/OpenELM modeling_openelm.py): heads and MLP width of its own in every layer, tied head."""
    keys.need(("model_dim",), ("num_query_heads",), ("num_kv_heads",), ("ffn_multipliers",), ("head_dim",), k.VOCAB)
    hidden, dim = keys.size("model_dim", least=1), keys.size("head_dim", least=1)
    count = keys.layers("num_transformer_layers")
    normed = "head" if keys.flag("normalize_qk_projections") else ""
    lists = (keys.sizes("num_query_heads", count=count), keys.sizes("num_kv_heads", count=count))
    widths = _widths(keys, hidden, count)
    mixers: dict[str, Block] = {}
    ffns: dict[str, Block] = {}
    plan = []
    for query, kv, width in side_by_side(keys, "num_query_heads", *lists, widths)[:count]:
        heads = Heads(hidden=hidden, query=query, kv=kv, dim=dim)
        style = Projections(qk_norm="head" if normed else "")
        mixers[f"{query}/{kv}"] = Block(weights=attention_weights(heads, style), attention=heads.attention())
        ffns[str(width)] = Block(weights=mlp(hidden, width, gated=keys.flag("ffn_with_glu", default=True)))
        plan.append((f"{query}/{kv}", str(width)))
    size = Dims(
        hidden=hidden,
        layers=count,
        heads=Heads(hidden=hidden, query=1, kv=1, dim=dim),
        ffn=0,
        vocab=keys.size(*k.VOCAB),
    )
    tied = keys.flag("share_input_output_layers", default=True)
    draft = causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, hidden)), Style(tied=tied))
    return replace(draft, max_context_tokens=keys.maybe("max_context_length"))


def _widths(keys: Keys, hidden: int, count: int) -> tuple[int, ...]:
    """`ffn_multipliers` times the width, each to a multiple of `ffn_dim_divisor`; one number stands for all layers."""
    given = keys.raw("ffn_multipliers")
    factors = [given] * count if isinstance(given, int | float) else list(keys.items("ffn_multipliers"))
    divisor = keys.size("ffn_dim_divisor", default=256, least=1)
    return tuple(
        _made_divisible(Keys(data={"ffn_multipliers": one}).number("ffn_multipliers", default=1.0) * hidden, divisor)
        for one in factors
    )


def _made_divisible(width: float, divisor: int) -> int:
    """The nearest multiple, at least one, and never less than nine tenths of the width.

    >>> _made_divisible(0.5 * 1280, 256), _made_divisible(0.76 * 1280, 256)
    (768, 1024)
    """
    made = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return made + divisor if made < 0.9 * width else made


def arctic(keys: Keys) -> Draft:
    """Arctic (Snowflake modeling_arctic.py): beside the experts of every `moe_layer_frequency`-th layer a dense MLP."""
    keys.need(k.EXPERTS, k.PER_TOKEN, k.FFN)
    size = dims(keys)
    mix = Mix(width=k.FFN, prefix="block_sparse_moe", router="block_sparse_moe.gate")
    kinds = mixture(keys, size.hidden, mix)
    beside: Weights = ()
    if keys.flag("parallel_attn_mlp_res", "use_residual"):
        beside = (*mlp(size.hidden, size.hidden, prefix="residual_mlp"), *norm("residual_layernorm", size.hidden))
    every = keys.size("moe_layer_frequency", default=2, least=1)
    plan = ["moe" if (index + 1) % every == 0 else "dense" for index in range(size.layers)]
    ffns = {"dense": kinds["dense"], "moe": with_weights(kinds["moe"], beside)}
    return decoder(keys.also(sliding_window=None), Style(), size=size, ffns=ffns, plan=plan)


def grok1(keys: Keys) -> Draft:
    """Grok 1 (hpcai-tech/grok-1 modeling_grok1.py): four norms a layer, experts of the full width, tied head."""
    keys.need(k.EXPERTS, k.PER_TOKEN, k.FFN)
    size = dims(keys)
    ffns = {"moe": mixture(keys, size.hidden, Mix(width=k.FFN, prefix="moe_block", router="moe_block.gate"))["moe"]}
    names = ("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm")
    return decoder(keys, Style(norm_names=names, tied=True), size=size, ffns=ffns)


def plamo(keys: Keys) -> Draft:
    """PLaMo 1 (pfnet/plamo-13b modeling_plamo.py): `n_shared_head` query heads a KV head, one norm a layer."""
    shared = keys.size("n_shared_head", default=8, least=1)
    known = keys.also(num_key_value_heads=-(-keys.size(*k.HEADS) // shared))
    return decoder(known, Style(norm_names=("norm",)))


def telechat(keys: Keys) -> Draft:
    """TeleChat 1 and 2 (Tele-AI modeling_telechat.py): biases on the output projections only."""
    size = dims(keys)
    down = vector("mlp.down_proj.bias", size.hidden, "mlp")
    return decoder(keys, Style(bias="o"), size=size, more=(down,))


def codeshell(keys: Keys) -> Draft:
    """CodeShell (WisdomShell modeling_codeshell.py): GPT-2's layers with KV groups and rotary positions, tied head."""
    size = dims(keys, ffn_times=4)
    grouped = keys.flag("group_query_attention", default=True)
    kv = keys.size("num_query_groups", default=size.heads.query) if grouped else size.heads.query
    size = replace(size, heads=replace(size.heads, kv=kv))
    return decoder(keys, Style(bias="qkvo", norm="layer", gated=False, mlp_bias=True, tied=True), size=size)


def refact(keys: Keys) -> Draft:
    """Refact (smallcloudai modeling_gpt_refact.py): one KV head, ALiBi, gated MLP of two thirds, scales only."""
    size = dims(keys, ffn=False)
    width = -(-(8 * size.hidden // 3) // 256) * 256
    kv = 1 if keys.flag("multi_query", default=True) else size.heads.query
    size = replace(size, ffn=width, heads=replace(size.heads, kv=kv))
    return decoder(keys, Style(), size=size)


def jais(keys: Keys) -> Draft:
    """Jais (core42 modeling_jais.py): GPT-2 with ALiBi and a gated MLP, biases everywhere, tied head."""
    size = dims(keys, ffn_times=4)
    gated = keys.text("activation_function", default="gelu") == "swiglu"
    learned = keys.text("position_embedding_type", default="learned") == "learned"
    style = Style(
        bias="qkvo",
        norm="layer",
        gated=gated,
        mlp_bias=True,
        tied=True,
        positions=keys.size(*k.CONTEXT) if learned else 0,
    )
    return decoder(keys, style, size=size)


def step3_text(keys: Keys) -> Draft:
    """Step 3 (stepfun-ai modeling_step3.py): queries through a shared rank, a few wide KV heads, a shared expert."""
    keys.need(("share_q_dim",), ("head_dim",), ("moe_num_experts",), ("moe_top_k",), ("moe_intermediate_size",))
    size = dims(keys, ffn=False)
    heads = replace(size.heads, kv=keys.size("num_attention_groups", default=1))
    rank = keys.size("share_q_dim")
    width = heads.query * heads.dim
    weights: Weights = (
        *attention_weights(heads, Projections(no="q")),
        *matrix("self_attn.q_proj", (rank, size.hidden), "attention"),
        *norm("self_attn.inter_norm", rank),
        *matrix("self_attn.wq", (width, rank), "attention", units=heads.query),
    )
    mixers = {"full": Block(weights=weights, attention=heads.attention())}
    ffns = mixture(keys, size.hidden, Mix(shared=("share_expert_dim",), prefix="moe", router="moe.gate"))
    listed = keys.raw("moe_layers_enum")
    moe = {int(part) for part in str(listed or "").split(",") if part.strip().isdigit()}
    moe = moe or set(range(1, size.layers))
    plan = [("full", "moe" if index in moe else "dense") for index in range(size.layers)]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def refined_web(keys: Keys) -> Draft:
    """Falcon under its first names: RefinedWeb (40B, KV heads, two norms) and RefinedWebModel (7B)."""
    return falcon(keys.also(new_decoder_architecture=keys.has("n_head_kv"), num_kv_heads=keys.raw("n_head_kv")))


READERS = {
    "openelm": openelm,
    "arctic": arctic,
    "grok-1": grok1,
    "plamo": plamo,
    "telechat": telechat,
    "codeshell": codeshell,
    "gpt_refact": refact,
    "jais": jais,
    "step3_text": step3_text,
    "RefinedWeb": refined_web,
    "RefinedWebModel": refined_web,
}
