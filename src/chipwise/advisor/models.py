"""A model as `chipwise model` prints it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.model import load_model
from chipwise.model.registry import find, hub_id
from chipwise.parallelism import legal_tp
from chipwise.precision import legal_precisions, stored_bytes

if TYPE_CHECKING:
    from chipwise.model import ModelSpec

SHOWN_TP = 64


def describe_model(reference: str, models: str | None = None, *, as_encoder: bool = False) -> dict[str, Any]:
    """Read a model and describe it in CONTRACT's shape.

    Raises:
        InputError: no such model, or a file that is none.
        KnowledgeError: the file does not say enough; the missing keys are named.
    """
    return model_object(load_model(reference, models=Path(models) if models else None, as_encoder=as_encoder))


def model_object(model: ModelSpec) -> dict[str, Any]:
    """CONTRACT's model object."""
    quantisation = model.quantisation
    return {
        "schema_version": 1,
        "name": model.name,
        "checkpoint": checkpoint_of(model),
        "model_type": model.model_type,
        "architecture": model.architecture,
        "params_total": model.params_total,
        "params_active": model.params_active,
        "params_mtp": model.params_mtp,
        "params_source": model.params_source,
        "dtype": model.dtype,
        "quantization": None
        if quantisation is None
        else {
            "method": quantisation.method,
            "weight_format": quantisation.weight_format,
            "bits_per_weight": quantisation.bits_per_weight,
            "inferred_from": quantisation.inferred_from,
        },
        "weight_bytes": stored_bytes(model).main_bytes,
        "layers": model.layer_count,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_context_tokens": model.max_context_tokens,
        "attention": _attention(model),
        "kv_bytes_per_token": round(model.kv_bytes_per_token()),
        "state_bytes_per_sequence": round(model.state_bytes_per_sequence()),
        "experts": _experts(model),
        "legal_tp": legal_tp(model, SHOWN_TP),
        "precisions": [option.as_json() for option in legal_precisions(model)],
        "warnings": list(model.warnings),
    }


def checkpoint_of(model: ModelSpec) -> str:
    """By which an engine finds the model: the Hugging Face id asked for, else the one its name stands for."""
    return model.checkpoint or hub_id(model.name)


def checkpoint_warnings(reference: str, model: ModelSpec) -> tuple[str, ...]:
    """Which checkpoint a short name was taken for, where the built-in description is that of several.

    >>> checkpoint_warnings("qwen2.5-7b", load_model("qwen2.5-7b"))
    ('qwen2.5-7b is taken as Qwen/Qwen2.5-7B; to have another, name Qwen/Qwen2.5-7B-Instruct',)
    >>> checkpoint_warnings("Qwen/Qwen2.5-7B-Instruct", load_model("Qwen/Qwen2.5-7B-Instruct"))
    ()
    """
    known = find(reference)
    if model.checkpoint is None or known is None or "/" in reference:
        return ()
    others = [one for one in known.ids if one != model.checkpoint]
    if not others:
        return ()
    return (f"{reference} is taken as {model.checkpoint}; to have another, name {' or '.join(others)}",)


def _attention(model: ModelSpec) -> list[dict[str, Any]]:
    rows: dict[tuple[Any, ...], int] = {}
    for layer in model.layers:
        one = layer.attention
        key = (one.kind, one.query_heads, one.kv_heads, one.head_dim, one.window_tokens, one.compressed_every)
        rows[key] = rows.get(key, 0) + layer.count
    return [
        {
            "kind": kind,
            "layers": layers,
            "query_heads": query_heads,
            "kv_heads": kv_heads,
            "head_dim": head_dim,
            "window_tokens": window,
            "compressed_every": every,
        }
        for (kind, query_heads, kv_heads, head_dim, window, every), layers in rows.items()
    ]


def _experts(model: ModelSpec) -> dict[str, int] | None:
    routed = [layer for layer in model.layers if layer.experts]
    if not routed or routed[0].experts is None:
        return None
    first = routed[0].experts
    return {
        "routed": first.routed,
        "shared": first.shared,
        "per_token": first.per_token,
        "moe_layers": sum(layer.count for layer in routed),
    }
