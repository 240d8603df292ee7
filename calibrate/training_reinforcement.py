"""What the loop of reinforcement adds to generation, passes and update: fitted on steps that run in turn."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.advisor import EstimateRequest, TrainingRequest, estimate
from chipwise.advisor.request import SplitRequest
from chipwise.audit.names import chip_named
from chipwise.audit.replay import widest
from chipwise.audit.table import Row, read_table
from chipwise.errors import ChipwiseError

READ_ON = "2026-11-30"
PROMPT_TOKENS = 128
"""No row states its prompts: short questions of mathematics are assumed."""
HELD_SHARE = 0.8
SPREADS = {"loop_spread_factor": False, "mixture_loop_spread_factor": True}
"""Of dense models and of mixtures of experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A measured step, and the seconds that its parts take by themselves."""

    row: Row
    mixture: bool
    measured_s: float
    parts_s: float
    generation_s: float

    @property
    def factor(self) -> float:
        """Measured over the sum of the parts."""
        return self.measured_s / self.parts_s


def steps(folder: Path) -> list[Step]:
    """Steps of the table that generate and train in turn, and that the product can lay out."""
    rows = read_table(folder / "training.csv", ("model", "method"))
    return [step for row in rows for step in _step(row, folder)]


def _step(row: Row, folder: Path) -> Iterator[Step]:
    note = row.note.lower()
    mean, answers = (_number(pattern, note) for pattern in (r"avg seq len=([\d,]+)", r"rollout gbs=([\d,]+)"))
    seconds, devices = row.positive("step_s"), row.positive("n_devices")
    if "on policy" not in note or not (mean and answers and seconds and devices) or (row.positive("cp") or 1) > 1:
        return
    terms = _terms(row, folder, (mean, answers, devices))
    if terms is not None and np.isfinite(sum(terms.values())):
        alone = sum(terms.values()) - terms["loop"]
        yield Step(
            row=row, mixture=terms["expert"] > 0, measured_s=seconds, parts_s=alone, generation_s=terms["rollout"]
        )


def _number(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(found.group(1).replace(",", "")) if found else None


def _terms(row: Row, folder: Path, sizes: tuple[float, float, float]) -> dict[str, float] | None:
    mean, answers, devices = sizes
    size = widest(chip_named(row.text("hardware"), "hardware"))
    if size is None or not size.chips or devices % size.chips:
        return None
    degrees = {name: int(row.positive(name) or 1) for name in ("tp", "pp", "ep")}
    asked = EstimateRequest(
        model=row.text("model"),
        models=str(folder / "models.csv"),
        instance=size.name,
        instances=int(devices // size.chips),
        split=SplitRequest(**degrees),
        isl_tokens=PROMPT_TOKENS,
        osl_tokens=round(mean) - PROMPT_TOKENS,
        training=TrainingRequest(
            method="grpo",
            seq_len=int(row.positive("seq_len") or mean),
            micro_batch=1,
            recompute="full",
            global_batch=int(answers),
        ),
    )
    try:
        training: Any = estimate(asked)["training"]
    except ChipwiseError:
        return None
    return None if training is None else {term["op"]: float(term["seconds"]) for term in training["terms"]}


def calibrate(folder: Path, file: Path) -> list[str]:
    """Write the factor of the loop and its spread; the page in parts."""
    found = steps(folder)
    factor = _middle(found)
    spreads = {name: _spread([one for one in found if one.mixture == kind], factor) for name, kind in SPREADS.items()}
    _write(file, factor, spreads, found)
    lines = [
        "| run | model | chips | measured, s | parts, s | of it generation, s | factor |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        row = one.row
        lines.append(
            f"| {row.run_id} | {row.text('model')} | {row.text('n_devices')} x {row.text('hardware')} "
            f"| {one.measured_s:.0f} | {one.parts_s:.0f} | {one.generation_s:.0f} | {one.factor:.2f} |"
        )
    widths = ", ".join(f"{name} {value:.2f}" for name, value in spreads.items())
    said = f"The median of the models' factors is {factor:.2f}; 80 % of the steps lie within it times and divided by: "
    return ["\n".join(lines) + "\n", f"{said}{widths}.\n"]


def _middle(found: list[Step]) -> float:
    """The median over models of the median of each."""
    names = {one.row.text("model") for one in found}
    return float(
        np.median([np.median([one.factor for one in found if one.row.text("model") == name]) for name in names])
    )


def _spread(found: list[Step], factor: float) -> float:
    return float(np.exp(np.quantile([abs(np.log(one.factor / factor)) for one in found], HELD_SHARE)))


def _write(file: Path, factor: float, spreads: dict[str, float], found: list[Step]) -> None:
    sources = ", ".join(sorted({one.row.source for one in found}))
    where = f"{len(found)} steps that generate and train in turn over what their parts take: the median of the models'"
    held = "80 % of these steps lie within it"
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(("key", "value", "unit", "kind", "source", "where", "read_on"))
        writer.writerow(("loop_factor", f"{factor:.3g}", "factor", "derived", sources, where, READ_ON))
        for name, value in spreads.items():
            writer.writerow((name, f"{value:.3g}", "factor", "derived", sources, held, READ_ON))
