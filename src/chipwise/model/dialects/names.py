"""The quantisation that words speak of: a variant's, or a checkpoint's own name where its files say nothing."""

from __future__ import annotations

import re

from chipwise.model.quantise import Rule, Scheme

# The first expression that matches decides. Words stand between separators.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (r"gguf[ -](i?q[\w-]+)", "gguf", "gguf-{0}"),
    (r"nvfp4", "modelopt", "nvfp4"),
    (r"mxfp4", "mxfp4", "mxfp4"),
    (r"mxfp8", "mxfp8", "mxfp8"),
    (r"fp8[ -]dynamic", "compressed-tensors", "fp8-channel"),
    (r"fp8[ -]block", "compressed-tensors", "fp8-block"),
    (r"fp8", "fp8", "fp8"),
    (r"(?:bitsandbytes|bnb)[ -]?(?:int)?8(?:[ -]?bit)?", "bitsandbytes", "bnb-int8"),
    (r"bitsandbytes|bnb|nf4", "bitsandbytes", "nf4"),
    (r"w8a8", "compressed-tensors", "int8"),
    (r"gptq[ -](?:int8|8[ -]?bit)", "gptq", "int8-g128"),
    (r"(?:awq|gptq)?[ -]?w4a16[ -]g(32|64|128)", "compressed-tensors", "int4-g{0}-sym"),
    (r"mlx[ -/].*?(?<![a-z0-9])([2-8])[ -]?bit|([2-8])[ -]?bit[ -]mlx", "mlx", "mlx-int{0}-g64"),
    (r"w8a16|int8|8[ -]?bit", "compressed-tensors", "int8-weight-only"),
    (r"aqlm[ -]2|2[ -]?bit", "aqlm", "int2-g128"),
    (r"3[ -]?bit", "gptq", "int3-g128"),
    (r"awq", "awq", "int4-g128"),
    (r"gptq", "gptq", "int4-g128"),
    (r"auto[ -]?round", "auto-round", "int4-g128"),
    (r"w4a16|int4|4[ -]?bit", "compressed-tensors", "int4-g128"),
)


def scheme_by_words(words: str, *, origin: str) -> Scheme | None:
    """The quantisation that words speak of; None where they speak of none. `origin` is told as its source.

    >>> scheme_by_words("awq 4-bit checkpoint of base", origin="variant").main_format
    'int4-g128'
    >>> scheme_by_words("Qwen3-8B-FP8", origin="name").main_format, scheme_by_words("Qwen3-8B", origin="name")
    ('fp8', None)
    """
    text = words.lower().replace("_", "-")
    for pattern, method, name in _WORDS:
        found = re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", text)
        if found:
            said = next((group for group in found.groups() if group), "")
            chosen = name.format(said.replace("-", "_"))
            kv = "fp8" if "fp8 kv" in text else None
            return Scheme(method=method, rules=(Rule(format=chosen),), kv_format=kv, inferred_from=origin)
    return None
