"""DeepSeek V2 to V3.2, Kimi K2, GLM 5 and others: latent attention, many small experts, shared experts."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, Weights, assemble, matrix, norm, norms, table
from chipwise.model.decoder import NORM_PAIR, Dims, Style, attention_mixers, causal_lm, dims, moe_plan, projections
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import PLAIN, Mix, mixture
from chipwise.model.mla import indexer_of, mla_block, mla_of
from chipwise.model.spec import Layer


def mtp_layers(keys: Keys, size: Dims, layer: Layer) -> tuple[Layer, ...]:
    """Multi-token-prediction layers as checkpoints hold them.

    Each is a layer like the last one, a projection of both inputs, three norms, and copies of embedding and head.
    """
    if not keys.has("num_nextn_predict_layers"):
        return ()
    extra: Weights = (
        *norms(("enorm", "hnorm", "shared_head.norm"), size.hidden),
        *matrix("eh_proj", (size.hidden, 2 * size.hidden), "other"),
        table("embed_tokens", size.vocab, size.hidden, units=size.vocab),
        *matrix("shared_head.head", (size.vocab, size.hidden), "head", units=size.vocab),
    )
    made = stack(keys.size("num_nextn_predict_layers"), (*layer.weights, *extra), layer.attention)
    return tuple(replace(one, experts=layer.experts) for one in made)


def with_mtp(keys: Keys, size: Dims, draft: Draft) -> Draft:
    """The draft with its multi-token-prediction layers, which are built like the layer that comes last."""
    if not draft.layers:
        return draft
    last = max(draft.layers, key=lambda layer: layer.indices[-1])
    return replace(draft, mtp=mtp_layers(keys, size, last))


def deepseek(keys: Keys, mix: Mix = PLAIN, more: Weights = ()) -> Draft:
    """Latent attention over a dense or mixed feed-forward; `use_mla` false (DeepSeek-VL2 tiny) is plain attention."""
    size = dims(keys, ffn=False)
    bias = keys.flag("attention_bias")
    if keys.data.get("use_mla") is False or not keys.maybe("kv_lora_rank"):
        plain = keys.also(head_dim=None, qk_rope_head_dim=None)
        size = dims(plain, ffn=False)
        mixers = attention_mixers(plain, size.heads, projections(Style(bias="qkvo" if bias else "")))
        mixers["mla"] = mixers["full"]
    else:
        mixers = {"mla": mla_block(mla_of(keys, size.hidden, bias=bias), more, indexer_of(keys))}
    plan = side_by_side(keys, "indexer_types", _mixer_plan(keys, size), moe_plan(keys, size.layers))
    if "shared-index" in {kind for kind, _ in plan}:
        mixers["shared-index"] = _without_indexer(keys, size)
    layers = assemble(plan, mixers, mixture(keys, size.hidden, mix), norms(NORM_PAIR, size.hidden))
    return with_mtp(keys, size, causal_lm(keys, size, layers))


def _mixer_plan(keys: Keys, size: Dims) -> list[str]:
    types = keys.items("indexer_types")
    if not types:
        return ["mla"] * size.layers
    return ["shared-index" if item == "shared" else "mla" for item in types[: size.layers]]


def _without_indexer(keys: Keys, size: Dims) -> Block:
    """A layer that reads the tokens another layer's indexer picked, and keeps no index keys itself."""
    block = mla_block(mla_of(keys, size.hidden, bias=keys.flag("attention_bias")))
    return replace(block, attention=replace(block.attention, sparse_tokens=keys.maybe("index_topk")))


def axk1(keys: Keys) -> Draft:
    """A.X K1: DeepSeek V3 with a norm after every mixture."""
    draft = deepseek(keys)
    size = dims(keys, ffn=False)
    more = norm("mlp.post_mlp_layernorm", size.hidden)
    layers = tuple(
        replace(layer, weights=(*layer.weights, *more)) if layer.experts else layer for layer in draft.layers
    )
    return replace(draft, layers=layers)


def longcat(keys: Keys) -> Draft:
    """LongCat-Flash: two latent attentions and two dense MLPs a layer beside one mixture with zero-compute experts."""
    keys.need(("ffn_hidden_size",), ("expert_ffn_hidden_size",))
    size = dims(keys, ffn=False)
    zero = keys.size("zero_expert_num", default=0)
    block = mla_block(mla_of(keys, size.hidden, bias=keys.flag("attention_bias")))
    mix = Mix(router="mlp.router.classifier")
    kinds = mixture(keys, size.hidden, mix, dense=("ffn_hidden_size",))
    wider = matrix("mlp.router.classifier.zero", (zero, size.hidden), "router") if zero else ()
    first = Block(weights=(*kinds["dense"].weights, *wider, *kinds["moe"].weights), experts=kinds["moe"].experts)
    plan = [("mla", "first"), ("mla", "second")] * size.layers
    ffns = {"first": first, "second": kinds["dense"]}
    layers = assemble(plan, {"mla": block}, ffns, norms(NORM_PAIR, size.hidden))
    return causal_lm(keys, size, layers)


def minicpm3(keys: Keys) -> Draft:
    """MiniCPM 3: latent attention over a dense MLP; the value width is hidden / heads, the head tied."""
    size = dims(keys.also(head_dim=None))
    value = keys.size("v_head_dim", default=size.hidden // size.heads.query)
    known = keys.also(v_head_dim=value, n_routed_experts=None, num_experts=None)
    return deepseek(known.also(tie_word_embeddings=keys.flag("tie_word_embeddings", default=True)))


def unlimited_ocr(keys: Keys) -> Draft:
    """Unlimited OCR's text model: DeepSeek's mixture over plain attention, which keeps the whole prompt."""
    known = keys if keys.has("mlp_layer_types", "first_k_dense_replace") else keys.also(first_k_dense_replace=1)
    return deepseek(known.also(kv_lora_rank=None, layer_types=None))


def dense_mla(keys: Keys) -> Draft:
    """Youtu: latent attention over a dense MLP."""
    return deepseek(keys.also(n_routed_experts=None))


READERS = {
    "deepseek": deepseek,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "deepseek_v32": deepseek,
    "kimi_k2": deepseek,
    "glm_moe_dsa": deepseek,
    "glm4_moe_lite": deepseek,
    "axk1": axk1,
    "longcat_flash": longcat,
    "minicpm3": minicpm3,
    "youtu": dense_mla,
    "mistral4": deepseek,
    "sarvam_mla": deepseek,
    "unlimited_ocr_text": unlimited_ocr,
}
