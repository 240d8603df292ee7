"""Multimodal models of no known family: their parts are read by their own, the projector between is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.model.blocks import matrix
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.nested import as_mapping, part_keys, read_part, text_part
from chipwise.model.spec import Tower

TEXT = ("text_config", "llm_config", "language_config", "llm_cfg", "decoder_config")
VISION = ("vision_config", "vision_tower_cfg", "vit_config", "vision_tower_config")
AUDIO = ("audio_config", "speech_config", "audio_encoder_config")


def parts_of(config: Mapping[str, Any], readable: Mapping[str, Any]) -> bool:
    """Whether a config has a text part and a vision or audio part whose model types are known."""

    def known(names: tuple[str, ...]) -> bool:
        return any(as_mapping(config.get(name)).get("model_type") in readable for name in names)

    return known(TEXT) and (known(VISION) or known(AUDIO))


def mixed(keys: Keys) -> Draft:
    """The language model and the towers of a config that names them; a two-layer projector is assumed, and said."""
    text_name = next(name for name in TEXT if keys.has(name))
    text = text_part(keys, text_name, default="llama")
    towers: list[Tower] = []
    for names, label in ((VISION, "vision_tower"), (AUDIO, "audio_tower")):
        found = next((name for name in names if keys.has(name)), None)
        if found is None:
            continue
        part = read_part(part_keys(keys, found, default="siglip_vision_model"))
        between = (
            *matrix("linear_1", (text.hidden_size, part.hidden_size), "other", bias=True),
            *matrix("linear_2", (text.hidden_size, text.hidden_size), "other", bias=True),
        )
        towers += [part.tower(label), Tower(name=f"{label}_projector", weights=between)]
    seeing = any(keys.has(name) for name in VISION)
    name = keys.text("unknown_type", default="none")
    warning = f"model_type {name!r} is not known: its parts are, between them a two-layer projector is assumed"
    return replace(text.beside(*towers, kind="vision-language" if seeing else "audio"), warnings=(warning,))


READERS = {"mixed_vlm": mixed}
