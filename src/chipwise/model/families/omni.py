"""Qwen Omni: a thinker that sees and hears, a talker that writes codes, and what turns codes into sound."""

from __future__ import annotations

from chipwise.model.blocks import Heads, Projections, Weights, attention_weights, conv, matrix, table, vector
from chipwise.model.draft import Draft
from chipwise.model.families.audio import two_linear
from chipwise.model.families.encdec import whisper_encoder
from chipwise.model.families.qwen_vl import vision2_5, vision3
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part, text_part
from chipwise.model.spec import Tower


def thinker2_5(keys: Keys) -> Draft:
    """The thinker: Qwen 2.5 with a VL tower and Whisper's encoder without stored positions."""
    text = text_part(keys, default="qwen2_5_omni_text")
    seen = vision2_5(part_keys(keys, "vision_config", default="qwen2_5_omni_vision_encoder"))
    audio = part_keys(keys, "audio_config", default="qwen2_5_omni_audio_encoder")
    heard = whisper_encoder(audio)
    kept = tuple(weight for weight in heard.outer if weight.name != "embed_positions")
    out = audio.size("output_dim", default=text.hidden_size)
    more = (
        *matrix("proj", (out, heard.hidden_size), "other", bias=True),
        table("audio_bos_eos_token", 2, out),
    )
    tower = Tower(name="audio_tower", layers=heard.layers, weights=(*kept, *more))
    return text.beside(seen, tower, kind="vision-language")


def qwen2_5_omni(keys: Keys) -> Draft:
    """Qwen 2.5 Omni: the parts that speak are there unless `enable_audio_output` is false."""
    thinker = part_keys(keys, "thinker_config", default="qwen2_5_omni_thinker")
    draft = thinker2_5(thinker)
    if not keys.flag("enable_audio_output", default=True):
        return draft
    talker = _talker(part_keys(keys, "talker_config", default="qwen2_5_omni_talker"))
    voice = part_keys(keys, "token2wav_config", default="qwen2_5_omni_token2wav")
    dit = _dit(part_keys(voice, "dit_config", default="qwen2_5_omni_dit"))
    vocoder = bigvgan(part_keys(voice, "bigvgan_config", default="qwen2_5_omni_bigvgan"))
    return draft.beside(talker, Tower(name="dit", weights=dit), Tower(name="bigvgan", weights=vocoder))


def _talker(keys: Keys) -> Tower:
    width = keys.size("embedding_size", default=3584)
    draft = text_part(
        Keys(data={"text_config": {**keys.data, "model_type": "qwen2", "tie_word_embeddings": False}}), default="qwen2"
    )
    rows = keys.size("vocab_size")
    kept = tuple(weight for weight in draft.outer if weight.part == "norm")
    more = (
        *matrix("thinker_to_talker_proj", (draft.hidden_size, width), "other", bias=True),
        table("embed_tokens", rows, width, units=rows),
        *matrix("codec_head", (rows, draft.hidden_size), "head", units=rows),
    )
    return Tower(name="talker", layers=draft.layers, weights=(*kept, *more))


def _dit(keys: Keys) -> Weights:
    hidden, dim = keys.size("hidden_size"), keys.size("head_dim", default=64)
    heads = Heads(hidden=hidden, query=keys.size("num_attention_heads"), kv=keys.size("num_attention_heads"), dim=dim)
    inner = hidden * keys.size("ff_mult", default=2)
    mel, code = keys.size("mel_dim", default=80), keys.size("emb_dim", default=512)
    block: Weights = (
        *matrix("attn_norm.linear", (6 * hidden, hidden), "other", bias=True),
        *attention_weights(heads, Projections(bias="qkvo", prefix="attn")),
        *matrix("ff.0", (inner, hidden), "mlp", bias=True),
        *matrix("ff.3", (hidden, inner), "mlp", bias=True),
    )
    speaker, known = keys.size("enc_dim", default=128), keys.size("enc_emb_dim", default=192)
    return (
        *matrix("time_mlp.0", (hidden, 256), "other", bias=True),
        *matrix("time_mlp.2", (hidden, hidden), "other", bias=True),
        table("codec_embed", keys.size("num_embeds", default=8193) + 1, code),
        *matrix("input_embed.proj", (hidden, mel + speaker + known + code), "other", bias=True),
        *_speaker(keys, mel, speaker),
        *(block * keys.layers("num_hidden_layers")),
        *matrix("norm_out.linear", (2 * hidden, hidden), "other", bias=True),
        *matrix("proj_out", (mel, hidden), "other", bias=True),
    )


def _speaker(keys: Keys, mel: int, out: int) -> Weights:
    """ECAPA-TDNN: a frame convolution, squeeze-and-excitation blocks, attentive pooling."""
    channels = keys.sizes("enc_channels") or (256, 256, 256, 256, 768)
    kernels = keys.sizes("enc_kernel_sizes") or (5, 3, 3, 3, 1)
    scale, squeeze = keys.size("enc_res2net_scale", default=2), keys.size("enc_se_channels", default=64)
    pooled = keys.size("enc_attention_channels", default=64)
    weights: Weights = conv("blocks.0", (channels[0], mel), kernels[0])
    for before, width, kernel in zip(channels[:-2], channels[1:-1], kernels[1:-1], strict=False):
        part = width // max(scale, 1)
        weights += (
            *conv("tdnn1", (width, before), 1),
            *(conv("res2net", (part, part), kernel) * (scale - 1)),
            *conv("tdnn2", (width, width), 1),
            *conv("se.conv1", (squeeze, width), 1),
            *conv("se.conv2", (width, squeeze), 1),
        )
    last = channels[-1]
    joined = sum(channels[1:-1])
    return (
        *weights,
        *conv("mfa", (last, joined), kernels[-1]),
        *conv("asp.tdnn", (pooled, 3 * last), 1),
        *conv("asp.conv", (last, pooled), 1),
        *conv("fc", (out, 2 * last), 1),
    )


def bigvgan(keys: Keys) -> Weights:
    """BigVGAN: transposed convolutions that raise the rate, residual blocks with snake activations."""
    width = keys.size("upsample_initial_channel", default=1536)
    weights: Weights = conv("conv_pre", (width, keys.size("mel_dim", default=80)), 7)
    kernels = keys.sizes("resblock_kernel_sizes")
    dilations = [len(item) if isinstance(item, list) else 3 for item in keys.items("resblock_dilation_sizes")]
    for taps in keys.sizes("upsample_kernel_sizes"):
        half = width // 2
        weights += (*matrix("ups", (width, half * taps), "other"), vector("ups.bias", half, "other"))
        for kernel, count in zip(kernels, dilations, strict=False):
            weights += conv("convs", (half, half), kernel) * (2 * count)
            weights += (vector("activations", 4 * count * half, "other"),)
        width = half
    return (*weights, vector("activation_post", 2 * width, "other"), *conv("conv_post", (1, width), 7, bias=False))


def thinker3(keys: Keys) -> Draft:
    """Qwen 3 Omni's thinker: Qwen 3 MoE, Qwen 3 VL's tower, an encoder of 2-D convolutions."""
    text = text_part(keys, default="qwen3_omni_moe_text")
    seen = vision3(part_keys(keys, "vision_config", default="qwen3_omni_moe_vision_encoder"))
    audio = part_keys(keys, "audio_config", default="qwen3_omni_moe_audio_encoder")
    heard = read_part(audio)
    out = two_linear(heard.hidden_size, heard.hidden_size, audio.size("output_dim", default=3584))
    tower = Tower(name="audio_tower", layers=heard.layers, weights=(*heard.outer, *out))
    return text.beside(seen, tower, kind="vision-language")


READERS = {
    "qwen2_5_omni": qwen2_5_omni,
    "qwen2_5_omni_thinker": thinker2_5,
    "qwen3_omni_moe_thinker": thinker3,
}
