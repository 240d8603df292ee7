"""Replays `configs/index.csv`: what is read off a config against counts made from the real model classes."""

from __future__ import annotations

from pathlib import Path

from chipwise.audit.items import (
    METRIC_NOT_COVERED,
    MODEL_UNREADABLE,
    Context,
    Item,
    Line,
    Measured,
    Prediction,
    SkipError,
    each,
    missing,
)
from chipwise.audit.names import model_named
from chipwise.audit.table import Row
from chipwise.model import ModelSpec

REQUIRED = ("file",)
COLUMNS = {
    "params_total": ("params_total",),
    "params_active": ("params_active_meta_exact", "params_active"),
    "kv_bytes_per_token": ("kv_bytes_per_token_bf16", "kv_bytes_per_token"),
    "state_bytes_per_sequence": ("state_bytes_per_sequence",),
}
"""Metric to the columns that may hold it, the first filled one counting."""
CLASSES = {
    "dense llm": "dense-llm",
    "moe llm": "moe-llm",
    "vision-language": "vision-language",
    "vision foundation model": "vision",
    "vision": "vision",
    "diffusion": "diffusion",
    "cnn": "cnn",
    "audio/speech": "audio",
    "audio": "audio",
    "embedding/encoder": "encoder",
    "encoder": "encoder",
    "recommender": "recommender",
    "tabular": "tabular",
}
"""The table's classes in CONTRACT's words."""


def items_of(rows: list[Row], context: Context) -> list[Item]:
    """A metric for every filled cell; a class for every file."""
    del context
    found = []
    for row in rows:
        for metric, columns in COLUMNS.items():
            column = next((name for name in columns if row.text(name)), None)
            if column is not None:
                value = row.finite(column)
                barred = missing(column) if value is None else None
                found.append(Item(row=row, metric=metric, measured=value, barred=barred))
        if row.text("arch_class"):
            found.append(Item(row=row, metric="architecture", measured=_class(row.text("arch_class"))))
    return found


def _class(text: str) -> str:
    folded = text.lower()
    return CLASSES.get(folded, folded.replace(" ", "-"))


def predict(items: list[Item], context: Context) -> list[Line]:
    """A line an item; the files stand beside the table."""
    return each(items, lambda item: _predicted(item, context.file.parent))


def _predicted(item: Item, folder: Path) -> Prediction:
    file = folder / item.row.text("file")
    if not item.row.text("file") or not file.is_file():
        raise SkipError(MODEL_UNREADABLE)
    model = model_named(str(file), None)
    value = _value(model, item.metric)
    return Prediction(
        low=value,
        mid=value,
        high=value,
        evidence="physics",
        labels={"family": model.model_type, "class": model.architecture},
    )


def _value(model: ModelSpec, metric: str) -> Measured:
    if metric == "architecture":
        return model.architecture
    if metric == "params_total":
        return model.params_total
    if metric == "params_active":
        return model.params_active
    if metric == "kv_bytes_per_token":
        return round(model.kv_bytes_per_token())
    if metric == "state_bytes_per_sequence":
        return round(model.state_bytes_per_sequence())
    raise SkipError(METRIC_NOT_COVERED)
