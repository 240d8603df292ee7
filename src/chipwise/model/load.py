"""`load_model`: a name, an id, a folder, a file or `params:...` becomes a `ModelSpec`. Every door calls this one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from chipwise.errors import KnowledgeError
from chipwise.model import registry
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec


def load_model(reference: str, *, models: Path | None = None, as_encoder: bool = False) -> ModelSpec:
    """The model that `reference` names.

    Tried in this order: `params:` and `sklearn:` notation; the look-up folder or csv of `models`; a path that
    exists; the built-in registry (names, aliases, Hugging Face ids); the local Hugging Face cache; the hub (`org/name`,
    `org/name@revision`, `org/name/file.gguf`).

    Args:
        reference: name, id, path or `params:...`.
        models: a folder of `<org>__<name>.json` files, or a csv `model,file,variant` beside its files.
        as_encoder: treat a language model as one that embeds.

    Raises:
        InputError: a file that is broken or not a model description; notation that does not parse.
        KnowledgeError: a name nobody knows, or a description that does not say enough.

    >>> load_model("llama-3.1-8b").params_total
    8030261248
    """
    if reference.lower().startswith(("params:", "sklearn", "scikit-learn")):
        noted = _noted(reference)
        if noted is not None:
            return noted
    if models is not None:
        from chipwise.model.lookup import from_models

        found = from_models(reference, models, as_encoder=as_encoder)
        if found is not None:
            return found
    path = Path(reference).expanduser()
    if _exists(path):
        from chipwise.model.files import from_path

        return from_path(path, as_encoder=as_encoder)
    return _built_in(reference, as_encoder=as_encoder) or _from_hub(reference, as_encoder=as_encoder)


def _noted(reference: str) -> ModelSpec | None:
    """A model described by the reference itself; None where it is none of the notations."""
    from chipwise.model.notation import from_notation
    from chipwise.model.trees import from_sklearn, is_sklearn

    if reference.startswith("params:"):
        return from_notation(reference)
    return from_sklearn(reference) if is_sklearn(reference) and not _exists(Path(reference)) else None


@lru_cache(maxsize=512)
def _built_in(reference: str, *, as_encoder: bool) -> ModelSpec | None:
    known = registry.find(reference)
    if known is None:
        return None
    source = Source(config=known.config, name=known.name, params_source="registry", as_encoder=as_encoder)
    return replace(read_source(source), checkpoint=registry.hub_id(reference))


def _from_hub(reference: str, *, as_encoder: bool) -> ModelSpec:
    """The model of a Hugging Face repository: from the local cache, else from the hub."""
    from chipwise.model.files import from_path
    from chipwise.model.hub import UndescribedError, address, fetched, from_header
    from chipwise.model.hub_cache import cached_folder

    where = address(reference)
    if where is None:
        raise _unknown(reference)
    folder = None if where.file else cached_folder(where.repo, where.revision)
    if folder is not None:
        return from_path(folder, name=reference, as_encoder=as_encoder)
    if not where.file:
        try:
            return from_path(fetched(where), name=reference, as_encoder=as_encoder)
        except UndescribedError:
            pass
    return from_header(where, lambda file: from_path(file, name=reference, as_encoder=as_encoder))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for a path, or with a NUL in it, is no path
        return False


def _is_path(reference: str) -> bool:
    """Whether a text that names nothing was meant as a path."""
    return reference.startswith((".", "/", "~")) or reference.endswith(".json")


def _unknown(reference: str) -> KnowledgeError:
    from chipwise.model.trees import how_to_name

    near = registry.near(reference)
    hint = f"did you mean {' or '.join(near)}? Otherwise " if near else ""
    missing = f"there is no file or folder {reference!r}"
    return KnowledgeError(
        missing if _is_path(reference) else f"no model {reference!r} is known here",
        why="it is no built-in name, no file or folder, and no Hugging Face id (org/name)",
        fix=how_to_name(reference)
        or f"{hint}give the path of its config.json, its Hugging Face id as org/name, "
        "or describe it: params:70b,layers=80,hidden=8192,heads=64,kv_heads=8",
    )
