"""OLMo 1 to 3, OLMoE, FlexOlmo: norms without scales (1), norms after each block and over all heads (2, 3)."""

from __future__ import annotations

from chipwise.model import keys as k
from chipwise.model.blocks import Block, assemble, attention_weights, mlp, norms
from chipwise.model.decoder import NORM_PAIR, Style, causal_lm, decoder, dims, projections
from chipwise.model.draft import Draft
from chipwise.model.families.qwen_next import delta_of, linear_plan
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture
from chipwise.model.recurrent import gated_delta

AFTER = ("post_attention_layernorm", "post_feedforward_layernorm")


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def olmo(keys: Keys) -> Draft:
    """OLMo 1: norms have no parameters."""
    return decoder(keys, Style(bias=_bias(keys), norm="none"))


def olmo2(keys: Keys) -> Draft:
    """OLMo 2: norms after attention and MLP, and over all query and key heads."""
    return decoder(keys, Style(bias=_bias(keys), norm_names=AFTER, qk_norm="full"))


def olmo3(keys: Keys) -> Draft:
    """OLMo 3: OLMo 2 with windows in three layers of four."""
    return decoder(keys, Style(bias=_bias(keys), norm_names=AFTER, qk_norm="full", pattern=4))


def olmoe(keys: Keys) -> Draft:
    """OLMoE: every MLP is a choice of experts."""
    size = dims(keys)
    ffns = {"moe": mixture(keys, size.hidden, Mix(width=k.FFN))["moe"]}
    return decoder(keys, Style(bias=_bias(keys), qk_norm="full"), ffns=ffns)


def flex_olmo(keys: Keys) -> Draft:
    """FlexOlmo: OLMo 2's norms, OLMoE's experts."""
    size = dims(keys)
    ffns = {"moe": mixture(keys, size.hidden, Mix(width=k.FFN))["moe"]}
    return decoder(keys, Style(bias=_bias(keys), qk_norm="full", norm_names=AFTER), ffns=ffns)


def olmo_hybrid(keys: Keys) -> Draft:
    """OLMo Hybrid: three layers of gated delta rule, normed before, to each layer of attention, normed after."""
    size = dims(keys)
    linear, full = gated_delta(delta_of(keys, size.hidden)), projections(Style(bias=_bias(keys), qk_norm="full"))
    ffn = mlp(size.hidden, size.ffn)
    mixers = {
        "linear": Block(weights=(*linear.weights, *norms(NORM_PAIR, size.hidden)), attention=linear.attention),
        "full": Block(
            weights=(*attention_weights(size.heads, full), *norms(AFTER, size.hidden)),
            attention=size.heads.attention(),
        ),
    }
    plan = [(kind, "dense") for kind in linear_plan(keys, size.layers)]
    return causal_lm(keys, size, assemble(plan, mixers, {"dense": Block(weights=ffn)}))


READERS = {
    "olmo_hybrid": olmo_hybrid,
    "olmo": olmo,
    "olmo2": olmo2,
    "olmo3": olmo3,
    "olmoe": olmoe,
    "flex_olmo": flex_olmo,
}
