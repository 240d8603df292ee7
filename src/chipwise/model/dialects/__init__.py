"""The dialects of quantisers: takes a `quantization_config`, gives a `Scheme`. Read `../quantise.py` first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from chipwise.model.dialects import floats, groups, integers
from chipwise.model.dialects.words import Config
from chipwise.model.nested import as_mapping
from chipwise.model.quantise import Rule, Scheme

_METHODS: dict[str, Callable[[Config], Scheme | None]] = {
    "aqlm": integers.aqlm,
    "bitnet": integers.bitnet,
    "bitsandbytes": integers.bitsandbytes,
    "compressed-tensors": groups.compressed,
    "eetq": integers.rows_of_bytes,
    "experts_int8": integers.experts_int8,
    "exl2": integers.exl,
    "exl3": integers.exl,
    "fbgemm_fp8": floats.fbgemm,
    "fouroversix": floats.four_bits,
    "fp8": floats.fp8,
    "fp_quant": floats.four_bits,
    "gemma": integers.by_expression,
    "higgs": integers.higgs,
    "hqq": integers.hqq,
    "metal": integers.mlx,
    "modelopt": groups.modelopt,
    "modelopt_fp4": groups.modelopt,
    "mxfp4": floats.mxfp4,
    "mxfp8": floats.mxfp8,
    "nvfp4": floats.four_bits,
    "petit_nvfp4": floats.four_bits,
    "ptpc_fp8": floats.fp8_rows,
    "quanto": integers.quanto,
    "quark": groups.quark,
    "sinq": integers.hqq,
    "torchao": integers.torchao,
    "tpu_int8": integers.rows_of_bytes,
    "vptq": integers.vptq,
}
_GROUPED = re.compile(r"awq|gptq|auto.?round|bitblas|wna16|marlin|^rtn$|^inc$|^ipex$")


def scheme_of(config: Config) -> Scheme | None:
    """The scheme of a `quantization_config` (or of `hf_quant_config.json`); None where nothing is quantised.

    A method that is not known is read by its `bits`; without any, the scheme has no rules and a note says so.

    >>> scheme_of({"quant_method": "fp8", "weight_block_size": [128, 128]}).main_format
    'fp8-block'
    >>> scheme_of({"quant_method": "qzip"}).notes
    ("the quantisation 'qzip' is not known: weights are counted at the dtype",)
    """
    if isinstance(config.get("quantization"), Mapping):
        config = {**as_mapping(config["quantization"]), "quant_method": "modelopt"}
    method = _method(config)
    if method in _METHODS:
        return _METHODS[method](config)
    if _GROUPED.search(method):
        return integers.grouped(config)
    return integers.by_bits(config, method) if method or "bits" in config else None


def _method(config: Config) -> str:
    """The method of a config, by its keys where it names none."""
    method = str(config.get("quant_method") or "").lower()
    if method:
        return method
    by_key = {
        "quant_algo": "modelopt",
        "qformat_weight": "fp8",
        "config_groups": "compressed-tensors",
        "sparsity_config": "compressed-tensors",
        "load_in_8bit": "bitsandbytes",
        "load_in_4bit": "bitsandbytes",
    }
    if isinstance(config.get("bits"), int) and "group_size" in config:
        return "metal"
    return next((name for key, name in by_key.items() if config.get(key)), "")


# DeepSeek-V4 names the format of its experts apart: 4-bit values with one UE8M0 scale every 32.
_EXPERT_DTYPES = {"fp4": "mxfp4", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}


def with_expert_dtype(scheme: Scheme, expert_dtype: object) -> Scheme:
    """The scheme with the experts' own format, where a config says it beside a scheme for the whole model."""
    chosen = _EXPERT_DTYPES.get(expert_dtype.lower()) if isinstance(expert_dtype, str) else None
    if not chosen or any(rule.names is not None for rule in scheme.rules):
        return scheme
    return replace(scheme, rules=(Rule(format=chosen, experts_only=True), *scheme.rules))
