"""Serving measurements as blocks of runs that the product predicts in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrate.figures import RATES, Measurement
from chipwise.audit.items import SkipError
from chipwise.audit.replay import DEFECTS, asked_of
from chipwise.audit.runs import Run
from chipwise.perf.load import ServingInput, ServingPrediction
from chipwise.perf.parameters import runtime_of, scopes_of
from chipwise.perf.spread import ttft_spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs of one model, kind of load, runtime and chip generation, with what was measured of them."""

    runs: tuple[Run, ...]
    asked: ServingInput
    measurements: tuple[Measurement, ...]
    places: Any
    """For each measurement, the place of its run."""

    @property
    def kind(self) -> str:
        """The kind of load."""
        return self.runs[0].load.kind


def scopes(run: Run) -> tuple[str, ...]:
    """The scopes whose factors a run's parameters take."""
    chip = run.chip
    return scopes_of(
        chip=run.chip_id,
        generation=chip.architecture,
        engine=runtime_of(run.engine.name, run.engine.version),
        fabric=chip.link.kind if chip.link else "none",
    )


def groups(found: Iterable[Measurement]) -> list[Group]:
    """The measurements, grouped; a group that the product cannot compute is left out."""
    parts: dict[tuple[object, ...], list[Measurement]] = {}
    for one in found:
        parts.setdefault((one.run.model, one.run.load.kind, scopes(one.run)), []).append(one)
    return [group for own in parts.values() if (group := _group(own)) is not None]


def _group(own: list[Measurement]) -> Group | None:
    runs = list(dict.fromkeys(one.run for one in own))
    place = {run: index for index, run in enumerate(runs)}
    try:
        asked = asked_of(runs)
    except (SkipError, *DEFECTS):
        return None
    return Group(
        runs=tuple(runs),
        asked=asked,
        measurements=tuple(own),
        places=np.array([place[one.run] for one in own]),
    )


def log_figures(group: Group, found: ServingPrediction) -> Any:
    """Ln of what is predicted of each measurement (last axis), not a number where it does not count.

    TTFT and the time of a request above capacity are the length of the run: they do not count.
    """
    columns = {name: _figure(name, group, found) for name in {one.figure for one in group.measurements}}
    shape = np.broadcast_shapes(*(np.shape(value) for value in columns.values()), (len(group.runs),))
    whole = {name: np.broadcast_to(value, shape) for name, value in columns.items()}
    picked = [whole[one.figure][..., at] for one, at in zip(group.measurements, group.places, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.stack(picked, axis=-1))
    return np.where(np.isfinite(logs), logs, np.nan)


def _figure(name: str, group: Group, found: ServingPrediction) -> Any:
    if name == "tpot_s":
        return found.tpot_s
    if name in RATES:
        return _rate(name, found)
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        value = ttft_spread(found).p50 if name == "ttft_p50_s" else getattr(found, name)
    over = np.asarray(found.saturated) > 0
    return np.where(over | (group.kind == "offline"), np.nan, value)


def _rate(name: str, found: ServingPrediction) -> Any:
    if name == "prompt_tokens_per_s":
        return np.asarray(found.total_tokens_per_s) - np.asarray(found.output_tokens_per_s)
    return getattr(found, name)
