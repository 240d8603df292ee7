"""Reads a model description from disk: a folder or a file of any name; its content decides what it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chipwise.errors import InputError, KnowledgeError
from chipwise.model.gguf_model import from_gguf
from chipwise.model.pipeline import from_pipeline, is_pipeline
from chipwise.model.quantise import Scheme
from chipwise.model.read import Source, read_source
from chipwise.model.safetensors import read_header
from chipwise.model.spec import ModelSpec
from chipwise.model.tensors import from_index, from_tensors
from chipwise.model.trees import from_lightgbm, from_xgboost, is_xgboost
from chipwise.model.ubjson import read_ubjson

MOST_BYTES = 2**26
_CONFIGS = ("config.json", "params.json", "model_index.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bend:
    """How a file is to be read otherwise than it says: another quantisation, or none."""

    scheme: Scheme | None = None
    ignore_quantisation: bool = False


STRAIGHT = Bend()


def from_path(path: Path, *, name: str = "", bend: Bend = STRAIGHT, as_encoder: bool = False) -> ModelSpec:
    """The model that a folder or file describes.

    Raises:
        InputError: the file is missing, broken, too large, or describes no model.
        KnowledgeError: it does not say enough.
    """
    file = _config_in(path) if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"there is no file {file}", why="the model is read from it", fix="check the path")
    title = name or (path.name if path.is_dir() else file.name.removesuffix(file.suffix))
    kind = _magic(file)
    if kind in _BINARY:
        return _BINARY[kind](file, title)
    config = read_ubjson(file, MOST_BYTES) if kind == "ubjson" else read_mapping(file)
    if is_xgboost(config):
        return from_xgboost(config, title)
    if "weight_map" in config or set(config) == {"metadata"}:
        return from_index(config, title)
    if is_pipeline(config):
        return from_pipeline(config, file, title, from_path)
    spec = read_source(
        Source(
            config=_named_scale(config, file),
            name=title,
            sidecar=_sidecar(file),
            scheme=bend.scheme,
            ignore_quantisation=bend.ignore_quantisation,
            as_encoder=as_encoder,
        )
    )
    return _against_weights(spec, path) if path.is_dir() else spec


def _magic(file: Path) -> str:
    """`gguf`, `safetensors`, `ubjson` or `lightgbm` by the first bytes, whatever the file is called; else empty."""
    try:
        with file.open("rb") as handle:
            head = handle.read(9)
    except OSError as error:
        raise _broken(file, f"it cannot be read ({error})") from error
    if head[:4] == b"GGUF":
        return "gguf"
    if head.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if head[:1] == b"{" and head[1:2] in {b"i", b"U", b"I", b"l", b"L", b"#"}:
        return "ubjson"
    binary = len(head) > 8 and head[8:9] == b"{" and not head[:8].strip().startswith((b"{", b"["))
    return "safetensors" if binary or file.suffix == ".safetensors" else ""


def _named_scale(config: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """An Ultralytics YAML is counted at the scale that its name ends in (`yolov8s.yaml`)."""
    scales = config.get("scales")
    if not isinstance(scales, Mapping) or "scale" in config:
        return config
    letter = file.stem[-1:]
    return {**config, "scale": letter} if letter in scales and file.stem[-2:-1].isdigit() else config


def _against_weights(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The spec, with a warning where the weights beside the config hold another number of parameters."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if spec.quantisation is not None:
        return spec
    if single.is_file():
        held = sum(tensor.params for tensor in read_header(single))
    elif index.is_file():
        held = from_index(read_mapping(index), spec.name).params_total
    else:
        return spec
    counted = spec.params_total + spec.params_mtp
    if abs(held - counted) <= counted * _TOLERANCE:
        return spec
    note = f"the weights hold {held} parameters, the config describes {counted}: the weights count"
    return replace(spec, params_stated=held - spec.params_mtp, warnings=(*spec.warnings, note))


_TOLERANCE = 0.001


def _config_in(folder: Path) -> Path:
    for name in _CONFIGS:
        if (folder / name).is_file():
            return folder / name
    held = [file for kind in ("*.gguf", "*.safetensors") for file in sorted(folder.glob(kind))]
    if len(held) == 1:
        return held[0]
    raise KnowledgeError(
        f"the folder {folder} holds none of {', '.join(_CONFIGS)}",
        why="one of them describes the model",
        fix="copy the model's config.json into it, or name the file itself",
    )


def _sidecar(file: Path) -> Mapping[str, Any]:
    names = ("hf_quant_config.json", f"{file.stem}.hf_quant_config.json")
    for folder in (file.parent, file.parent / "sidecars"):
        for name in names if folder == file.parent and file.stem == "config" else names[1:]:
            if (folder / name).is_file():
                return read_mapping(folder / name)
    return {}


# What the first bytes tell by themselves.
_BINARY: Mapping[str, Callable[[Path, str], ModelSpec]] = {
    "gguf": from_gguf,
    "safetensors": lambda file, title: from_tensors(read_header(file), title),
    "lightgbm": lambda file, title: from_lightgbm(read_text(file), title),
}


def read_mapping(file: Path) -> Mapping[str, Any]:
    """The object in a JSON or YAML file.

    Raises:
        InputError: larger than `MOST_BYTES`, not text, not JSON or YAML, or not an object.
    """
    value = _parsed(file, read_text(file))
    if not isinstance(value, Mapping):
        raise _broken(file, "it does not hold an object")
    return value


def read_text(file: Path) -> str:
    """The text of a file of at most `MOST_BYTES`."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise _broken(file, f"it is larger than {MOST_BYTES} bytes")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(file, f"it cannot be read as text ({error})") from error


def _parsed(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise _broken(file, "it is nested too deeply") from error
    except ValueError as error:
        if text.lstrip().startswith(("{", "[")):
            raise _broken(file, f"it is not JSON ({error})") from error
    return _yaml(file, text)


def _yaml(file: Path, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except RecursionError as error:
        raise _broken(file, "it is nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _broken(file, "it is neither JSON nor YAML") from error


def _broken(file: Path, why: str) -> InputError:
    return InputError(f"{file} is no model description", why=why, fix="fetch the file again, or name another")
