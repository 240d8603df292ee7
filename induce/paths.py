"""Config keys as dotted paths, and other values worth trying for them."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]
_LONGEST_LIST = 40
_FLOAT_FACTORS = (2.0, 0.5)

# Keys that say how a model trains or generates: they change no tensor and are not tried.
NOISE = re.compile(
    r"token_id|token_index|dropout|_eps$|epsilon|initializer|init_range|^init_std$|drop_path|loss|coef|_cost$|"
    r"temperature|top_k$|top_p|num_beams|mask_time|mask_feature|return_|^output_(att|hid|rou)|jitter|_seed|noise_|_prob$|"
    r"probs$|forced_|suppress|label_smooth|matcher|momentum|(drop|out|learning|^sampling)_rate$|^id2label|^label2id|"
    r"transformers_version|"
    r"chunk_size_feed|is_encoder_decoder|is_decoder|use_cache|problem_type|_name_or_path|^dtype|torch_dtype|"
    r"architectures|rope_|gradient|scale_embedding|norm_eps"
)
DEPTH = re.compile(r"(num_(hidden_)?layers|n_layers?|(en|de)coder_layers|depth|num_(encoder|decoder)_layers)$")


def flat(config: Config) -> dict[str, Any]:
    """Every value under its dotted path; a list of whole numbers is one path an entry.

    >>> flat({"vision": {"depths": [2, 3]}, "act": "gelu"})
    {'vision.depths.0': 2, 'vision.depths.1': 3, 'act': 'gelu'}
    """
    out: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            out |= {f"{key}.{inner}": found for inner, found in flat(value).items()}
        elif _is_sizes(value):
            out |= {f"{key}.{index}": item for index, item in enumerate(value)}
        else:
            out[key] = value
    return out


def _is_sizes(value: object) -> bool:
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _LONGEST_LIST:
        return False
    return all(isinstance(item, int) and not isinstance(item, bool) for item in value)


def numbers(config: Config) -> dict[str, float]:
    """The numbers among the values; a flag counts as 0 or 1."""
    return {path: value for path, value in flat(config).items() if isinstance(value, int | float)}


def changed(config: Config, path: str, value: object) -> dict[str, Any]:
    """A copy of the config with another value under `path`.

    >>> changed({"a": {"b": [1, 2]}}, "a.b.1", 5)
    {'a': {'b': [1, 5]}}
    """
    out: dict[str, Any] = copy.deepcopy(dict(config))
    place: Any = out
    *outer, last = path.split(".")
    for step in outer:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value
    return out


def tries(path: str, value: float) -> list[float]:
    """Other values for a number, the likeliest to give a valid model first.

    >>> tries("hidden_size", 8), tries("encoder_layers", 2)
    ([16, 24, 32, 9, 10, 4], [3, 5, 4])
    """
    if type(value) is float:
        return [value * factor for factor in _FLOAT_FACTORS]
    if value == 0:
        return [2, 3, 1]
    last = path.rpartition(".")[2]
    if DEPTH.search(last):
        found = [value + 1, value + 3, value * 2]
    elif "kernel" in path or "depth" in path:
        found = [value + 2, value + 4, value + 1]
    else:
        found = [2 * value, 3 * value, 4 * value, value + 1, value + 2, value // 2]
    return [item for item in found if item != value]
