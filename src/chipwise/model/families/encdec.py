"""Encoder-decoders: T5 and its kin; BART and its kin; Whisper. The decoder's self-attention caches every token."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Heads,
    NormKind,
    Projections,
    Weights,
    attention_weights,
    conv,
    lm_head,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vocabulary,
)
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys, divide
from chipwise.model.spec import Layer, Tower, Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side: its layers, heads and MLP width, and how its layers are built."""

    count: int
    heads: Heads
    ffn: int
    gated: bool = False
    bias: str = "qkvo"
    mlp_bias: bool = True
    norm: NormKind = "layer"

    def mlp(self) -> Weights:
        """Its feed-forward."""
        return mlp(self.heads.hidden, self.ffn, gated=self.gated, bias=self.mlp_bias)


def encoder_side(side: Side, name: str = "encoder", more: Weights = ()) -> Tower:
    """An encoder as a tower."""
    weights = (
        *attention_weights(side.heads, Projections(bias=side.bias)),
        *side.mlp(),
        *norms(("self_attn_layer_norm", "final_layer_norm"), side.heads.hidden, side.norm),
    )
    return Tower(name=name, layers=stack(side.count, weights, side.heads.attention(causal=False)), weights=more)


def decoder_side(side: Side, *, cross_tokens: int = 0, cross: bool = True, cross_hidden: int = 0) -> tuple[Layer, ...]:
    """Decoder layers with cross-attention, whose keys and values over `cross_tokens` are a state of the sequence."""
    middle = ("encoder_attn_layer_norm",) if cross else ()
    names = ("self_attn_layer_norm", *middle, "final_layer_norm")
    crossing = Projections(bias=side.bias, prefix="encoder_attn", kv_hidden=cross_hidden)
    weights = (
        *attention_weights(side.heads, Projections(bias=side.bias)),
        *(attention_weights(side.heads, crossing) if cross else ()),
        *side.mlp(),
        *norms(names, side.heads.hidden, side.norm),
    )
    width = side.heads.kv * (side.heads.dim + side.heads.v_dim)
    attention = replace(side.heads.attention(), state_bytes_per_sequence=width * 2 * cross_tokens)
    return stack(side.count, weights, attention)


def t5_side(keys: Keys, count: int) -> Side:
    """One side of a T5."""
    hidden = keys.size("d_model", "hidden_size")
    heads = keys.size("num_heads")
    dim = keys.size("d_kv", default=64)
    act = keys.text("feed_forward_proj")
    gated = keys.flag("is_gated_act", default=act.startswith("gated"))
    return Side(
        count=count,
        heads=Heads(hidden=hidden, query=heads, kv=heads, dim=dim),
        ffn=keys.size("d_ff"),
        gated=gated,
        bias="",
        mlp_bias=False,
        norm="rms",
    )


def t5(keys: Keys) -> Draft:
    """T5, mT5, UMT5: relative positions in the first layer (UMT5: in every layer), head tied where v1.0."""
    keys.need(("d_model",), ("num_layers",), ("num_heads",), ("d_ff",), k.VOCAB)
    encoder = t5_side(keys, keys.layers("num_layers", "num_hidden_layers"))
    decoder = t5_side(keys, keys.layers("num_decoder_layers", "num_layers"))
    hidden, vocab = encoder.heads.hidden, keys.size(*k.VOCAB)
    buckets = keys.size("relative_attention_num_buckets", default=32)
    every = keys.text("model_type") == "umt5"

    def relative(side: Side) -> Weights:
        copies = side.count if every else 1
        return tuple(
            table(f"relative_attention_bias.{index}", buckets, side.heads.query, part="attention")
            for index in range(copies)
        )

    shared = vocabulary(vocab, hidden, name="shared")
    side = encoder_side(encoder, more=(*relative(encoder), *norm("final_layer_norm", hidden)))
    if keys.head.endswith(("EncoderModel", "ForTokenClassification")):
        labels = keys.head.endswith("ForTokenClassification")
        more = matrix("classifier", (keys.labels, hidden), "head", bias=True) if labels else ()
        return Draft(
            kind="encoder",
            layers=side.layers,
            outer=(shared, *side.weights, *more),
            hidden_size=hidden,
            vocab_size=vocab,
            max_context_tokens=keys.maybe("n_positions"),
        )
    outer = (shared, *relative(decoder), *norm("decoder.final_layer_norm", hidden))
    return Draft(
        kind="llm",
        layers=decoder_side(decoder),
        outer=(*outer, *_head(keys, vocab, hidden)),
        towers=(side,),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe("n_positions"),
    )


def _head(keys: Keys, vocab: int, hidden: int) -> Weights:
    if keys.head.endswith("T5ForSequenceClassification"):
        dense = matrix("classification_head.dense", (hidden, hidden), "other", bias=True)
        return (*dense, *matrix("classification_head.out_proj", (keys.labels, hidden), "head", bias=True))
    if keys.head.endswith("Model") and not keys.head.endswith("LMHeadModel"):
        return ()
    return lm_head(vocab, hidden, is_tied=keys.flag("tie_word_embeddings", default=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bart:
    """How BART's kin differ: rows beside the positions, which norms stand around the stacks, which biases there are."""

    offset: int = 2
    embedding_norm: bool = True
    final_norm: bool = False
    learned: bool = True
    bias: str = "qkvo"


BART = Bart()


def _bart_side(keys: Keys, name: str, style: Bart) -> Side:
    hidden = keys.size("d_model", "hidden_size")
    heads = keys.size(f"{name}_attention_heads", least=1)
    return Side(
        count=keys.layers(f"{name}_layers"),
        heads=Heads(hidden=hidden, query=heads, kv=heads, dim=divide(keys, hidden, heads, "d_model")),
        ffn=keys.size(f"{name}_ffn_dim"),
        bias=style.bias,
    )


def _around(keys: Keys, hidden: int, style: Bart, name: str) -> Weights:
    out: list[Weight] = []
    if style.learned:
        out.append(table(f"{name}.embed_positions", keys.size(*k.CONTEXT) + style.offset, hidden))
    if style.embedding_norm:
        out += norm(f"{name}.layernorm_embedding", hidden, "layer")
    if style.final_norm:
        out += norm(f"{name}.layer_norm", hidden, "layer")
    return tuple(out)


def bart(keys: Keys, style: Bart = BART) -> Draft:
    """BART: learned positions on both sides, tied head."""
    keys.need(("d_model",), ("encoder_layers",), ("decoder_layers",), k.VOCAB)
    encoder, decoder = _bart_side(keys, "encoder", style), _bart_side(keys, "decoder", style)
    hidden, vocab = encoder.heads.hidden, keys.size(*k.VOCAB)
    only_decoder = keys.head.endswith("ForCausalLM")
    outer = (
        vocabulary(vocab, hidden, name="shared"),
        *_around(keys, hidden, style, "decoder"),
        *_bart_head(keys, vocab, hidden),
    )
    around = _around(keys, hidden, style, "encoder")
    return Draft(
        kind="llm",
        layers=decoder_side(decoder),
        outer=outer,
        towers=() if only_decoder else (encoder_side(encoder, more=around),),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def _bart_head(keys: Keys, vocab: int, hidden: int) -> Weights:
    if keys.head.endswith("ForSequenceClassification"):
        dense = matrix("classification_head.dense", (hidden, hidden), "other", bias=True)
        labels = keys.labels if keys.has("id2label", "num_labels") else 3
        return (*dense, *matrix("classification_head.out_proj", (labels, hidden), "head", bias=True))
    return _head(keys, vocab, hidden)


def mbart(keys: Keys) -> Draft:
    """mBART: BART with a norm at the end of each side."""
    return bart(keys, Bart(final_norm=True))


def m2m_100(keys: Keys) -> Draft:
    """M2M-100, NLLB: computed positions, norms at the end."""
    return bart(keys, Bart(learned=False, embedding_norm=False, final_norm=True))


def marian(keys: Keys) -> Draft:
    """Marian: computed positions that are stored, no norms around."""
    return bart(keys, Bart(offset=0, embedding_norm=False))


def pegasus(keys: Keys) -> Draft:
    """Pegasus: computed positions that are stored, norms at the end."""
    return bart(keys, Bart(offset=0, embedding_norm=False, final_norm=True))


def blenderbot(keys: Keys) -> Draft:
    """Blenderbot: learned positions, norms at the end."""
    return bart(keys, Bart(offset=0, embedding_norm=False, final_norm=True))


def bigbird_pegasus(keys: Keys) -> Draft:
    """BigBird-Pegasus: Pegasus without attention biases."""
    bias = "qkvo" if keys.flag("use_bias") else ""
    return bart(keys, Bart(offset=0, bias=bias))


def blenderbot_small(keys: Keys) -> Draft:
    """Blenderbot small: learned positions, norms over the embeddings."""
    return bart(keys, Bart(offset=0))


def trocr(keys: Keys) -> Draft:
    """TrOCR's decoder: BART's, over an image encoder of another width; small ones compute their positions."""
    keys.need(("d_model",), ("decoder_layers",), k.VOCAB)
    side = _bart_side(keys, "decoder", BART)
    learned = keys.flag("use_learned_position_embeddings", default=True)
    normed = keys.flag("layernorm_embedding", default=True)
    hidden, vocab = side.heads.hidden, keys.size(*k.VOCAB)
    around = _around(keys, hidden, Bart(learned=learned, embedding_norm=normed), "decoder")
    return Draft(
        kind="llm",
        layers=decoder_side(side, cross_hidden=keys.maybe("cross_attention_hidden_size") or 0),
        outer=(vocabulary(vocab, hidden, name="decoder.embed_tokens"), *around, *_head(keys, vocab, hidden)),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def whisper(keys: Keys) -> Draft:
    """Whisper: two convolutions over the spectrogram, key projections without bias, cross-attention over the audio."""
    keys.need(("d_model",), ("encoder_layers",), ("decoder_layers",), k.VOCAB)
    encoder = _bart_side(keys, "encoder", Bart(bias="qvo"))
    decoder = _bart_side(keys, "decoder", Bart(bias="qvo"))
    hidden, vocab = encoder.heads.hidden, keys.size(*k.VOCAB)
    frames = keys.size("max_source_positions", default=1500)
    side = encoder_side(encoder, more=audio_front(keys, hidden, frames))
    positions = table("decoder.embed_positions", keys.size("max_target_positions", default=448), hidden)
    outer = (
        vocabulary(vocab, hidden, name="decoder.embed_tokens"),
        positions,
        *norm("decoder.layer_norm", hidden, "layer"),
        *_head(keys, vocab, hidden),
    )
    return Draft(
        kind="audio",
        layers=decoder_side(decoder, cross_tokens=frames),
        outer=outer,
        towers=() if keys.head.endswith("ForCausalLM") else (side,),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe("max_target_positions"),
    )


def audio_front(keys: Keys, hidden: int, frames: int) -> Weights:
    """Whisper's convolutions, stored positions and final norm."""
    bins = keys.size("num_mel_bins", default=80)
    return (
        *conv("conv1", (hidden, bins), 3),
        *conv("conv2", (hidden, hidden), 3),
        table("embed_positions", frames, hidden),
        *norm("layer_norm", hidden, "layer"),
    )


def whisper_encoder(keys: Keys) -> Draft:
    """The encoder alone: Qwen2-Audio, Voxtral, Ultravox and others listen with it."""
    keys.need(("d_model",), ("encoder_layers",))
    side = _bart_side(keys, "encoder", Bart(bias="qvo"))
    frames = keys.size("max_source_positions", default=1500)
    tower = encoder_side(side, more=audio_front(keys, side.heads.hidden, frames))
    return Draft(kind="audio", layers=tower.layers, outer=tower.weights, hidden_size=side.heads.hidden)


READERS = {
    "t5": t5,
    "mt5": t5,
    "umt5": t5,
    "longt5": t5,
    "bart": bart,
    "plbart": bart,
    "mbart": mbart,
    "m2m_100": m2m_100,
    "marian": marian,
    "pegasus": pegasus,
    "blenderbot": blenderbot,
    "blenderbot-small": blenderbot_small,
    "bigbird_pegasus": bigbird_pegasus,
    "whisper": whisper,
    "trocr": trocr,
    "qwen2_audio_encoder": whisper_encoder,
}
