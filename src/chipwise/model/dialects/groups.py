"""Quantisers that sort modules into groups: compressed-tensors, ModelOpt, Quark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from chipwise.model.dialects.floats import block_format
from chipwise.model.dialects.words import Config, integer, items, modules_of, rules_by_module, skipped
from chipwise.model.nested import as_mapping
from chipwise.model.quantise import Names, Rule, Scheme, names_of

_BYTE, _NIBBLE = 8, 4
_MX_GROUP, _W4A8_GROUP = 32, 128
_SPARSE = "-sparse24"


def compressed(config: Config) -> Scheme:
    """compressed-tensors: a format by group of modules, and pairs of four left out where it says so (2:4)."""
    rules = []
    activation = None
    packing = str(config.get("format") or "")
    for name, given in as_mapping(config.get("config_groups")).items():
        group = given if isinstance(given, Mapping) else _preset(name)
        chosen, acts = _group_format({"format": packing, **group})
        activation = activation or acts
        targets = given if isinstance(given, list) else items(group, "targets")
        rules.append(Rule(format=chosen, names=_targets(targets)))
    rules.sort(key=lambda rule: rule.names is None)
    scheme = Scheme(
        method=str(config.get("quant_method") or "compressed-tensors"),
        rules=tuple(rules),
        ignored=skipped(config),
        activation_format=activation,
        kv_format=_kv_of(as_mapping(config.get("kv_cache_scheme"))),
        towers=True,
        embeddings=any("Embedding" in rule_targets for rule_targets in _all_targets(config)),
    )
    return _sparse(scheme, as_mapping(config.get("sparsity_config")))


def _all_targets(config: Config) -> list[list[object]]:
    return [items(group, "targets") for _, group in modules_of(as_mapping(config.get("config_groups")))]


# Classes of layers that a target may name instead of modules: every matrix, or the table of embeddings.
_EVERY = ("Linear", "LinearBase", "FusedMoE")
_TABLES = ("embed_tokens", "wte", "word_embeddings", "embed_in")


def _targets(targets: list[object]) -> Names | None:
    """The modules that a group means; None where it means every linear layer."""
    if not targets or any(item in _EVERY for item in targets):
        return None
    return names_of([*targets, *(_TABLES if "Embedding" in targets else ())])


def _kv_of(scheme: Config) -> str | None:
    if scheme.get("num_bits") != _BYTE:
        return None
    return "int8" if scheme.get("type") == "int" else "fp8"


def _sparse(scheme: Scheme, config: Config) -> Scheme:
    """The scheme with two of four weights left out (`sparse-24-bitmask`): the kept ones and a bit for each."""
    packed = str(config.get("format") or "")
    if not packed.startswith("sparse-24"):
        return scheme
    dense = skipped(config)
    rules = scheme.rules or (Rule(format="bf16"),)
    kept = tuple(rule for rule in rules if rule.names is None and rule.format != "bf16") if dense else ()
    thin = tuple(rule if not rule.format else replace(rule, format=rule.format + _SPARSE) for rule in rules)
    ignored = scheme.ignored if scheme.rules else dense
    return replace(scheme, rules=(*(replace(rule, names=dense) for rule in kept), *thin), ignored=ignored)


def _preset(name: str) -> Config:
    """A group by the name of a preset scheme: `W4A16`, `W8A8`, `FP8_DYNAMIC`, `NVFP4A16`, ...

    >>> _preset("W8A16")["weights"]["num_bits"], _preset("FP8_DYNAMIC")["weights"]["strategy"]
    (8, 'channel')
    """
    found = re.fullmatch(r"W([48])A(8|16)(_ASYM)?", name)
    if found:
        bits, acts, asymmetric = found.groups()
        grouped = {"group_size": 128} if bits == "4" else {"strategy": "channel"}
        inputs = {"num_bits": 8, "type": "int"} if acts == "8" else {}
        weights = {"num_bits": int(bits), "type": "int", "symmetric": not asymmetric, **grouped}
        return {"weights": weights, "input_activations": inputs}
    inputs = {} if name.endswith("A16") else {"type": "float", "num_bits": 4 if "FP4" in name else 8}
    if "FP4" in name:
        return {"weights": {"num_bits": 4, "type": "float", "group_size": 32 if "MX" in name else 16}}
    if "MXFP8" in name:
        return {"weights": {"num_bits": 8, "type": "float", "group_size": 32}, "input_activations": inputs}
    by = "block" if "BLOCK" in name else "channel" if "DYNAMIC" in name else "tensor"
    return {"weights": {"num_bits": 8, "type": "float", "strategy": by}, "input_activations": inputs}


def _group_format(group: Config) -> tuple[str | None, str | None]:
    weights, inputs = as_mapping(group.get("weights")), as_mapping(group.get("input_activations"))
    packing = str(group.get("format") or "")
    activation = None
    if inputs.get("num_bits"):
        activation = f"{'fp' if inputs.get('type') == 'float' else 'int'}{inputs['num_bits']}"
    if not weights or packing == "dense":
        return None, activation
    name = _tensor_format(weights, packing, activation)
    return (name + _SPARSE if packing == "marlin-24" else name), activation


def _tensor_format(weights: Config, packing: str, activation: str | None) -> str:
    bits, kind, group = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    by = str(weights.get("strategy"))
    if kind == "float" and bits == _NIBBLE:
        return "mxfp4" if "mxfp4" in packing or group == _MX_GROUP else "nvfp4"
    if kind == "float":
        return _float8(weights)
    if by in ("channel", "tensor"):
        group = None
    # The class default is symmetric: packed without zero points.
    symmetric = weights.get("symmetric", True) is not False
    if bits == _BYTE:
        return "int8" if activation else integer(_BYTE, group, symmetric=symmetric)
    if activation == "fp8" and group == _W4A8_GROUP:
        return "w4a8-g128"
    return integer(bits or _NIBBLE, group, symmetric=symmetric)


def _float8(weights: Config) -> str:
    group, by = weights.get("group_size"), str(weights.get("strategy"))
    if group == _MX_GROUP:
        return "mxfp8"
    if by == "block":
        return block_format(weights.get("block_structure") or [128, 128])
    if by == "group" and isinstance(group, int) and group > 0:
        return block_format([1, group])
    return "fp8-channel" if by == "channel" else "fp8"


# By the words of an algorithm's name: the first expression that matches decides.
_ALGORITHMS = (
    (r"NVFP4", "nvfp4"),
    (r"MXFP8$", "mxfp8"),
    (r"MXFP4", "mxfp4"),
    (r"^W4A8.*(AWQ|CUSTOM|QSERVE)", "w4a8-g128"),
    (r"^(W4A16|INT4).*(AWQ|GPTQ)", "int4-g128"),
    (r"^W4A16$", "int4-channel"),
    (r"^W8A16", "int8-weight-only"),
    (r"^W8A8|^INT8", "int8"),
    (r"FP8.*(PB|BLOCK)", "fp8-block"),
    (r"FP8_PER_CHANNEL", "fp8-channel"),
    (r"^FP8", "fp8"),
)


def _algorithm(config: Config) -> str | None:
    """The format of a ModelOpt or TensorRT-LLM algorithm, with its group size where it says one.

    >>> _algorithm({"quant_algo": "W4A16_AWQ", "group_size": 64, "has_zero_point": False}), _algorithm({})
    ('int4-g64-sym', None)
    """
    name = str(config.get("quant_algo") or "").upper()
    chosen = next((item for pattern, item in _ALGORITHMS if re.search(pattern, name)), None)
    if chosen == "int4-g128" and config.get("group_size"):
        return integer(_NIBBLE, config["group_size"], symmetric=config.get("has_zero_point") is False)
    return chosen


def modelopt(config: Config) -> Scheme | None:
    """ModelOpt: one algorithm for all, or one by layer (`MIXED_PRECISION`), or groups like compressed-tensors."""
    algorithm = str(config.get("quant_algo") or "").upper()
    listed = list(modules_of(as_mapping(config.get("quantized_layers"))))
    if listed:
        known = [(name, _algorithm(entry)) for name, entry in listed]
        rules = rules_by_module((name, chosen) for name, chosen in known if chosen)
    elif chosen := _algorithm(config):
        rules = (Rule(format=chosen),)
    elif config.get("config_groups"):
        return compressed(config)
    elif algorithm in ("", "NO_QUANT", "NONE"):
        return None
    else:
        note = f"the quantisation algorithm {algorithm!r} is not known: weights are counted at the dtype"
        return Scheme(method="modelopt", rules=(), notes=(note,))
    kv = _modelopt_kv(config)
    return Scheme(method="modelopt", rules=rules, ignored=skipped(config), kv_format=kv, towers=True)


def _modelopt_kv(config: Config) -> str | None:
    said = config.get("kv_cache_quant_algo") or as_mapping(config.get("kv_cache_scheme")).get("num_bits")
    return {"FP8": "fp8", "8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}.get(str(said).upper())


def quark(config: Config) -> Scheme:
    """AMD Quark: one format for the model, others by layer."""
    own = [(name, _quark_format(entry)) for name, entry in modules_of(as_mapping(config.get("layer_quant_config")))]
    main = _quark_format(as_mapping(config.get("global_quant_config")))
    return Scheme(
        method="quark", rules=(*rules_by_module(own), Rule(format=main)), ignored=skipped(config), towers=True
    )


def _quark_format(config: Config) -> str | None:
    weight = as_mapping(config.get("weight"))
    dtype, scheme, group = str(weight.get("dtype") or ""), weight.get("qscheme"), weight.get("group_size")
    if not weight:
        return None
    if dtype.startswith("fp8"):
        mx = scheme == "per_group" and group == _MX_GROUP
        return "mxfp8" if mx else "fp8-channel" if scheme == "per_channel" else "fp8"
    if dtype.startswith("fp6"):
        return "mxfp6"
    if dtype.startswith(("fp4", "mx")):
        return "mxfp4"
    if dtype.startswith("int8"):
        return "int8"
    return integer(_NIBBLE, group if scheme == "per_group" else None, symmetric=bool(weight.get("symmetric")))
