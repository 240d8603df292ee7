"""A model's weights in bytes, and the same model at another precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from chipwise.model import Experts, Layer, ModelSpec, Quantisation, Tower, Weight
from chipwise.precision.formats import Format, format_facts, matrix_bytes

_KEPT = frozenset({"embedding", "head", "norm", "router"})
_NEVER = frozenset({"norm", "router"})
_DTYPE = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
Change = Callable[[Weight], Weight]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """What a checkpoint's weights take. `main` is all but the multi-token-prediction layers."""

    main_bytes: int
    mtp_bytes: int

    @property
    def total_bytes(self) -> int:
        """Main and multi-token-prediction weights together: the checkpoint."""
        return self.main_bytes + self.mtp_bytes


def stored_bytes(model: ModelSpec) -> WeightBytes:
    """Bytes of all weights as they are stored, each in its own format with its scales.

    Where a better source than the layer list gave the total (`params_stated`), the sum is scaled to it.

    Args:
        model: the layers; a tied head is counted once.

    Returns:
        Bytes of the whole checkpoint, before any split.
    """
    mtp = sum(_layer_bytes(layer) for layer in model.mtp)
    main = sum(_layer_bytes(layer) for layer in model.layers) + sum(_weight_bytes(weight) for weight in model.outer)
    for tower in model.towers:
        main += sum(_layer_bytes(layer) for layer in tower.layers)
        main += sum(_weight_bytes(weight) for weight in tower.weights)
    return WeightBytes(main_bytes=round(main * _stated_share(model)), mtp_bytes=mtp)


@lru_cache(maxsize=256)
def with_precision(model: ModelSpec, precision: str) -> ModelSpec:
    """The model with its weights held in another format.

    A quantised format takes the matrices that quantisers take: those of attention, MLPs and experts of the
    main stack; embedding, head, norms, router and towers stay, unless the format covers all (GGUF, MLX). A
    plain 16- or 32-bit format takes every weight. Whether the checkpoint may legally become that is
    `legal_precisions`'s to say.

    Raises:
        UnknownNameError: no such format.
    """
    fmt = format_facts(precision)
    whole = fmt.kind == "float" and fmt.covers == "all"
    change = _to_all(fmt, whole=whole)
    quantised = None if whole else _quantisation(model, fmt)
    towers = tuple(_tower(tower, change) for tower in model.towers) if fmt.covers == "all" else model.towers
    return replace(
        model,
        layers=tuple(_layer(layer, change) for layer in model.layers),
        mtp=tuple(_layer(layer, change) for layer in model.mtp),
        outer=tuple(change(weight) for weight in model.outer),
        towers=towers,
        quantisation=quantised,
        dtype=_DTYPE[fmt.name] if whole else model.dtype,
    )


def _stated_share(model: ModelSpec) -> float:
    counted = sum(layer.params for layer in model.layers) + sum(weight.params for weight in model.outer)
    counted += sum(tower.params for tower in model.towers)
    return model.params_total / counted if counted else 1.0


def _weight_bytes(weight: Weight) -> int:
    if not weight.stored:
        return 0
    return matrix_bytes(format_facts(weight.format), rows=weight.out_features, cols=weight.in_features)


def _layer_bytes(layer: Layer) -> int:
    each = sum(_weight_bytes(weight) for weight in layer.weights)
    if layer.experts:
        each += layer.experts.routed * sum(_weight_bytes(weight) for weight in layer.experts.weights)
    return each * (layer.count if layer.stored_count is None else layer.stored_count)


def _quantisation(model: ModelSpec, fmt: Format) -> Quantisation:
    kept = model.quantisation.kv_format if model.quantisation else None
    return Quantisation(
        method=fmt.family,
        weight_format=fmt.name,
        bits_per_weight=fmt.bits_per_weight,
        activation_format=fmt.activation_format,
        kv_format=kept,
    )


def _to_all(fmt: Format, *, whole: bool) -> Change:
    def change(weight: Weight) -> Weight:
        matrix = weight.gemm or weight.part == "embedding"
        if fmt.covers == "all":
            taken = whole or (matrix and weight.part not in _NEVER)
        else:
            taken = weight.gemm and weight.quantisable and weight.part not in _KEPT
        return replace(weight, format=fmt.name) if taken else weight

    return change


def _layer(layer: Layer, change: Change) -> Layer:
    weights = tuple(change(weight) for weight in layer.weights)
    return replace(layer, weights=weights, experts=_experts(layer.experts, change))


def _experts(experts: Experts | None, change: Change) -> Experts | None:
    return None if experts is None else replace(experts, weights=tuple(change(w) for w in experts.weights))


def _tower(tower: Tower, change: Change) -> Tower:
    layers = tuple(_layer(layer, change) for layer in tower.layers)
    return replace(tower, layers=layers, weights=tuple(change(weight) for weight in tower.weights))
