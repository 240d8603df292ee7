"""Gemma 1 to 3: tied embeddings, explicit head size; from 2 on four norms a layer and alternating windows."""

from __future__ import annotations

from chipwise.model.decoder import NORM_FOUR, Style, decoder
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def gemma(keys: Keys) -> Draft:
    """Gemma 1."""
    return decoder(keys, Style(bias=_bias(keys), tied=True))


def gemma2(keys: Keys) -> Draft:
    """Gemma 2: every second layer is full."""
    return decoder(keys, Style(bias=_bias(keys), tied=True, norm_names=NORM_FOUR, pattern=2))


def gemma3_text(keys: Keys) -> Draft:
    """Gemma 3: every sixth layer is full (`sliding_window_pattern`), norms over each head."""
    every = keys.size("sliding_window_pattern", "_sliding_window_pattern", default=6)
    return decoder(keys, Style(bias=_bias(keys), tied=True, norm_names=NORM_FOUR, qk_norm="head", pattern=every))


READERS = {"gemma": gemma, "gemma2": gemma2, "gemma3_text": gemma3_text}
