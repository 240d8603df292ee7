"""Speech: wav2vec 2.0 and its kin, audio encoders in front of language models (Voxtral, Qwen2-Audio, Qwen3-ASR)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Heads,
    Projections,
    Weights,
    attention_weights,
    conv,
    encoder_layers,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.draft import Draft, stack
from chipwise.model.families.encdec import Side, audio_front, encoder_side
from chipwise.model.keys import Keys, divide
from chipwise.model.nested import part_keys, read_part, text_part
from chipwise.model.spec import Tower


def wav2vec2(keys: Keys) -> Draft:
    """wav2vec 2.0, HuBERT, UniSpeech: convolutions over samples, a convolution for positions, a transformer."""
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, k.FFN)
    hidden = keys.size(*k.HIDDEN, least=1)
    count = keys.size(*k.HEADS, least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "hidden_size"))
    stable = keys.flag("do_stable_layer_norm")
    width = keys.size(*k.FFN)
    weights = (
        *attention_weights(heads, Projections(bias="qkvo", prefix="attention")),
        *mlp(hidden, width, gated=False, bias=True, prefix="feed_forward"),
        *norms(("layer_norm", "final_layer_norm"), hidden, "layer"),
        *(_adapter(keys, hidden) if stable else ()),
    )
    kernel, groups = (
        keys.size("num_conv_pos_embeddings", default=128),
        keys.size("num_conv_pos_embedding_groups", default=16),
    )
    channels = _channels(keys)
    outer = (
        vector("masked_spec_embed", hidden, "embedding"),
        *_feature_extractor(keys, channels),
        *norm("feature_projection.layer_norm", channels[-1], "layer"),
        *matrix("feature_projection.projection", (hidden, channels[-1]), "other", bias=True),
        *conv("pos_conv_embed", (hidden, hidden // max(groups, 1)), kernel),
        vector("pos_conv_embed.gain", kernel, "other"),
        *norm("encoder.layer_norm", hidden, "layer"),
        *_speech_head(keys, hidden, channels[-1]),
    )
    layers = stack(keys.layers(), weights, heads.attention(causal=False))
    return Draft(
        kind="audio", layers=layers, outer=outer, hidden_size=hidden, vocab_size=keys.size("vocab_size", default=0)
    )


def _channels(keys: Keys) -> tuple[int, ...]:
    channels = keys.sizes("conv_dim")
    if not channels:
        raise keys.missing("conv_dim")
    return channels


def _adapter(keys: Keys, hidden: int) -> Weights:
    width = keys.maybe("adapter_attn_dim")
    if not width:
        return ()
    return (
        *norm("adapter_layer.norm", hidden, "layer"),
        *matrix("adapter_layer.linear_1", (width, hidden), "other", bias=True),
        *matrix("adapter_layer.linear_2", (hidden, width), "other", bias=True),
    )


def _feature_extractor(keys: Keys, channels: tuple[int, ...]) -> Weights:
    kernels = keys.sizes("conv_kernel", count=len(channels))
    bias = keys.flag("conv_bias")
    every = keys.text("feat_extract_norm", default="group") == "layer"
    out: Weights = ()
    before = 1
    for index, (width, kernel) in enumerate(zip(channels, kernels, strict=False)):
        out += conv(f"feature_extractor.{index}", (width, before), kernel, bias=bias)
        if every or index == 0:
            out += norm(f"feature_extractor.{index}.layer_norm", width, "layer")
        before = width
    return out


def wavlm(keys: Keys) -> Draft:
    """WavLM: wav2vec 2.0 with gated relative positions, their table in the first layer."""
    draft = wav2vec2(keys)
    count = keys.size(*k.HEADS, least=1)
    gates = (
        vector("attention.gru_rel_pos_const", count, "attention"),
        *matrix("attention.gru_rel_pos_linear", (8, draft.hidden_size // count), "attention", bias=True),
    )
    layers = tuple(replace(layer, weights=(*layer.weights, *gates)) for layer in draft.layers)
    buckets = table("rel_attn_embed", keys.size("num_buckets", default=320), count, part="attention")
    return replace(draft, layers=layers, outer=(*draft.outer, buckets))


def _speech_head(keys: Keys, hidden: int, features: int) -> Weights:
    name = keys.head
    if name.endswith("ForCTC"):
        return matrix("lm_head", (keys.size("vocab_size"), hidden), "head", bias=True)
    if "Classification" in name and "Frame" not in name:
        width = keys.size("classifier_proj_size", default=256)
        if name.endswith("SpeechClassification"):
            return (
                *matrix("classifier.dense", (hidden, hidden), "other", bias=True),
                *matrix("classifier.out_proj", (keys.labels, hidden), "head", bias=True),
            )
        return (
            *matrix("projector", (width, hidden), "other", bias=True),
            *matrix("classifier", (keys.labels, width), "head", bias=True),
        )
    if name.endswith("ForPreTraining"):
        groups, words = (
            keys.size("num_codevector_groups", default=2),
            keys.size("num_codevectors_per_group", default=320),
        )
        code, out = keys.size("codevector_dim", default=256), keys.size("proj_codevector_dim", default=256)
        return (
            vector("quantizer.codevectors", words * code, "other"),
            *matrix("quantizer.weight_proj", (groups * words, features), "other", bias=True),
            *matrix("project_hid", (out, hidden), "other", bias=True),
            *matrix("project_q", (out, code), "other", bias=True),
        )
    return ()


def qwen2_audio(keys: Keys) -> Draft:
    """Qwen2-Audio: Whisper's encoder, one projector matrix."""
    text = text_part(keys, default="qwen2")
    heard = read_part(part_keys(keys, "audio_config", default="qwen2_audio_encoder"))
    between = matrix("linear", (text.hidden_size, heard.hidden_size), "other", bias=True)
    return _listening(text, heard, between)


def _listening(text: Draft, heard: Draft, between: Weights) -> Draft:
    return text.beside(heard.tower("audio_tower"), Tower(name="multi_modal_projector", weights=between), kind="audio")


def voxtral(keys: Keys) -> Draft:
    """Voxtral: Whisper's encoder, four frames merged into one."""
    text = text_part(keys, default="llama")
    audio = part_keys(keys, "audio_config", default="voxtral_encoder")
    heard = read_part(audio)
    wide = audio.size("intermediate_size")
    between = (
        *matrix("linear_1", (text.hidden_size, wide), "other"),
        *matrix("linear_2", (text.hidden_size, text.hidden_size), "other"),
    )
    return _listening(text, heard, between)


def named_encoder(keys: Keys) -> Draft:
    """Whisper's encoder under the common key names (Voxtral, Audio Flamingo 3)."""
    hidden = keys.size(*k.HIDDEN)
    count = keys.size(*k.HEADS, least=1)
    side = Side(
        count=keys.layers(),
        heads=Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "hidden_size")),
        ffn=keys.size(*k.FFN),
        bias="qvo",
    )
    frames = keys.size("max_source_positions", default=1500)
    tower = encoder_side(side, more=audio_front(keys, hidden, frames))
    return Draft(kind="audio", layers=tower.layers, outer=tower.weights, hidden_size=hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Front:
    channels: int
    bins: int


def qwen3_encoder(keys: Keys) -> Draft:
    """Qwen3-Omni's and Qwen3-ASR's encoder: three strided 2-D convolutions, biases on every projection."""
    hidden = keys.size("d_model", "hidden_size")
    count = keys.size("encoder_attention_heads", "num_attention_heads", least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "d_model"))
    layers = encoder_layers(
        keys.layers("encoder_layers", "num_hidden_layers"), heads, keys.size("encoder_ffn_dim", "intermediate_size")
    )
    front = _Front(
        channels=keys.size("downsample_hidden_size", default=480), bins=keys.size("num_mel_bins", default=128)
    )
    rows = ((front.bins + 1) // 2 + 1) // 2
    rows = (rows + 1) // 2
    weights = (
        *conv("conv2d1", (front.channels, 1), 9),
        *conv("conv2d2", (front.channels, front.channels), 9),
        *conv("conv2d3", (front.channels, front.channels), 9),
        *matrix("conv_out", (hidden, front.channels * rows), "other"),
        *norm("ln_post", hidden, "layer"),
    )
    return Draft(kind="audio", layers=layers, outer=weights, hidden_size=hidden)


def two_linear(hidden: int, heard: int, out: int) -> Weights:
    """Two linear layers with biases."""
    return (
        *matrix("proj1", (hidden, heard), "other", bias=True),
        *matrix("proj2", (out, hidden), "other", bias=True),
    )


def qwen3_asr(keys: Keys) -> Draft:
    """Qwen3-ASR: everything stands in `thinker_config`."""
    data = keys.mapping("thinker_config") or keys.data
    inner = Keys(data=data, path=f"{keys.path}thinker_config.", nested=True, notes=keys.notes)
    text = text_part(inner, default="qwen3")
    heard = read_part(part_keys(inner, "audio_config", default="qwen3_asr_encoder"))
    audio = part_keys(inner, "audio_config", default="qwen3_asr_encoder")
    between = two_linear(heard.hidden_size, heard.hidden_size, audio.size("output_dim", default=text.hidden_size))
    return _listening(text, heard, between)


def vibevoice(keys: Keys) -> Draft:
    """VibeVoice: a language model, two convolutional tokenizers of audio, a diffusion head."""
    text = text_part(keys, "decoder_config", "text_config", default="qwen2")
    towers = []
    for name, both in (("acoustic", True), ("semantic", False)):
        part = Keys(data=keys.mapping(f"{name}_tokenizer_config"), path=f"{name}_tokenizer_config.")
        towers.append(Tower(name=f"{name}_tokenizer", weights=_codec(part, decodes=both)))
        width = part.size("vae_dim", default=64)
        between = (
            *matrix("fc1", (text.hidden_size, width), "other", bias=True),
            *norm("norm", text.hidden_size),
            *matrix("fc2", (text.hidden_size, text.hidden_size), "other", bias=True),
        )
        towers.append(Tower(name=f"{name}_connector", weights=between))
    towers.append(Tower(name="prediction_head", weights=_diffusion_head(keys, text.hidden_size)))
    return text.beside(*towers, kind="audio")


def _codec(keys: Keys, *, decodes: bool) -> Weights:
    """Stages of depthwise mixers: each doubles the channels after a strided convolution, and the decoder mirrors it."""
    filters = keys.size("encoder_n_filters", default=32)
    depths = [int(part) for part in keys.text("encoder_depths", default="3-3-3-3-3-3-8").split("-") if part.isdigit()]
    keys.few("encoder_depths", depths)
    ratios = list(keys.sizes("encoder_ratios"))[::-1]
    latent = keys.size("vae_dim", default=64)
    out: Weights = conv("encoder.stem", (filters, 1), 7)
    for index, depth in enumerate(depths):
        width = filters * 2**index
        out += _mixers(width) * depth
        if index < len(ratios):
            out += conv(f"encoder.down.{index}", (2 * width, width), 2 * ratios[index])
    out += conv("encoder.head", (latent, filters * 2 ** (len(depths) - 1)), 7)
    if decodes:
        out = (*out, *(replace(weight, name=f"decoder.{weight.name}") for weight in out))
    return out


def _mixers(width: int) -> Weights:
    return (
        *conv("mixer", (width, 1), 7),
        *norms(("norm", "ffn_norm"), width),
        *mlp(width, 4 * width, gated=False, bias=True, prefix="ffn", part="other"),
        vector("gamma", 2 * width, "other"),
    )


def _diffusion_head(keys: Keys, hidden: int) -> Weights:
    head = Keys(data=keys.mapping("diffusion_head_config"))
    width = head.size("hidden_size", default=hidden)
    latent = head.size("latent_size", default=64)
    inner = int(width * head.number("head_ffn_ratio", default=3.0))
    layer = (
        *mlp(width, inner, prefix="ffn", part="other"),
        *norm("norm", width),
        *matrix("adaLN_modulation", (3 * width, width), "other"),
    )
    return (
        *matrix("noisy_images_proj", (width, latent), "other"),
        *matrix("cond_proj", (width, hidden), "other"),
        *matrix("t_embedder.0", (width, 256), "other"),
        *matrix("t_embedder.2", (width, width), "other"),
        *(layer * head.size("head_layers", default=4)),
        *matrix("final_layer.linear", (latent, width), "other"),
        *matrix("final_layer.adaLN_modulation", (2 * width, width), "other"),
    )


def hifigan(keys: Keys) -> Draft:
    """HiFi-GAN as SpeechT5 and AudioLDM use it: transposed convolutions that halve the channels, residual blocks."""
    keys.need(("upsample_initial_channel",), ("upsample_kernel_sizes",), ("resblock_kernel_sizes",))
    width = keys.size("upsample_initial_channel")
    kernels = keys.sizes("resblock_kernel_sizes")
    dilations = [len(item) if isinstance(item, list) else 3 for item in keys.items("resblock_dilation_sizes")]
    outer: Weights = conv("conv_pre", (width, keys.size("model_in_dim", default=80)), 7)
    for taps in keys.sizes("upsample_kernel_sizes"):
        half = width // 2
        outer += (*matrix("upsampler", (width, half * taps), "other"), vector("upsampler.bias", half, "other"))
        for kernel, count in zip(kernels, dilations or [3] * len(kernels), strict=False):
            outer += conv("resblocks", (half, half), kernel) * (2 * count)
        width = half
    return Draft(kind="audio", outer=(*outer, *conv("conv_post", (1, width), 7)), hidden_size=width)


READERS = {
    "hifigan": hifigan,
    "speecht5_hifigan": hifigan,
    "wav2vec2": wav2vec2,
    "hubert": wav2vec2,
    "unispeech": wav2vec2,
    "wavlm": wavlm,
    "qwen2_audio": qwen2_audio,
    "voxtral": voxtral,
    "voxtral_encoder": named_encoder,
    "audioflamingo3_encoder": named_encoder,
    "qwen3_asr_encoder": qwen3_encoder,
    "qwen3_omni_moe_audio_encoder": qwen3_encoder,
    "qwen3_asr": qwen3_asr,
    "vibevoice": vibevoice,
    "vibepod": vibevoice,
}
