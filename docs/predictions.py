"""Ten serving and five training predictions, drawn by a hash and taken apart: writes docs/predictions.md.

Runs are drawn from the published measurements in the folder `shared` beside the repository, one source at a time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
TRUTH = DOCS.parent.parent / "shared" / "truth"
SERVING, TRAINING = 10, 5
LEAST_SHARE = 0.01
"""Terms below this share of the whole are left out of a table."""
MEANING = {
    "attention projections": "weights of Q, K, V and O, read once a step",
    "mlp": "weights of the MLP, read once a step",
    "shared experts": "experts that every token passes",
    "routed experts": "the distinct experts that the batch picks, read once a step",
    "attention": "the cache of every running request, read once a step; in the prompt, scores over earlier tokens",
    "norms": "hidden states in and out of memory",
    "launches": "gaps between kernels of a layer; in a prompt step, kernels that no graph covers",
    "all-reduce": "tensor-parallel partial sums, two a layer: latency more than bytes",
    "all-to-all": "tokens sent to their experts and back",
    "head": "the vocabulary matrix",
    "sampling": "logits in memory",
    "engine": "scheduling, inputs, sampling and post-processing of a step",
    "waiting": "until a step ends and a seat is free, and the burst of a closed loop",
    "prefill of others": "steps that carry the prompts of other requests",
    "pipeline send": "activations to the next stage",
}


STEP_MEANING = {
    "gemm_s": "forward and backward of attention projections and MLP",
    "expert_s": "grouped GEMMs of routed experts",
    "attention_s": "scores and values, forward and backward",
    "elementwise_s": "norms, activations, casts: bytes over bandwidth",
    "head_s": "the vocabulary matrix and its loss",
    "unpacking_s": "a frozen base of few bits brought back to what is multiplied",
    "recompute_s": "the forward pass again, for activations that were not kept",
    "host_s": "kernels that ramp up and drain, launches and token counts that the device waits for",
    "tp_s": "tensor-parallel collectives that compute does not hide",
    "ep_s": "tokens to experts and back that compute does not hide",
    "cp_s": "keys and values around the context-parallel ring that compute does not hide",
    "gather_s": "sharded weights gathered, the part that compute does not hide",
    "pp_s": "activations between stages",
    "bubble_s": "stages that wait for the first and last micro-batches",
    "dp_s": "gradients between copies that compute does not hide",
    "optimizer_s": "reading and writing the optimizer's states",
    "other_passes_s": "passes of reference, reward or critic models",
    "rollout_s": "generating the answers that are trained on",
    "loop_s": "weights handed to the engine, rewards, waiting",
    "overhead_s": "data loading, logging, gradient norms",
}


def drawn(
    candidates: Iterable[Any], count: int, source_of: Callable[[Any], str], name_of: Callable[[Any], str]
) -> list[Any]:
    """`count` candidates by the hash of their name, the sources taking turns."""
    queues: dict[str, list[Any]] = {}
    for one in sorted(candidates, key=lambda one: hashlib.blake2b(name_of(one).encode(), digest_size=8).digest()):
        queues.setdefault(source_of(one), []).append(one)
    turns: list[Any] = []
    while len(turns) < count and any(queues.values()):
        turns += [queue.pop(0) for _, queue in sorted(queues.items()) if queue]
    return turns[:count]


def _seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def _table(terms: Iterable[tuple[str, float, str]]) -> list[str]:
    listed = sorted(terms, key=lambda term: -term[1])
    whole = sum(term[1] for term in listed)
    rows = ["| term | time | share | what it is |", "|---|---:|---:|---|"]
    rows += [
        f"| {name} | {_seconds(value)} | {value / whole:.0%} | {meaning} |"
        for name, value, meaning in listed
        if value >= LEAST_SHARE * whole
    ]
    return rows


def serving() -> str:
    """The serving predictions."""
    from chipwise.audit.inference import items_of, predict
    from chipwise.audit.items import Context
    from chipwise.audit.table import read_table

    context = Context(file=TRUTH / "inference.csv", models=TRUTH / "models.csv")
    items = items_of(read_table(context.file, ("metric", "value")), context)
    lines = [
        line for line in predict(items, context) if line.prediction and line.prediction.labels["release"] == "stated"
    ]
    chosen = drawn(
        lines,
        SERVING,
        lambda line: str(line.item.row.source),
        lambda line: f"{line.item.row.run_id} {line.item.metric}",
    )
    return "\n".join(_serving(line, context.models) for line in chosen)


def _serving(line: Any, models: Path | None) -> str:
    from chipwise.audit.figures import wanted
    from chipwise.audit.replay import Replayed, replay
    from chipwise.audit.runs import run_of

    row = line.item.row
    run = run_of(row, models)
    answer = replay([run])[run]
    if not isinstance(answer, Replayed):
        return ""
    prompt = wanted(line.item.metric).quantity == "ttft"
    terms = [_term(answer, term, prompt=prompt) for term in answer.terms]
    head = f"### {row.text('model')} on {run.place.chips:g} x {run.chip_id}: {line.item.metric}"
    asked = (
        f"{_place(run)}, weights {row.text('weight_precision')}, cache {run.kv_format}; {_load(run)}. {_whence(row)}"
    )
    takes = f"{_outcome(line)} {'The prompt' if prompt else 'A token'} takes:"
    table = _table(term for term in terms if math.isfinite(term[1]))
    return "\n".join([head, "", asked, "", takes, "", *table, "", _running(answer), ""])


def _place(run: Any) -> str:
    place = run.place
    named = [f"{name} {getattr(place, name):g}" for name in ("tp", "pp", "dp", "ep") if getattr(place, name) > 1]
    engine = f"{run.engine.name} {run.engine.version or ''}".strip()
    return f"{engine}, {' x '.join(named) or 'one device'}, {place.replicas:g} replica(s)"


def _load(run: Any) -> str:
    load = run.load
    kinds = {
        "single": "one request alone",
        "offline": "as many as fit",
        "rate": f"{load.rate_per_s:g} requests a second",
    }
    how = kinds.get(load.kind, f"{load.concurrency:g} at a time")
    return f"{load.isl:g} tokens in, {load.osl:g} out, {how}"


def _whence(row: Any) -> str:
    return f"Source: {row.source}, {row.run_id}."


def _outcome(line: Any) -> str:
    found, measured = line.prediction, line.item.measured
    span = f"{found.low:.4g} to {found.high:.4g}, {found.evidence}"
    return f"Predicted **{found.mid:.4g}** ({span}), measured **{measured:.4g}**: {found.mid / measured - 1.0:+.0%}."


def _term(answer: Any, term: Any, *, prompt: bool) -> tuple[str, float, str]:
    meaning = MEANING.get(term.operation, "")
    bound = _bound(answer, term)
    words = f"{meaning} ({bound})" if bound in {"compute", "bandwidth"} else meaning
    return term.operation, answer.at(term.prefill_s if prompt else term.decode_s), words


def _bound(answer: Any, term: Any) -> str:
    from chipwise.perf.costs import BOUNDS

    return BOUNDS[round(answer.at(term.bound))]


def _running(answer: Any) -> str:
    step, running = answer.figure("tpot_s"), answer.figure("running")
    tokens = answer.figure("output_tokens_per_s")
    return (
        f"{running:.3g} requests run at once in a replica; a token each {_seconds(step)} makes {tokens:.4g} output "
        "tokens a second of the whole deployment, prompts counted."
    )


def training() -> str:
    """The training predictions."""
    from chipwise.audit.items import Context
    from chipwise.audit.table import read_table
    from chipwise.audit.training import items_of, predict

    context = Context(file=TRUTH / "training.csv", models=TRUTH / "models.csv")
    items = items_of(read_table(context.file, ("model", "method")), context)
    wanted = [item for item in items if item.metric in {"tokens_s", "step_s"}]
    lines = [line for line in predict(wanted, context) if line.prediction and line.item.measured]
    chosen = drawn(lines, TRAINING, lambda line: str(line.item.row.source), lambda line: str(line.item.row.run_id))
    return "\n".join(_training(line) for line in chosen)


def _training(line: Any) -> str:
    row, found = line.item.row, line.prediction
    cells = ", ".join(
        f"{name} {row.text(name)}"
        for name in ("tp", "pp", "cp", "ep", "dp", "seq_len", "micro_batch", "global_batch", "precision")
        if row.text(name)
    )
    terms = [(name.removesuffix("_s"), value, STEP_MEANING.get(name, "")) for name, value in found.terms.items()]
    where = f"{row.text('n_devices')} x {found.labels['chip']}"
    head = f"### {row.text('model')}, {row.text('method')}, on {where}: {line.item.metric}"
    asked = f"{row.text('framework')}; {cells}. {_whence(row)}"
    return "\n".join([head, "", asked, "", f"{_outcome(line)} A step takes:", "", *_table(terms), ""])


def page() -> str:
    """The whole page."""
    intro = (
        "Runs drawn by a hash, the sources taking turns; not chosen for how well they come out. In sample: parameters "
        "were fitted on tables that hold them. Cross-validated scores stand in `decisions/`."
    )
    parts = ["# Predictions taken apart", intro, f"## Serving\n\n{serving()}", f"## Training\n\n{training()}"]
    return "\n\n".join(parts)
