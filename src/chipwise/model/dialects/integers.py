"""Integers by group or row, and codes into tables: AWQ, GPTQ, AutoRound, bitsandbytes, HQQ, MLX, torchao, AQLM, ..."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chipwise.model.dialects.words import Config, integer, items, modules_of, rules_by_module, skipped
from chipwise.model.nested import as_mapping
from chipwise.model.quantise import Rule, Scheme, names_of

_PLAIN = (16, 32)
_NARROW = 4
_HQQ_GROUP, _AO_GROUP, _QUANTO_GROUP, _HIGGS_GROUP = 64, 128, 128, 256


def grouped(config: Config) -> Scheme:
    """AWQ, GPTQ and AutoRound: packed integers with a scale and a packed zero point a group.

    GPTQ's `dynamic` (`+:` other settings, `-:` left out) and AutoRound's `extra_config` set modules apart;
    `modules_in_block_to_quantize` names all that is taken.
    """
    main = _grouped_format(config)
    own = [*_by_pattern(config), *_extra(config)]
    taken = _named(config.get("modules_in_block_to_quantize"))
    return Scheme(
        method=str(config.get("quant_method")),
        rules=(*rules_by_module(own), Rule(format=main, names=names_of(taken) if taken else None)),
        ignored=skipped(config),
        head=bool(config.get("lm_head")),
    )


def _grouped_format(config: Config) -> str:
    bits = _first(config, "bits", "w_bit", "weight_bits", "num_bits") or _NARROW
    group = _first(config, "group_size", "q_group_size")
    if group is None:
        group = _AO_GROUP
    kind = str(config.get("data_type") or "int")
    if kind.startswith("nv"):
        return "nvfp4"
    if kind.startswith("mx"):
        return "mxfp8" if bits != _NARROW else "mxfp4"
    if kind.startswith(("fp8", "float8")) or (kind.startswith("fp") and bits != _NARROW):
        return "fp8"
    name = integer(bits, group)
    thinned = "marlin_24" in f"{config.get('quant_method')} {config.get('checkpoint_format')}"
    return f"{name}-sym-sparse24" if thinned else name


def _first(config: Config, *names: str) -> object:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _by_pattern(config: Config) -> Iterable[tuple[str, str | None]]:
    for name, entry in modules_of(as_mapping(config.get("dynamic"))):
        pattern = f"re:{name[2:] if name[:2] in ('+:', '-:') else name}"
        yield pattern, None if name.startswith("-:") else _grouped_format({**config, **entry})


def _extra(config: Config) -> Iterable[tuple[str, str | None]]:
    for name, entry in modules_of(as_mapping(config.get("extra_config"))):
        pattern = f"re:{name}" if re.search(r"[\\^$+\[(]|\.\*", name) else name
        yield pattern, None if entry.get("bits") in _PLAIN else _grouped_format({**config, **entry})


def _named(value: object) -> list[str]:
    """Names in a list, or in lists in a list."""
    found = value if isinstance(value, list) else []
    return [name for item in found for name in (item if isinstance(item, list) else [item]) if isinstance(name, str)]


def bitsandbytes(config: Config) -> Scheme:
    """LLM.int8(), or NF4 (FP4) in blocks of 64, whose scales may be quantised again."""
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        name = "bnb-int8"
    else:
        name = "nf4-dq" if config.get("bnb_4bit_use_double_quant") else "nf4"
    return Scheme(method="bitsandbytes", rules=(Rule(format=name),), ignored=skipped(config), towers=True)


def mlx(config: Config) -> Scheme:
    """MLX: `bits`, `group_size` and `mode`, embeddings and head with them; a module may have its own, or `false`."""
    kept = [key for key, value in config.items() if value is False]
    own = [(name, _mlx_format({**config, **entry})) for name, entry in modules_of(config) if "bits" in entry]
    whole = "quant_method" not in config
    return Scheme(
        method="mlx",
        rules=(*rules_by_module(own), Rule(format=_mlx_format(config))),
        ignored=skipped(config, *kept),
        head=whole,
        embeddings=whole,
    )


def _mlx_format(config: Config) -> str:
    mode = str(config.get("mode") or "affine")
    return mode if mode != "affine" else f"mlx-int{config.get('bits')}-g{config.get('group_size')}"


def hqq(config: Config) -> Scheme:
    """HQQ and SINQ: a 16-bit scale and a 16-bit zero point a group; a tag may have settings of its own."""
    chosen = as_mapping(config.get("quant_config"))
    by_tag = [(tag, _hqq_format(entry)) for tag, entry in modules_of(chosen) if not tag.endswith("_params")]
    rules = rules_by_module(by_tag) if by_tag else (Rule(format=_hqq_format({**config, **chosen})),)
    return Scheme(method=str(config.get("quant_method")), rules=rules, ignored=skipped(config))


def _hqq_format(config: Config) -> str:
    params = {**config, **as_mapping(config.get("weight_quant_params"))}
    group = params.get("group_size", _HQQ_GROUP)
    return integer(params.get("nbits") or _NARROW, group, wide=True)


def quanto(config: Config) -> Scheme:
    """Quanto: bytes by row, or 4 and 2 bits with a scale and a shift every 128."""
    weights = str(config.get("weights") or "int8")
    wide = {f"int{bits}": integer(bits, _QUANTO_GROUP, wide=True) for bits in (2, 4)}
    name = {"float8": "fp8-channel", "int8": "int8-weight-only", **wide}.get(weights, weights)
    return Scheme(method="quanto", rules=(Rule(format=name),), ignored=skipped(config))


def torchao(config: Config) -> Scheme:
    """torchao: a configuration class by name, or one by module (`ModuleFqnToConfig`)."""
    said = config.get("quant_type")
    chosen = as_mapping(said).get("default", said)
    entry = as_mapping(chosen) or {"_type": said, "_data": as_mapping(config.get("quant_type_kwargs"))}
    by_module = as_mapping(_ao_data(entry).get("module_fqn_to_config") or _ao_data(entry).get("fqn_to_config"))
    own = [(name, _ao_format(as_mapping(item))) for name, item in by_module.items() if name != "_default"]
    main = _ao_format(as_mapping(by_module.get("_default")) if by_module else entry)
    whole = bool(config.get("include_input_output_embeddings")) or any("embed" in name for name, _ in own)
    return Scheme(
        method="torchao",
        rules=(*rules_by_module(own), Rule(format=main)),
        ignored=skipped(config),
        activation_format="int8" if main == "int8" else None,
        towers=True,
        head=whole,
        embeddings=whole,
    )


def _ao_data(entry: Config) -> Config:
    return as_mapping(entry.get("_data"))


def _ao_format(entry: Config) -> str | None:
    """The format of a torchao configuration class, or of its older name in words.

    >>> _ao_format({"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 32}}), _ao_format({})
    ('hqq-int4-g32', None)
    """
    name = str(entry.get("_type") or "").lower().replace("_", "")
    group = _ao_data(entry).get("group_size", _AO_GROUP)
    if "int4" in name and "weightonly" in name:
        return integer(_NARROW, group, wide=True)
    if "activationint4" in name or "activationintx" in name or "intxweight" in name:
        return integer(_NARROW, _ao_data(entry).get("group_size", 32), symmetric=True)
    if "nvfp4" in name or "mxfp4" in name:
        return "nvfp4" if "nv" in name else "mxfp4"
    if "float8" in name or "fp8" in name:
        return "fp8-channel" if "row" in str(_ao_data(entry).get("granularity")).lower() else "fp8"
    if "int8" in name:
        return "int8" if "activation" in name else "int8-weight-only"
    return None


def aqlm(config: Config) -> Scheme:
    """AQLM: codes of `nbits_per_codebook` bits, one for each codebook, for every group of weights."""
    bits, books = _count(config, "nbits_per_codebook", 16), _count(config, "num_codebooks", 1)
    group = _count(config, "in_group_size", 8) * _count(config, "out_group_size", 1)
    name = f"codes{bits * books}-g{group}-table{books * 2 ** min(bits, 64)}"
    return Scheme(method="aqlm", rules=(Rule(format=name),), ignored=skipped(config))


def vptq(config: Config) -> Scheme:
    """VPTQ: an index into a table of vectors, and one into a table of what is left, by module."""
    shared = modules_of(as_mapping(config.get("shared_layer_config")))
    listed = [*modules_of(as_mapping(config.get("config_for_layers"))), *shared]
    own = [(name, _vptq_format(entry)) for name, entry in listed]
    return Scheme(method="vptq", rules=rules_by_module(own), ignored=skipped(config))


def _vptq_format(entry: Config) -> str:
    length, tables = _last(entry, "vector_lens"), [_last(entry, "num_centroids"), _last(entry, "num_res_centroids")]
    sizes = [size for size in tables if size > 1]
    bits = sum((size - 1).bit_length() for size in sizes)
    groups = max(1, _count(entry, "group_num", 1))
    return f"codes{bits}-g{length}-table{sum(sizes) * groups}"


def _last(entry: Config, name: str) -> int:
    found = items(entry, name)
    return found[-1] if found and isinstance(found[-1], int) else 0


def _count(config: Config, name: str, usual: int) -> int:
    value = config.get(name)
    return value if isinstance(value, int) and value > 0 else usual


def exl(config: Config) -> Scheme:
    """EXL2 and EXL3: `bits` on average over the layers, scales with them; the head at `head_bits`."""
    head = config.get("head_bits")
    first = (Rule(format=_average(head), names=names_of(["lm_head"])),) if isinstance(head, int | float) else ()
    return Scheme(
        method=str(config.get("quant_method")),
        rules=(*first, Rule(format=_average(config.get("bits")))),
        head=bool(first),
    )


def _average(bits: object) -> str:
    """The name of a format of so many bits on average.

    >>> _average(4.25), _average(6)
    ('exl-4p25', 'exl-6p0')
    """
    text = f"{bits:.4f}".rstrip("0") if isinstance(bits, int | float) else "?."
    return "exl-" + (f"{text}0" if text.endswith(".") else text).replace(".", "p")


def higgs(config: Config) -> Scheme:
    """HIGGS: codes of 2 to 4 bits, a 16-bit scale every 256."""
    name = integer(config.get("bits") or _NARROW, config.get("group_size") or _HIGGS_GROUP, symmetric=True)
    return Scheme(method="higgs", rules=(Rule(format=name),), ignored=skipped(config))


def bitnet(config: Config) -> Scheme:
    """BitNet: four weights of three values a byte, one scale a matrix."""
    online = str(config.get("quantization_mode") or "") == "online"
    rules = () if online else (Rule(format="int2-tensor"),)
    return Scheme(method="bitnet", rules=rules, ignored=skipped(config))


def rows_of_bytes(config: Config) -> Scheme:
    """EETQ and others: bytes with a scale a row."""
    rule = Rule(format="int8-weight-only")
    return Scheme(method=str(config.get("quant_method")), rules=(rule,), ignored=skipped(config))


def experts_int8(config: Config) -> Scheme:
    """The experts alone in bytes with a scale a row."""
    rule = Rule(format="int8-weight-only", experts_only=True)
    return Scheme(method="experts_int8", rules=(rule,), ignored=skipped(config))


def by_expression(config: Config) -> Scheme:
    """Gemma's own: `num_bits` by row, other widths for modules that an expression finds."""
    listed = modules_of(as_mapping(config.get("module_quant_configs")))
    main = config.get("num_bits") or _NARROW
    own = [(f"re:.*{pattern}", integer(entry.get("num_bits") or main, None)) for pattern, entry in listed]
    return Scheme(
        method="gemma",
        rules=(*rules_by_module(own), Rule(format=integer(main, None))),
        ignored=skipped(config),
        embeddings=bool(config.get("quantize_embeddings")),
    )


def by_bits(config: Config, method: str) -> Scheme:
    """A method that is not known, by the `bits` it states: read as integers by group, which a note says."""
    bits, group = _first(config, "bits", "num_bits", "w_bit", "wbits", "nbits"), config.get("group_size", _AO_GROUP)
    named = f"the quantisation {method!r} is not known" if method else "the quantisation has no name"
    if not isinstance(bits, int) or not 1 <= bits <= 2 * _NARROW:
        return Scheme(method=method, rules=(), notes=(f"{named}: weights are counted at the dtype",))
    name = integer(bits, group)
    note = f"{named}: read as {bits}-bit integers ({name}) by its keys"
    return Scheme(method=method or "unknown", rules=(Rule(format=name),), ignored=skipped(config), notes=(note,))
