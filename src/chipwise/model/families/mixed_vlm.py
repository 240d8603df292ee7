"""Models of several parts and no known family: known parts are read by their own, others by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.model import keys as k
from chipwise.model.blocks import matrix
from chipwise.model.draft import Draft
from chipwise.model.families import reader
from chipwise.model.families.generic import generic, generic_vision
from chipwise.model.keys import Keys
from chipwise.model.nested import as_mapping, part_keys, read_part, text_part, unknown_type
from chipwise.model.spec import Tower

TEXT = ("text_config", "llm_config", "language_config", "llm_cfg", "decoder_config", "language_model_config")
VISION = ("vision_config", "vision_tower_cfg", "vit_config", "vision_tower_config", "vision_encoder_config")
AUDIO = ("audio_config", "speech_config", "audio_encoder_config", "speech_encoder_config")


def parts_of(config: Mapping[str, Any]) -> bool:
    """Whether a config has a text part that says its layers or a model type that is known."""
    parts = [as_mapping(config.get(name)) for name in TEXT]
    return any(_known(part) or any(part.get(name) for name in k.LAYERS) for part in parts)


def _known(part: Mapping[str, Any]) -> bool:
    model_type = part.get("model_type")
    return isinstance(model_type, str) and reader(model_type) is not None


def mixed(keys: Keys) -> Draft:
    """The language model and the towers of a config that names them; a two-layer projector is assumed, and said.

    Raises:
        KnowledgeError: a part lacks a size, or is of a kind that is not known; it is named.
    """
    text_name = next(name for name in TEXT if keys.has(name))
    found = [next((name for name in names if keys.mapping(name)), None) for names in (VISION, AUDIO)]
    _refuse_other_parts(keys, {text_name, *found})
    text = _text(keys, text_name)
    towers: list[Tower] = []
    notes = [*text.warnings]
    for place, label in zip(found, ("vision_tower", "audio_tower"), strict=True):
        if place is None:
            continue
        part = _tower(keys, place, seeing=label == "vision_tower")
        notes += part.warnings
        between = (
            *matrix("linear_1", (text.hidden_size, part.hidden_size), "other", bias=True),
            *matrix("linear_2", (text.hidden_size, text.hidden_size), "other", bias=True),
        )
        towers += [part.tower(label), Tower(name=f"{label}_projector", weights=between)]
    name = keys.text("unknown_type", default="none")
    if not towers:
        return replace(text, warnings=(f"model_type {name!r} is not known: its {text_name} alone is read", *notes))
    warning = f"model_type {name!r} is not known: between its parts a two-layer projector is assumed"
    both = text.beside(*towers, kind="vision-language" if found[0] else "audio")
    return replace(both, warnings=(warning, *notes))


# Mappings that are no part with weights, and those of the projector that is assumed.
_NO_PART = (
    "quantization",
    "compression",
    "generation",
    "rope",
    "project",
    "align",
    "connector",
    "processor",
    "auto_map",
)


def _refuse_other_parts(keys: Keys, read: set[str | None]) -> None:
    """Refuse a config with more parts than are read.

    Raises:
        KnowledgeError: another mapping is named a config; it is named.
    """
    more = [
        name
        for name, value in keys.data.items()
        if name not in read
        and as_mapping(value)
        and name.endswith(("_config", "_cfg"))
        and not any(word in name for word in _NO_PART)
    ]
    if more:
        raise keys.missing(f"what weights {', '.join(keys.path + name for name in more)} describes")


def _loose(keys: Keys, name: str, head: str) -> Keys:
    """A part of no known model_type: nothing but what it says itself."""
    inner = keys.mapping(name)
    data = {**inner, "unknown_type": str(inner.get("model_type") or "none")}
    return Keys(data=data, path=f"{keys.path}{name}.", head=head, notes=keys.notes)


def _text(keys: Keys, name: str) -> Draft:
    if _known(keys.mapping(name)):
        return text_part(keys, name, default="llama")
    inner = _loose(keys, name, "ForCausalLM")
    if keys.has("tie_word_embeddings"):
        inner = inner.also(tie_word_embeddings=keys.flag("tie_word_embeddings"))
    return generic(inner)


def _tower(keys: Keys, name: str, *, seeing: bool) -> Draft:
    inner = keys.mapping(name)
    if _known(inner):
        return read_part(part_keys(keys, name, default="siglip_vision_model"))
    if not seeing:
        raise unknown_type(str(inner.get("model_type") or "none"))
    return generic_vision(_loose(keys, name, ""))


READERS = {"mixed_vlm": mixed}
