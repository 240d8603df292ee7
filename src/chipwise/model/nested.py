"""Reads a part of a config by its own family: the text model of a vision-language model, a vision tower, a codec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import KnowledgeError, near_names
from chipwise.model.defaults import class_defaults
from chipwise.model.draft import Draft
from chipwise.model.families import Reader, known_types, reader
from chipwise.model.keys import Keys
from chipwise.model.spec import Layer, Tower


def part_keys(keys: Keys, *names: str, default: str, head: str = "") -> Keys:
    """The nested part under the first of `names` that is there, with the defaults of its class.

    `default` is the model_type of a part that does not name its own, or names its whole's. A part of a type that no
    family reads is read as `default` too: that is told, and it must say its own sizes. A part that is not there at all
    is all class defaults.
    """
    data: dict[str, Any] = dict(keys.mapping(*names))
    model_type = data.get("model_type")
    whole = keys.data.get("model_type")
    strange = False
    if not isinstance(model_type, str) or model_type == whole or reader(model_type) is None:
        strange = isinstance(model_type, str) and _house(model_type) != _house(whole)
        if strange:
            keys.notes.append(f"{keys.path}{names[0]}.model_type {model_type!r} is not known: read as {default}")
        data["model_type"] = model_type = default
    return Keys(
        data=data,
        path=f"{keys.path}{names[0]}.",
        defaults=class_defaults(model_type),
        nested=not strange,
        head=head,
        notes=keys.notes,
    )


def _house(model_type: object) -> str:
    """The first word of a model_type: a part named after its whole (`qwen3_asr_text`) is one its family knows."""
    return str(model_type).partition("_")[0]


def read_part(keys: Keys) -> Draft:
    """Read a part (or a whole) by the family that its model_type names.

    Raises:
        KnowledgeError: no family reads this model_type.
    """
    model_type = keys.text("model_type")
    read = reader(model_type)
    if read is None:
        raise unknown_type(model_type)
    return _heterogeneous(keys, read) if keys.mapping("per_layer_config") else read(keys)


def _heterogeneous(keys: Keys, read: Reader) -> Draft:
    """A stack in which `per_layer_config` overrides keys for single layers: each layer as the model it is told to be.

    Source: transformers, `integrations/heterogeneity/configuration_utils.py`.

    Raises:
        KnowledgeError: a layer skips a part of itself, which is not described.
        InputError: an override is no object, or its key no layer number.
    """
    plain = keys.also(per_layer_config={})
    base = read(plain)
    kinds: dict[str, tuple[Mapping[str, Any], set[int]]] = {}
    for index, override in keys.mapping("per_layer_config").items():
        if not isinstance(override, Mapping) or not str(index).isdecimal():
            raise keys.wrong("per_layer_config", {index: override}, "an object for each layer number")
        if override.get("skip"):
            raise keys.missing(f"{keys.path}per_layer_config.{index}.skip (which weights a skipped part leaves)")
        kinds.setdefault(json.dumps(override, sort_keys=True), (override, set()))[1].add(int(index))
    told = {index for _, indices in kinds.values() for index in indices}
    layers = _layers_at(base, lambda index: index not in told)
    for override, indices in kinds.values():
        layers += _layers_at(read(plain.also(**override)), indices.__contains__)
    return replace(base, layers=layers)


def _layers_at(draft: Draft, keep: Callable[[int], bool]) -> tuple[Layer, ...]:
    kept = ((layer, tuple(index for index in layer.indices if keep(index))) for layer in draft.layers)
    return tuple(replace(layer, count=len(indices), indices=indices) for layer, indices in kept if indices)


_CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification")


def text_part(keys: Keys, *names: str, default: str) -> Draft:
    """The language model inside a multimodal one, with its head; what the outer config says of tying counts.

    Where both are silent, the outer class's default does.

    Older configs keep the text keys at the top: then the whole config is the text model's.
    """
    places = names or ("text_config",)
    bare = keys.defaults and keys.head.endswith("Model")
    head = "Model" if bare else keys.head if keys.head.endswith(_CLASSIFIERS) else "ForCausalLM"
    if not keys.has(*places) and keys.has("hidden_size"):
        flat = keys.also(model_type=default)
        return read_part(replace(flat, head=head, defaults={**class_defaults(default), **keys.defaults}))
    inner = part_keys(keys, *places, default=default, head=head)
    if keys.has("tie_word_embeddings") or (
        keys.raw("tie_word_embeddings") is not None and not inner.has("tie_word_embeddings")
    ):
        inner = inner.also(tie_word_embeddings=keys.flag("tie_word_embeddings"))
    return read_part(inner)


def tower_part(keys: Keys, *names: str, default: str, name: str = "vision_tower") -> tuple[Tower, int]:
    """A tower beside the language model, and its width."""
    draft = read_part(part_keys(keys, *names, default=default))
    return draft.tower(name), draft.hidden_size


def unknown_type(model_type: str) -> KnowledgeError:
    """The error for a model_type that no family reads."""
    near = near_names(model_type, known_types())
    hint = f" (near: {', '.join(near)})" if near else ""
    return KnowledgeError(
        f"model_type {model_type!r} is not one we can read{hint}",
        why="its layers are not described anywhere here, and a guess at its size is no answer",
        fix="give its safetensors or GGUF file, or its sizes as params:70b,layers=80,hidden=8192,heads=64,kv_heads=8",
    )


def as_mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
