"""What is left out together: whole sources, or models of one shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from calibrate.figures import Measurement, measurements
from calibrate.robust import Settings
from calibrate.serving import Model, Residual, fitted, held_out, model_of
from calibrate.serving_items import groups

MODEL_FOLDS = 8
Left = Callable[[Measurement], str]


def source_of(one: Measurement) -> str:
    """Who measured."""
    return one.laboratory


def model_folds(found: Sequence[Measurement]) -> dict[str, str]:
    """The fold of every model shape: shapes go, the most measured first, to the fold that holds least."""
    counts = Counter(shape_of(one) for one in found)
    held: Counter[str] = Counter({f"models {number}": 0 for number in range(1, MODEL_FOLDS + 1)})
    placed = {}
    for shape, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        fold = min(held, key=lambda name: (held[name], name))
        held[fold] += count
        placed[shape] = fold
    return placed


def shape_of(one: Measurement) -> str:
    """A model without its weights' format: family, layers and width."""
    model = one.run.model.model
    return f"{model.model_type} {sum(layer.count for layer in model.layers)} x {model.hidden_size}"


@cache
def _table(file: Path) -> tuple[list[Measurement], Model, dict[str, str]]:
    found = measurements(file)
    return found, model_of(groups(found)), model_folds(found)


def _left(scheme: str, placed: dict[str, str]) -> Left:
    return source_of if scheme == "sources" else lambda one: placed[shape_of(one)]


def _one(task: tuple[Path, str, str]) -> list[Residual]:
    file, scheme, fold = task
    found, model, placed = _table(file)
    return held_out(model, found, _left(scheme, placed), fold)


def cross_validated(file: Path, scheme: str, workers: int) -> list[Residual]:
    """Residuals of every fold that holds complete figures, each under a fit that never saw the fold."""
    found, _, placed = _table(file)
    left = _left(scheme, placed)
    tasks = [(file, scheme, fold) for fold in sorted({left(one) for one in found if one.complete})]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        return [one for own in pool.map(_one, tasks) for one in own]


def whole(file: Path, iterations: int) -> tuple[Model, object, list[Measurement]]:
    """The fit to everything."""
    found, model, _ = _table(file)
    return model, fitted(model, found, Settings(iterations=iterations)), found
