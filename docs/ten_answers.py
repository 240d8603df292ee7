"""Ten answers of `plan` with why an engineer should believe them: writes docs/ten-answers.md.

Every figure of a paragraph is computed from the answer, the chip's sheet rates and the errata when the page is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

QUESTIONS: dict[str, dict[str, Any]] = {
    "A chat service on 70B, fast first and cheap second": {
        "model": "llama-3.3-70b", "purpose": "chat", "goal": "latency,cost", "ttft_p99_s": 1.0, "tpot_p99_s": 0.06,
    },
    "The same model where it must not be wrong": {"model": "llama-3.3-70b", "purpose": "chat", "goal": "quality,cost"},
    "A thousand requests at once": {
        "model": "llama-3.3-70b", "purpose": "chat", "goal": "concurrency", "users": 1000, "ttft_p99_s": 2.0,
    },
    "8B by night, as cheap as can be": {"model": "llama-3.1-8b", "purpose": "batch"},
    "DeepSeek-V3 served": {"model": "deepseek-v3", "purpose": "chat"},
    "70B fine-tuned within three days": {
        "model": "llama-3.3-70b", "purpose": "finetune", "goal": "time-to-train,training-cost", "deadline_s": 259200.0,
    },
    "70B from scratch within two weeks": {"model": "llama-3.3-70b", "purpose": "pretrain", "deadline_s": 1209600.0},
    "Adapters for 8B": {"model": "llama-3.1-8b", "purpose": "lora"},
    "Speech to text": {"model": "whisper-large-v3", "purpose": "transcribe"},
    "Gradient-boosted trees": {"model": "sklearn:GradientBoostingClassifier", "purpose": "tabular"},
}  # fmt: skip
STATES_BYTES = 16.0
"""A parameter under Adam in mixed precision: 2 of weight, 2 of gradient, 12 of master weight and moments."""
FLOPS_PER_PARAM = {"full-ft": 6.0, "pretrain": 6.0, "lora": 4.0}
"""A parameter and token, forward and backward; weights that are frozen need no gradient of their own."""
HOUR_S = 3600.0


def page() -> str:
    """The whole page."""
    intro = (
        "Each answer is one command; the figures of the paragraph below it are checks that can be done by hand with "
        "the sheet rates of the chip, so that none of it has to be taken on trust. What no measurement backs says so."
    )
    return "\n\n".join(["# Ten answers, and why to believe them", intro, *map(_answer, QUESTIONS)]) + "\n"


def _answer(title: str) -> str:
    from chipwise import advise
    from chipwise.audit.guide_check.asked import command, request_of

    question = QUESTIONS[title]
    advice = advise(request_of(question))
    why = " ".join([*_physics(advice), *_evidence(advice), *_rest(advice)])
    return "\n\n".join([f"## {title}", f"    {command(question)}", _table(advice), why])


def _table(advice: Any) -> str:
    rows = ["| | size | split of a replica | weights | reaches | USD an hour |", "|---|---|---|---|---|---:|"]
    return "\n".join([*rows, *(_row(option) for option in advice.options)])


def _row(option: Any) -> str:
    split = option.parallelism
    usd = option.cost.usd_per_hour
    named = " ".join(f"{name} {getattr(split, name)}" for name in ("tp", "pp", "ep", "dp") if getattr(split, name) > 1)
    cells = [
        str(option.rank),
        f"{option.instances} x {option.instance}, {_plural(option.replicas, 'replica')}",
        named or "one device",
        option.precision.weights,
        _reached(option),
        f"{usd.mid:,.2f} ({usd.low:,.2f} to {usd.high:,.2f})" if usd else "not known",
    ]
    return f"| {' | '.join(cells)} |"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _reached(option: Any) -> str:
    if option.run:
        return f"{_time(option.run.duration_s.mid)}, MFU {option.performance['training']['mfu_fraction'].mid:.0%}"
    if option.performance["other"]:
        other = option.performance["other"]
        return f"{other['units_per_s'].mid:,.0f} {other['unit']}s a second, P99 {_time(other['latency_p99_s'].mid)}"
    if option.latency is None:
        return f"{option.performance['serving']['output_tokens_per_s'].mid:,.0f} tokens a second"
    return f"P99 TTFT {_time(option.latency.ttft_s.p99)}, P99 TPOT {_time(option.latency.tpot_s.p99)}"


def _time(seconds: float | None) -> str:
    from chipwise.units import show_seconds

    return "not limited" if seconds is None else show_seconds(seconds)


def _physics(advice: Any) -> Iterator[str]:
    """What can be checked by hand of the first option."""
    first = advice.options[0]
    if first.run:
        yield from _of_a_run(advice, first)
    elif first.performance["other"]:
        yield from _of_whole_answers(advice, first)
    else:
        yield from _of_tokens(advice, first)


def _of_tokens(advice: Any, first: Any) -> Iterator[str]:
    from chipwise.catalog import load_catalog

    chip = load_catalog().chips[first.chip]
    per_chip, alone = first.memory["per_chip"], first.performance["serving"]["isolated"]
    held = ", ".join(f"{name.removesuffix('_bytes')} {value / 1e9:.1f}" for name, value in per_chip.items()
                     if value and name != "capacity_bytes")  # fmt: skip
    yield f"A chip's {per_chip['capacity_bytes'] / 1e9:.1f} GB are, in GB: {held}."
    share = advice.model["params_active"] / advice.model["params_total"]
    beside = ", while a batch touches more experts than one" if advice.model["experts"] else ""
    bandwidth = chip.memory_bandwidth_bytes_per_s
    floor = per_chip["weights_bytes"] * share / bandwidth
    yield (
        f"A token reads {per_chip['weights_bytes'] * share / 1e9:.1f} GB of weights on every chip{beside}; at "
        f"{bandwidth / 1e12:.2f} TB/s none can take less than {_time(floor)}; a request alone is "
        f"predicted at {_time(alone['tpot_s'].mid)} a token, {alone['tpot_s'].mid / floor:.1f} times that floor, and "
        f"the load's other requests, their caches and their prompts add the rest of what the table says."
    )
    terms = first.performance["serving"]["terms"]
    largest = max(terms, key=lambda term: term["decode_s"] or 0.0)
    yield f"Of a token's time most goes into {largest['op']} ({_time(largest['decode_s'])}, {largest['bound_by']})."


def _of_a_run(advice: Any, first: Any) -> Iterator[str]:
    from chipwise.catalog import load_catalog

    chip = load_catalog().chips[first.chip]
    trained, whole = first.performance["training"], advice.model["params_active"]
    peak = chip.dense_flops_per_s["bf16"]
    rate = trained["mfu_fraction"].mid * peak * first.chips_used
    method = advice.workload["method"]["value"]
    flops = FLOPS_PER_PARAM[method] * whole * first.run.tokens
    run_s = first.run.duration_s.mid
    yield (
        f"{FLOPS_PER_PARAM[method]:g} FLOPs a parameter and token are {flops:.3g} FLOP; {first.chips_used} chips of "
        f"{peak / 1e12:.0f} TFLOPS at {trained['mfu_fraction'].mid:.0%} do {_time(flops / rate)} of them, and the run "
        f"is planned at {_time(run_s)} with its start, checkpoints and failures."
    )
    if method in {"full-ft", "pretrain"}:
        held = STATES_BYTES * advice.model["params_total"]
        room = first.memory["per_chip"]["capacity_bytes"] * first.chips_used
        yield (
            f"Weights, gradients and Adam's states take {held / 1e9:,.0f} GB, the {first.chips_used} chips have "
            f"{room / 1e9:,.0f}; activations and communication buffers are in the budget too."
        )
    cost = first.cost.usd_per_run
    if cost:
        yield (
            f"{first.cost.usd_per_hour.mid:,.2f} USD an hour for {run_s / HOUR_S:,.2f} hours are "
            f"{cost.mid:,.0f} USD ({cost.low:,.0f} to {cost.high:,.0f})."
        )


def _of_whole_answers(advice: Any, first: Any) -> Iterator[str]:
    other = first.performance["other"]
    terms = max(other["terms"], key=lambda term: term["seconds"])
    batch = f"a batch of {other['batch']:g}"
    if other["flops_per_request"]:
        yield f"One request is {other['flops_per_request'] / 1e12:,.2f} TFLOP by the layers of the model."
    yield (
        f"Of the time of {batch} most goes into {terms['op']} ({_time(terms['seconds'])}, {terms['bound_by']}); "
        f"the model's weights are {advice.model['weight_bytes'] / 1e9:,.3g} GB."
    )
    yield f"Whether a GPU is needed: {'yes' if advice.gpu_needed['answer'] else 'no'}, {advice.gpu_needed['why']}."


def _evidence(advice: Any) -> Iterator[str]:
    first = advice.options[0]
    kinds = {
        "measured": "published measurements of this chip and engine are behind the prediction",
        "calibrated": "the parameters are fitted on measurements of this chip",
        "transferred": "the parameters are those of a related chip or engine, and the range is wider for it",
        "physics": "no measurement of such models backs it: sheet rates and fractions of them, in a wide range",
    }
    yield f"Evidence is *{first.evidence}*: {kinds.get(first.evidence, 'see the warnings of the answer')}."
    line = next((one for one in first.cost.purchase if one.usd_per_hour), None)
    if line:
        yield f"The price is {line.why.partition(';')[0]}."


def _rest(advice: Any) -> Iterator[str]:
    """Why not the others, and the guide beside it."""
    said = [one for one in advice.options[0].risks if "benchmark first" in one]
    if said:
        yield f"Against it: {'; '.join(said)}."
    rules = Counter(row.rule for row in advice.rejected)
    most = ", ".join(f"{count} by {rule}" for rule, count in rules.most_common(4))
    feasible, unknown = len(advice.also_feasible), len(advice.not_judged)
    yield f"{feasible} other sizes would do, {len(advice.rejected)} will not ({most}), {unknown} are not judged."
    near = next((row for row in advice.rejected if row.shortfall), None)
    if near:
        yield f"One of those that will not, {near.instance}: {near.reason}."
    if advice.guide["agrees"]:
        named, chosen = advice.guide["recommends"], {option.instance for option in advice.options}
        both = ", ".join(name for name in named if name in chosen)
        yield f"The guide's flow names {', '.join(named)}, of which {both} stands above."
    else:
        told = "; ".join(f"{one['id']}: {one['why']}" for one in advice.guide["differs"])
        yield f"The guide's flow names others: {told}." if told else "The guide's flow names no size here."
