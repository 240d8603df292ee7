"""The feed-forward kinds of a mixture-of-experts decoder, read from whichever key names the config uses."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Moe, Weights, mlp, moe
from chipwise.model.keys import Keys

WIDTH = ("moe_intermediate_size", "moe_inter_dim", "expert_ffn_hidden_size", "moe_ffn_hidden_size")
SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "shared_experts_intermediate_size",
    "share_expert_dim",
)
PER_TOKEN = (*k.PER_TOKEN, "top_k_experts", "n_activated_experts", "topk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How a family's mixture differs: where its widths stand and what its router and experts hold.

    `width` and `shared` are key names (`shared` empty: by the number of shared experts).
    """

    width: tuple[str, ...] = WIDTH
    shared: tuple[str, ...] = ()
    shared_gate: bool = False
    shared_name: str = "mlp.shared_experts"
    router: str = "mlp.gate"
    router_bias: bool = False
    expert_bias: bool = False
    gated: bool = True
    dense_bias: bool = False
    prefix: str = "mlp"


PLAIN = Mix()


def mixture(keys: Keys, hidden: int, mix: Mix = PLAIN, *, dense: tuple[str, ...] = k.FFN) -> dict[str, Block]:
    """The blocks `dense` and `moe`; where the config has no experts, `moe` is the dense one.

    Raises:
        KnowledgeError: experts without their width or how many run.
    """
    plain = Block(
        weights=mlp(hidden, keys.size(*dense, default=0), gated=mix.gated, bias=mix.dense_bias, prefix=mix.prefix)
    )
    routed = keys.maybe(*k.EXPERTS)
    if not routed:
        return {"dense": plain, "moe": plain}
    keys.need(PER_TOKEN, mix.width)
    width = keys.size(*mix.width)
    count = keys.size(*SHARED_COUNT, default=0)
    shared = keys.size(*mix.shared, default=0) if mix.shared else 0
    shape = Moe(
        hidden=hidden,
        routed=routed,
        per_token=keys.size(*PER_TOKEN),
        width=width,
        shared=shared or count * width,
        shared_count=count or bool(shared),
        shared_gate=mix.shared_gate,
        shared_name=mix.shared_name,
        router_name=mix.router,
        router_bias=mix.router_bias,
        expert_bias=mix.expert_bias,
        gated=mix.gated,
        prefix=mix.prefix,
    )
    return {"dense": plain, "moe": moe(shape)}


def with_weights(block: Block, more: Weights) -> Block:
    """The block with more weights."""
    return Block(weights=(*block.weights, *more), attention=block.attention, experts=block.experts)
