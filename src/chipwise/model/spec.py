"""What a model is to chipwise: a run-length coded list of layers, each a list of weights and an attention kind.

Parameter counts, GEMM shapes, cache sizes and sharding are all read off this one list. The family files build it;
nothing downstream looks at a family name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

AttentionKind = Literal["full", "sliding", "chunked", "mla", "linear", "mamba", "shared", "none"]
Architecture = Literal[
    "dense-llm",
    "moe-llm",
    "vision-language",
    "vision",
    "diffusion",
    "cnn",
    "audio",
    "encoder",
    "recommender",
    "tabular",
]
Part = Literal["attention", "mlp", "expert", "shared-expert", "router", "norm", "embedding", "head", "other"]
ParamsSource = Literal["config", "safetensors", "gguf", "registry", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One weight matrix (`out_features` x `in_features`); a vector has `in_features` 1 and `gemm` False.

    `tp_units` is the number of indivisible pieces along the axis that tensor parallelism cuts: query heads for a
    query projection, KV heads for K and V (so that tp above it replicates them), the intermediate size for an MLP,
    1 for what every device holds whole. A device holds `ceil(tp_units / tp) / tp_units` of it.

    >>> Weight(name="q", part="attention", out_features=8192, in_features=8192, tp_units=64).params
    67108864
    """

    name: str
    part: Part
    out_features: int
    in_features: int
    tp_units: int = 1
    cut: Literal["out", "in"] = "out"
    gemm: bool = True
    quantisable: bool = True
    stored: bool = True
    format: str = "bf16"

    @property
    def params(self) -> int:
        """Stored parameters: 0 where the matrix shares its storage with another (a tied head)."""
        return self.out_features * self.in_features if self.stored else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """How one layer looks back, and what it must keep for that.

    `kind` full, sliding and chunked keep `kv_heads * (head_dim + value_head_dim)` elements a token, a sliding or
    chunked layer for at most `window_tokens`; mla keeps `kv_lora_rank + rope_head_dim`; shared reuses another
    layer's cache and keeps nothing; linear and mamba keep `state_bytes_per_sequence` whatever the length.
    A layer that is not `causal` sees all at once and keeps nothing. `indexer_dim` counts the extra elements a token
    that a sparse-attention indexer keeps (0 where there is none), `sparse_tokens` how many past tokens a query then
    reads (None: all).

    `compressed_every`: beside its window the layer keeps one entry for every so many tokens of the whole past (and its
    indexer one key), which is what grows; `sparse_tokens` then counts such entries. `values_cached` is False where
    values are the cached keys themselves.
    """

    kind: AttentionKind
    query_heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window_tokens: int | None = None
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    state_bytes_per_sequence: int = 0
    indexer_dim: int = 0
    sparse_tokens: int | None = None
    compressed_every: int | None = None
    values_cached: bool = True
    causal: bool = True

    @property
    def cache_elements_per_token(self) -> int:
        """Elements that one token (or one compressed entry) takes in the layer's cache, all devices, unpadded.

        >>> shape = Attention(kind="full", query_heads=64, kv_heads=8, head_dim=128, value_head_dim=128)
        >>> shape.cache_elements_per_token
        2048
        """
        if not self.causal:
            return 0
        if self.kind == "mla":
            return self.kv_lora_rank + self.rope_head_dim
        if self.kind in {"full", "sliding", "chunked"}:
            return self.kv_heads * (self.head_dim + (self.value_head_dim if self.values_cached else 0))
        return 0

    @property
    def growing_elements_per_token(self) -> float:
        """Elements by which this layer's cache grows with every token without end; a window or a state adds none.

        >>> latent = Attention(kind="sliding", query_heads=64, kv_heads=1, head_dim=512, value_head_dim=512,
        ...                    window_tokens=128, compressed_every=4, values_cached=False)
        >>> latent.growing_elements_per_token
        128.0
        """
        if self.compressed_every:
            return self.cache_elements_per_token / self.compressed_every
        return float(self.cache_elements_per_token) if self.kind in {"full", "mla"} else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The routed experts of a layer: `weights` is one expert; `per_token` of `routed` run for every token."""

    routed: int
    per_token: int
    weights: tuple[Weight, ...]
    shared: int = 0

    @property
    def params(self) -> int:
        """Parameters of all routed experts."""
        return self.routed * sum(weight.params for weight in self.weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """`count` equal layers. `weights` run for every token (attention, MLP, norms, router, shared experts).

    `stored_count` is how many copies are stored where layers share their weights (ALBERT: 1 of 12). `indices` are
    the positions of these layers in the stack, where the reader knows them.
    """

    count: int
    attention: Attention
    weights: tuple[Weight, ...]
    experts: Experts | None = None
    stored_count: int | None = None
    indices: tuple[int, ...] = field(default=(), repr=False)

    @property
    def params(self) -> int:
        """Parameters of all `count` layers."""
        each = sum(weight.params for weight in self.weights) + (self.experts.params if self.experts else 0)
        return each * (self.count if self.stored_count is None else self.stored_count)

    @property
    def params_active(self) -> int:
        """Parameters one token passes through in these layers: all but the experts not chosen."""
        if self.experts is None:
            return self.params
        idle = self.experts.params * (self.experts.routed - self.experts.per_token) // self.experts.routed
        return self.params - idle * (self.count if self.stored_count is None else self.stored_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """A part beside the main stack: a vision or audio encoder, a text encoder, a VAE, an MTP module."""

    name: str
    layers: tuple[Layer, ...] = ()
    weights: tuple[Weight, ...] = ()

    @property
    def params(self) -> int:
        """Parameters of the tower."""
        return sum(layer.params for layer in self.layers) + sum(weight.params for weight in self.weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantisation:
    """How a checkpoint is quantised. `weight_format` is a name of `precision`; the weights carry it one by one.

    `bits_per_weight` counts scales and zero points. `inferred_from` is None where the file says it outright.
    """

    method: str
    weight_format: str
    bits_per_weight: float
    activation_format: str | None = None
    kv_format: str | None = None
    inferred_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model as read: the main stack in `layers`, embedding, head and final norm in `outer`, the rest in `towers`.

    `params_stated` is a total that a better source than the layer list gave (an index, the user); None otherwise.
    """

    name: str
    model_type: str
    architecture: Architecture
    layers: tuple[Layer, ...]
    outer: tuple[Weight, ...]
    hidden_size: int
    vocab_size: int
    max_context_tokens: int | None
    dtype: str | None
    params_source: ParamsSource
    towers: tuple[Tower, ...] = ()
    mtp: tuple[Layer, ...] = ()
    quantisation: Quantisation | None = None
    params_stated: int | None = None
    warnings: tuple[str, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)
    checkpoint: str | None = None
    """The Hugging Face id that was asked for, where a built-in description stands for several; None otherwise."""

    def __hash__(self) -> int:
        """By name and format: quick, as models are keys of what is remembered of them."""
        return hash((self.name, self.dtype, self.quantisation))

    @property
    def params_total(self) -> int:
        """All parameters but the multi-token-prediction layers."""
        if self.params_stated is not None:
            return self.params_stated
        main = sum(layer.params for layer in self.layers) + sum(weight.params for weight in self.outer)
        return main + sum(tower.params for tower in self.towers)

    @property
    def params_active(self) -> int:
        """Parameters one token passes through, embeddings and towers counted: all but the experts not chosen."""
        beside = (layer for tower in self.towers for layer in tower.layers)
        idle = sum(layer.params - layer.params_active for layer in (*self.layers, *beside))
        return self.params_total - idle

    @property
    def params_mtp(self) -> int:
        """Parameters of the multi-token-prediction layers, which are in the checkpoint and not in the totals."""
        return sum(layer.params for layer in self.mtp)

    @property
    def layer_count(self) -> int:
        """Layers of the main stack."""
        return sum(layer.count for layer in self.layers)

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(layer.experts is not None for layer in self.layers)

    def kv_bytes_per_token(self, element_bytes: float = 2.0) -> float:
        """What grows with every token, all layers together, before padding: windowed and recurrent layers add 0."""
        return sum(layer.count * layer.attention.growing_elements_per_token for layer in self.layers) * element_bytes

    def state_bytes_per_sequence(self, element_bytes: float = 2.0) -> float:
        """Windows when full and recurrent states, all layers together."""
        total = 0.0
        for layer in self.layers:
            attention = layer.attention
            window = attention.window_tokens or 0 if attention.kind in {"sliding", "chunked"} else 0
            window_bytes = window * attention.cache_elements_per_token * element_bytes
            total += layer.count * (window_bytes + attention.state_bytes_per_sequence)
        return total

    def all_weights(self) -> Iterator[tuple[Weight, int]]:
        """Every weight with how many copies are stored: main stack, experts, outer, towers, MTP."""
        stacks = [self.layers, self.mtp, *(tower.layers for tower in self.towers)]
        for layer in (layer for stack in stacks for layer in stack):
            copies = layer.count if layer.stored_count is None else layer.stored_count
            yield from ((weight, copies) for weight in layer.weights)
            if layer.experts:
                yield from ((weight, copies * layer.experts.routed) for weight in layer.experts.weights)
        yield from ((weight, 1) for weight in self.outer)
        for tower in self.towers:
            yield from ((weight, 1) for weight in tower.weights)
