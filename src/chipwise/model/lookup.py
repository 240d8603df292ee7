"""`--models`: a folder of `<org>__<name>.json`, or a csv `model,file,variant` beside its files, looked up by name."""

from __future__ import annotations

import csv
from pathlib import Path

from chipwise.errors import InputError, KnowledgeError
from chipwise.model.dialects.names import scheme_by_words
from chipwise.model.files import Bend, from_path
from chipwise.model.quantise import Scheme
from chipwise.model.spec import ModelSpec

_COLUMNS = {"model", "file"}


def variant_scheme(variant: str) -> Scheme | None:
    """The quantisation that a variant's words speak of; None where they speak of none.

    >>> variant_scheme("awq 4-bit checkpoint of base").main_format
    'int4-g128'
    """
    return scheme_by_words(variant, origin=f"variant {variant!r}")


def bend_of(variant: str) -> Bend:
    """How a variant changes the file it stands beside.

    Raises:
        KnowledgeError: it says quantised but not how.
    """
    scheme = variant_scheme(variant)
    if scheme is None and "quantised checkpoint" in variant.lower():
        raise KnowledgeError(
            f"the variant {variant!r} does not say which format the weights have",
            why="bytes per weight cannot be known without",
            fix="name the format in the variant, such as 'awq 4-bit checkpoint of base'",
        )
    return Bend(scheme=scheme, ignore_quantisation="ignore quantization_config" in variant.lower())


def from_models(reference: str, models: Path, *, as_encoder: bool = False) -> ModelSpec | None:
    """The model `reference` from a look-up folder or csv; None where it does not list it.

    Raises:
        InputError: no such folder or file, or a csv without the columns.
    """
    if models.is_dir():
        for stem in (reference, reference.replace("/", "__")):
            path = models / f"{stem}.json"
            if path.is_file() and path.resolve().parent == models.resolve():
                return from_path(path, name=reference, as_encoder=as_encoder)
        return None
    if not models.is_file():
        raise InputError(
            f"--models {models} is neither a folder nor a file",
            why="names are looked up there first",
            fix="give a folder of <org>__<name>.json files, or a csv with the columns model,file,variant",
        )
    row = _row(reference, models)
    if row is None:
        return None
    bend = bend_of(row.get("variant") or "")
    return from_path(models.parent / row["file"], name=reference, bend=bend, as_encoder=as_encoder)


def _row(reference: str, table: Path) -> dict[str, str] | None:
    with table.open(encoding="utf-8", newline="") as handle:
        rows = csv.DictReader(handle)
        if not set(rows.fieldnames or ()) >= _COLUMNS:
            raise InputError(
                f"{table} has no columns model and file",
                why="they say which file describes which model",
                fix="give a csv with the columns model,file,variant",
            )
        named = [row for row in rows if row["model"] == reference]
    with_file = [row for row in named if row["file"]]
    if named and not with_file:
        raise KnowledgeError(
            f"{table.name} lists {reference!r} without a file",
            why="which checkpoint it is, is not known",
            fix="add the path of its config.json to the csv",
        )
    return with_file[0] if with_file else None
