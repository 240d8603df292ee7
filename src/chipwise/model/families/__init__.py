"""One file per architecture family: each maps model_type to a reader, `Keys -> Draft`. Read `llama.py` first.

To add a family: write its file with a `READERS` dict, name its model types in `MODULES`, and test a count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from chipwise.model.draft import Draft
from chipwise.model.keys import Keys

Reader = Callable[[Keys], Draft]

# Which file reads which model_type. Files are imported when first asked for, to keep the start quick.
MODULES: dict[str, str] = {
    "audio": (
        "wav2vec2 hubert unispeech wavlm qwen2_audio voxtral voxtral_encoder audioflamingo3_encoder qwen3_asr_encoder "
        "qwen3_omni_moe_audio_encoder qwen3_asr vibevoice vibepod hifigan speecht5_hifigan"
    ),
    "bert": (
        "bert new megatron-bert ernie layoutlm roberta xlm-roberta camembert data2vec-text roberta-prelayernorm "
        "xlm-roberta-xl electra distilbert mpnet albert deberta deberta-v2 nomic_bert"
    ),
    "clip": (
        "clap blip-2 blip_2_qformer blip_2_vision_model clip siglip siglip2 clap_text_model blip_vision_model "
        "blip_text_model blip git_vision_model git"
    ),
    "cnn": "resnet regnet convnext convnextv2 efficientnet mobilenet_v1 mobilenet_v2 detr table-transformer segformer",
    "cohere": "cohere cohere2 cohere2_moe cohere_compass_text",
    "deepseek": (
        "deepseek deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 glm_moe_dsa glm4_moe_lite axk1 longcat_flash minicpm3 "
        "youtu mistral4 sarvam_mla unlimited_ocr_text"
    ),
    "deepseek_v4": "deepseek_v4 deepseek_ref",
    "dit": (
        "FluxTransformer2DModel ChromaTransformer2DModel SD3Transformer2DModel QwenImageTransformer2DModel "
        "PixArtTransformer2DModel DiTTransformer2DModel HunyuanDiT2DModel SanaTransformer2DModel "
        "AuraFlowTransformer2DModel Lumina2Transformer2DModel"
    ),
    "drafts": "eagle3 eagle dflash medusa",
    "encdec": (
        "t5 mt5 umt5 longt5 bart plbart mbart m2m_100 marian pegasus blenderbot blenderbot-small bigbird_pegasus "
        "whisper trocr qwen2_audio_encoder"
    ),
    "exaone": "exaone4 exaone_moe",
    "gemma": "gemma gemma2 gemma3_text",
    "gemma4": (
        "gemma4_text gemma3n_text gemma3n gemma4_unified gemma4_unified_text gemma4_unified_assistant "
        "gemma4_assistant embedding_gemma2 embedding_gemma2_text"
    ),
    "generic": "generic generic_encoder generic_vision",
    "glm": (
        "glm glm4 glm4_moe glm4v_text glm_ocr_text glm_image_text glm4v_moe_text solar_open sarvam_moe bailing_moe "
        "bailing_moe_v2 dots1 hy_v3 ernie4_5_moe minicpm openmoe hunyuan hunyuan_v1_dense hunyuan_vl_text "
        "hunyuan_v1_moe dbrx"
    ),
    "gpt": (
        "gpt2 gpt-sw3 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gptj codegen cpmant bloom mpt opt biogpt xglm "
        "ctrl openai-gpt falcon"
    ),
    "gpt_oss": "gpt_oss openai_privacy_filter",
    "granite": "granite granitemoe granitemoeshared granitemoehybrid bamba falcon_h1 granite_swa granitemoe_swa",
    "inkling": "inkling_text inkling2_text inkling2_loop_text",
    "kimi": "kimi_linear bailing_hybrid",
    "latent": "axk2 hy_v4 hy_v4_vl_text dots3_note_text mistral_large4_text glm5_next_text",
    "layered": "laguna mimo_v2_flash step3p5 afmoe lfm2 lfm2_moe lfm3 llama4_text vaultgemma",
    "llama": (
        "llama mistral ministral ministral3 mixtral cwm helium smollm3 iquestcoder aquila yi xverse baichuan exaone "
        "arcee seed_oss ernie4_5 internlm internlm2 internlm3 bitnet nanochat apertus jais2 diffllama doge "
        "apertus1p5_text jetmoe hyperclovax granite_docling_text cosmos3_edge_text"
    ),
    "llava": (
        "llava llava_next llava_next_video llava_onevision vipllava gemma3 shieldgemma2 paligemma mistral3 "
        "lighton_ocr idefics2 idefics3 smolvlm internvl internvl_chat interns1 h2ovl_chat skywork_chat lfm2_vl "
        "aya_vision cohere2_vision deepseek_vl llava_llama"
    ),
    "looped": "dory hrm_text",
    "mamba": "mamba falcon_mamba mamba2 jamba recurrent_gemma rwkv rwkv5 xlstm",
    "minimax": "minimax minimax_text_01 minimax_m1 minimax_m2 minimax_m3 minimax_m3_vl_text",
    "mixed_vlm": "mixed_vlm",
    "mixtures": "flint kolibri1 beam aria_text zaya",
    "modernbert": "modernbert modernbert-decoder ultrabert ultravbert",
    "muse": "muse_glimmer_text muse_spark_text",
    "nemotron": "nemotron_h nemotron-nas nemotron_nas deci",
    "olmo": "olmo_hybrid olmo olmo2 olmo3 olmoe flex_olmo",
    "omni": "qwen2_5_omni qwen2_5_omni_thinker qwen3_omni_moe_thinker",
    "phi": (
        "phi phi-msft phi3 phi3small phimoe stablelm stablelm_epoch mixformer-sequential starcoder2 persimmon "
        "nemotron orion"
    ),
    "qwen": (
        "qwen2 qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text mimo qwen3 qwen3_vl_text qwen2_moe qwen3_moe "
        "qwen3_vl_moe_text qwen3_omni_moe_text molmo2_text mellum"
    ),
    "qwen_next": "qwen3_next qwen3_5_moe_text qwen3_5_text qwen4_exp_text lara_mini jev",
    "qwen_vl": (
        "qwen2_vl qwen2_5_vl qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_moe qwen2_vl_vision qwen2_5_vl_vision "
        "qwen2_5_omni_vision_encoder qwen3_vl_vision qwen3_vl_moe_vision qwen3_omni_moe_vision_encoder qwen3_5_vision "
        "qwen3_5_moe_vision"
    ),
    "recommend": "dlrm tabnet",
    "pairs": "vision-encoder-decoder speech-encoder-decoder encoder-decoder vision-text-dual-encoder",
    "remote": "multi_modality minicpmv4_6 phi3_v minicpmv falcon_perception",
    "remote_text": (
        "openelm arctic grok-1 plamo telechat codeshell gpt_refact jais step3_text RefinedWeb RefinedWebModel"
    ),
    "remote_vlm": "qwen chatglm molmo NVLM_D internlmxcomposer2 dots_ocr deepseek_vl_v2",
    "sam": "sam",
    "seq2seq": "nllb-moe switch_transformers t5gemma t5gemma2",
    "swin": "swin swinv2 donut-swin",
    "unet": ("UNet2DConditionModel UNet3DConditionModel ControlNetModel AutoencoderKL StableCascadeUNet"),
    "video": (
        "WanTransformer3DModel WanModel HunyuanVideoTransformer3DModel CogVideoXTransformer3DModel "
        "EasyAnimateTransformer3DModel LTXVideoTransformer3DModel MochiTransformer3DModel MiniMaxH3Transformer3DModel"
    ),
    "vit": (
        "vit deit vit_msn beit dinov2 dinov2_with_registers dinov3_vit yolos clip_vision_model siglip_vision_model "
        "siglip2_vision_model idefics2_vision idefics3_vision smolvlm_vision clip_text_model siglip_text_model "
        "siglip2_text_model pixtral internvl_vision intern_vit_6b"
    ),
    "vlm": (
        "llama4 mllama_text_model mllama gemma4 glm4v glm46v glm4v_moe kimi_k25 kimi_vl moonvit kimi_k3 minimax_m3_vl "
        "step3p7"
    ),
    "xlnet": "xlnet",
    "yolo": "yolo",
    "zamba": "zamba zamba2",
}


@cache
def _module_of() -> dict[str, str]:
    return {model_type: module for module, types in MODULES.items() for model_type in types.split()}


def _listed() -> Any:
    return import_module(f"{__name__}.listed")


def known_types() -> list[str]:
    """Every model_type (or diffusers class) that has a reader."""
    return sorted({*_module_of(), *_listed().listed_types()})


def reader(model_type: str) -> Reader | None:
    """The reader of `model_type`; None where no family reads it.

    >>> reader("llama").__module__
    'chipwise.model.families.llama'
    """
    module = _module_of().get(model_type)
    if module is None:
        return _listed().read_listed if _listed().listed(model_type) else None
    readers: dict[str, Reader] = import_module(f"{__name__}.{module}").READERS
    return readers[model_type]
