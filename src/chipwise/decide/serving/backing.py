"""Who would run the model there: the engine, what it is documented for, or the rule by which it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.failures import Refusal
from chipwise.engines import SupportQuestion, load_engine, neuron_support, supports
from chipwise.precision import format_facts

if TYPE_CHECKING:
    from chipwise.catalog import Chip
    from chipwise.decide.question import Question
    from chipwise.engines import EngineProfile, NeuronSupport
    from chipwise.precision import PrecisionOption

CONTRIB_STACK = "documented as a contribution: validate it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """The engine that runs the model on a chip, within what its pages document.

    `tp` empty: any legal degree. `most_sequences`, `longest` None: no page says.
    """

    engine: EngineProfile
    tp: frozenset[int] = frozenset()
    stages: bool = True
    most_sequences: int | None = None
    longest: int | None = None
    notes: tuple[str, ...] = ()


def backing_of(question: Question, chip: Chip, option: PrecisionOption) -> Backing | Refusal:
    """The engine for a model, chip and precision, or why there is none.

    NVIDIA chips take the engine of the question and its support table; AWS chips take what the Neuron pages document
    for the model, unless the question names an engine.
    """
    engine = question.engines.get(chip.vendor)
    if engine is None:
        return _no_engine(question, chip)
    return _neuron(question, chip, option) if chip.vendor == "aws" else _gpu(question, engine, chip, option)


def _no_engine(question: Question, chip: Chip) -> Refusal:
    if question.engine_named is not None:
        named = load_engine(question.engine_named)
        reason = f"--engine {question.engine_named}: {named.title} does not run on {chip.vendor} chips"
        return Refusal(rule="engine", reason=reason, source="engines table", change="leave out --engine")
    reason = f"no serving engine is known for {chip.vendor} chips"
    return Refusal(rule="engine", reason=reason, source="engines table", change="use another family", known=False)


def _gpu(question: Question, engine: EngineProfile, chip: Chip, option: PrecisionOption) -> Backing | Refusal:
    asked = SupportQuestion(
        model_type=question.model.model_type,
        architecture=question.model.architecture,
        vendor=chip.vendor,
        chip_architecture=chip.architecture,
        compute_capability=chip.compute_capability,
        format_family=format_facts(option.format).family,
    )
    verdict = supports(engine, asked)
    if verdict.status == "unsupported":
        return Refusal(rule="support", reason=verdict.why, source=verdict.source, change="another chip or engine")
    notes = (f"{engine.title} on {chip.id}: {verdict.why}",) if verdict.status in {"unknown", "beta"} else ()
    return Backing(engine=engine, notes=(*engine.notes, *notes))


def _neuron(question: Question, chip: Chip, option: PrecisionOption) -> Backing | Refusal:
    if question.policy.custom_kernels:
        reason = "custom CUDA kernels do not run on Neuron"
        return Refusal(rule="custom-kernels", reason=reason, source="guide B:25", change="port the kernels to NKI")
    stack = question.neuron_stack
    verdict = neuron_support(question.model.model_type, "serve", chip.id, stack)
    why = verdict.why if stack is None else f"--engine {stack}: {verdict.why}"
    if verdict.status == "unsupported":
        change = "an NVIDIA size" if stack is None else "leave out --engine, or an NVIDIA size"
        return Refusal(rule="support", reason=why, source=verdict.source, change=change)
    if verdict.status == "unknown" or verdict.engine is None:
        return Refusal(rule="support", reason=why, source=verdict.source, change="a validated port", known=False)
    family = format_facts(option.format).family
    if verdict.formats and family not in {format_facts(name).family for name in verdict.formats}:
        reason = f"{verdict.stack} is documented at {', '.join(verdict.formats)}, not {option.format}"
        return Refusal(rule="precision", reason=reason, source=verdict.source, change=verdict.formats[0])
    asked = question.engines[chip.vendor]
    return _documented(verdict, asked if asked.name == verdict.engine else load_engine(verdict.engine))


def _documented(verdict: NeuronSupport, engine: EngineProfile) -> Backing:
    pin = [f"pin Neuron SDK {verdict.sdk_pin}: later releases do not run it"] if verdict.sdk_pin else []
    contributed = [CONTRIB_STACK] if verdict.level == "contrib" else []
    ramp = ["compile ahead of time and keep the artefacts: a first Neuron port takes weeks by the guide (B:136)"]
    words = f"{verdict.stack}: {verdict.constraints or verdict.why}"
    return Backing(
        engine=engine,
        tp=frozenset(verdict.tp),
        stages=verdict.pipeline_parallel is not False,
        most_sequences=verdict.max_num_seqs,
        longest=verdict.max_model_len,
        notes=(words, *pin, *contributed, *ramp),
    )
