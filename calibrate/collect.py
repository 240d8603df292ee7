"""`python -m calibrate collect`: published serving measurements beside the repository into our own table.

Figures carry over in base units with their source; conditions as chipwise reads them, under its own names of models,
chips, engines and formats. Nothing else of the tables that they are read from is kept.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from calibrate.figures import COLUMNS, DEFAULTS, FIGURES, LOAD, PLACE
from chipwise.audit.figures import Wanted, wanted
from chipwise.audit.inference import COMPLETE, flags_of, items_of
from chipwise.audit.items import Context, Item, SkipError
from chipwise.audit.runs import Conditions, ModelKey, conditions_of
from chipwise.audit.table import Row, read_table
from chipwise.model import ModelSpec, all_known, load_model
from chipwise.model.registry import find
from chipwise.precision import format_facts

Cells = dict[str, str]
_FIGURE = {
    ("ttft", "mean"): "ttft_s",
    ("ttft", "p50"): "ttft_p50_s",
    ("tpot", "mean"): "tpot_s",
    ("tpot", "p50"): "tpot_s",
    ("itl", "mean"): "tpot_s",
    ("itl", "p50"): "tpot_s",
    ("e2e", "mean"): "e2e_s",
}
"""Which column a latency stands in; percentiles beyond the median are not fitted."""
_RATE = {
    "output_tok": "output_tokens_per_s",
    "total_tok": "total_tokens_per_s",
    "req": "requests_per_s",
    "prefill_tok": "prompt_tokens_per_s",
    "input_tok": "prompt_tokens_per_s",
}
_PLACED = re.compile(r"^([\w.-]+/[\w.-]+@\w+):?(.*)$")


def collected(folder: Path) -> tuple[list[Cells], Counter[str]]:
    """One row a run, in the order of the tables, and how many figures were left out for which reason."""
    file = folder / "inference.csv"
    context = Context(file=file, models=folder / "models.csv", incomplete=True)
    runs: dict[tuple[str, ...], Cells] = {}
    left: Counter[str] = Counter()
    for item in items_of(read_table(file, ("metric", "value")), context):
        try:
            _carry(item, context, runs)
        except SkipError as reason:
            left[reason.code] += 1
    kept = [cells for cells in runs.values() if any(cells[name] for name in FIGURES)]
    return [cells | {"id": _identity(cells)} for cells in kept], left


def _carry(item: Item, context: Context, runs: dict[tuple[str, ...], Cells]) -> None:
    """Put one figure into the row of its run."""
    value = item.measured
    if item.barred is not None or isinstance(value, bool | str) or value is None or value <= 0:
        raise SkipError(item.barred or "no-value")
    asked = wanted(item.metric)
    key = (item.row.run_id, *(item.row.text(name) for name in ("hardware", "engine", "isl", "osl", "request_rate")))
    if key not in runs:
        runs[key] = _conditions(item.row, context)
    name, figure = _figure(asked, value / asked.scale, float(runs[key]["chips"]))
    if not runs[key][name]:
        runs[key][name] = _text(figure)


def _figure(asked: Wanted, value: float, chips: float) -> tuple[str, float]:
    if asked.quantity != "throughput":
        name = _FIGURE.get((asked.quantity, asked.statistic))
        if name is None:
            raise SkipError("percentile")
        return name, value
    if asked.statistic == "per_user":
        return "tpot_s", 1.0 / value
    return _RATE[asked.of], value if asked.statistic == "total" else value * chips


def _conditions(row: Row, context: Context) -> Cells:
    stated = conditions_of(row, context.models)
    model, weights = own_model(stated.model)
    source, where = _source(row.text("source"))
    place, load, said = stated.place, stated.load, stated.said
    numbers = {
        **{name: getattr(place, name) for name in PLACE},
        **{name: getattr(load, name) for name in LOAD if getattr(load, name) != DEFAULTS.get(name, 0.0)},
        "max_num_seqs": said.sequences,
        "chunk_tokens": said.chunk_tokens,
        "utilization": said.utilization,
        "graph_tokens": said.length_tokens,
    }
    words = {
        "set": row.source,
        "source": source,
        "where": where,
        "model": model,
        "weights": weights,
        "kv": stated.kv_words,
        "chip": stated.chip_id,
        "engine": stated.engine.name,
        "release": stated.engine.version or "",
        "kind": load.kind,
        "usage": stated.usage,
        **_truths(stated, complete=COMPLETE in flags_of(row)),
    }
    blank = dict.fromkeys(COLUMNS, "")
    return blank | words | {name: _text(value) for name, value in numbers.items() if value is not None}


def _truths(stated: Conditions, *, complete: bool) -> Cells:
    known = {
        "release_assumed": stated.assumed_release,
        "eager": stated.said.eager,
        "host_sampling": stated.said.host_sampling,
        "rented": stated.said.rented,
        "complete": complete,
    }
    return {name: "1" for name, true in known.items() if true}


def _source(text: str) -> tuple[str, str]:
    """A source as repository and commit, and the place in it; a page stands whole.

    >>> _source("lab/bench@1a2b:results/x.csv")
    ('lab/bench@1a2b', 'results/x.csv')
    """
    found = _PLACED.match(text)
    return (found.group(1), found.group(2)) if found else (text, "")


@cache
def own_model(key: ModelKey) -> tuple[str, str]:
    """A model under a built-in name, or by its sizes, and the format of most of its weights.

    Raises:
        SkipError: neither says what it is.
    """
    spec, known = key.model, find(key.name)
    name = known.name if known is not None else _alike(spec)
    return name or _sizes(spec), _format(spec)


def _shape(spec: ModelSpec) -> tuple[object, ...]:
    return spec.model_type, spec.hidden_size, spec.params_total, sum(layer.count for layer in spec.layers)


@cache
def _shapes() -> Mapping[tuple[object, ...], str]:
    found: dict[tuple[object, ...], str] = {}
    for known in all_known():
        found.setdefault(_shape(load_model(known.name)), known.name)
    return found


def _alike(spec: ModelSpec) -> str | None:
    return _shapes().get(_shape(spec))


def _sizes(spec: ModelSpec) -> str:
    if spec.is_moe or spec.towers or len(spec.layers) != 1 or spec.layers[0].attention.kind != "full":
        raise SkipError("model-of-its-own")
    attention = spec.layers[0].attention
    sizes = {
        "layers": spec.layers[0].count,
        "hidden": spec.hidden_size,
        "heads": attention.query_heads,
        "kv_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "vocab": spec.vocab_size,
    }
    return f"params:{spec.params_total}," + ",".join(f"{key}={value}" for key, value in sizes.items())


def _format(spec: ModelSpec) -> str:
    weighed: Counter[str] = Counter()
    for weight, copies in spec.all_weights():
        weighed[weight.format] += weight.params * copies
    return format_facts(weighed.most_common(1)[0][0]).name


def _identity(cells: Cells) -> str:
    text = "\x1f".join(cells[name] for name in COLUMNS if name != "id")
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def _text(value: float) -> str:
    """Six digits that matter, no more."""
    return f"{value:.6g}"


def write(file: Path, rows: Iterable[Cells]) -> None:
    """The table as csv, the same every time."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
