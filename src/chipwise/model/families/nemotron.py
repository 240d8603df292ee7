"""Nemotron-H and Nemotron 3 (one mixer or one MLP a layer, by a pattern) and Nemotron-NAS (every layer of its own)."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Heads, Moe, Projections, assemble, attention_weights, mlp, moe, norms
from chipwise.model.decoder import NORM_PAIR, Dims, Style, causal_lm, dims
from chipwise.model.draft import Draft, grouped, stack
from chipwise.model.keys import Keys, divide
from chipwise.model.recurrent import Mamba2, mamba2
from chipwise.model.spec import Layer

_LETTERS = {"M": "mamba", "-": "mlp", "*": "attention", "E": "moe"}
_WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "mlp": "mlp",
    "attention": "attention",
    "full_attention": "attention",
    "moe": "moe",
}
_NOTHING = {"none": Block()}


def nemotron_h(keys: Keys) -> Draft:
    """Nemotron-H, Nemotron Nano 2, Nemotron 3: `hybrid_override_pattern` or `layers_block_type` names each layer."""
    keys.need(k.HIDDEN, k.HEADS, k.VOCAB)
    plan = _plan(keys, "hybrid_override_pattern", "layers_block_type")
    if not plan:
        raise keys.missing("hybrid_override_pattern or layers_block_type")
    hidden = keys.size(*k.HIDDEN, least=1)
    blocks = _blocks(keys, hidden, set(plan))
    layers = assemble([(kind, "none") for kind in plan], blocks, _NOTHING, norms(("norm",), hidden))
    size = Dims(hidden=hidden, layers=len(plan), heads=_heads(keys, hidden), ffn=0, vocab=keys.size(*k.VOCAB))
    draft = causal_lm(keys, size, layers)
    return replace(draft, mtp=_mtp(keys, hidden))


def _plan(keys: Keys, letters: str, words: str) -> list[str]:
    pattern = keys.data.get(letters)
    listed = keys.data.get(words)
    if isinstance(pattern, str):
        known, items = _LETTERS, [letter for letter in pattern if letter != "|"]
    elif isinstance(listed, list):
        known, items = _WORDS, [str(word) for word in listed]
    else:
        return []
    if len(items) > k.MOST_LAYERS:
        raise keys.wrong(letters, len(items), f"at most {k.MOST_LAYERS} layers")
    for item in items:
        if item not in known:
            raise keys.wrong(letters, item, f"one of {', '.join(known)}")
    return [known[item] for item in items]


def _heads(keys: Keys, hidden: int) -> Heads:
    query = keys.size(*k.HEADS, least=1)
    dim = keys.maybe("head_dim", "attention_head_dim") or divide(keys, hidden, query, "hidden_size")
    return Heads(hidden=hidden, query=query, kv=keys.size(*k.KV_HEADS, default=query), dim=dim)


def _blocks(keys: Keys, hidden: int, kinds: set[str]) -> dict[str, Block]:
    builders = {"attention": _attention, "mlp": _mlp, "moe": _moe, "mamba": _mamba}
    return {kind: builders[kind](keys, hidden) for kind in kinds}


def _attention(keys: Keys, hidden: int) -> Block:
    heads = _heads(keys, hidden)
    style = Projections(bias="qkvo" if keys.flag("attention_bias") else "", prefix="mixer")
    return Block(weights=attention_weights(heads, style), attention=heads.attention())


def _mlp(keys: Keys, hidden: int) -> Block:
    width = keys.size(*k.FFN)
    return Block(weights=mlp(hidden, width, gated=False, bias=keys.flag("mlp_bias"), prefix="mixer"))


def _moe(keys: Keys, hidden: int) -> Block:
    keys.need(k.EXPERTS, k.PER_TOKEN, ("moe_intermediate_size",))
    count = keys.size("n_shared_experts", default=0)
    width = keys.size("moe_shared_expert_intermediate_size", default=keys.size("moe_intermediate_size"))
    return moe(
        Moe(
            hidden=hidden,
            routed=keys.size(*k.EXPERTS),
            per_token=keys.size(*k.PER_TOKEN),
            width=keys.size("moe_intermediate_size"),
            shared=width if count else 0,
            shared_count=count,
            shared_name="mixer.shared_experts",
            router_name="mixer.gate",
            gated=False,
            prefix="mixer",
            latent=keys.size("moe_latent_size", default=0),
        )
    )


def _mamba(keys: Keys, hidden: int) -> Block:
    keys.need(("mamba_num_heads",), ("mamba_head_dim",), ("n_groups",), ("conv_kernel",))
    return mamba2(
        Mamba2(
            hidden=hidden,
            heads=keys.size("mamba_num_heads"),
            head_dim=keys.size("mamba_head_dim"),
            state=keys.size("ssm_state_size", default=128),
            groups=keys.size("n_groups"),
            kernel=keys.size("conv_kernel"),
            bias=keys.flag("use_bias", "mamba_proj_bias"),
            conv_bias=keys.flag("use_conv_bias", default=True),
        )
    )


def _mtp(keys: Keys, hidden: int) -> tuple[Layer, ...]:
    if not keys.has("num_nextn_predict_layers"):
        return ()
    plan = _plan(keys, "mtp_hybrid_override_pattern", "mtp_layers_block_type")
    blocks = _blocks(keys, hidden, set(plan))
    rounds = keys.size("num_nextn_predict_layers")
    return tuple(
        replace(layer, experts=blocks[kind].experts)
        for kind in plan
        for layer in stack(rounds, (*blocks[kind].weights, *norms(("norm",), hidden)), blocks[kind].attention)
    )


def nemotron_nas(keys: Keys) -> Draft:
    """Llama-Nemotron Super and Ultra: `block_configs` says for each layer which attention and which MLP, or none."""
    if keys.has("num_key_value_heads_per_layer"):
        return _decilm(keys)
    keys.need(k.HIDDEN, k.HEADS, k.VOCAB, ("block_configs",))
    hidden, query = keys.size(*k.HIDDEN, least=1), keys.size(*k.HEADS, least=1)
    dim = keys.maybe("head_dim") or divide(keys, hidden, query, "hidden_size")
    bias = "qkvo" if keys.flag("attention_bias") else ""
    plan = [_nas_labels(keys, item, hidden) for item in keys.items("block_configs")]

    def build(label: tuple[int, int]) -> Layer:
        group, width = label
        heads = Heads(hidden=hidden, query=query, kv=query // group if group else 0, dim=dim)
        mixer = Block(weights=attention_weights(heads, Projections(bias=bias)), attention=heads.attention())
        mixer = mixer if group else Block()
        kept = (NORM_PAIR[0],) * bool(group) + (NORM_PAIR[1],) * bool(width)
        feed = mlp(hidden, width) if width else ()
        return Layer(count=1, attention=mixer.attention, weights=(*mixer.weights, *feed, *norms(kept, hidden)))

    size = Dims(
        hidden=hidden,
        layers=len(plan),
        heads=Heads(hidden=hidden, query=query, kv=query, dim=dim),
        ffn=0,
        vocab=keys.size(*k.VOCAB),
    )
    return causal_lm(keys, size, grouped(plan, build), Style())


def _decilm(keys: Keys) -> Draft:
    """DeciLM 6B and 7B: Llama with KV heads of its own in each layer."""
    size = dims(keys.also(num_key_value_heads=None))
    plan = [(str(kv), "dense") for kv in keys.sizes("num_key_value_heads_per_layer")]
    mixers = {}
    for label, _ in plan:
        heads = replace(size.heads, kv=int(label))
        mixers[label] = Block(weights=attention_weights(heads), attention=heads.attention())
    ffns = {"dense": Block(weights=mlp(size.hidden, size.ffn))}
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _nas_labels(keys: Keys, item: object, hidden: int) -> tuple[int, int]:
    """(query heads a KV head, MLP width) of one layer; 0 where it has none. Widths are rounded up to 256."""
    parts = item if isinstance(item, dict) else {}
    attention, ffn = parts.get("attention"), parts.get("ffn")
    if not isinstance(attention, dict) or not isinstance(ffn, dict):
        raise keys.wrong("block_configs", item, "objects with attention and ffn")
    inner = Keys(data=attention, path=f"{keys.path}block_configs.attention.")
    outer = Keys(data=ffn, path=f"{keys.path}block_configs.ffn.")
    group = 0 if inner.flag("no_op") or inner.flag("replace_with_linear") else inner.size("n_heads_in_group", least=1)
    if outer.flag("no_op"):
        return group, 0
    width = int(2 * outer.number("ffn_mult", default=0.0) * hidden / 3)
    return group, -(-width // 256) * 256


READERS = {
    "nemotron_h": nemotron_h,
    "nemotron-nas": nemotron_nas,
    "nemotron_nas": nemotron_nas,
    "deci": nemotron_nas,
}
