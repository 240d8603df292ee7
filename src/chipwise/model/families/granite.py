"""Granite: Llama's shape, with experts (MoE, shared), with Mamba layers (hybrid 4.0); and Bamba, Falcon-H1."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Projections, Weights, assemble, attention_weights, mlp, norms, vector
from chipwise.model.decoder import NORM_PAIR, Dims, Style, causal_lm, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.families.llama import llama
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture, with_weights
from chipwise.model.recurrent import Mamba2, mamba2

MIX = Mix(
    width=k.FFN,
    prefix="block_sparse_moe",
    router="block_sparse_moe.router",
    shared=("shared_intermediate_size",),
    shared_name="shared_mlp",
)


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def granitemoe(keys: Keys) -> Draft:
    """Granite 3 MoE: every MLP a choice of experts, a shared MLP beside where the config has one."""
    size = dims(keys)
    return decoder(keys, Style(bias=_bias(keys)), ffns={"moe": mixture(keys, size.hidden, MIX)["moe"]})


def mamba_of(keys: Keys, hidden: int, *, norm: bool = True) -> Mamba2:
    """The Mamba 2 mixer as Granite, Bamba and Falcon-H1 name its keys."""
    inner = keys.maybe("mamba_d_ssm") or keys.size("mamba_expand", default=2) * hidden
    heads = keys.size("mamba_n_heads", least=1)
    head_dim = keys.raw("mamba_d_head")
    return Mamba2(
        hidden=hidden,
        heads=heads,
        head_dim=head_dim if isinstance(head_dim, int) else inner // heads,
        state=keys.size("mamba_d_state"),
        groups=keys.size("mamba_n_groups"),
        kernel=keys.size("mamba_d_conv"),
        bias=keys.flag("mamba_proj_bias"),
        conv_bias=keys.flag("mamba_conv_bias", default=True),
        norm=norm,
        prefix="mamba",
    )


def _full(keys: Keys, size: Dims) -> Block:
    weights = attention_weights(size.heads, Projections(bias=_bias(keys)))
    return Block(weights=weights, attention=size.heads.attention())


def granitemoehybrid(keys: Keys) -> Draft:
    """Granite 4.0: Mamba 2 and attention layers by `layer_types`; a shared MLP, experts where there are any."""
    size = dims(keys)
    kinds = keys.items("layer_types", "layers_block_type") or ["mamba"] * size.layers
    plan = [("full" if kind in ("attention", "full_attention") else "mamba", "moe") for kind in kinds[: size.layers]]
    mixers = {"full": _full(keys, size), "mamba": mamba2(mamba_of(keys, size.hidden))}
    if keys.maybe(*k.EXPERTS):
        ffn = mixture(keys, size.hidden, MIX)["moe"]
    else:
        ffn = Block(weights=mlp(size.hidden, keys.size("shared_intermediate_size"), prefix="shared_mlp"))
    layers = assemble(plan, mixers, {"moe": ffn}, norms(NORM_PAIR, size.hidden))
    return causal_lm(keys, size, layers)


def bamba(keys: Keys) -> Draft:
    """Bamba: Mamba 2 layers with attention at `attn_layer_indices`."""
    size = dims(keys)
    full = set(keys.sizes("attn_layer_indices"))
    plan = [("full" if index in full else "mamba", "dense") for index in range(size.layers)]
    mixers = {"full": _full(keys, size), "mamba": mamba2(mamba_of(keys, size.hidden))}
    ffn = Block(weights=mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias"), prefix="feed_forward"))
    layers = assemble(plan, mixers, {"dense": ffn}, norms(("input_layernorm", "pre_ff_layernorm"), size.hidden))
    return causal_lm(keys, size, layers)


def falcon_h1(keys: Keys) -> Draft:
    """Falcon-H1: attention and Mamba 2 side by side in every layer: a cache and a state."""
    size = dims(keys)
    ssm = mamba2(mamba_of(keys, size.hidden, norm=keys.flag("mamba_rms_norm")))
    both = with_weights(_full(keys, size), ssm.weights)
    kept = _with_state(both, ssm.attention.state_bytes_per_sequence)
    ffn = Block(weights=mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias"), prefix="feed_forward"))
    names = ("input_layernorm", "pre_ff_layernorm")
    layers = assemble([("both", "dense")] * size.layers, {"both": kept}, {"dense": ffn}, norms(names, size.hidden))
    return causal_lm(keys, size, layers)


def _with_state(block: Block, state_bytes: int) -> Block:
    return replace(block, attention=replace(block.attention, state_bytes_per_sequence=state_bytes))


def _sinks(keys: Keys) -> Weights:
    heads = keys.size(*k.HEADS)
    return (vector("self_attn.sinks", heads, "attention", units=heads),)


def granite_swa(keys: Keys) -> Draft:
    """Granite with windows by `layer_types` and a sink for each head."""
    return decoder(keys, Style(bias=_bias(keys), mlp_bias=keys.flag("mlp_bias")), more=_sinks(keys))


def granitemoe_swa(keys: Keys) -> Draft:
    """Granite MoE with windows and sinks."""
    size = dims(keys)
    ffns = {"moe": mixture(keys, size.hidden, MIX)["moe"]}
    return decoder(keys, Style(bias=_bias(keys)), ffns=ffns, more=_sinks(keys))


READERS = {
    "granite_swa": granite_swa,
    "granitemoe_swa": granitemoe_swa,
    "granite": llama,
    "granitemoe": granitemoe,
    "granitemoeshared": granitemoe,
    "granitemoehybrid": granitemoehybrid,
    "bamba": bamba,
    "falcon_h1": falcon_h1,
}
