"""A config (the parsed object, and what stands beside it) becomes a `ModelSpec`.

Order: which family reads it (`detect.py`), its layers (`families/`), its dtype and quantisation, its class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chipwise.errors import InputError, KnowledgeError
from chipwise.model.defaults import class_defaults
from chipwise.model.detect import normalised
from chipwise.model.dialects import scheme_of, with_expert_dtype
from chipwise.model.dialects.floats import native_fp8
from chipwise.model.dialects.names import scheme_by_words
from chipwise.model.draft import Draft
from chipwise.model.families import reader
from chipwise.model.keys import Keys
from chipwise.model.nested import as_mapping, read_part
from chipwise.model.quantise import Scheme, at_dtype, quantised
from chipwise.model.spec import Architecture, Attention, ModelSpec, ParamsSource, Quantisation
from chipwise.model.stored import bits_per_weight

DTYPE_FORMATS = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp32",
    "float8_e4m3fn": "fp8",
    "fp8": "fp8",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read: the config, its name, the sidecar beside it, and how the user bent it."""

    config: Mapping[str, Any]
    name: str
    params_source: ParamsSource = "config"
    sidecar: Mapping[str, Any] = field(default_factory=dict)
    scheme: Scheme | None = None
    ignore_quantisation: bool = False
    as_encoder: bool = False


def read_source(source: Source) -> ModelSpec:
    """Read a config into a `ModelSpec`.

    Raises:
        KnowledgeError: no family reads it, or it does not say enough (the missing keys are named).
        InputError: a value is of the wrong type or out of range.
    """
    config = normalised(source.config)
    keys = top_keys(config, component=_component(source.name))
    draft = read_part(keys)
    _refuse_impossible(draft)
    dtype, dtype_notes = dtype_of(config)
    stored = at_dtype(draft, DTYPE_FORMATS.get(dtype or "", "bf16"))
    scheme = source.scheme or (None if source.ignore_quantisation else find_scheme(source, config))
    if scheme is not None and scheme.stores:
        stored = quantised(stored, scheme)
    spec = spec_of(stored, source, keys)
    return replace(
        spec,
        dtype=dtype,
        quantisation=quantisation_of(scheme) if scheme and scheme.stores else None,
        warnings=(*spec.warnings, *dict.fromkeys(keys.notes), *dtype_notes, *(scheme.notes if scheme else ())),
    )


def _refuse_impossible(draft: Draft) -> None:
    """Refuse sizes that no model has.

    Raises:
        InputError: more experts run for a token than there are, or a weight or a stack comes out below zero.
    """
    layers = (*draft.layers, *draft.mtp, *(layer for tower in draft.towers for layer in tower.layers))
    loose = (*draft.outer, *(weight for tower in draft.towers for weight in tower.weights))
    for weight in (*loose, *(weight for layer in layers for weight in layer.weights)):
        if weight.out_features < 0 or weight.in_features < 0:
            raise InputError(
                f"{weight.name} would be {weight.out_features} x {weight.in_features}",
                why="no weight has a side below zero",
                fix="correct the sizes in the config, or fetch the original file again",
            )
    for layer in layers:
        if layer.count < 0:
            raise InputError(
                f"the stack would have {layer.count} layers of a kind",
                why="its last layers are of a kind of their own, and there are fewer than those",
                fix="correct the number of layers in the config",
            )
        experts = layer.experts
        if experts and experts.per_token > experts.routed:
            raise InputError(
                f"{experts.per_token} of {experts.routed} experts run for a token",
                why="no more can run than there are",
                fix="correct num_experts_per_tok or num_experts (or their like) in the config",
            )


_TEXT_ENCODER = re.compile(r"(^|[./_-])text_encoder(_\d)?$")


def _component(name: str) -> bool:
    """Whether a name is that of a pipeline's text encoder (`unet`, `text_encoder_2`, ... by diffusers' convention)."""
    return bool(_TEXT_ENCODER.search(name))


def top_keys(config: Mapping[str, Any], *, component: bool = False) -> Keys:
    """The keys of a whole config. A pipeline's text encoder without an architecture is the encoder alone."""
    model_type = str(config.get("model_type"))
    architectures = config.get("architectures")
    head = architectures[0] if isinstance(architectures, list) and architectures else ""
    head = head or ("EncoderModel" if component else "")
    return Keys(data=config, defaults=class_defaults(model_type), head=head if isinstance(head, str) else "")


def spec_of(draft: Draft, source: Source, keys: Keys) -> ModelSpec:
    """The draft with its name and class."""
    embeds = source.as_encoder or (_component(source.name) and draft.kind == "llm")
    architecture, notes = class_of(draft, keys, as_encoder=embeds)
    if architecture == "encoder" and draft.kind == "llm":
        draft = replace(
            draft, layers=tuple(replace(it, attention=looking_both_ways(it.attention)) for it in draft.layers)
        )
    return ModelSpec(
        name=source.name,
        model_type=keys.text("model_type"),
        architecture=architecture,
        layers=draft.layers,
        outer=draft.outer,
        hidden_size=draft.hidden_size,
        vocab_size=draft.vocab_size,
        max_context_tokens=draft.max_context_tokens,
        dtype=None,
        params_source=source.params_source,
        towers=draft.towers,
        mtp=draft.mtp,
        warnings=(*draft.warnings, *_name_warnings(source, architecture), *notes),
    )


def looking_both_ways(attention: Attention) -> Attention:
    """The attention of a model that embeds: one pass over the text, nothing cached."""
    return replace(attention, causal=False)


def class_of(draft: Draft, keys: Keys, *, as_encoder: bool) -> tuple[Architecture, tuple[str, ...]]:
    """The class follows the head: a bare `*Model` of a text family embeds, the others generate."""
    if as_encoder:
        return "encoder", ()
    if draft.kind != "llm":
        return draft.kind, ()
    bare = keys.head.endswith("Model") and not keys.head.endswith(("LMHeadModel", "RewardModel"))
    if bare and not keys.flag("is_encoder_decoder") and not keys.head.endswith(_HEADS_NAMED_MODEL):
        return "encoder", ()
    return ("moe-llm" if any(layer.experts for layer in draft.layers) else "dense-llm"), ()


# Remote-code classes that generate although their name ends like a bare model's.
_HEADS_NAMED_MODEL = ("ChatGLMModel", "DraftModel", "EagleModel", "BartModel")
_EMBEDDING_NAMES = ("embed", "bge-", "e5-", "gte-", "rerank")


def _name_warnings(source: Source, architecture: Architecture) -> tuple[str, ...]:
    named = any(part in source.name.lower() for part in _EMBEDDING_NAMES)
    if named and architecture.endswith("-llm"):
        return (
            f"the name {source.name!r} speaks of embeddings, the config of a language model: --as encoder if it embeds",
        )
    return ()


def dtype_of(config: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The dtype of a config: `dtype` or `torch_dtype`, at the top or in a part; a warning where none is said."""
    parts = [config, *(as_mapping(value) for key, value in config.items() if key.endswith(("_config", "_cfg")))]
    for part in parts:
        for key in ("dtype", "torch_dtype", "model_dtype"):
            value = part.get(key)
            if isinstance(value, str) and value.removeprefix("torch.") in DTYPE_FORMATS:
                return value.removeprefix("torch."), ()
    return None, ("the config names no dtype: weights are counted at 2 bytes",)


def find_scheme(source: Source, config: Mapping[str, Any]) -> Scheme | None:
    """The quantisation of a config: the sidecar's where there is one, its own, a part's, or what its name says."""
    candidates = [source.sidecar] if source.sidecar else []
    for part in (config, *(as_mapping(value) for value in config.values())):
        found = as_mapping(part.get("quantization_config"))
        if found:
            candidates.append(found)
    candidates += [as_mapping(config[key]) for key in ("quantization", "compression_config") if config.get(key)]
    for candidate in candidates:
        scheme = scheme_of(candidate)
        if scheme is not None:
            return with_expert_dtype(scheme, config.get("expert_dtype"))
    if config.get("dtype") == "fp8":
        return with_expert_dtype(native_fp8(), config.get("expert_dtype"))
    return scheme_by_words(source.name, origin=f"name {source.name!r}")


def quantisation_of(scheme: Scheme) -> Quantisation:
    """What is told of a scheme.

    Raises:
        KnowledgeError: it stores weights in a format whose bits we do not know.
    """
    formats = (scheme.main_format, *(rule.format for rule in scheme.rules if rule.format))
    unknown = next((name for name in formats if bits_per_weight(name) is None), None)
    if unknown:
        raise KnowledgeError(
            f"the weight format {unknown!r} of quantisation {scheme.method!r} is not known",
            why="the bytes a weight takes cannot be computed without",
            fix="give the safetensors files, or ask for the unquantised model with --precision",
        )
    return Quantisation(
        method=scheme.method,
        weight_format=scheme.main_format,
        bits_per_weight=bits_per_weight(scheme.main_format) or 0.0,
        activation_format=scheme.activation_format,
        kv_format=scheme.kv_format,
        inferred_from=scheme.inferred_from,
    )


def readable(config: Mapping[str, Any]) -> bool:
    """Whether some family reads this config's model_type."""
    model_type = normalised(config).get("model_type")
    return isinstance(model_type, str) and reader(model_type) is not None
