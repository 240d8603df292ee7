"""What the dialects have in common: lists of modules, and the name of an integer format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.model.quantise import Names, Rule, names_of
from chipwise.model.stored import stored_format

Config = Mapping[str, Any]
_SKIPPING = (
    "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude", "llm_int8_skip_modules",
    "skip_modules", "linear_weights_not_to_quantize",
)  # fmt: skip


def items(config: Config, name: str) -> list[Any]:
    """A list in a quantisation config; anything else there names nothing."""
    value = config.get(name)
    return value if isinstance(value, list) else []


def skipped(config: Config, *more: str) -> Names:
    """The modules that a config leaves at the dtype, under any name quantisers give the list."""
    return names_of([*more, *(item for name in _SKIPPING for item in items(config, name))])


def integer(bits: object, group: object, *, symmetric: bool = False, wide: bool = False) -> str:
    """The format of integers of so many bits, a scale every `group` (-1, 0 or None: a row).

    `symmetric` has no zero points, `wide` those of 16 bits.

    >>> integer(4, 128), integer(8, -1), integer(3, 64, wide=True)
    ('int4-g128', 'int8-weight-only', 'hqq-int3-g64')
    """
    if group in (-1, 0, None):
        return "int8-weight-only" if bits == _BYTE else f"int{bits}-channel"
    if wide:
        return f"hqq-int{bits}-g{group}"
    name = f"int{bits}-g{group}"
    return f"{name}-sym" if symmetric and stored_format(f"{name}-sym") else name


_BYTE = 8


def rules_by_module(chosen: Iterable[tuple[str, str | None]]) -> tuple[Rule, ...]:
    """Rules from pairs of a module's name and its format, modules of one format together, the fewest first.

    >>> [rule.format for rule in rules_by_module([("a", "int8-g64"), ("b", "int4-g64"), ("c", "int4-g64")])]
    ['int8-g64', 'int4-g64']
    """
    by_format: dict[str | None, list[str]] = {}
    for name, format_name in chosen:
        by_format.setdefault(format_name, []).append(name)
    ordered = sorted(by_format.items(), key=lambda pair: len(pair[1]))
    return tuple(Rule(format=name, names=names_of(names)) for name, names in ordered)


def modules_of(config: Config) -> Iterable[tuple[str, Config]]:
    """The entries of a mapping whose values are mappings: modules with settings of their own."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield str(name), value
