"""`--strict-guide`: the guide's own filters to the letter, each with the erratum that corrects it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.guide.features import feature_of
from chipwise.guide.flow import box, walk_flow
from chipwise.guide.tables import Row, cite, table

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance

_CLASSICAL = frozenset({"tabular", "recommender"})
_MATRIX_ROW = {"nvfp4": "fp4", "mxfp4": "fp4", "int8-weight-only": "int8", "w4a8": "int4", "nf4": "int4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictQuestion:
    """What the guide's filters look at: `weights_bf16_bytes` is the whole model at 16 bits."""

    architecture: str
    weights_bf16_bytes: float
    format_family: str
    nodes: int = 1
    large_pretraining: bool = False
    isolation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictRejection:
    """A size that the guide's letter excludes; `erratum` is the claim against it, None where it stands."""

    rule: str
    reason: str
    change: str
    source: str
    erratum: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What the end of the guide's flow states: its sizes, its weight formats, its tensor-parallel degrees.

    Empty or None: it states nothing of the kind.
    """

    box: str
    recommends: tuple[str, ...]
    precision: tuple[str, ...]
    tp_least: int
    tp_most: int | None
    source: str
    tp_source: str | None


def letter_of(*, kind: str, params: float, goal: str) -> Letter:
    """What section 8 states for a kind of work, a model's size and the first goal.

    >>> found = letter_of(kind="inference", params=70.6e9, goal="latency")
    >>> found.recommends, found.precision, found.tp_least, found.tp_most
    (('p5e.48xlarge', 'trn2.48xlarge'), ('bf16',), 8, 8)
    >>> letter_of(kind="inference", params=8e9, goal="time-to-train").recommends
    ()
    """
    end = walk_flow(kind=kind, params=params, goal=goal)
    name = next((one for one in end.path if box(one).kind == "end"), end.path[-1])
    split = next((row for row in table("flow_splits") if row["box"] == name), None)
    return Letter(
        box=name,
        recommends=end.recommends,
        precision=end.precision,
        tp_least=int(split["tp_least"]) if split else 1,
        tp_most=int(split["tp_most"]) if split and split["tp_most"] else None,
        source=end.source,
        tp_source=cite(split["where"]) if split else None,
    )


def strict_rejections(instance: Instance, chip: Chip, question: StrictQuestion) -> tuple[StrictRejection, ...]:
    """Every filter of the guide that excludes the size here; empty where it passes all.

    Only `--strict-guide` may use them: several are wrong, and say so.

    Args:
        instance: the size.
        chip: its accelerator.
        question: the model and the layout in question.
    """
    return tuple(_rejection(row) for row in table("strict") if _RULES[row["rule"]](instance, chip, question))


def _rejection(row: Row) -> StrictRejection:
    return StrictRejection(
        rule=row["rule"],
        reason=f"to the guide's letter: {row['reason']}",
        change=row["change"],
        source=cite(row["where"]),
        erratum=row["erratum"] or None,
    )


def guide_has_format(instance: Instance, chip: Chip, format_family: str) -> bool:
    """Whether the guide's matrix marks the format for this family; the chip's native formats where it has no column."""
    name = _MATRIX_ROW.get(format_family, format_family)
    for cell in table("datatypes"):
        if cell["row"] == name and instance.family in cell["families"].split():
            return cell["guide"] == "yes"
    return name in chip.native


def _lacks(feature: str, instance: Instance, chip: Chip) -> bool:
    return not feature_of(feature, instance, chip).has


def _nvlink(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    whole = chip.memory_marketing_bytes or chip.memory_bytes or 0
    return question.weights_bf16_bytes > whole and _lacks("nvlink", instance, chip)


def _format(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    return not guide_has_format(instance, chip, question.format_family)


def _efa(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    return question.nodes > 1 and _lacks("efa", instance, chip)


def _gpudirect(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    return question.large_pretraining and _lacks("gpudirect-rdma", instance, chip)


def _mig(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    del instance
    lettered = next(row["chips"] for row in table("strict") if row["rule"] == "strict-mig")
    return question.isolation in {"memory", "hardware"} and chip.id not in lettered.split()


def _classical(instance: Instance, chip: Chip, question: StrictQuestion) -> bool:
    del chip
    return question.architecture in _CLASSICAL and instance.kind == "neuron"


_RULES: dict[str, Callable[[Instance, Chip, StrictQuestion], bool]] = {
    "strict-nvlink": _nvlink,
    "strict-format": _format,
    "strict-efa": _efa,
    "strict-gpudirect": _gpudirect,
    "strict-mig": _mig,
    "strict-classical": _classical,
}
