"""Which splits are worth asking about for a model on a node: legal ones, up to a few nodes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from chipwise.parallelism import Split, ep_problem, tp_problem

if TYPE_CHECKING:
    from chipwise.model import ModelSpec

NODE_COUNTS = (2, 3, 4, 6, 8)


def powers(most: int) -> list[int]:
    """Powers of two up to `most`."""
    return [2**power for power in range(most.bit_length()) if 2**power <= most]


def _expert_splits(model: ModelSpec, split: Split) -> list[Split]:
    """The same devices with experts dealt out whole, and with data-parallel attention where KV heads run out."""
    if not model.is_moe or split.tp == 1:
        return []
    whole = Split(tp=split.tp, pp=split.pp, ep=split.tp)
    spread = Split(tp=1, pp=split.pp, dp=split.tp, ep=split.tp)
    return [one for one in (whole, spread) if ep_problem(model, one) is None]


@lru_cache(maxsize=1024)
def single_node_splits(model: ModelSpec, devices: int, *, stages: bool) -> tuple[Split, ...]:
    """Splits of one replica inside a node of `devices`: tp by powers of two, experts dealt out, pipeline stages.

    Args:
        model: what is split.
        devices: of one node.
        stages: whether pipeline stages are worth trying at every tp (links that are slow for an all-reduce); they
            are tried anyway where tp alone cannot use the node.
    """
    legal = [tp for tp in powers(devices) if tp_problem(model, tp) is None]
    found: list[Split] = []
    for tp in legal:
        flat = Split(tp=tp)
        found += [flat, *_expert_splits(model, flat)]
        if stages or tp == legal[-1]:
            found += [Split(tp=tp, pp=pp) for pp in (2, 4, 8) if tp * pp <= devices and model.layer_count >= pp]
    return tuple(found)


@lru_cache(maxsize=1024)
def multi_node_splits(model: ModelSpec, devices: int) -> tuple[Split, ...]:
    """Splits over several nodes: the widest legal tp inside a node, one pipeline stage a node, or experts over all."""
    widest = [tp for tp in powers(devices) if tp_problem(model, tp) is None]
    if not widest:
        return ()
    tp = widest[-1]
    stages = [Split(tp=tp, pp=nodes * (devices // tp)) for nodes in NODE_COUNTS]
    found = [split for split in stages if split.pp <= model.layer_count]
    if model.is_moe:
        spread = [Split(tp=1, dp=devices * nodes, ep=devices * nodes) for nodes in NODE_COUNTS]
        found += [split for split in spread if ep_problem(model, split) is None]
    return tuple(found)
