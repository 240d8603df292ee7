"""BERT and its descendants: bidirectional layers with norms that shift, biases everywhere, learned positions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Heads,
    Projections,
    Weights,
    attention_weights,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.decoder import dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.spec import Layer

NORM_NAMES = ("attention.output.LayerNorm", "output.LayerNorm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bert:
    """What a descendant changes. `dense_head`: its classifier has a hidden layer of its own instead of a pooler."""

    dense_head: bool = False
    pooler: bool = True
    norm_names: tuple[str, ...] = NORM_NAMES
    embedding_norm: bool = True
    token_types: bool = True
    positions: bool = True
    final_norm: bool = False
    mask_head: bool = True


BERT = Bert()
ROBERTA = Bert(dense_head=True)


def bert(keys: Keys, style: Bert = BERT) -> Draft:
    """BERT: embedding tables, layers, and the head that the architecture's name asks for."""
    size = dims(keys)
    plain = keys.maybe("embedding_size", "emb_size") or size.hidden
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *mlp(size.hidden, size.ffn, gated=False, bias=True),
        *norms(style.norm_names, size.hidden, "layer"),
    )
    layers = bidirectional(size.heads, weights, size.layers)
    projected = matrix("embeddings_project", (size.hidden, plain), "other", bias=True)
    outer = (
        *_tables(keys, plain, style),
        *(projected if plain != size.hidden else ()),
        *(norm("encoder.LayerNorm", size.hidden, "layer") if style.final_norm else ()),
        *head(keys, size.hidden, plain, style),
    )
    return encoder(keys, layers, outer, size.hidden)


def bidirectional(heads: Heads, weights: Weights, count: int, *, stored: int | None = None) -> tuple[Layer, ...]:
    """Equal layers that look both ways; `stored` copies of them where they share their weights."""
    if not count:
        return ()
    attention = heads.attention(causal=False)
    return (Layer(count=count, attention=attention, weights=weights, stored_count=stored, indices=tuple(range(count))),)


def encoder(keys: Keys, layers: tuple[Layer, ...], outer: Weights, hidden: int) -> Draft:
    """An encoder's draft."""
    return Draft(
        kind="encoder",
        layers=layers,
        outer=outer,
        hidden_size=hidden,
        vocab_size=keys.size(*k.VOCAB, default=0),
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def _tables(keys: Keys, width: int, style: Bert) -> Weights:
    vocab = keys.size(*k.VOCAB)
    out = [table("embeddings.word_embeddings", vocab, width, units=vocab)]
    if style.positions:
        out.append(table("embeddings.position_embeddings", keys.size(*k.CONTEXT), width))
    if style.token_types:
        out.append(table("embeddings.token_type_embeddings", keys.size("type_vocab_size", default=2), width))
    if style.embedding_norm:
        out += norm("embeddings.LayerNorm", width, "layer")
    return tuple(out)


def head(keys: Keys, hidden: int, embedding: int, style: Bert) -> Weights:
    """Pooler, mask filler or classifier, by the name of the architecture; none said: the mask filler of pretraining."""
    name = keys.head
    pooler = matrix("pooler.dense", (hidden, hidden), "other", bias=True) if style.pooler else ()
    if name.endswith("TokenClassification"):
        return matrix("classifier", (keys.labels, hidden), "head", bias=True)
    if "SequenceClassification" in name:
        if style.dense_head:
            pooler = matrix("classifier.dense", (hidden, hidden), "other", bias=True)
        return (*pooler, *matrix("classifier.out_proj", (keys.labels, hidden), "head", bias=True))
    if name.endswith("QuestionAnswering"):
        return matrix("qa_outputs", (2, hidden), "head", bias=True)
    if name.endswith(("MaskedLM", "CausalLM", "LMHeadModel")) or not name:
        filler = mask_filler(keys, hidden, embedding) if style.mask_head else ()
        return pooler if keys.nested and not name.endswith("CausalLM") else filler
    if name.endswith("ForPreTraining"):
        order = matrix("cls.seq_relationship", (2, hidden), "head", bias=True)
        return (*pooler, *mask_filler(keys, hidden, embedding), *order)
    return pooler


def mask_filler(keys: Keys, hidden: int, embedding: int) -> Weights:
    """A dense layer, its norm, and the embedding's matrix again (stored where it is not tied) with a bias."""
    vocab = keys.size(*k.VOCAB)
    untied = not keys.flag("tie_word_embeddings", default=True)
    decoder = matrix("cls.predictions.decoder", (vocab, embedding), "head", units=vocab)[0]
    return (
        replace(decoder, stored=untied),
        *matrix("cls.transform.dense", (embedding, hidden), "other", bias=True),
        *norm("cls.transform.LayerNorm", embedding, "layer"),
        vector("cls.predictions.bias", keys.size(*k.VOCAB), "head"),
    )


def layoutlm(keys: Keys) -> Draft:
    """LayoutLM: BERT with tables for the corners, height and width of each word's box."""
    draft = bert(keys)
    if keys.head.endswith(("MaskedLM", "TokenClassification")):
        pooler = matrix("pooler.dense", (draft.hidden_size, draft.hidden_size), "other", bias=True)
        draft = replace(draft, outer=(*draft.outer, *pooler))
    rows = keys.size("max_2d_position_embeddings", default=1024)
    boxes = tuple(table(f"embeddings.{name}_position_embeddings", rows, draft.hidden_size) for name in "xyhw")
    return replace(draft, outer=(*draft.outer, *boxes))


def roberta(keys: Keys) -> Draft:
    """RoBERTa, XLM-R, CamemBERT and others: BERT with another classifier."""
    return bert(keys, ROBERTA)


def prenorm(keys: Keys) -> Draft:
    """RoBERTa-PreLayerNorm, XLM-R XL: the same shapes, a norm at the end, none over the embedding in XL."""
    xl = keys.text("model_type") == "xlm-roberta-xl"
    return bert(keys, Bert(dense_head=True, final_norm=True, embedding_norm=not xl))


def electra(keys: Keys) -> Draft:
    """ELECTRA: narrow embeddings, no pooler, a discriminator's head."""
    draft = bert(keys, Bert(dense_head=True, pooler=False))
    if not keys.head.endswith("ForPreTraining"):
        return draft
    hidden = draft.hidden_size
    plain = keys.maybe("embedding_size") or hidden
    filler = {weight.name for weight in mask_filler(keys, hidden, plain)} | {
        "cls.seq_relationship",
        "cls.seq_relationship.bias",
    }
    kept = tuple(weight for weight in draft.outer if weight.name not in filler)
    judged = (
        *matrix("discriminator_predictions.dense", (hidden, hidden), "other", bias=True),
        *matrix("discriminator_predictions.dense_prediction", (1, hidden), "head", bias=True),
    )
    return replace(draft, outer=(*kept, *judged))


def distilbert(keys: Keys) -> Draft:
    """DistilBERT: no token types, no pooler; a hidden layer before the classifier."""
    return bert(keys, Bert(dense_head=True, pooler=False, token_types=False))


def mpnet(keys: Keys) -> Draft:
    """MPNet: relative positions beside the learned ones."""
    draft = bert(keys, Bert(dense_head=True, token_types=False))
    buckets = keys.size("relative_attention_num_buckets", default=32)
    relative = table("encoder.relative_attention_bias", buckets, keys.size(*k.HEADS), part="attention")
    return replace(draft, outer=(*draft.outer, relative))


def albert(keys: Keys) -> Draft:
    """ALBERT: all layers of a group share their weights; narrow embeddings."""
    size = dims(keys)
    plain = keys.size("embedding_size", default=128)
    groups = keys.size("num_hidden_groups", default=1, least=1)
    inner = keys.size("inner_group_num", default=1)
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *mlp(size.hidden, size.ffn, gated=False, bias=True),
        *norms(("full_layer_layer_norm", "attention.LayerNorm"), size.hidden, "layer"),
    )
    layers = bidirectional(size.heads, weights, size.layers, stored=groups * inner)
    style = replace(BERT, pooler=keys.head not in {"AlbertForMaskedLM", "AlbertForQuestionAnswering"})
    outer = (
        *_tables(keys, plain, style),
        *matrix("encoder.embedding_hidden_mapping_in", (size.hidden, plain), "other", bias=True),
        *head(keys, size.hidden, plain, style),
    )
    return encoder(keys, layers, outer, size.hidden)


def deberta(keys: Keys) -> Draft:
    """DeBERTa 2 and 3: relative positions with a table of their own, shared keys or projections of them."""
    size = dims(keys)
    h = size.hidden
    relative = keys.flag("relative_attention")
    types = str(keys.raw("pos_att_type") or "")
    first = keys.text("model_type") == "deberta"
    share = keys.flag("share_att_key")
    extra: Weights = ()
    if relative and not share:
        extra += matrix("attention.self.pos_key_proj", (h, h), "attention", bias=not first) if "c2p" in types else ()
        extra += matrix("attention.self.pos_query_proj", (h, h), "attention", bias=True) if "p2c" in types else ()
    bias = "qvo" if first else "qkvo"
    weights = (
        *attention_weights(size.heads, Projections(bias=bias)),
        *mlp(h, size.ffn, gated=False, bias=True),
        *norms(NORM_NAMES, h, "layer"),
        *extra,
    )
    layers = bidirectional(size.heads, weights, size.layers)
    outer = (*_deberta_tables(keys, h, relative=relative), *_deberta_head(keys, h))
    return encoder(keys, layers, outer, h)


def _deberta_tables(keys: Keys, h: int, *, relative: bool) -> Weights:
    plain = keys.size("embedding_size", default=h)
    style = Bert(
        positions=keys.flag("position_biased_input", default=True),
        token_types=keys.size("type_vocab_size", default=0) > 0,
    )
    out = [*_tables(keys, plain, style)]
    if plain != h:
        out += matrix("embeddings.embed_proj", (h, plain), "other")
    if relative:
        most = keys.number("max_relative_positions", default=-1)
        reach = keys.size(*k.CONTEXT) if most < 1 else int(most)
        buckets = keys.number("position_buckets", default=-1)
        rows = 2 * (int(buckets) if buckets > 0 else reach)
        out.append(table("encoder.rel_embeddings", rows, h, part="attention"))
        if "layer_norm" in keys.text("norm_rel_ebd"):
            out += norm("encoder.LayerNorm", h, "layer")
    if keys.size("conv_kernel_size", default=0):
        taps = keys.size("conv_kernel_size")
        out += (*matrix("encoder.conv", (h, h * taps), "other", bias=True), *norm("encoder.conv.LayerNorm", h, "layer"))
    return tuple(out)


def _deberta_head(keys: Keys, h: int) -> Weights:
    return head(keys, h, h, Bert(pooler="SequenceClassification" in keys.head))


def nomic_bert(keys: Keys) -> Draft:
    """Nomic Embed: gated MLP without biases, rotary positions."""
    size = dims(keys, ffn_times=4)
    qkv = keys.flag("qkv_proj_bias", "attention_bias")
    mlp_bias = keys.flag("mlp_fc1_bias", "mlp_bias")
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo" if qkv else "")),
        *mlp(size.hidden, size.ffn, bias=mlp_bias),
        *norms(NORM_NAMES, size.hidden, "layer"),
    )
    style = Bert(positions=False, pooler="SequenceClassification" in keys.head)
    outer = (*_tables(keys, size.hidden, style), *head(keys, size.hidden, size.hidden, style))
    return encoder(keys, bidirectional(size.heads, weights, size.layers), outer, size.hidden)


def new(keys: Keys) -> Draft:
    """Alibaba's GTE (`new-impl` modeling.py): rotary positions, a gated MLP whose way up has no biases."""
    size = dims(keys)
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *_half_biased(size.hidden, size.ffn),
        *norms(("attn_ln", "mlp_ln"), size.hidden, "layer"),
    )
    style = Bert(
        positions=keys.text("position_embedding_type", default="rope") == "absolute",
        token_types=keys.size("type_vocab_size", default=0) > 0,
        pooler="SequenceClassification" in keys.head,
    )
    outer = (*_tables(keys, size.hidden, style), *head(keys, size.hidden, size.hidden, style))
    return encoder(keys, bidirectional(size.heads, weights, size.layers), outer, size.hidden)


def _half_biased(hidden: int, width: int) -> Weights:
    up, down = mlp(hidden, width)[:2], matrix("mlp.down_proj", (hidden, width), "mlp", bias=True, units=width, cut="in")
    return (*up, *down)


def jina_bert(keys: Keys) -> Draft:
    """Jina's BERT 2 (jina-bert-implementation modeling_bert.py): ALiBi, a gated MLP, norms as BERT has them."""
    size = dims(keys)
    gated = keys.text("feed_forward_type", default="original") in {"geglu", "reglu", "glu"}
    ffn = _half_biased(size.hidden, size.ffn) if gated else mlp(size.hidden, size.ffn, gated=False, bias=True)
    weights = (
        *attention_weights(size.heads, Projections(bias="qkvo")),
        *ffn,
        *norms(NORM_NAMES, size.hidden, "layer"),
    )
    style = replace(BERT, positions=keys.text("position_embedding_type") != "alibi")
    outer = (*_tables(keys, size.hidden, style), *head(keys, size.hidden, size.hidden, style))
    return encoder(keys, bidirectional(size.heads, weights, size.layers), outer, size.hidden)


def bert_or_jina(keys: Keys) -> Draft:
    """`bert`: Jina's own code goes by that name too, and says its kind of feed-forward."""
    return jina_bert(keys) if keys.has("feed_forward_type") or keys.head.startswith("JinaBert") else bert(keys)


READERS = {
    "new": new,
    "bert": bert_or_jina,
    "megatron-bert": bert,
    "ernie": bert,
    "layoutlm": layoutlm,
    "roberta": roberta,
    "xlm-roberta": roberta,
    "camembert": roberta,
    "data2vec-text": roberta,
    "roberta-prelayernorm": prenorm,
    "xlm-roberta-xl": prenorm,
    "electra": electra,
    "distilbert": distilbert,
    "mpnet": mpnet,
    "albert": albert,
    "deberta": deberta,
    "deberta-v2": deberta,
    "nomic_bert": nomic_bert,
}
