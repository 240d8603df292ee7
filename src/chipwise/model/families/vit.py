"""Vision transformers by themselves: ViT, DeiT, BEiT, DINOv2 and v3, YOLOS, CLIP and SigLIP towers, Pixtral."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import VIT as LAYER
from chipwise.model.blocks import EncoderStyle, Weights, matrix, norm, norms, table, vector
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.spec import Weight
from chipwise.model.towers import (
    VISION_LAYERS,
    VISION_WIDTH,
    Vit,
    attention_pool,
    clip_text,
    patch_count,
    vision,
    width_of,
)


def _labels(keys: Keys, width: int) -> Weights:
    if not keys.head.endswith(("ForImageClassification", "ForImageClassificationWithTeacher")):
        return ()
    return matrix("classifier", (keys.labels, width), "head", bias=True)


def _qkv(keys: Keys) -> str:
    return "qkvo" if keys.flag("qkv_bias", default=True) else "o"


def vit(keys: Keys) -> Draft:
    """ViT: a class token, a pooler in the bare model, a classifier where the name asks for one."""
    return _vit(keys, 1)


def deit(keys: Keys) -> Draft:
    """DeiT: a distillation token beside the class token."""
    return _vit(keys, 2)


def _vit(keys: Keys, tokens: int) -> Draft:
    hidden = keys.size(*VISION_WIDTH)
    pooler: Weights = ()
    if keys.head.endswith("Model") and keys.text("model_type") != "vit_msn":
        pooler = matrix("pooler.dense", (hidden, hidden), "other", bias=True)
    if keys.head.endswith("ForMaskedImageModeling"):
        stride = keys.size("encoder_stride", default=16)
        pooler = (
            vector("mask_token", hidden, "embedding"),
            *matrix("decoder", (3 * stride * stride, hidden), "head", bias=True),
        )
    heads = _labels(keys, hidden) * (2 if keys.head.endswith("WithTeacher") else 1)
    style = replace(LAYER, bias=_qkv(keys))
    return vision(keys, Vit(style=style, class_tokens=tokens, extra=(*pooler, *heads)))


def beit(keys: Keys) -> Draft:
    """BEiT: keys without bias, layer scales, relative positions (shared or in each layer), mean pooling."""
    hidden = keys.size(*VISION_WIDTH)
    scaled = keys.number("layer_scale_init_value", default=0.1) > 0
    style = replace(LAYER, bias="qvo")
    if scaled:
        style = replace(style, extra=(vector("lambda_1", hidden), vector("lambda_2", hidden)))
    side = int(patch_count(keys) ** 0.5)
    relative = table(
        "relative_position_bias", (2 * side - 1) ** 2 + 3, keys.size("num_attention_heads"), part="attention"
    )
    extra: list[Weight] = []
    if keys.flag("use_relative_position_bias"):
        style = replace(style, extra=(*style.extra, relative))
    if keys.flag("use_shared_relative_position_bias"):
        extra.append(relative)
    if keys.flag("use_mask_token"):
        extra.append(vector("mask_token", hidden, "embedding"))
    pooled = keys.flag("use_mean_pooling", default=True)
    return vision(
        keys,
        Vit(
            style=style,
            positions=keys.flag("use_absolute_position_embeddings"),
            post_norm=pooled,
            extra=(*extra, *_labels(keys, hidden)),
        ),
    )


def dinov2(keys: Keys) -> Draft:
    """DINOv2, also with registers: layer scales, a mask token, an optional gated MLP; two vectors classify."""
    hidden = keys.size(*VISION_WIDTH)
    style = replace(LAYER, bias=_qkv(keys), extra=(vector("layer_scale1", hidden), vector("layer_scale2", hidden)))
    known = keys
    if keys.flag("use_swiglu_ffn"):
        wide = int(hidden * keys.number("mlp_ratio", default=4.0))
        known = keys.also(intermediate_size=(wide * 2 // 3 + 7) // 8 * 8)
        style = replace(style, gated=True)
    mask = keys.flag("use_mask_token", default=True) or keys.text("model_type") == "dinov2_with_registers"
    registers = keys.size("num_register_tokens", default=0)
    return vision(known, Vit(style=style, more_tokens=int(mask) + registers, extra=_labels(keys, 2 * hidden)))


def dinov3(keys: Keys) -> Draft:
    """DINOv3: rotary positions, registers, layer scales, biases one by one."""
    hidden = keys.size(*VISION_WIDTH)
    named = (("q", "query_bias"), ("k", "key_bias"), ("v", "value_bias"), ("o", "proj_bias"))
    bias = "".join(letter for letter, name in named if keys.flag(name, default=letter != "k"))
    style = EncoderStyle(
        bias=bias,
        gated=keys.flag("use_gated_mlp"),
        mlp_bias=keys.flag("mlp_bias", default=True),
        extra=(vector("layer_scale1", hidden), vector("layer_scale2", hidden)),
    )
    registers = keys.size("num_register_tokens", default=0)
    return vision(
        keys,
        Vit(style=style, positions=False, more_tokens=1 + registers, extra=_labels(keys, 2 * hidden)),
    )


def yolos(keys: Keys) -> Draft:
    """YOLOS: a ViT with detection tokens, positions again in every layer, two three-layer heads."""
    hidden = keys.size(*VISION_WIDTH)
    tokens = keys.size("num_detection_tokens", default=100)
    rows = patch_count(keys) + tokens + 1
    extra: Weights = (table("embeddings.positions", rows, hidden),)
    if keys.flag("use_mid_position_embeddings", default=True):
        extra += (vector("mid_positions", (keys.layers(*VISION_LAYERS) - 1) * rows * hidden, "embedding"),)
    if keys.head.endswith("ForObjectDetection"):
        for name, outputs in (("class_labels", keys.labels + 1), ("bbox", 4)):
            extra += (
                *matrix(f"{name}_predictor.0", (hidden, hidden), "other", bias=True),
                *matrix(f"{name}_predictor.1", (hidden, hidden), "other", bias=True),
                *matrix(f"{name}_predictor.2", (outputs, hidden), "head", bias=True),
            )
    elif keys.head.endswith("Model"):
        extra += matrix("pooler.dense", (hidden, hidden), "other", bias=True)
    style = replace(LAYER, bias=_qkv(keys))
    return vision(keys, Vit(style=style, more_tokens=tokens, positions=False, extra=extra))


def clip_vision(keys: Keys) -> Draft:
    """CLIP's vision tower: no bias on the patches, norms before and after."""
    projected: Weights = ()
    hidden = keys.size(*VISION_WIDTH)
    if keys.head.endswith("WithProjection"):
        projected = matrix("visual_projection", (keys.size("projection_dim", default=512), hidden), "head")
    return vision(keys, Vit(patch_bias=False, pre_norm=True, extra=projected))


def siglip_vision(keys: Keys) -> Draft:
    """SigLIP's vision tower: no class token, a pooling head where `vision_use_head` (true where unsaid)."""
    hidden = keys.size(*VISION_WIDTH)
    pooled = keys.flag("vision_use_head", default=True)
    head = attention_pool(hidden, width_of(keys, hidden)) if pooled else ()
    return vision(keys, Vit(class_tokens=0, extra=head))


def siglip2_vision(keys: Keys) -> Draft:
    """SigLIP 2 (NaFlex): patches are projected as vectors, positions are counted, not computed from a size."""
    hidden = keys.size(*VISION_WIDTH)
    pooled = keys.flag("vision_use_head", default=True)
    head = attention_pool(hidden, width_of(keys, hidden)) if pooled else ()
    return vision(keys, Vit(class_tokens=0, as_linear=True, extra=head))


def idefics_vision(keys: Keys) -> Draft:
    """Idefics 2 and 3, SmolVLM: SigLIP without a pooling head."""
    return vision(keys, Vit(class_tokens=0))


def clip_text_model(keys: Keys) -> Draft:
    """CLIP's text tower; `WithProjection` adds the projection."""
    hidden = keys.size("hidden_size")
    projected: Weights = ()
    if keys.head.endswith("WithProjection"):
        projected = matrix("text_projection", (keys.size("projection_dim", default=512), hidden), "head")
    return clip_text(keys, head=False, final=projected)


def siglip_text_model(keys: Keys) -> Draft:
    """SigLIP's text tower, with its head."""
    return clip_text(keys, head=True)


def pixtral(keys: Keys) -> Draft:
    """Pixtral: RMS norms, gated MLP, no biases, rotary positions."""
    hidden = keys.size(*VISION_WIDTH)
    style = EncoderStyle(norm="rms", bias="", gated=True, mlp_bias=False)
    before = norm("ln_pre", hidden)
    return vision(
        keys, Vit(style=style, patch_bias=False, class_tokens=0, positions=False, post_norm=False, extra=before)
    )


def internvl_vision(keys: Keys) -> Draft:
    """InternViT as transformers builds it: layer scales, optional norms over Q and K."""
    hidden = keys.size(*VISION_WIDTH)
    rms = keys.text("norm_type", default="layer_norm") == "rms_norm"
    scales = (vector("lambda_1", hidden), vector("lambda_2", hidden))
    qk = norms(("q_norm", "k_norm"), hidden) if keys.flag("use_qk_norm") else ()
    style = EncoderStyle(
        norm="rms" if rms else "layer",
        bias="qkvo" if keys.flag("attention_bias") else "o",
        extra=(*scales, *qk),
    )
    mask = keys.flag("use_mask_token")
    return vision(
        keys,
        Vit(
            style=style,
            more_tokens=int(mask),
            positions=keys.flag("use_absolute_position_embeddings", default=True),
            post_norm=not keys.flag("use_mean_pooling", default=True),
        ),
    )


def intern_vit(keys: Keys) -> Draft:
    """InternViT as InternVL ships it (`intern_vit_6b`): `qk_normalization`, `norm_type`, no norm at the end."""
    hidden = keys.size(*VISION_WIDTH)
    rms = keys.text("norm_type", default="rms_norm") == "rms_norm"
    scales = (vector("ls1", hidden), vector("ls2", hidden))
    qk = norms(("q_norm", "k_norm"), hidden) if keys.flag("qk_normalization") else ()
    bias = "qkvo" if keys.flag("qkv_bias") else "o"
    style = EncoderStyle(norm="rms" if rms else "layer", bias=bias, extra=(*scales, *qk))
    return vision(keys, Vit(style=style, post_norm=False))


READERS = {
    "vit": vit,
    "deit": deit,
    "vit_msn": vit,
    "beit": beit,
    "dinov2": dinov2,
    "dinov2_with_registers": dinov2,
    "dinov3_vit": dinov3,
    "yolos": yolos,
    "clip_vision_model": clip_vision,
    "siglip_vision_model": siglip_vision,
    "siglip2_vision_model": siglip2_vision,
    "idefics2_vision": idefics_vision,
    "idefics3_vision": idefics_vision,
    "smolvlm_vision": idefics_vision,
    "clip_text_model": clip_text_model,
    "siglip_text_model": siglip_text_model,
    "siglip2_text_model": siglip_text_model,
    "pixtral": pixtral,
    "internvl_vision": internvl_vision,
    "intern_vit_6b": intern_vit,
}
