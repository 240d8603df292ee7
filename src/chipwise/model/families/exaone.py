"""EXAONE 4 and its MoE: norms after each block, over each head, and windows in three layers of four."""

from __future__ import annotations

from chipwise.model.decoder import Style, decoder, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.families.olmo import AFTER
from chipwise.model.keys import Keys
from chipwise.model.mixture import mixture


def exaone4(keys: Keys) -> Draft:
    """EXAONE 4."""
    return decoder(keys, Style(norm_names=AFTER, qk_norm="head", pattern=_pattern(keys)))


def exaone_moe(keys: Keys) -> Draft:
    """K-EXAONE: norms before each block, dense layers first."""
    size = dims(keys, ffn=False)
    style = Style(qk_norm="head", pattern=_pattern(keys))
    return decoder(keys, style, size=size, ffns=mixture(keys, size.hidden), plan=moe_plan(keys, size.layers))


def _pattern(keys: Keys) -> int:
    value = keys.raw("sliding_window_pattern")
    return len(value) if isinstance(value, str) else keys.size("sliding_window_pattern", default=4)


READERS = {"exaone4": exaone4, "exaone_moe": exaone_moe}
