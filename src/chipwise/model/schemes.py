"""The dialects of quantisation configs, each turned into a `Scheme`. Read `quantise.py` first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.model.nested import as_mapping
from chipwise.model.quantise import Names, Rule, Scheme, bits_per_weight, names_of

Config = Mapping[str, Any]


def scheme_of(config: Config) -> Scheme | None:
    """The scheme of a `quantization_config` (or of `hf_quant_config.json`); None where nothing is quantised.

    >>> scheme_of({"quant_method": "fp8", "weight_block_size": [128, 128]}).main_format
    'fp8-block'
    """
    if isinstance(config.get("quantization"), Mapping):
        return _modelopt({**as_mapping(config["quantization"]), "quant_method": "modelopt"})
    method = str(config.get("quant_method") or "").lower()
    if not method and config.get("quant_algo"):
        method = "modelopt"
    if not method and "bits" in config and "group_size" in config:
        return _mlx(config)
    if not method and config.get("config_groups"):
        method = "compressed-tensors"
    read = _METHODS.get(method)
    return read(config) if read else _by_bits(config, method or "unknown")


# DeepSeek-V4 names the format of its experts apart: 4-bit values with one UE8M0 scale every 32.
_EXPERT_DTYPES = {"fp4": "mxfp4", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}


def with_expert_dtype(scheme: Scheme, expert_dtype: object) -> Scheme:
    """The scheme with the experts' own format, where a config says it beside a scheme for the whole model."""
    chosen = _EXPERT_DTYPES.get(expert_dtype.lower()) if isinstance(expert_dtype, str) else None
    if not chosen or any(rule.names is not None for rule in scheme.rules):
        return scheme
    return replace(scheme, rules=(Rule(format=chosen, experts_only=True), *scheme.rules))


def _items(config: Config, name: str) -> list[Any]:
    """A list in a quantisation config; anything else there names nothing."""
    value = config.get(name)
    return value if isinstance(value, list) else []


def _skipped(config: Config) -> Names:
    lists = (
        "modules_to_not_convert",
        "ignore",
        "ignored_layers",
        "exclude_modules",
        "exclude",
        "llm_int8_skip_modules",
    )
    return names_of([item for name in lists for item in _items(config, name)])


def _fp8(config: Config) -> Scheme:
    block = config.get("weight_block_size")
    name = "fp8-block" if block else "fp8"
    return Scheme(
        method="fp8", rules=(Rule(format=name),), ignored=_skipped(config), activation_format="fp8", towers=True
    )


def _fbgemm(config: Config) -> Scheme:
    rule = Rule(format="fp8-channel")
    return Scheme(method="fbgemm_fp8", rules=(rule,), ignored=_skipped(config), activation_format="fp8", towers=True)


def _mxfp4(config: Config) -> Scheme:
    return Scheme(method="mxfp4", rules=(Rule(format="mxfp4", experts_only=True),), ignored=_skipped(config))


def _integer(bits: object, group: object) -> str:
    if bits == 8:
        return "int8-weight-only" if group in (-1, None) else "int8-g128"
    if group in (-1, None):
        return f"int{bits}-channel"
    return f"int{bits}-g{group}"


def _grouped(config: Config) -> Scheme:
    name = _integer(config.get("bits") or config.get("w_bit") or 4, config.get("group_size", 128))
    method = str(config.get("quant_method"))
    extra = as_mapping(config.get("extra_config"))
    kept = [key for key, value in extra.items() if as_mapping(value).get("bits") in (16, 32)]
    skipped = _skipped({"ignore": [*kept, *_items(config, "modules_to_not_convert")]})
    head = bool(config.get("lm_head"))
    return Scheme(method=method, rules=(Rule(format=name),), ignored=skipped, head=head)


def _bitsandbytes(config: Config) -> Scheme:
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        name = "bnb-int8"
    else:
        name = "nf4-dq" if config.get("bnb_4bit_use_double_quant") else "nf4"
    return Scheme(method="bitsandbytes", rules=(Rule(format=name),), ignored=_skipped(config), towers=True)


def _compressed(config: Config) -> Scheme:
    rules = []
    activation = None
    for given in as_mapping(config.get("config_groups")).values():
        group = as_mapping(given)
        name, acts = _group_format(group)
        activation = activation or acts
        targets = [item for item in _items(group, "targets") if item != "Linear"]
        rules.append(Rule(format=name, names=names_of(targets) if targets else None))
    rules.sort(key=lambda rule: rule.names is None)
    kv = as_mapping(config.get("kv_cache_scheme")).get("num_bits")
    return Scheme(
        method=str(config.get("quant_method") or "compressed-tensors"),
        rules=tuple(rules),
        ignored=_skipped(config),
        activation_format=activation,
        kv_format="fp8" if kv == 8 else None,
        towers=True,
    )


def _group_format(group: Config) -> tuple[str, str | None]:
    weights, inputs = as_mapping(group.get("weights")), as_mapping(group.get("input_activations"))
    name = _tensor_format(weights, str(group.get("format") or ""), has_inputs=bool(inputs))
    activation = None
    if inputs.get("num_bits"):
        activation = f"{'fp' if inputs.get('type') == 'float' else 'int'}{inputs['num_bits']}"
    return name, activation


def _tensor_format(weights: Config, packing: str, *, has_inputs: bool) -> str:
    bits, kind, group = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if kind == "float" and bits == 4:
        return "mxfp4" if "mxfp4" in packing or group == 32 else "nvfp4"
    if kind == "float":
        if group == 32:
            return "mxfp8"
        by = weights.get("strategy")
        return {"block": "fp8-block", "channel": "fp8-channel"}.get(str(by), "fp8")
    if bits == 8:
        return "int8" if has_inputs else _integer(8, group)
    name = _integer(bits or 4, group)
    # The class default is symmetric: packed without zero points.
    symmetric = weights.get("symmetric", True) is not False
    return f"{name}-sym" if symmetric and bits_per_weight(f"{name}-sym") else name


_ALGOS = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8-block",
    "FP8_PB_REAL": "fp8-block",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8-channel",
    "FP8_BLOCK_SCALES": "fp8-block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "W4A8_NVFP4_FP8": "nvfp4",
    "MXFP8": "mxfp8",
    "MXFP4": "mxfp4",
    "W4A8_MXFP4_FP8": "mxfp4",
    "W4A8_AWQ": "w4a8-g128",
    "W4A16_AWQ": "int4-g128",
    "INT4_AWQ": "int4-g128",
    "W4A16": "int4-channel",
    "W8A16": "int8-weight-only",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "INT8_SQ": "int8",
}


def _modelopt(config: Config) -> Scheme | None:
    algo = str(config.get("quant_algo") or "").upper()
    kv_algo = config.get("kv_cache_quant_algo") or as_mapping(config.get("kv_cache_scheme")).get("num_bits")
    kv = "fp8" if str(kv_algo).upper() in ("FP8", "8") else "nvfp4" if str(kv_algo).upper() == "NVFP4" else None
    listed = as_mapping(config.get("quantized_layers"))
    rules: tuple[Rule, ...]
    if listed:
        by_format: dict[str, list[str]] = {}
        for name, entry in listed.items():
            chosen = _ALGOS.get(str(as_mapping(entry).get("quant_algo")).upper())
            if chosen:
                by_format.setdefault(chosen, []).append(name)
        ordered = sorted(by_format.items(), key=lambda pair: len(pair[1]))
        rules = tuple(Rule(format=name, names=names_of(names)) for name, names in ordered)
    elif algo in _ALGOS:
        rules = (Rule(format=_ALGOS[algo]),)
    else:
        return _compressed(config) if config.get("config_groups") else None
    return Scheme(method="modelopt", rules=rules, ignored=_skipped(config), kv_format=kv, towers=True)


def _mlx(config: Config) -> Scheme:
    bits, group = config.get("bits"), config.get("group_size")
    known = f"mlx-int{bits}-g{group}"
    kept = [key for key, value in config.items() if value is False]
    return Scheme(method="mlx", rules=(Rule(format=known),), ignored=names_of(kept), head=True)


def _quark(config: Config) -> Scheme:
    weight = as_mapping(as_mapping(config.get("global_quant_config")).get("weight"))
    dtype, group = str(weight.get("dtype") or ""), weight.get("group_size")
    if dtype.startswith("fp8"):
        name = "fp8-channel" if weight.get("qscheme") == "per_channel" else "fp8"
    elif dtype.startswith("fp4"):
        name = "mxfp4"
    elif dtype.startswith("int8"):
        name = "int8"
    else:
        name = _integer(4, group)
    return Scheme(method="quark", rules=(Rule(format=name),), ignored=_skipped(config), towers=True)


def _hqq(config: Config) -> Scheme:
    params = as_mapping(as_mapping(config.get("quant_config")).get("weight_quant_params"))
    name = _integer(
        params.get("nbits") or config.get("nbits") or 4, params.get("group_size") or config.get("group_size")
    )
    return Scheme(
        method="hqq", rules=(Rule(format=name),), ignored=_skipped({**config, "ignore": config.get("skip_modules")})
    )


def _by_bits(config: Config, method: str) -> Scheme | None:
    bits = config.get("bits") or config.get("num_bits") or config.get("nbits_per_codebook")
    if not isinstance(bits, int) or bits not in (2, 3, 4, 8):
        return None
    name = _integer(bits, config.get("group_size", 128))
    return Scheme(method=method, rules=(Rule(format=name),), ignored=_skipped(config))


def _eetq(config: Config) -> Scheme:
    rule = Rule(format="int8-weight-only")
    return Scheme(method=str(config.get("quant_method")), rules=(rule,), ignored=_skipped(config))


_METHODS: dict[str, Callable[[Config], Scheme | None]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "awq": _grouped,
    "gptq": _grouped,
    "auto-round": _grouped,
    "auto_round": _grouped,
    "intel/auto-round": _grouped,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "quark": _quark,
    "hqq": _hqq,
    "eetq": _eetq,
}
