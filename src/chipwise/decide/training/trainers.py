"""Who would train the model there: the trainer of each way to lay a run, or the rule by which there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.advice import Discouraged
from chipwise.decide.failures import Refusal
from chipwise.engines import neuron_support
from chipwise.memory.training_job import ADAPTER_METHODS
from chipwise.precision import capability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.catalog import Chip
    from chipwise.decide.question import Question
    from chipwise.engines import NeuronSupport
    from chipwise.memory.training_job import Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One way to lay a run: what is sharded over data-parallel copies, by whom.

    `split`: tp and pp cut it too. `rings`: cp cuts its sequences, whose keys and values go round a ring of devices.
    """

    trainer: str
    shard: Shard
    split: bool
    rings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainers:
    """The schemes worth trying on a chip and what their documentation says. `tp` empty: any legal degree."""

    schemes: tuple[Scheme, ...]
    tp: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    discouraged_by: tuple[Discouraged, ...] = ()


FULLY_SHARDED = Scheme(trainer="fsdp", shard="zero3", split=False)
SPLIT = Scheme(trainer="megatron", shard="zero1", split=True)
DATA_PARALLEL = Scheme(trainer="ddp", shard="none", split=False)
ADAPTERS = (
    Scheme(trainer="hf", shard="none", split=False, rings=True),
    Scheme(trainer="hf", shard="zero3", split=False, rings=True),
)
"""Axolotl cuts sequences by ring attention (ring-flash-attn) beside FSDP: axolotl-ai-cloud/axolotl, release v0.8.0."""
QUANTISED = frozenset({"qlora"})
NEURON = (Scheme(trainer="neuron", shard="zero1", split=True),)


def trainers_of(question: Question, chip: Chip) -> Trainers | Refusal:
    """The schemes for a model and method on a chip, or why there is none.

    Full training is tried fully sharded (FSDP) and split by tensor and pipeline parallelism (Megatron); adapters are
    tried with a whole copy a device and sharded, their sequences whole and cut over the devices of a node. What is no
    language model is copied (DDP) or fully sharded. AWS chips take what the Neuron pages document for training.
    """
    precision = question.training.precision
    if precision != "bf16" and capability(chip, precision).mode != "native":
        why, source = f"{chip.id} does not multiply {precision}", capability(chip, precision).source
        return Refusal(rule="precision", reason=why, source=source, change="--precision bf16, or a newer chip")
    if chip.vendor == "nvidia":
        if "bf16" not in chip.native:
            why = f"{chip.id} does not multiply bf16: training in 16 bits would need loss scaling in fp16"
            return Refusal(rule="precision", reason=why, source="catalog", change="Ampere or newer")
        whole = (FULLY_SHARDED, SPLIT) if question.training.sample is None else (DATA_PARALLEL, FULLY_SHARDED)
        return Trainers(schemes=ADAPTERS if question.training.method in ADAPTER_METHODS else whole)
    if chip.vendor == "aws":
        return _neuron(question, chip)
    return Refusal(
        rule="engine", reason=f"no trainer is known for {chip.vendor} chips", source="engines table",
        change="another family", known=False,
    )  # fmt: skip


def _neuron(question: Question, chip: Chip) -> Trainers | Refusal:
    if question.policy.custom_kernels:
        reason = "custom CUDA kernels do not run on Neuron"
        return Refusal(rule="custom-kernels", reason=reason, source="guide B:25", change="port the kernels to NKI")
    verdict = neuron_support(question.model.model_type, "train", chip.id)
    if verdict.status == "unsupported":
        return Refusal(rule="support", reason=verdict.why, source=verdict.source, change="an NVIDIA size")
    if verdict.status == "unknown" or not verdict.named:
        return Refusal(
            rule="support", reason=verdict.why, source=verdict.source, change="a validated port", known=False
        )
    named = " ".join(verdict.formats) or "no format"
    if question.training.precision not in verdict.formats:
        why = f"no page of {verdict.stack} trains in {question.training.precision} (it names {named})"
        return Refusal(rule="precision", reason=why, source=verdict.source, change="--precision bf16", known=False)
    if question.training.method in QUANTISED and "nf4" not in verdict.formats:
        why = f"no page of {verdict.stack} names a 4-bit base (it names {named}): QLoRA would not run"
        return Refusal(rule="precision", reason=why, source=verdict.source, change="--for lora, or an NVIDIA size")
    pin = (f"pin Neuron SDK {verdict.sdk_pin}: later releases do not train it",) if verdict.sdk_pin else ()
    words = f"{verdict.stack}: {verdict.constraints or verdict.why}"
    return Trainers(
        schemes=NEURON, tp=frozenset(verdict.tp), notes=(words, *pin), discouraged_by=tuple(_past_support(verdict))
    )


def _past_support(verdict: NeuronSupport) -> Iterator[Discouraged]:
    """A stack whose support has ended still trains: it is discouraged, and stands behind every supported one."""
    if verdict.level == "end-of-support":
        yield Discouraged(
            rule="support: end of support",
            why=f"{verdict.stack}: {verdict.constraints} ({verdict.source})",
            penalty="stands behind every run on a supported stack, whatever it costs",
        )
