"""How an engine lays the cache out in blocks: what a request holds, how many tokens a pool takes.

vLLM's hybrid cache manager puts equal layers into groups of one size and gives all groups blocks of equal
bytes from one pool; a group of windowed layers holds blocks for its window only, a recurrent one for its
state. A model of one kind of layer is the case of one group.

SGLang sets a part of the pool aside for recurrent states: requests fill one part by their number, the other by their
tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chipwise.memory.profile import MemoryProfile
from chipwise.parallelism import LayerShard, Number, ceil_div

SECTIONS = 512
_INDEXER_BYTES_PER_ELEMENT = 1 + 4 / 128  # 8-bit keys with one 32-bit scale per 128 of them


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKind:
    """`count` layers of one device that cache alike: bytes a token or a sequence, windowed or not."""

    count: Number
    bytes_per_token: Number
    state_bytes: Number
    window_tokens: int | None
    chunked: bool

    @property
    def recurrent(self) -> bool:
        """Whether it keeps a state a sequence and nothing a token."""
        state = self.state_bytes
        return state > 0 if isinstance(state, int | float) else bool(np.any(np.asarray(state) > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """One kind of layer in the pool: `groups` block tables, `block_tokens` a block (0: one block a state)."""

    kind: CacheKind
    groups: Number
    block_tokens: Number
    blocks_per_state: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesApart:
    """A part of the pool that is set aside for recurrent states."""

    size_bytes: Number
    """Of the recurrent layers together, once."""
    copies: float
    """How often the engine keeps them for a request."""
    share: float
    """Their part of the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """The pool's blocks on one device: `block_bytes` each, shared by all groups."""

    groups: tuple[CacheGroup, ...]
    block_bytes: Number
    block_tokens: Number
    window_slack_tokens: Number
    states: StatesApart | None = None
    """None: states live in blocks as all else."""

    @property
    def group_count(self) -> Number:
        """Block tables of one request."""
        return sum((group.groups for group in self.groups), start=0.0)


def cache_kinds(layers: Iterable[LayerShard], *, element_bytes: Number, profile: MemoryProfile) -> list[CacheKind]:
    """The kinds of cache among `layers`, equal ones merged; layers that keep nothing are left out.

    MLA latents are padded as the engine version pads them, or kept as full keys and values where it knows no
    MLA. A layer with a compressed past beside its window is two kinds.
    """
    kinds: list[CacheKind] = []
    for kind in (kind for layer in layers for kind in _kinds(layer, element_bytes=element_bytes, profile=profile)):
        if not np.any(np.asarray(kind.bytes_per_token) > 0) and not kind.recurrent:
            continue
        for index, known in enumerate(kinds):
            if _alike(known, kind):
                kinds[index] = replace(known, count=known.count + kind.count)
                break
        else:
            kinds.append(kind)
    return kinds


def _kinds(layer: LayerShard, *, element_bytes: Number, profile: MemoryProfile) -> list[CacheKind]:
    every = layer.cache.compressed_every
    if not every:
        return [_kind(layer, element_bytes=element_bytes, profile=profile)]
    window = replace(layer, cache=replace(layer.cache, indexer_dim=0))
    past = _kind(
        replace(layer, cache=replace(layer.cache, kind="full", state_bytes_per_sequence=0)),
        element_bytes=element_bytes,
        profile=profile,
    )
    return [
        _kind(window, element_bytes=element_bytes, profile=profile),
        replace(past, bytes_per_token=past.bytes_per_token / every),
    ]


def _kind(layer: LayerShard, *, element_bytes: Number, profile: MemoryProfile) -> CacheKind:
    cache = layer.cache
    elements = cache.elements_per_token
    if cache.kind == "mla" and not profile.mla_latent:
        elements = cache.query_heads * 2 * (cache.head_dim or cache.value_head_dim)
    elif cache.kind == "mla":
        elements = ceil_div(elements, profile.mla_multiple) * profile.mla_multiple
    windowed = cache.kind in {"sliding", "chunked"} and profile.windows_bounded
    return CacheKind(
        count=layer.count,
        bytes_per_token=elements * element_bytes + cache.indexer_dim * _INDEXER_BYTES_PER_ELEMENT,
        state_bytes=cache.state_bytes_per_sequence,
        window_tokens=cache.window_tokens if windowed else None,
        chunked=cache.kind == "chunked" and windowed,
    )


def _alike(one: CacheKind, other: CacheKind) -> bool:
    same = (one.window_tokens, one.chunked) == (other.window_tokens, other.chunked)
    return (
        same
        and np.array_equal(one.bytes_per_token, other.bytes_per_token)
        and np.array_equal(one.state_bytes, other.state_bytes)
    )


def cache_layout(
    kinds: list[CacheKind], *, profile: MemoryProfile, chunk_tokens: Number, draft_tokens: int
) -> CacheLayout:
    """The blocks of a pool for these kinds of layers.

    Group size: the fewest layers of a kind, or the most where they are within `group_ratio` of it; n
    layers make `ceil(n / size)` groups. Blocks hold `block_tokens` tokens, stretched until one holds a
    recurrent state. An engine with a `state_ratio` r keeps states apart from blocks, in `r / (1 + r)` of the pool.
    """
    recurrent = [kind for kind in kinds if kind.recurrent]
    apart = profile.state_ratio > 0 and 0 < len(recurrent) < len(kinds)
    blocks = _blocks_of(
        [kind for kind in kinds if not kind.recurrent] if apart else kinds,
        profile=profile,
        chunk_tokens=chunk_tokens,
        draft_tokens=draft_tokens,
    )
    if not apart:
        return blocks
    states = StatesApart(
        size_bytes=sum((kind.count * kind.state_bytes for kind in recurrent), start=0.0),
        copies=float(profile.blocks_per_state + draft_tokens),
        share=profile.state_ratio / (1.0 + profile.state_ratio),
    )
    return replace(blocks, states=states)


def _blocks_of(
    kinds: list[CacheKind], *, profile: MemoryProfile, chunk_tokens: Number, draft_tokens: int
) -> CacheLayout:
    tokens = _block_tokens(kinds, profile)
    pages = [_page(kind, tokens) for kind in kinds] or [np.zeros(())]
    counts = [np.asarray(kind.count, dtype=float) for kind in kinds] or [np.zeros(())]
    page = np.max(np.stack(np.broadcast_arrays(*pages)), axis=0)
    each = np.stack(np.broadcast_arrays(*counts))
    few, many = np.min(each, axis=0), np.max(each, axis=0)
    size = np.where(many < few * profile.group_ratio, many, few)
    size = np.maximum(size, 1.0)
    groups = tuple(
        CacheGroup(
            kind=kind,
            groups=ceil_div(kind.count, size),
            block_tokens=0.0 if kind.recurrent else np.floor(page / kind.bytes_per_token),
            blocks_per_state=float(profile.blocks_per_state + draft_tokens),
        )
        for kind in kinds
    )
    return CacheLayout(groups=groups, block_bytes=size * page, block_tokens=tokens, window_slack_tokens=chunk_tokens)


def _block_tokens(kinds: list[CacheKind], profile: MemoryProfile) -> Number:
    base = float(profile.block_tokens)
    states = [kind.state_bytes for kind in kinds if kind.recurrent]
    tokens = [kind.bytes_per_token for kind in kinds if not kind.recurrent]
    if not states or not tokens:
        return base
    largest, smallest = np.max(np.asarray(states), axis=0), np.max(np.asarray(tokens), axis=0)
    return base * np.maximum(ceil_div(largest, base * smallest), 1.0)


def _page(kind: CacheKind, tokens: Number) -> Number:
    return kind.state_bytes if kind.recurrent else tokens * kind.bytes_per_token


def request_blocks(layout: CacheLayout, *, context_tokens: Number) -> Number:
    """Blocks that one request of `context_tokens` holds at its fullest, over all groups.

    Full attention: `ceil(context / block)`; a window: for `min(window - 1 + chunk, context)` tokens, and one
    more block because the window need not start at one; a chunk likewise without that; a state: fixed.
    Where states have a part of the pool, a request takes of the whole pool what it takes of the fuller part.
    """
    total: Number = 0.0
    for group in layout.groups:
        total = total + group.groups * _blocks(group, context_tokens, layout.window_slack_tokens)
    states = layout.states
    if states is None:
        return total
    blocks = states.copies * states.size_bytes / (states.share * layout.block_bytes)
    return np.maximum(total / (1.0 - states.share), blocks)


def state_limit(layout: CacheLayout, *, pool_bytes: Number) -> Number:
    """Requests at once for which the engine has states, however short they are; infinite where these live in blocks.

    `part of the states in the pool // (states a request x their bytes)`
    """
    states = layout.states
    if states is None:
        return np.full(np.shape(pool_bytes), np.inf)
    part = states.share * np.maximum(pool_bytes, 0.0)
    return np.floor(np.floor(part / states.size_bytes) / states.copies)


def usable_bytes(layout: CacheLayout, *, pool_bytes: Number) -> Number:
    """What of a pool requests fill with their tokens and one state each; all of it where states live in blocks."""
    if layout.states is None:
        return pool_bytes
    tokens = (1.0 - layout.states.share) * np.maximum(pool_bytes, 0.0)
    return tokens + state_limit(layout, pool_bytes=pool_bytes) * layout.states.size_bytes


def _blocks(group: CacheGroup, context_tokens: Number, slack_tokens: Number) -> Number:
    kind = group.kind
    if kind.recurrent:
        return group.blocks_per_state
    if kind.window_tokens is None:
        return ceil_div(context_tokens, group.block_tokens)
    reach = kind.window_tokens + slack_tokens - (0 if kind.chunked else 1)
    held = ceil_div(np.minimum(reach, context_tokens), group.block_tokens)
    return held if kind.chunked else held + 1


def request_bytes(layout: CacheLayout, *, context_tokens: Number) -> Number:
    """Bytes that one request of `context_tokens` holds on one device."""
    return request_blocks(layout, context_tokens=context_tokens) * layout.block_bytes


def pool_blocks(layout: CacheLayout, *, pool_bytes: Number) -> Number:
    """Whole blocks in a pool; 0 where there is no room."""
    return np.floor(np.maximum(pool_bytes, 0.0) / np.maximum(layout.block_bytes, 1.0))


def pool_tokens(layout: CacheLayout, *, pool_bytes: Number, context_tokens: Number, per_group: bool) -> Number:
    """The pool's size in tokens, as the engine version prints it.

    `per_group` (vLLM before 0.21): blocks over block tables, times tokens a block. Else concurrency times
    context.
    """
    if not layout.groups:
        return np.zeros_like(np.asarray(pool_bytes, dtype=float))
    blocks = pool_blocks(layout, pool_bytes=pool_bytes)
    if per_group:
        blocks = np.floor(blocks * (1.0 - (layout.states.share if layout.states else 0.0)))
        return np.floor(blocks / np.maximum(layout.group_count, 1.0)) * layout.block_tokens
    return np.floor(blocks / request_blocks(layout, context_tokens=context_tokens) * context_tokens)


def longest_context(layout: CacheLayout, *, pool_bytes: Number, concurrency: Number, most_tokens: int) -> Number:
    """The longest context of which `concurrency` requests fit, up to `most_tokens`; 0 where none does.

    What fits is bracketed in `SECTIONS` equal sections at once, until the bracket is one token wide.
    """
    blocks = pool_blocks(layout, pool_bytes=pool_bytes)
    room = np.asarray(pool_bytes) >= 0

    def fits(tokens: Number) -> Any:
        return (request_blocks(layout, context_tokens=tokens) * concurrency <= blocks) & room

    top = np.full(np.shape(pool_bytes), float(most_tokens))
    low = np.where(fits(top), top, 0.0)
    high = np.broadcast_to(top, low.shape)
    steps = (np.arange(SECTIONS + 1) / SECTIONS).reshape(-1, *(1,) * low.ndim)
    while np.any(high - low > 1.0):
        points = low + np.floor((high - low) * steps)
        points[-1] = high
        last = np.maximum(np.sum(fits(points[1:-1]), axis=0), 0)[None]
        low, high = (np.take_along_axis(points, place, axis=0)[0] for place in (last, last + 1))
    return low
