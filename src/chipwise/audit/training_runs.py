"""A row of a training table as a `Case`: method, layout, job and hardware, or the code of what is lacking."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import cast, get_args

from chipwise.audit.items import LOAD_NOT_COVERED, Context, SkipError, missing, stages
from chipwise.audit.names import chip_named, format_named, model_named
from chipwise.audit.table import Row
from chipwise.audit.training_cases import Case
from chipwise.audit.training_layouts import laid_out, least_recompute, sharded
from chipwise.catalog import Chip
from chipwise.memory.training_activations import NARROW, RECOMPUTED
from chipwise.memory.training_job import Adapter, Method, Recompute, Shard, Targets, TrainingJob, TrainingLayout
from chipwise.memory.training_recipes import optimizers, recipes
from chipwise.model import ModelSpec
from chipwise.precision import capability

_METHODS: dict[str, Method] = {
    **{name: name for name in get_args(Method)},
    "full": "full-ft",
    "sft": "full-ft",
    "finetune": "full-ft",
    "pretraining": "pretrain",
    "rlhf-ppo": "ppo",
}
_ACCUMULATION = r"(?:grad(?:ient)?[_ -]?accum(?:ulation)?(?:[_ ]steps)?|\bga)[\s=:]+(\d+)"
_RANK = r"(?:\blora_r|\brank|\br)[\s=:]+(\d+)"
_MEAN_LENGTH = r"(?:avg|average|mean) (?:seq(?:uence)? len(?:gth)?|length)[\s=:]+([\d,]+)"
_QUANTISED = r"(?:quantize|quantization)[\s=:]+([\w.\-]+)"
_EVEN = r"forced?[- ](?:load[- ])?balanc|token[- ]?drop\b"
_SHARDS: tuple[tuple[str, Shard], ...] = (
    (r"zero[- ]?3|full_shard|fully", "zero3"),
    (r"zero[- ]?2|shard_grad_op", "zero2"),
    (r"zero[- ]?1|distributed optim", "zero1"),
    (r"fsdp", "zero3"),
    (r"ddp|replicated|none", "none"),
)
_MODULES = rf"recompute(?:_modules)?=\s*((?:`?(?:{'|'.join(RECOMPUTED)})\b`?,?\s*)+)"
_IN_BACKWARD = r"optimizer[_ -]in[_ -](?:bwd|backward)|fused[_ -]backward|\blomo\b"
_TRANSFORMERS = frozenset({"hf", "hf-amp", "ms-swift"})
_SPLITTING = frozenset({"megatron", "nemo"})
"""Recipes that split a model beside sharding it: degrees that a row leaves out are not taken to be 1."""
_ONE_DEVICE = frozenset({*_TRANSFORMERS, "litgpt"})
"""Recipes that leave a model on each device unless a row says otherwise."""
LEAST = "least"
"""Of the defaults: as little recomputation as fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerDefaults:
    """A trainer's recipe, and what it does where a row does not say."""

    recipe: str
    shard: Shard
    recompute: str
    flash_attention: bool
    sequence_parallel: bool
    adapter: Adapter


def case_of(row: Row, context: Context) -> Case:
    """Every condition of a row of `training.csv`; what a row leaves to its trainer follows the trainer's defaults.

    Raises:
        SkipError: a condition is missing, or a name is unknown.
    """
    model = model_named(row.text("model"), context.models)
    if row.positive("seq_len") is None:
        raise SkipError(missing("seq_len"))
    chip = chip_named(row.text("hardware"), "hardware")
    method = method_of(row)
    defaults = trainer_of(row, method)
    chips = chips_of(row, chip)
    nodes = row.positive("n_nodes")
    layout = layout_of(row, chips * chip.cores, defaults)
    case = Case(
        row=row,
        model=model,
        chip=chip,
        trainer=recipes()[defaults.recipe].family,
        layout=layout,
        job=job_of(row, (model, chip), layout, (method, defaults)),
        mean_tokens=mean_tokens(row, chips),
        chips=chips,
        node_chips=chips / nodes if nodes else None,
    )
    return _settled(case, defaults)


def method_of(row: Row) -> Method:
    """The method; every adapter method of a PEFT library counts as LoRA.

    Raises:
        SkipError: blank, or none that is covered.
    """
    text = row.text("method").lower().replace("_", "-")
    if not text:
        raise SkipError(missing("method"))
    if text.startswith("peft-"):
        return "lora"
    if text not in _METHODS:
        raise SkipError(LOAD_NOT_COVERED)
    return _METHODS[text]


def trainer_of(row: Row, method: Method) -> TrainerDefaults:
    """What the framework of a row is and does by default: the first word of the table that its name holds.

    Full fine-tuning with sharded states under Transformers is DeepSpeed's work.
    """
    words = f"{row.text('framework')} {row.text('framework_version')}".lower()
    adapts = method in {"lora", "qlora", "dora"}
    found = next((word for word in _defaults() if word in words), "peft" if adapts else "megatron")
    defaults = _defaults()[found]
    if defaults.recipe in _TRANSFORMERS and not adapts and re.search(r"zero", row.text("fsdp_or_zero").lower()):
        return replace(defaults, recipe="deepspeed")
    return defaults


@cache
def _defaults() -> dict[str, TrainerDefaults]:
    text = resources.files("chipwise.audit").joinpath("data/trainer_defaults.csv").read_text(encoding="utf-8")
    return {
        row["word"]: TrainerDefaults(
            recipe=row["recipe"],
            shard=cast("Shard", row["shard"]),
            recompute=row["recompute"],
            flash_attention=row["flash_attention"] == "yes",
            sequence_parallel=row["sequence_parallel"] == "yes",
            adapter=Adapter(rank=int(row["adapter_rank"]), targets=cast("Targets", row["adapter_targets"])),
        )
        for row in csv.DictReader(text.splitlines())
    }


def chips_of(row: Row, chip: Chip) -> float:
    """Chips of the run: as printed, else what the degrees need.

    Raises:
        SkipError: neither is stated.
    """
    chips = row.positive("n_devices")
    if chips is not None:
        return chips
    degrees = [row.positive(name) for name in ("tp", "pp", "cp", "dp")]
    if not any(degrees):
        raise SkipError(missing("n_devices"))
    return math.ceil(math.prod(one or 1.0 for one in degrees) / chip.cores)


def layout_of(row: Row, devices: float, defaults: TrainerDefaults) -> TrainingLayout:
    """The degrees a row states, the rest of the devices data-parallel."""
    tp, pp, cp, ep, vp = (row.positive(name) or 1.0 for name in ("tp", "pp", "cp", "ep", "vp"))
    words = row.text("fsdp_or_zero").lower()
    if "device_map" in words:
        pp = devices
    dp = max(devices / (tp * stages(pp) * cp), 1.0)
    shard = next((name for pattern, name in _SHARDS if re.search(pattern, words)), defaults.shard)
    over = re.search(r"(?:shard|fsdp)=(\d+)", words)
    return TrainingLayout(
        tp=tp,
        pp=pp,
        vp=vp,
        cp=cp,
        ep=ep,
        dp=dp,
        shard="none" if dp * cp <= 1 else shard,
        sequence_parallel=defaults.sequence_parallel,
        sharded_over=float(over.group(1)) if over and shard == "zero3" else None,
    )


def job_of(
    row: Row, where: tuple[ModelSpec, Chip], layout: TrainingLayout, how: tuple[Method, TrainerDefaults]
) -> TrainingJob:
    """The job of a row at its longest sequence."""
    model, chip = where
    method, defaults = how
    micro, micros = batches_of(row, float(layout.dp))
    precision = precision_of(row, chip)
    return TrainingJob(
        method=method,
        seq_len=row.positive("seq_len") or 1.0,
        micro_batch=micro,
        micro_batches=micros,
        precision=precision,
        optimizer=_optimizer(row.note.lower()),
        recompute=_recompute(row, defaults),
        recompute_modules=_modules(row),
        update_in_backward=re.search(_IN_BACKWARD, row.note.lower()) is not None,
        even_routing=balanced(row),
        trainer=defaults.recipe,
        adapter=_adapter(row, defaults.adapter),
        base_format=_base(row, model, method, precision),
        flash_attention=defaults.flash_attention and not re.search(r"flash att\w*=no", row.note.lower()),
    )


def batches_of(row: Row, dp: float) -> tuple[float, float]:
    """Sequences of a micro-batch, and micro-batches of a step on one data-parallel copy."""
    micro, total = row.positive("micro_batch"), row.positive("global_batch")
    found = re.search(_ACCUMULATION, row.note.lower())
    accumulated = float(found.group(1)) if found else None
    if micro is None:
        micro = max(total / (dp * accumulated), 1.0) if total and accumulated else 1.0
    if total:
        return micro, max(total / (micro * dp), 1.0)
    return micro, accumulated or 1.0


def precision_of(row: Row, chip: Chip) -> str:
    """The format of the matrices: as stated, else as a configuration named in the notes says, else bf16.

    A benchmark that is run for speed is run in 8 bits where the chip multiplies them.
    """
    stated = format_named(row.text("precision"))
    if stated is not None:
        return stated
    configured = re.search(r"config file: \S*?(fp4|mxfp8|fp8|bf16)", row.note.lower())
    if configured is not None:
        return format_named(configured.group(1)) or "bf16"
    fast = "mlperf" in row.text("framework_version").lower() and capability(chip, "fp8").mode == "native"
    return "fp8" if fast else "bf16"


def _optimizer(note: str) -> str:
    found = re.search(r"optimizer[\s=:]+([\w\-]+)", note)
    return found.group(1) if found and found.group(1) in optimizers() else "adamw"


def _recompute(row: Row, defaults: TrainerDefaults) -> Recompute:
    stated = row.text("activation_recompute").lower()
    if stated in get_args(Recompute):
        return cast("Recompute", stated)
    return "none" if defaults.recompute == LEAST else cast("Recompute", defaults.recompute)


def _modules(row: Row) -> tuple[str, ...] | None:
    """The parts that the notes say are recomputed; None where they name none."""
    found = re.search(_MODULES, row.note.lower())
    return tuple(re.findall(r"\w+", found.group(1))) if found else None


def _adapter(row: Row, default: Adapter) -> Adapter:
    note = row.note.lower()
    rank = re.search(_RANK, note)
    targets = default.targets
    if re.search(r"target\w*=\s*all|all linear", note):
        targets = "all-linear"
    elif re.search(r"targets=\[[^\]]*\]", note):
        named = re.search(r"targets=\[([^\]]*)\]", note)
        parts = set(re.findall(r"\w+", named.group(1))) if named else set()
        targets = "query-value" if parts <= {"q_proj", "v_proj"} else targets
    return Adapter(
        rank=float(rank.group(1)) if rank else default.rank, targets=targets, train_embeddings="(emb)" in note
    )


def _base(row: Row, model: ModelSpec, method: Method, precision: str) -> str | None:
    """What a frozen base is held in where it is quantised; None: as the method does by default.

    Trainers that multiply in 8 bits hold a frozen base in 8 bits (NeMo's `fp8_params` follows `fp8`).
    """
    if method not in {"lora", "qlora", "dora"}:
        return None
    if model.quantisation is not None:
        return model.quantisation.weight_format
    note = row.note.lower()
    said = re.search(_QUANTISED, note)
    named = format_named(re.sub(r"^bnb\.", "bnb-", said.group(1))) if said else None
    if named is not None:
        return named
    words = re.search(r"\b(gptq|awq|hqq)\b(?: (int\d))?", note)
    if words is not None:
        return format_named(f"{words.group(1)}-{words.group(2) or 'int4'}")
    return format_named("fp8") if method == "lora" and precision in NARROW else None


def mean_tokens(row: Row, chips: float) -> float | None:
    """Mean tokens of a sequence where it is below the longest: from the notes, else from two printed figures.

    Tokens per second times seconds per step are the tokens of a step.
    """
    longest = row.positive("seq_len")
    if longest is None:
        return None
    found = re.search(_MEAN_LENGTH, row.note.lower())
    if found is not None:
        return min(float(found.group(1).replace(",", "")), longest)
    rate, step, batch = (row.positive(name) for name in ("tokens_s_per_device", "step_s", "global_batch"))
    if rate is None or step is None or batch is None:
        return None
    mean = rate * chips * step / batch
    return mean if mean < 0.95 * longest else None


def balanced(row: Row) -> bool:
    """Whether the source says that tokens are forced evenly on experts: by the router, or by dropping the rest."""
    words = f"{row.text('model')} {row.note}".lower()
    return bool(re.search(_EVEN, words)) and not re.search(rf"not (?:{_EVEN})", words)


def copies_of(row: Row) -> float | None:
    """The most data-parallel copies: sequences that go through at a time, where batch and accumulation tell them."""
    total, found = row.positive("global_batch"), re.search(_ACCUMULATION, row.note.lower())
    if total is None or found is None:
        return None
    return max(total / (float(found.group(1)) * (row.positive("micro_batch") or 1.0)), 1.0)


def _settled(case: Case, defaults: TrainerDefaults) -> Case:
    """What the row leaves open: the layout, where no degree is stated; sharding and recomputation, by memory."""
    row = case.row
    open_layout = not any(row.text(name) for name in ("tp", "pp", "cp", "dp"))
    stated = row.text("fsdp_or_zero") and case.trainer not in _SPLITTING
    if open_layout and not stated and case.chips * case.chip.cores > 1 and case.trainer not in _ONE_DEVICE:
        case = laid_out(case, lambda dp: batches_of(row, dp), copies_of(row))
    elif not row.text("fsdp_or_zero"):
        case = sharded(case)
    if row.text("activation_recompute") or defaults.recompute != LEAST:
        return case
    return least_recompute(case)
