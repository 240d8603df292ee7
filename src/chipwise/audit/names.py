"""Names as tables print them to what chipwise knows: models, chips, engines, formats. What fails raises its code."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from chipwise.audit.items import (
    CHIP_UNKNOWN,
    ENGINE_UNKNOWN,
    MODEL_UNKNOWN,
    MODEL_UNREADABLE,
    SkipError,
    missing,
)
from chipwise.catalog import Chip, load_catalog
from chipwise.catalog.lookup import fold
from chipwise.engines import EngineProfile, load_engine
from chipwise.errors import ChipwiseError, KnowledgeError, UnknownNameError
from chipwise.model import ModelSpec, load_model
from chipwise.precision import format_facts, kv_format_names, with_precision
from chipwise.precision.formats import Format

_PLAIN = frozenset({"bf16", "fp16", "fp32"})
_DATE = re.compile(r"^20\d\d-\d\d")


@cache
def model_named(name: str, models: Path | None) -> ModelSpec:
    """The model of a table's name.

    Raises:
        SkipError: nobody knows the name, or its file cannot be read.
    """
    if not name:
        raise SkipError(missing("model"))
    try:
        return load_model(name, models=models)
    except KnowledgeError as error:
        raise SkipError(_unknown(name, models)) from error
    except (ChipwiseError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError) as error:
        raise SkipError(MODEL_UNREADABLE) from error  # a config so odd that its reader breaks is unreadable


def _unknown(name: str, models: Path | None) -> str:
    """The code of a name that gave no model: the look-up may say itself that the source does not name it."""
    row = _listed(models).get(name)
    if row is None:
        return MODEL_UNREADABLE if Path(name).is_file() else MODEL_UNKNOWN
    if not row.get("file"):
        return missing("model")
    return missing("quantization") if "not stated" in (row.get("variant") or "") else MODEL_UNREADABLE


@cache
def _listed(models: Path | None) -> dict[str, dict[str, str]]:
    """The rows of the look-up by name; those with a file win."""
    if models is None or not models.is_file():
        return {}
    with models.open(encoding="utf-8-sig", newline="") as handle:
        rows = sorted(csv.DictReader(handle), key=lambda row: bool(row.get("file")))
    return {row.get("model") or "": row for row in rows}


@cache
def chip_named(name: str, column: str) -> Chip:
    """The chip of a table's hardware name; a size of the catalog means its chip.

    Raises:
        SkipError: the cell is blank or its name does not settle which chip it is; or nobody knows the chip.

    >>> chip_named("NVIDIA A100 80GB PCIe", "hardware").id, chip_named("trn2.48xlarge", "hardware").id
    ('a100-pcie-80', 'trainium2')
    """
    if not name:
        raise SkipError(missing(column))
    catalog = load_catalog()
    for text in _spellings(name):
        try:
            return catalog.chip(text)
        except UnknownNameError:
            continue
        except KnowledgeError as error:
            alias = catalog.aliases.get(fold(text))
            raise SkipError(missing(column) if alias and alias.chip is None else CHIP_UNKNOWN) from error
    size = catalog.instances.get(fold(name))
    if size is None or size.chip is None:
        raise SkipError(CHIP_UNKNOWN)
    return catalog.chips[size.chip]


def _spellings(name: str) -> list[str]:
    """A hardware name, then the same with less and less around it (brackets, counts, makers, memory), and as an id.

    >>> _spellings("8x NVIDIA A100 80GB PCIe")
    ['8x NVIDIA A100 80GB PCIe', 'a100 80gb pcie', 'a100-pcie-80', 'a100-80', 'a100 pcie']
    """
    short = re.sub(r"\s*\(.*\)", "", name).split(",")[0]
    bare = re.sub(r"^\d+\s*[x\u00d7]\s*|\b(?:nvidia|amd|aws|intel|geforce|tesla|gpus?|hbm\d?e?)\b", "", short.lower())
    least = re.sub(r"[\s-]*\b\d+\s*gi?b?\b|\bnvl\d+\b", "", bare)
    found = [name, short, bare, *_ids(bare), least]
    return list(dict.fromkeys(" ".join(text.split()) for text in found if text.strip()))


def _ids(words: str) -> list[str]:
    """A name's parts in the order of the catalog's ids: chip, form, gigabytes."""
    form = re.search(r"\b(sxm|pcie|nvl)\d?\b", words)
    memory = re.search(r"\b(\d+)\s*gi?b\b", words)
    chip = re.match(r"\s*([a-z]+\d+\w?)\b", words)
    if chip is None or memory is None:
        return []
    middle = f"-{form.group(1)}" if form else ""
    return [f"{chip.group(1)}{middle}-{memory.group(1)}", f"{chip.group(1)}-{memory.group(1)}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine as a table names it. `profile` None: no source was read for it, and its generic kind stands in."""

    name: str
    version: str | None
    profile: EngineProfile | None = field(compare=False)


@cache
def engine_named(name: str, version: str) -> Engine:
    """The engine and version of a row; a version that names another product, or is only a date, is unknown.

    Raises:
        SkipError: the cell is blank.

    >>> engine_named("vllm (a fork)", "0.8.1").version, engine_named("nim (tensorrt-llm)", "NIM 1.8.0").version
    ('0.8.1', None)
    """
    if not name:
        raise SkipError(missing("engine"))
    try:
        profile = load_engine(name)
    except UnknownNameError:
        return Engine(name=fold(name), version=None, profile=None)
    own = version_of(profile, version)
    return Engine(name=profile.name, version=own, profile=load_engine(profile.name, own))


def known_engine(name: str, version: str) -> EngineProfile:
    """The same where only an engine whose rules are known will do.

    Raises:
        SkipError: blank, or unknown.
    """
    found = engine_named(name, version).profile
    if found is None:
        raise SkipError(ENGINE_UNKNOWN)
    return found


def version_of(profile: EngineProfile, text: str) -> str | None:
    """The engine's version in a cell, None where it states none.

    >>> version_of(load_engine("tensorrt-llm"), "TensorRT 10.11, CUDA 12.9") is None
    True
    """
    words = re.match(r"[^\d]*", text)
    before = re.sub(r"[^a-z]+", " ", words.group().lower()).strip() if words else ""
    other = before not in {"", "v", "version", "release"} and fold(before) not in {profile.name, fold(profile.title)}
    return None if not text or other or _DATE.match(text) else text


@cache
def format_named(words: str) -> str | None:
    """The weight or cache format that words mean; None where they name none (`auto`, `none`, a method without bits).

    >>> format_named("mxfp4 (native)"), format_named("awq 4bit"), format_named("gguf Q8_0"), format_named("auto")
    ('mxfp4', 'int4-g128', 'gguf-q8_0', None)
    """
    whole = words.strip().lower()
    if not whole or whole.split()[0] in {"none", "auto", "default"}:
        return None
    short = re.sub(r"\s*\(.*?\)", "", whole)
    parts = [part for part in re.split(r"[\s/,+()]+", whole) if part]
    for text in (whole, short, *parts):
        try:
            return format_facts(text).name
        except UnknownNameError:
            continue
    return None


@cache
def at_format(name: str, models: Path | None, words: str) -> ModelSpec:
    """The model with its weights as a row says; what is quantised already stays as its file says.

    A 16-bit word on a quantised checkpoint widens it; a word of its own family changes nothing, nor does a wider
    quantised format (`fp8` on MXFP4 weights): that is what they are multiplied in.

    Raises:
        SkipError: as `model_named`.
    """
    model = model_named(name, models)
    wanted = format_named(words)
    if wanted is None:
        return model
    fmt, stored = format_facts(wanted), model.quantisation
    if stored is not None and (_same(stored.weight_format, fmt.family) or _narrower(stored.weight_format, fmt)):
        return model
    if stored is None and fmt.name in _PLAIN and fmt.family != "fp32":
        return model
    try:
        return with_precision(model, fmt.name)
    except ChipwiseError as error:
        raise SkipError(MODEL_UNREADABLE) from error


def _same(stored: str, family: str) -> bool:
    """Whether a checkpoint's format answers to a family; 4-bit floats are named for one another."""
    try:
        own = format_facts(stored).family
    except ChipwiseError:
        return False
    return own == family or {own, family} <= {"mxfp4", "nvfp4"}


def _narrower(stored: str, fmt: Format) -> bool:
    """Whether a checkpoint's weights take fewer bits than a quantised format."""
    if fmt.name in _PLAIN:
        return False
    try:
        return format_facts(stored).bits < fmt.bits
    except ChipwiseError:
        return False


@cache
def cache_format(words: str) -> str | None:
    """The cache format that a cell names; None where it leaves it to the engine.

    >>> cache_format("fp8_e4m3"), cache_format("auto"), cache_format("fp8 (sliding-window layers bf16)")
    ('fp8', None, 'fp8')
    """
    first = format_named(re.sub(r"\s*\(.*\)", "", words))
    return first if first in kv_format_names() else None
