"""LLaVA's pattern: a vision tower, a small projector, a language model. The projectors differ, and little else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chipwise.model.blocks import Heads, Projections, Weights, attention_weights, matrix, mlp, norm, table, vector
from chipwise.model.defaults import named_tower
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.nested import read_part, text_part, tower_part
from chipwise.model.spec import Tower

Projector = Callable[[Keys, int, int], Weights]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which text and vision families stand in where a config does not say, and the projector between them."""

    text: str
    vision: str
    projector: Projector
    text_names: tuple[str, ...] = ("text_config",)
    vision_names: tuple[str, ...] = ("vision_config",)


def two_layers(keys: Keys, seen: int, hidden: int) -> Weights:
    """Two linear layers with biases; several vision layers may be looked at, side by side."""
    picked = keys.raw("vision_feature_layer")
    wide = seen * (len(picked) if isinstance(picked, list) else 1)
    bias = keys.flag("multimodal_projector_bias", default=True)
    return (
        *matrix("linear_1", (hidden, wide), "other", bias=bias),
        *matrix("linear_2", (hidden, hidden), "other", bias=bias),
    )


def with_newline(keys: Keys, seen: int, hidden: int) -> Weights:
    """LLaVA-NeXT and OneVision: a learned end of line beside the projector."""
    return (*two_layers(keys, seen, hidden), vector("image_newline", hidden, "embedding"))


def vip(keys: Keys, seen: int, hidden: int) -> Weights:
    """VipLLaVA: a norm over five vision layers first."""
    layers = keys.items("vision_feature_layers")
    wide = seen * (len(layers) or 5)
    return (
        *norm("projector_layernorm", wide, "layer"),
        *matrix("linear_1", (hidden, wide), "other", bias=True),
        *matrix("linear_2", (hidden, hidden), "other", bias=True),
    )


def gemma3(_keys: Keys, seen: int, hidden: int) -> Weights:
    """Gemma 3: one matrix and a norm."""
    return (*matrix("mm_input_projection", (hidden, seen), "other"), *norm("mm_soft_emb_norm", seen))


def paligemma(_keys: Keys, seen: int, hidden: int) -> Weights:
    """PaliGemma: one matrix with bias."""
    return matrix("linear", (hidden, seen), "other", bias=True)


def mistral3(keys: Keys, seen: int, hidden: int) -> Weights:
    """Mistral 3: norm, a merger of patches, two linear layers."""
    merge = keys.size("spatial_merge_size", default=2) ** 2
    bias = keys.flag("multimodal_projector_bias")
    picked = keys.raw("vision_feature_layer")
    wide = seen * (len(picked) if isinstance(picked, list) else 1)
    return (
        *norm("norm", seen),
        *matrix("patch_merger.merging_layer", (seen, seen * merge), "other"),
        *matrix("linear_1", (hidden, wide), "other", bias=bias),
        *matrix("linear_2", (hidden, hidden), "other", bias=bias),
    )


def idefics3(keys: Keys, seen: int, hidden: int) -> Weights:
    """Idefics 3, SmolVLM: one matrix over shuffled patches."""
    return matrix("modality_projection.proj", (hidden, seen * keys.size("scale_factor", default=2) ** 2), "other")


def internvl(keys: Keys, seen: int, hidden: int) -> Weights:
    """InternVL: a norm over four patches, two linear layers."""
    ratio = keys.number("downsample_ratio", default=0.5)
    wide = int(seen / ratio**2)
    return (
        *norm("layer_norm", wide, "layer"),
        *matrix("linear_1", (hidden, wide), "other", bias=True),
        *matrix("linear_2", (hidden, hidden), "other", bias=True),
    )


def lfm2_vl(keys: Keys, seen: int, hidden: int) -> Weights:
    """LFM2-VL: a norm over four patches where said, two linear layers."""
    wide = seen * keys.size("downsample_factor", default=2) ** 2
    inner = keys.size("projector_hidden_size", default=2560)
    bias = keys.flag("projector_bias", default=True)
    before = norm("layer_norm", wide, "layer") if keys.flag("projector_use_layernorm", default=True) else ()
    return (
        *before,
        *matrix("linear_1", (inner, wide), "other", bias=bias),
        *matrix("linear_2", (hidden, inner), "other", bias=bias),
    )


def aya(keys: Keys, seen: int, hidden: int) -> Weights:
    """Aya Vision, Command A Vision: a gated projector over shuffled patches (Aya with a norm)."""
    wide = seen * keys.size("downsample_factor", default=2) ** 2
    is_aya = keys.text("model_type") == "aya_vision"
    inner = keys.size("alignment_intermediate_size", default=hidden if is_aya else 36864)
    before = norm("layernorm", wide, "layer") if is_aya else ()
    return (
        *before,
        *matrix("linear_1", (inner, wide), "other", bias=True),
        *matrix("linear_2", (hidden, inner // 2), "other", bias=True),
    )


def deepseek_vl(_keys: Keys, seen: int, hidden: int) -> Weights:
    """DeepSeek-VL, Janus: an aligner of two linear layers."""
    return (
        *matrix("aligner.linear1", (hidden, seen), "other", bias=True),
        *matrix("aligner.linear2", (hidden, hidden), "other", bias=True),
    )


def idefics2(keys: Keys, seen: int, hidden: int) -> Weights:
    """Idefics 2: a gated projection and a perceiver that attends to the patches."""
    inner = Keys(data=keys.mapping("perceiver_config"))
    text = Keys(data=keys.mapping("text_config"))
    width = text.size("intermediate_size", default=14336)
    depth = inner.layers("resampler_depth") if inner.has("resampler_depth") else 3
    heads = Heads(
        hidden=hidden,
        query=inner.size("resampler_n_heads", default=16),
        kv=inner.size("num_key_value_heads", default=4),
        dim=inner.size("resampler_head_dim", default=96),
    )
    latents = inner.size("resampler_n_latents", default=64)
    names = ("input_latents_norm", "input_context_norm", "post_attention_layernorm")
    layer = (
        *attention_weights(heads, Projections()),
        *mlp(hidden, 4 * hidden),
        *(vector(name, hidden) for name in names),
    )
    return (
        *matrix("modality_projection.gate_proj", (width, seen), "other"),
        *matrix("modality_projection.up_proj", (width, seen), "other"),
        *matrix("modality_projection.down_proj", (hidden, width), "other"),
        table("perceiver.latents", latents, hidden),
        *norm("perceiver.norm", hidden),
        *(weight for _ in range(depth) for weight in layer),
    )


def read_pattern(pattern: Pattern) -> Callable[[Keys], Draft]:
    """The reader of a pattern."""

    def read(keys: Keys) -> Draft:
        text = text_part(keys, *pattern.text_names, default=pattern.text)
        tower, seen = tower_part(keys, *pattern.vision_names, default=pattern.vision)
        between = Tower(name="multi_modal_projector", weights=pattern.projector(keys, seen, text.hidden_size))
        return text.beside(tower, between, kind="vision-language")

    return read


def shieldgemma2(keys: Keys) -> Draft:
    """ShieldGemma 2: Gemma 3, which ties its head whatever the class around it assumes."""
    tied = keys.flag("tie_word_embeddings") if keys.has("tie_word_embeddings") else True
    return read_pattern(PATTERNS["gemma3"])(keys.also(tie_word_embeddings=tied))


def original_llava(keys: Keys) -> Draft:
    """LLaVA as first published: the language model's config with the name of a vision tower."""
    if keys.has("text_config", "vision_config"):
        return read_pattern(PATTERNS["llava"])(keys)
    named = keys.text("unknown_type", default="llava_llama")
    text = text_part(keys, default=next((kind for word, kind in _LANGUAGES if word in named), "llama"))
    name = keys.text("mm_vision_tower")
    if not name:
        raise keys.missing("mm_vision_tower or vision_config")
    tower, seen = _named(keys, name)
    return text.beside(tower, _mm_projector(keys, seen, text.hidden_size), kind="vision-language")


# What the name of a model built on LLaVA's code says of its language model.
_LANGUAGES = (("qwen", "qwen2"), ("mistral", "mistral"), ("phi3", "phi3"), ("phi", "phi"), ("gemma", "gemma"))


def _mm_projector(keys: Keys, seen: int, hidden: int) -> Tower:
    kind = keys.text("mm_projector_type", default="linear")
    depth = int(kind[3:-6]) if kind.startswith("mlp") and kind.endswith("x_gelu") and kind[3:-6].isdigit() else 1
    weights = matrix("mm_projector.0", (hidden, seen), "other", bias=True)
    for index in range(1, min(depth, 8)):
        weights += matrix(f"mm_projector.{index}", (hidden, hidden), "other", bias=True)
    return Tower(name="mm_projector", weights=weights)


def _named(keys: Keys, name: str) -> tuple[Tower, int]:
    config = named_tower(name)
    if config is None:
        raise keys.missing(f"vision_config (the tower is only named: {name})")
    draft = read_part(Keys(data=config, nested=True, notes=keys.notes))
    keys.notes.append(f"the vision tower is only named ({name}): its published shape is used")
    return draft.tower("vision_tower"), draft.hidden_size


def vila(keys: Keys) -> Draft:
    """VILA: a config for each part, a projector that merges four patches with a norm."""
    text = text_part(keys, "llm_cfg", default="llama")
    tower, seen = tower_part(keys, "vision_tower_cfg", default="siglip_vision_model")
    kind = str(keys.mapping("mm_projector_cfg").get("mm_projector_type") or "")
    wide = seen * (4 if "downsample" in kind else 1)
    between = (
        *norm("layers.1", wide, "layer"),
        *matrix("layers.2", (text.hidden_size, wide), "other", bias=True),
        *matrix("layers.4", (text.hidden_size, text.hidden_size), "other", bias=True),
    )
    return text.beside(tower, Tower(name="mm_projector", weights=between), kind="vision-language")


PATTERNS: dict[str, Pattern] = {
    "llava": Pattern(text="llama", vision="clip_vision_model", projector=two_layers),
    "llava_next": Pattern(text="llama", vision="clip_vision_model", projector=with_newline),
    "llava_next_video": Pattern(text="llama", vision="clip_vision_model", projector=with_newline),
    "llava_onevision": Pattern(text="qwen2", vision="siglip_vision_model", projector=with_newline),
    "vipllava": Pattern(text="llama", vision="clip_vision_model", projector=vip),
    "gemma3": Pattern(text="gemma3_text", vision="siglip_vision_model", projector=gemma3),
    "paligemma": Pattern(text="gemma", vision="siglip_vision_model", projector=paligemma),
    "mistral3": Pattern(text="mistral", vision="pixtral", projector=mistral3),
    "lighton_ocr": Pattern(text="qwen3", vision="pixtral", projector=mistral3),
    "idefics2": Pattern(text="mistral", vision="idefics2_vision", projector=idefics2),
    "idefics3": Pattern(text="llama", vision="idefics3_vision", projector=idefics3),
    "smolvlm": Pattern(text="llama", vision="smolvlm_vision", projector=idefics3),
    "internvl": Pattern(text="qwen2", vision="internvl_vision", projector=internvl),
    "internvl_chat": Pattern(
        text="qwen2", vision="intern_vit_6b", projector=internvl, text_names=("llm_config", "text_config")
    ),
    "interns1": Pattern(text="qwen3", vision="internvl_vision", projector=internvl),
    "lfm2_vl": Pattern(text="lfm2", vision="siglip2_vision_model", projector=lfm2_vl),
    "aya_vision": Pattern(text="cohere2", vision="siglip_vision_model", projector=aya),
    "cohere2_vision": Pattern(text="cohere2", vision="siglip_vision_model", projector=aya),
    "deepseek_vl": Pattern(text="llama", vision="siglip_vision_model", projector=deepseek_vl),
}

# Published under names of their own, built as InternVL is.
for _name in ("h2ovl_chat", "skywork_chat"):
    PATTERNS[_name] = PATTERNS["internvl_chat"]

READERS = {
    **{name: read_pattern(pattern) for name, pattern in PATTERNS.items()},
    "llava": original_llava,
    "llava_llama": vila,
    "shieldgemma2": shieldgemma2,
}
