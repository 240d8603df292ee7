"""Floats of 8 and 4 bits: FP8 by tensor, row or block, the MX formats, NVFP4."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.dialects.words import Config, items, modules_of, rules_by_module, skipped
from chipwise.model.nested import as_mapping
from chipwise.model.quantise import Rule, Scheme

_DEEPSEEK_BLOCK = [128, 128]
_MX_BLOCK = [1, 32]
_ATTENTION = frozenset({"q_proj", "k_proj", "v_proj", "o_proj"})


def fp8(config: Config) -> Scheme:
    """FP8 with one scale a tensor, or one a block (DeepSeek); Mistral's own key is `qformat_weight`.

    `modules_to_convert` names tables and heads that are taken beside the linear layers.
    """
    taken = [str(name) for name in items(config, "modules_to_convert")]
    return Scheme(
        method="fp8",
        rules=(Rule(format=block_format(config.get("weight_block_size"))),),
        ignored=skipped(config),
        activation_format="fp8",
        towers=True,
        head=any("lm_head" in name for name in taken),
        embeddings=any("embed" in name for name in taken),
    )


def block_format(block: object) -> str:
    """The FP8 format of one scale a block.

    >>> block_format([128, 128]), block_format([1, 32]), block_format([64, 64]), block_format(None)
    ('fp8-block', 'mxfp8', 'fp8-block64x64', 'fp8')
    """
    if not block or not isinstance(block, list | tuple):
        return "fp8"
    if list(block) == _DEEPSEEK_BLOCK:
        return "fp8-block"
    return "mxfp8" if list(block) == _MX_BLOCK else "fp8-block" + "x".join(map(str, block))


def native_fp8() -> Scheme:
    """DeepSeek's own format, whose config says `"dtype": "fp8"` and no more."""
    return Scheme(method="fp8", rules=(Rule(format="fp8-block"),), activation_format="fp8")


def fbgemm(config: Config) -> Scheme:
    """FBGEMM's FP8: one scale a row. A list that keeps the whole attention of a layer means that of every layer.

    Copies of such a config shorten its list of hundreds of names to the first few.

    Source: Llama Team, "The Llama 3 Herd of Models", 2024, arXiv:2407.21783, section 6.2: feed-forward layers are
    quantised, self-attention is not.
    """
    scheme = fp8_rows(config)
    kept = {name.rpartition(".self_attn.")[2] for name in scheme.ignored.plain if ".self_attn." in name}
    return replace(scheme, ignored=skipped(config, "self_attn")) if kept >= _ATTENTION else scheme


def fp8_rows(config: Config) -> Scheme:
    """FP8 with one scale a row."""
    return Scheme(
        method=str(config.get("quant_method")),
        rules=(Rule(format="fp8-channel"),),
        ignored=skipped(config),
        activation_format="fp8",
        towers=True,
    )


def mxfp4(config: Config) -> Scheme:
    """MXFP4 of gpt-oss: the experts alone."""
    return Scheme(method="mxfp4", rules=(Rule(format="mxfp4", experts_only=True),), ignored=skipped(config))


def mxfp8(config: Config) -> Scheme:
    """MXFP8: one 8-bit exponent every 32 of a row."""
    return Scheme(method="mxfp8", rules=(Rule(format="mxfp8"),), ignored=skipped(config), towers=True)


def four_bits(config: Config) -> Scheme:
    """NVFP4 or MXFP4 as `forward_dtype`, `weight_dtype` or `dtype` says; the head stays where nothing else is said."""
    own = [(name, _four(entry)) for name, entry in modules_of(as_mapping(config.get("module_config_overrides")))]
    return Scheme(
        method=str(config.get("quant_method")),
        rules=(*rules_by_module(own), Rule(format=_four(config))),
        ignored=skipped(config),
        towers=True,
    )


def _four(config: Config) -> str:
    said = (str(config.get(key) or "") for key in ("forward_dtype", "weight_dtype", "dtype"))
    return "mxfp4" if any("mxfp4" in text for text in said) else "nvfp4"
