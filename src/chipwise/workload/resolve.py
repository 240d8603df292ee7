"""From what the user said to the workload it means: preset, then the model's limits, then the user's."""

from __future__ import annotations

from dataclasses import fields

from chipwise.errors import InputError
from chipwise.workload.presets import Kind, Preset, load_preset, parse_goals, presets
from chipwise.workload.serving import resolve_other, resolve_serving
from chipwise.workload.training import METHODS, resolve_training
from chipwise.workload.types import Given, ModelHints, ServingWorkload, Workload, WorkloadRequest
from chipwise.workload.values import check_ranges, flag, said

_TRAINING_ONLY = (
    "tokens", "epochs", "deadline_s", "method", "seq_len", "micro_batch", "global_batch", "optimizer",
    "recompute",
    "shard", "lora_rank",
)  # fmt: skip
_SERVING_ONLY = ("tpot_p99_s", "throughput_tokens_per_s", "prefix_hit_fraction", "lengths", "osl")
_ANSWERS_ONLY = ("ttft_p99_s", "latency_p99_s", "users", "think_s", "rate_per_s", "offline", "batch")
_MEDIA_ONLY = ("image_size", "steps", "frames", "audio_s")
_SAMPLES_ONLY = {
    "vision": ("image_size",), "cnn": ("image_size",), "diffusion": ("image_size", "frames"), "audio": ("audio_s",),
}  # fmt: skip
"""What a training sample of a class measures."""
_REFUSED: dict[Kind, tuple[tuple[str, ...], str]] = {
    "serving": ((*_TRAINING_ONLY, *_MEDIA_ONLY), "a model that streams tokens has no such setting"),
    "other": (
        (*_TRAINING_ONLY, *(name for name in _SERVING_ONLY if name != "throughput_tokens_per_s")),
        "one answer a request: no token stream and no run",
    ),
    "training": (
        (*(name for name in _SERVING_ONLY if name != "osl"), *_ANSWERS_ONLY, *_MEDIA_ONLY),
        "a training run serves nobody",
    ),
}


def resolve_workload(request: WorkloadRequest, hints: ModelHints | None = None) -> Workload:
    """The workload a request means, every value with who gave it.

    Without a preset the model's class chooses one (or the training method does). Preset values give way to
    the model's limits; the user's words stand, and are refused where they contradict each other, the preset
    or the model.

    Args:
        request: the user's words in base units.
        hints: the model's class, longest context and size, as far as known.

    Raises:
        UnknownNameError: no such preset or goal.
        InputError: a value out of range, a flag that does not go with that kind of workload, two loads at
            once, lengths that do not fit, a preset for another class of model.

    >>> chat = resolve_workload(WorkloadRequest(preset="chat", users=64, context=4096))
    >>> chat.users.value, chat.users.origin, chat.ttft_p99_s.value, chat.ttft_p99_s.origin
    (64.0, 'user', 1.0, 'preset')
    """
    known = hints or ModelHints()
    check_ranges(request)
    preset = _preset(request, known)
    _check_flags(request, preset, known.architecture)
    named = request.goal or str(preset.values["goal"].value)
    goals = tuple(goal.name for goal in parse_goals(named, preset.kind))
    chosen: Given[tuple[str, ...]] = Given(value=goals, origin="user" if request.goal else "preset")
    if preset.kind == "training":
        return resolve_training(request, preset, known, chosen)
    if preset.kind == "other":
        return resolve_other(request, preset, known, chosen)
    return resolve_serving(request, preset, known, chosen)


def as_json(workload: Workload) -> dict[str, dict[str, object]]:
    """Every value with its origin, as the answer's `workload` prints it: `{KEY: {"value", "from"}}`.

    >>> as_json(resolve_workload(WorkloadRequest(preset="chat")))["tpot_p99_s"]
    {'value': 0.06, 'from': 'preset'}
    """
    printed: dict[str, dict[str, object]] = {}
    for field in fields(workload):
        given = getattr(workload, field.name)
        if isinstance(given, Given):
            value = list(given.value) if isinstance(given.value, tuple) else given.value
            printed[field.name] = {"value": value, "from": given.origin}
    if isinstance(workload, ServingWorkload) and workload.lengths is not None:
        printed["lengths"] = {"value": workload.lengths.path, "from": "user"}
    return printed


def requests_in_flight(*, people: float, e2e_s: float, think_s: float) -> float:
    """How many of `people` wait for an answer at once: `people x e2e / (e2e + think)` (Little's law).

    Plain arithmetic: numbers or arrays of them. With no think time every one waits all the time.

    Source: Little, A Proof for the Queuing Formula L = lambda W, 1961.

    >>> requests_in_flight(people=100, e2e_s=10.0, think_s=30.0)
    25.0
    """
    return people * e2e_s / (e2e_s + think_s)


def request_rate_per_s(workload: ServingWorkload) -> float | None:
    """Arrivals a second: the rate, or the wanted throughput over the mean answer; None for a closed load.

    >>> request_rate_per_s(resolve_workload(WorkloadRequest(preset="chat", throughput_tokens_per_s=2110.0)))
    10.0
    """
    if workload.rate_per_s is not None:
        return workload.rate_per_s.value
    if workload.load.value == "throughput" and workload.throughput_tokens_per_s is not None:
        return workload.throughput_tokens_per_s.value / workload.osl.value
    return None


def _preset(request: WorkloadRequest, hints: ModelHints) -> Preset:
    if request.method is not None:
        return _by_method(request)
    if request.preset is None:
        return _default(hints)
    preset = load_preset(request.preset)
    if hints.architecture and preset.architectures and hints.architecture not in preset.architectures:
        fitting = [one.name for one in presets() if hints.architecture in one.architectures]
        raise InputError(
            f"--for {preset.name} does not go with a model of class {hints.architecture}",
            why=f"{preset.name} is for {', '.join(sorted(preset.architectures))}",
            fix=f"choose {' or '.join(fitting)}, or say what the model is with --as",
        )
    return preset


def _by_method(request: WorkloadRequest) -> Preset:
    """The training preset of a method; a preset named as well must train by it."""
    if request.method not in METHODS:
        raise InputError(
            f"unknown method {request.method!r}",
            why="no preset trains so",
            fix="choose one of " + ", ".join(METHODS),
        )
    if request.preset is not None:
        named = load_preset(request.preset)
        if named.text("method") != request.method:
            raise InputError(
                f"--method {request.method} does not go with --for {named.name}",
                why=f"{named.name} is {named.text('method') or 'inference'}",
                fix="leave one of the two out",
            )
        return named
    return next(one for one in presets() if one.text("method") == request.method)


def _default(hints: ModelHints) -> Preset:
    if hints.made_for is not None:
        return load_preset(hints.made_for)
    wanted = hints.architecture or "dense-llm"
    for preset in presets():
        if wanted in (preset.text("default_for") or "").split():
            return preset
    raise InputError(
        f"no preset is the default for a model of class {wanted}",
        why="chipwise cannot guess what it should do",
        fix="say it with --for",
    )


def _check_flags(request: WorkloadRequest, preset: Preset, architecture: str | None) -> None:
    refused, why = _REFUSED[preset.kind]
    if preset.kind == "training":
        refused = tuple(name for name in refused if name not in _SAMPLES_ONLY.get(architecture or "", ()))
    wrong = [name for name in refused if said(request, name)]
    if wrong:
        raise InputError(
            f"{flag(wrong[0])} does not go with --for {preset.name}",
            why=why,
            fix=f"leave {flag(wrong[0])} out, or choose another preset",
        )
    if request.lengths is not None and (request.isl is not None or request.osl is not None):
        raise InputError(
            "--lengths and --isl or --osl state the lengths twice",
            why="the file's lengths are used one by one",
            fix="leave --isl and --osl out",
        )
