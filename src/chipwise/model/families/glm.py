"""GLM 4 (dense), 4.5 to 4.7 (MoE), ChatGLM 2 and 3, and MoE decoders that copy GLM's or DeepSeek's layout."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, mlp, vector
from chipwise.model.decoder import NORM_PAIR, Dims, Style, decoder, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.families.deepseek import with_mtp
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture


def glm(keys: Keys) -> Draft:
    """GLM 4 (`glm`): Llama's shape with biases on Q, K, V."""
    return decoder(keys, Style(bias="qkv" if keys.flag("attention_bias", default=True) else ""))


def glm4(keys: Keys) -> Draft:
    """GLM 4 0414 (`glm4`): a norm after each block too."""
    names = (*NORM_PAIR, "post_self_attn_layernorm", "post_mlp_layernorm")
    bias = "qkv" if keys.flag("attention_bias", default=True) else ""
    return decoder(keys, Style(bias=bias, norm_names=names))


def glm_ocr(keys: Keys) -> Draft:
    """GLM-OCR's text model: GLM 4 0414 without biases."""
    return glm4(keys.also(attention_bias=keys.flag("attention_bias")))


def glm4_moe(keys: Keys) -> Draft:
    """GLM 4.5, 4.6, 4.7 and Solar Open: grouped-query attention, DeepSeek's mixture."""
    bias = "qkv" if keys.flag("attention_bias") else ""
    return mixed(keys, Style(bias=bias, qk_norm="head" if keys.flag("use_qk_norm") else ""))


def mixed(keys: Keys, style: Style, mix: Mix | None = None) -> Draft:
    """A decoder with DeepSeek's mixture, dense layers first, and multi-token-prediction layers."""
    size = dims(keys, ffn=False)
    ffns = mixture(keys, size.hidden, mix or Mix())
    draft = decoder(keys, style, size=size, ffns=ffns, plan=moe_plan(keys, size.layers))
    return with_mtp(keys, size, draft)


def chatglm(keys: Keys) -> Draft:
    """ChatGLM 2, 3 and GLM-4-9B (remote code): KV groups, biases on Q, K, V, a head that is never tied."""
    size = dims(keys)
    if keys.flag("multi_query_attention"):
        size = replace(size, heads=replace(size.heads, kv=keys.size("multi_query_group_num")))
    bias = "qkvo" if keys.flag("add_bias_linear") else "qkv" if keys.flag("add_qkv_bias") else ""
    style = Style(
        bias=bias,
        mlp_bias=keys.flag("add_bias_linear"),
        norm="rms" if keys.flag("rmsnorm", default=True) else "layer",
        final_norm=keys.flag("post_layer_norm", default=True),
    )
    return decoder(keys.also(tie_word_embeddings=False), style, size=size)


def bailing_moe(keys: Keys) -> Draft:
    """Ling and Ring (Bailing): biases and head norms where the config says so."""
    bias = ("qkv" if keys.flag("use_qkv_bias") else "") + ("o" if keys.flag("use_bias") else "")
    return mixed(keys, Style(bias=bias, qk_norm="head" if keys.flag("use_qk_norm") else ""))


def dots1(keys: Keys) -> Draft:
    """dots.llm1: norms over each head, DeepSeek's mixture."""
    return mixed(keys, Style(bias="qkvo" if keys.flag("attention_bias") else "", qk_norm="head"))


def hy_v3(keys: Keys) -> Draft:
    """HunYuan 3: as dots.llm1; one dense layer first where the config is silent."""
    known = keys if keys.has("first_k_dense_replace", "mlp_layer_types") else keys.also(first_k_dense_replace=1)
    return dots1(known)


def ernie4_5_moe(keys: Keys) -> Draft:
    """ERNIE 4.5 MoE: experts between two layer numbers, a correction for each expert's score."""
    size = dims(keys)
    start, end = (
        keys.size("moe_layer_start_index", default=1),
        keys.size("moe_layer_end_index", default=size.layers - 1),
    )
    every = keys.size("moe_layer_interval", default=1) or 1
    plan = ["moe" if (index + 1) % every == 0 and start <= index <= end else "dense" for index in range(size.layers)]
    bias = keys.flag("use_bias")
    ffns = mixture(keys, size.hidden, Mix(dense_bias=bias))
    moe = ffns["moe"]
    routed = keys.size("moe_num_experts")
    scored = replace(moe, weights=(*moe.weights, vector("mlp.moe_statics", routed, "router")))
    style = Style(bias="qkvo" if bias else "", mlp_bias=bias, tied=True)
    return decoder(keys, style, size=size, ffns={**ffns, "moe": scored}, plan=plan)


def minicpm(keys: Keys) -> Draft:
    """MiniCPM 1, 2 and 4, and its MoE: Llama's shape with a tied head; experts are MLPs of the full width."""
    size = dims(keys)
    style = Style(tied=True)
    if not keys.maybe("num_experts"):
        return decoder(keys, style)
    mix = Mix(width=("intermediate_size",))
    return decoder(keys, style, ffns={"moe": mixture(keys, size.hidden, mix)["moe"]})


def openmoe(keys: Keys) -> Draft:
    """OpenMoE: every `moe_layer_interval`-th layer routes to experts and has a dense MLP and a norm beside."""
    keys.need(("moe_layer_interval",))
    size = dims(keys)
    every = keys.size("moe_layer_interval", least=1)
    kinds = mixture(keys, size.hidden, Mix(width=("intermediate_size",)))
    beside = (*mlp(size.hidden, size.ffn, prefix="extra_mlp"), vector("pre_extra_mlp_layernorm", size.hidden))
    moe = replace(kinds["moe"], weights=(*kinds["moe"].weights, *beside))
    plan = ["moe" if (index + 1) % every == 0 else "dense" for index in range(size.layers)]
    return decoder(keys, Style(), size=size, ffns={**kinds, "moe": moe}, plan=plan)


def hunyuan(keys: Keys) -> Draft:
    """HunYuan dense, Large and A13B: tied head, head norms, shared experts; some keys are lists, one entry a layer."""
    size = dims(keys.also(head_dim=keys.maybe("attention_head_dim", "head_dim")))
    style = Style(
        bias="qkvo" if keys.flag("attention_bias") else "",
        mlp_bias=keys.flag("mlp_bias"),
        tied=True,
        qk_norm="head" if keys.flag("use_qk_norm", default=True) else "",
    )
    experts = keys.raw("num_experts")
    always = keys.text("model_type") == "hunyuan_v1_moe"
    if not experts or (experts == 1 and not always):
        return decoder(keys, style, size=size)
    return _hunyuan_moe(keys, size, style)


def _hunyuan_moe(keys: Keys, size: Dims, style: Style) -> Draft:
    names = ("moe_intermediate_size", "moe_topk", "num_shared_expert")
    lists = [keys.sizes(name, count=size.layers) or (0,) * size.layers for name in names]
    widths = [width or size.ffn for width in lists[0]]
    skipped = keys.size("moe_layer_num_skipped", default=0)
    # Transformers' own class always has a shared expert; the remote one where the config says so.
    always = keys.text("model_type") == "hunyuan_v1_moe"
    ffns: dict[str, Block] = {"dense": Block(weights=mlp(size.hidden, size.ffn))}
    plan = []
    for index, (width, chosen, shared) in enumerate(side_by_side(keys, names[0], widths, lists[1], lists[2])):
        label = f"{width}/{chosen}/{shared}" if index >= skipped else "dense"
        known = keys.also(
            moe_intermediate_size=width,
            num_experts_per_tok=chosen or 1,
            n_shared_experts=(shared or int(always)) if keys.flag("use_mixed_mlp_moe", default=always) else 0,
            moe_topk=None,
            num_shared_expert=None,
        )
        if label not in ffns:
            ffns[label] = mixture(known, size.hidden, Mix(shared_name="mlp.shared_mlp"))["moe"]
        plan.append(label)
    return decoder(keys, style, size=size, ffns=ffns, plan=plan)


def dbrx(keys: Keys) -> Draft:
    """DBRX: KV heads and experts in nested configs, norms with scales only."""
    attention, ffn = keys.mapping("attn_config"), keys.mapping("ffn_config")
    known = keys.also(
        num_key_value_heads=attention.get("kv_n_heads"),
        num_experts=ffn.get("moe_num_experts"),
        num_experts_per_tok=ffn.get("moe_top_k"),
        moe_intermediate_size=ffn.get("ffn_hidden_size"),
    )
    known.need(("num_key_value_heads",), ("num_experts",), ("moe_intermediate_size",))
    size = dims(known, ffn=False)
    mix = Mix(prefix="ffn", router="ffn.router.layer")
    return decoder(known, Style(), size=size, ffns={"moe": mixture(known, size.hidden, mix)["moe"]})


READERS = {
    "glm": glm,
    "glm4": glm4,
    "glm4_moe": glm4_moe,
    "glm4v_text": glm4,
    "glm_ocr_text": glm_ocr,
    "glm_image_text": glm4,
    "glm4v_moe_text": glm4_moe,
    "solar_open": glm4_moe,
    "sarvam_moe": glm4_moe,
    "bailing_moe": bailing_moe,
    "bailing_moe_v2": bailing_moe,
    "dots1": dots1,
    "hy_v3": hy_v3,
    "ernie4_5_moe": ernie4_5_moe,
    "minicpm": minicpm,
    "openmoe": openmoe,
    "hunyuan": hunyuan,
    "hunyuan_v1_dense": hunyuan,
    "hunyuan_vl_text": hunyuan,
    "hunyuan_v1_moe": hunyuan,
    "dbrx": dbrx,
}
