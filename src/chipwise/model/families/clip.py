"""Models of two towers and those that caption: CLIP, SigLIP, CLAP's text side, BLIP, GIT."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Heads, Projections, Weights, attention_weights, matrix, mlp, norm, norms, vector
from chipwise.model.decoder import dims
from chipwise.model.draft import Draft, stack
from chipwise.model.families.bert import NORM_NAMES, Bert, bert
from chipwise.model.families.vit import clip_vision
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part, text_part, tower_part
from chipwise.model.spec import Tower
from chipwise.model.towers import VIT, vision


def clip(keys: Keys) -> Draft:
    """CLIP: both towers projected to one width, and a scale; the safety checker has the vision tower alone."""
    dim = keys.size("projection_dim", default=512)
    seen, seen_width = tower_part(keys, "vision_config", default="clip_vision_model", name="vision_model")
    if keys.head.endswith("ForImageClassification"):
        extra = matrix("classifier", (keys.labels, seen_width), "head", bias=True)
        return Draft(kind="vision", layers=seen.layers, outer=(*seen.weights, *extra), hidden_size=seen_width)
    if keys.head.endswith("SafetyChecker"):
        extra = (
            *matrix("visual_projection", (dim, seen_width), "head"),
            vector("concept_embeds", 20 * dim + 20, "other"),
        )
        return Draft(kind="vision", layers=seen.layers, outer=(*seen.weights, *extra), hidden_size=seen_width)
    return _two(keys, seen, seen_width, "clip_text_model", dim)


def _two(keys: Keys, seen: Tower, seen_width: int, text_type: str, dim: int) -> Draft:
    text = read_part(part_keys(keys, "text_config", default=text_type))
    between = (
        *matrix("visual_projection", (dim, seen_width), "head"),
        *matrix("text_projection", (dim, text.hidden_size), "head"),
        vector("logit_scale", 1, "other"),
    )
    return replace(text, kind="vision-language", outer=(*text.outer, *between), towers=(seen,))


def siglip(keys: Keys) -> Draft:
    """SigLIP 1 and 2: both towers end in a head of their own; a scale and a bias."""
    kind = "siglip2" if keys.text("model_type").startswith("siglip2") else "siglip"
    seen, width = tower_part(keys, "vision_config", default=f"{kind}_vision_model", name="vision_model")
    if keys.head.endswith("ForImageClassification"):
        extra = matrix("classifier", (keys.labels, width), "head", bias=True)
        return Draft(kind="vision", layers=seen.layers, outer=(*seen.weights, *extra), hidden_size=width)
    text = read_part(part_keys(keys, "text_config", default=f"{kind}_text_model"))
    outer = (*text.outer, vector("logit_scale_and_bias", 2, "other"))
    return replace(text, kind="vision-language", outer=outer, towers=(seen,))


def clap_text(keys: Keys) -> Draft:
    """CLAP's text tower: RoBERTa with a pooler; `WithProjection` adds two layers."""
    draft = bert(replace(keys, head="Model"), Bert())
    if not keys.head.endswith("WithProjection"):
        return draft
    dim = keys.size("projection_dim", default=512)
    more = (
        *matrix("text_projection.linear1", (dim, draft.hidden_size), "other", bias=True),
        *matrix("text_projection.linear2", (dim, dim), "head", bias=True),
    )
    return replace(draft, outer=(*draft.outer, *more))


def blip_vision(keys: Keys) -> Draft:
    """BLIP's ViT: a class token, a norm at the end."""
    return vision(keys, VIT)


def blip(keys: Keys) -> Draft:
    """BLIP captioning: BERT as a decoder that attends to the image in every layer."""
    text = part_keys(keys, "text_config", default="blip_text_model")
    seen = read_part(part_keys(keys, "vision_config", default="blip_vision_model"))
    size = dims(text)
    crossing = Projections(
        bias="qkvo", prefix="crossattention", kv_hidden=text.size("encoder_hidden_size", default=size.hidden)
    )
    names = (*NORM_NAMES, "crossattention.output.LayerNorm")
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *attention_weights(size.heads, crossing),
        *mlp(size.hidden, size.ffn, gated=False, bias=True),
        *norms(names, size.hidden, "layer"),
    )
    base = bert(replace(text, head="ForMaskedLM", nested=False), Bert(token_types=False, pooler=False))
    return Draft(
        kind="vision-language",
        layers=stack(size.layers, weights, size.heads.attention()),
        outer=base.outer,
        towers=(seen.tower("vision_model"),),
        hidden_size=size.hidden,
        vocab_size=size.vocab,
        max_context_tokens=text.maybe(*k.CONTEXT),
    )


def git(keys: Keys) -> Draft:
    """GIT: BERT's layers read image tokens and text in one sequence; a head with bias."""
    size = dims(keys)
    weights: Weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *mlp(size.hidden, size.ffn, gated=False, bias=True),
        *norms(NORM_NAMES, size.hidden, "layer"),
    )
    base = bert(replace(keys, head="Model"), Bert(token_types=False, pooler=False))
    seen = clip_vision(part_keys(keys, "vision_config", default="git_vision_model"))
    between = (
        *matrix("visual_projection.0", (size.hidden, seen.hidden_size), "other", bias=True),
        *norm("visual_projection.1", size.hidden, "layer"),
    )
    frames = keys.maybe("num_image_with_embedding")
    times = (vector("img_temporal_embedding", frames * seen.hidden_size, "embedding"),) if frames else ()
    tied = keys.flag("tie_word_embeddings")
    head = matrix("output", (size.vocab, size.hidden), "head", bias=True, units=size.vocab)
    head = () if keys.head.endswith("Model") else (replace(head[0], stored=not tied), head[1])
    return Draft(
        kind="vision-language",
        layers=stack(size.layers, weights, size.heads.attention()),
        outer=(*base.outer, *between, *times, *head),
        towers=(seen.tower("image_encoder"),),
        hidden_size=size.hidden,
        vocab_size=size.vocab,
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def clap(keys: Keys) -> Draft:
    """CLAP: RoBERTa for text, a Swin over the spectrogram, each behind a two-layer projection."""
    text = clap_text(part_keys(keys, "text_config", default="clap_text_model"))
    audio = part_keys(keys, "audio_config", default="clap_audio_model")
    heard = audio.also(
        model_type="swin",
        embed_dim=audio.size("patch_embeds_hidden_size", default=96),
        num_heads=list(audio.sizes("num_attention_heads")),
        num_channels=audio.size("patch_embed_input_channels", default=1),
    )
    swin = read_part(replace(heard, head=""))
    dim = keys.size("projection_dim", default=512)
    extra: Weights = norm("audio_encoder.batch_norm", audio.size("num_mel_bins", default=64), "layer")
    for name, width in (("audio", swin.hidden_size), ("text", text.hidden_size)):
        extra += matrix(f"{name}_projection.linear1", (dim, width), "other", bias=True)
        extra += matrix(f"{name}_projection.linear2", (dim, dim), "head", bias=True)
    outer = (*text.outer, *extra, vector("logit_scales", 2, "other"))
    return replace(text, kind="audio", outer=outer, towers=(swin.tower("audio_model"),))


def qformer(keys: Keys) -> Draft:
    """A Q-Former: queries that attend to each other, and to an image or a sound in every so-many-th layer."""
    hidden, width, depth = keys.size(*k.HIDDEN), keys.size(*k.FFN), keys.layers()
    count = keys.size(*k.HEADS, least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=hidden // count)
    crossing = Projections(bias="qkvo", prefix="crossattention", kv_hidden=keys.size("encoder_hidden_size"))
    own = (
        *attention_weights(heads, Projections(bias="qkvo")),
        *mlp(hidden, width, gated=False, bias=True, prefix="query"),
        *norms(NORM_NAMES, hidden, "layer"),
    )
    if keys.flag("use_qformer_text_input"):
        text = mlp(hidden, width, gated=False, bias=True, prefix="text")
        own = (*own, *text, *norm("output.LayerNorm", hidden, "layer"))
    both = (*own, *attention_weights(heads, crossing), *norm("crossattention.LayerNorm", hidden, "layer"))
    crossed = -(-depth // keys.size("cross_attention_frequency", default=2, least=1))
    attention = heads.attention(causal=False)
    return Draft(
        kind="encoder",
        layers=(*stack(crossed, both, attention), *stack(depth - crossed, own, attention)),
        outer=norm("qformer.layernorm", hidden, "layer"),
        hidden_size=hidden,
    )


def blip2(keys: Keys) -> Draft:
    """BLIP-2: BLIP's ViT, a Q-Former whose queries attend to the image in every second layer, a language model."""
    text = text_part(keys, default="opt")
    seen = read_part(part_keys(keys, "vision_config", default="blip_2_vision_model"))
    queries = part_keys(keys, "qformer_config", default="blip_2_qformer")
    former = qformer(queries.also(encoder_hidden_size=seen.hidden_size))
    between = (
        vector("query_tokens", keys.size("num_query_tokens", default=32) * former.hidden_size, "embedding"),
        *matrix("language_projection", (text.hidden_size, former.hidden_size), "other", bias=True),
    )
    projection = Tower(name="language_projection", weights=between)
    towers = (seen.tower("vision_model"), former.tower("qformer"), projection)
    return text.beside(*towers, kind="vision-language")


READERS = {
    "clap": clap,
    "blip-2": blip2,
    "blip_2_qformer": qformer,
    "blip_2_vision_model": blip_vision,
    "clip": clip,
    "siglip": siglip,
    "siglip2": siglip,
    "clap_text_model": clap_text,
    "blip_vision_model": blip_vision,
    "blip_text_model": clap_text,
    "blip": blip,
    "git_vision_model": clip_vision,
    "git": git,
}
