"""Questions whose answers come whole (images, embeddings, sound, rows): their demand, one layout, its memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.layout import Target, platform_for
from chipwise.advisor.whole import WHOLE, class_of, made_for
from chipwise.catalog import load_catalog
from chipwise.decide.failures import Refusal
from chipwise.decide.other.answers import memory_object, performance_object
from chipwise.decide.other.search import at, largest_batch, room
from chipwise.decide.other.served import Served
from chipwise.decide.other.stands import NARROWEST_BITS, Stand, cpu_stand, fed, stand_of
from chipwise.decide.question import OtherDemand, Policy, Question
from chipwise.engines import load_engine
from chipwise.errors import InfeasibleError, InputError, KnowledgeError
from chipwise.perf.other.build import passes_of
from chipwise.perf.other.encoders import native_image_px
from chipwise.perf.other.facts import pipeline_of
from chipwise.perf.other.load import Arrival, outcome
from chipwise.perf.other.passes import Item
from chipwise.precision import format_facts
from chipwise.workload import Given, ModelHints, OtherWorkload, WorkloadRequest, as_json, load_preset, resolve_workload

if TYPE_CHECKING:
    from chipwise.advisor.request import EstimateRequest, SizeRequest
    from chipwise.engines import EngineProfile
    from chipwise.model import ModelSpec
    from chipwise.perf.other.facts import Video

MANY_ITEMS = frozenset({"recommend", "tabular"})
"""Presets of which one request is many items: `--batch` counts those."""
SAMPLED = WHOLE - {"encoder"}
"""Classes that are trained on samples: a text encoder is trained on tokens."""
MEASURES = ("image_size", "frames", "audio_s")


def fitted(workload: OtherWorkload, model: ModelSpec) -> OtherWorkload:
    """The workload with what the model itself says of its images and steps, where the user said nothing."""
    image, steps = workload.image_size, workload.steps
    native = native_image_px(model)
    if image is not None and image.origin == "preset" and native:
        workload = replace(workload, image_size=Given(value=native, origin="model"))
    pipeline = pipeline_of(model)
    if steps is not None and steps.origin == "preset" and pipeline is not None:
        workload = replace(workload, steps=Given(value=pipeline.denoising_steps, origin="model"))
    workload = _in_time(workload)
    return workload if pipeline is None or pipeline.video is None else _filmed(workload, pipeline.video)


def _in_time(workload: OtherWorkload) -> OtherWorkload:
    """Sound of a stated length: the preset's bar, meant for its own length, keeps the real-time factor.

    What hears works in windows, so that less than one takes as long as one.
    """
    sound, bar = workload.audio_s, workload.latency_p99_s
    if sound is None or bar is None or sound.origin == "preset" or bar.origin != "preset":
        return workload
    preset = load_preset(str(workload.preset.value))
    longer = float(sound.value) / (preset.number("audio_seconds") or float(sound.value))
    if preset.name == "transcribe":
        longer = max(longer, 1.0)
    return replace(workload, latency_p99_s=replace(bar, value=float(bar.value) * longer))


def _filmed(workload: OtherWorkload, video: Video) -> OtherWorkload:
    """A video: its frames and pixels by default; a bar that was meant for an image does not hold for it.

    Without a bar and a load of the user's own, the question is what a video costs where they queue.
    """
    image, bar = workload.image_size, workload.latency_p99_s
    found = replace(
        workload,
        unit=Given(value="video", origin="model"),
        frames=workload.frames or Given(value=video.frames, origin="model"),
        image_size=image if image and image.origin != "preset" else Given(value=video.image_px, origin="model"),
    )
    if bar is None or bar.origin != "preset":
        return found
    found = replace(found, latency_p99_s=None)
    stated = workload.load.origin != "preset" or (workload.users and workload.users.origin != "preset")
    return found if stated else replace(found, load=Given(value="offline", origin="model"), users=None)


def sample_of(model: ModelSpec, wish: WorkloadRequest) -> tuple[Item, dict[str, dict[str, Any]]] | None:
    """What one training sample is, and its sizes as `workload` prints them; None of a model trained on tokens.

    A sample is what a request of the model's own preset is, of the sizes that the user said or the model was made for.
    """
    if class_of(model) not in SAMPLED:
        return None
    sizes = WorkloadRequest(image_size=wish.image_size, frames=wish.frames, audio_s=wish.audio_s)
    workload = _resolved(model, sizes)
    shown = {name: value for name, value in as_json(workload).items() if name in ("unit", *MEASURES)}
    return replace(item_of(workload), batch=1.0, taught=True), shown


def other_demand(workload: OtherWorkload) -> OtherDemand:
    """The workload as `decide` asks it."""
    rate = workload.rate_per_s or workload.throughput_units_per_s
    return OtherDemand(
        item=item_of(workload),
        arrival=Arrival(
            kind=workload.load.value,
            users=workload.users.value if workload.users else 1.0,
            rate_per_s=rate.value if rate else 0.0,
            think_s=workload.think_s.value if workload.think_s else 0.0,
        ),
        latency_p99_s=workload.latency_p99_s.value if workload.latency_p99_s else None,
    )


def item_of(workload: OtherWorkload) -> Item:
    """What one request is."""
    numbers: dict[str, Given[int] | Given[float] | None] = {
        "tokens": workload.isl, "image_px": workload.image_size, "denoising_steps": workload.steps,
        "frames": workload.frames, "audio_s": workload.audio_s,
    }  # fmt: skip
    return Item(
        preset=workload.preset.value,
        unit=workload.unit.value,
        batch=float(workload.batch.value) if workload.batch else 1.0,
        **_floats(numbers),
    )


def _floats(numbers: dict[str, Given[int] | Given[float] | None]) -> dict[str, Any]:
    return {name: None if given is None else float(given.value) for name, given in numbers.items()}


def engines_named(name: str | None) -> dict[str, EngineProfile]:
    """The engine the user named, by vendor; none where the preset chooses."""
    if name is None:
        return {}
    engine = load_engine(name)
    return {vendor: engine for vendor in ("nvidia", "aws") if vendor in engine.vendors}


def estimate_other(model: ModelSpec, request: EstimateRequest) -> dict[str, Any]:
    """Latency and throughput of copies on one instance (or one chip), in CONTRACT's shape.

    `--batch` counts requests that a device takes at once, and the items of one request where a request is many.
    Without a load one request is timed alone.

    Raises:
        InputError: two loads, a split, a setting the preset has not.
        InfeasibleError, KnowledgeError: it does not run there, or nobody knows whether it does.
    """
    workload = _workload(model, request)
    stand, devices, chips = _placed(model, workload, request)
    passes = passes_of(model, item_of(workload))
    copies = request.replicas or devices * (request.instances or 1)
    arrival = _arrival(request, workload, copies)
    tried = outcome(passes, stand.device, arrival, devices=float(copies), largest_batch=largest_batch(stand, passes))
    served = Served(stand=stand, passes=passes, outcome=at(tried, 0), kind=arrival.kind)
    used = max(1, -(-copies * chips // devices))
    found = performance_object(served, used, _config(model, request, stand, copies))
    if room(stand, passes, 1.0) < 0:
        found |= {"feasible": False, "other": None}
    return {"schema_version": 1, **found, "warnings": [*model.warnings, *found["warnings"]]}


def size_other(model: ModelSpec, request: SizeRequest) -> dict[str, Any]:
    """The memory of one copy with `--concurrency` requests at once, by the preset's sizes."""
    wish = WorkloadRequest(isl=None)
    workload = _resolved(model, wish)
    stand = _stand(model, workload, request)[0]
    passes = passes_of(model, item_of(workload))
    answer = memory_object(stand, passes, float(request.concurrency))
    return {"schema_version": 1, "model": model.name, "precision": stand.option.format, **answer}


def _workload(model: ModelSpec, request: EstimateRequest) -> OtherWorkload:
    loads = {
        "--concurrency": request.concurrency, "--rate": request.rate_per_s, "--offline": request.offline or None,
    }  # fmt: skip
    stated = [name for name, value in loads.items() if value is not None]
    if len(stated) > 1:
        raise InputError(
            f"{' and '.join(stated)} state the load twice", why="each alone says how requests arrive", fix="leave one"
        )
    if request.lengths is not None or request.osl_tokens is not None:
        raise InputError(
            "answer lengths do not go with this model",
            why="its answers come whole",
            fix="leave --osl and --lengths out",
        )
    many = _resolved(model, WorkloadRequest()).preset.value in MANY_ITEMS
    wish = WorkloadRequest(
        isl=request.isl_tokens,
        batch=request.batch if many else None,
        image_size=request.image_size,
        steps=request.steps,
        frames=request.frames,
        audio_s=request.audio_s,
    )
    return _resolved(model, wish)


def _resolved(model: ModelSpec, wish: WorkloadRequest) -> OtherWorkload:
    hints = ModelHints(
        architecture=class_of(model), max_context_tokens=model.max_context_tokens, made_for=made_for(model)
    )
    workload = resolve_workload(wish, hints)
    if not isinstance(workload, OtherWorkload):
        raise InputError(f"{model.name} generates tokens", why="its answers are streams", fix="say --isl and --osl")
    return fitted(workload, model)


def _arrival(request: EstimateRequest, workload: OtherWorkload, copies: int) -> Arrival:
    if request.concurrency is not None:
        return Arrival(kind="closed", users=float(request.concurrency))
    if request.rate_per_s is not None:
        return Arrival(kind="rate", rate_per_s=request.rate_per_s)
    if request.offline:
        return Arrival(kind="offline")
    each = 1 if workload.preset.value in MANY_ITEMS else request.batch or 1
    return Arrival(kind="static", users=float(each * copies))


def _placed(model: ModelSpec, workload: OtherWorkload, request: EstimateRequest) -> tuple[Stand, int, int]:
    """The stand, its devices and chips an instance."""
    if any(degree not in {None, 1} for degree in (request.split.tp, request.split.pp, request.split.cp)):
        raise InputError(
            f"{model.name} is not split", why="copies on single devices are what is timed", fix="leave --tp, --pp out"
        )
    return _stand(model, workload, request)


def _stand(model: ModelSpec, workload: OtherWorkload, request: EstimateRequest | SizeRequest) -> tuple[Stand, int, int]:
    question = _question(model, workload, request)
    catalog = load_catalog()
    size = catalog.instance(request.instance) if request.instance else None
    if size is not None and size.kind == "cpu" and request.chip is None:
        found, chips = cpu_stand(question, size), 1
    else:
        platform = platform_for(Target(chip=request.chip, instance=request.instance), None)
        found, chips = stand_of(question, platform), max(1, platform.devices // platform.chip.cores)
    if isinstance(found, Refusal):
        family = InfeasibleError if found.known else KnowledgeError
        where = request.instance or request.chip
        raise family(f"{model.name} on {where}: {found.reason}", why=found.source, fix=found.change)
    return (fed(found, size) if size else found), found.devices, chips


def _question(model: ModelSpec, workload: OtherWorkload, request: EstimateRequest | SizeRequest) -> Question:
    precision = request.engine.precision
    if precision is not None and format_facts(precision).bits < NARROWEST_BITS:
        raise InputError(
            f"--precision {precision} is not timed for {model.name}",
            why="no source describes a tool chain for it below 16 bits",
            fix="--precision bf16",
        )
    return Question(
        model=model,
        demand=other_demand(workload),
        policy=Policy(goals=("cost",), regions=(), min_precision=precision),
        catalog=load_catalog(),
        engines=engines_named(request.engine.engine),
        engine_named=request.engine.engine,
        workload={},
        purpose=workload.preset.value,
    )


def _config(model: ModelSpec, request: EstimateRequest, stand: Stand, copies: int) -> dict[str, Any]:
    return {
        "model": model.name,
        "instance": request.instance,
        "chip": stand.name,
        "replicas": copies,
        "devices_per_replica": 1,
        "parallelism": {"tp": 1, "pp": 1, "ep": 1, "dp": 1, "cp": 1},
        "precision": {"weights": stand.option.format, "kv": None, "compute": stand.compute_format},
        "engine": stand.engine,
    }
