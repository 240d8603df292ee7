"""A diffusers pipeline (`model_index.json`): the sum of the parts in its folders; the denoiser is the main stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model.spec import ModelSpec, Tower

_MAIN = ("transformer", "unet", "prior", "decoder")
_LONGEST_NAME = 100
_NO_WEIGHTS = ("Scheduler", "Tokenizer", "TokenizerFast", "ImageProcessor", "FeatureExtractor", "Processor")


def is_pipeline(config: Mapping[str, Any]) -> bool:
    """Whether a config is the index of a diffusers pipeline: a class name and parts as [library, class]."""
    return str(config.get("_class_name")).endswith("Pipeline") and bool(_parts(config))


def _parts(config: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value[1]
        for name, value in config.items()
        if name.isidentifier() and len(name) <= _LONGEST_NAME
        if isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)
    }


def from_pipeline(config: Mapping[str, Any], file: Path, name: str, read: Callable[[Path], ModelSpec]) -> ModelSpec:
    """The pipeline's denoiser with its other parts as towers.

    A part's config stands in its own folder (`unet/config.json`), or beside the index under the same name
    (`org__name.unet.json` beside `org__name.model_index.json`).

    Raises:
        KnowledgeError: a part with weights has no config in its folder; all such parts are named.
    """
    needed = {part: kind for part, kind in _parts(config).items() if not kind.endswith(_NO_WEIGHTS)}
    stem = file.stem.removesuffix(".model_index")
    found = {
        part: place
        for part in needed
        for place in (file.parent / f"{stem}.{part}.json", file.parent / part / "config.json")
        if place.is_file()
    }
    missing = [part for part in needed if part not in found]
    if missing:
        raise KnowledgeError(
            f"the pipeline names parts without a config: {', '.join(sorted(missing))}",
            why="a pipeline is the sum of its parts, and the index does not say their sizes",
            fix="put <part>/config.json of each beside model_index.json, or give the part's own config",
        )
    specs = {part: read(found[part]) for part in needed}
    main = next((part for part in _MAIN if part in specs), next(iter(specs)))
    towers = tuple(_as_tower(part, spec) for part, spec in specs.items() if part != main)
    notes = tuple(f"{part}: {note}" for part, spec in specs.items() for note in spec.warnings)
    return replace(
        specs[main],
        name=name,
        model_type=str(config["_class_name"]),
        architecture="diffusion",
        towers=(*specs[main].towers, *towers),
        warnings=notes,
    )


def _as_tower(name: str, spec: ModelSpec) -> Tower:
    layers = [*spec.layers, *(layer for tower in spec.towers for layer in tower.layers)]
    loose = [*spec.outer, *(weight for tower in spec.towers for weight in tower.weights)]
    return Tower(name=name, layers=tuple(layers), weights=tuple(loose))
