"""The fit of the serving parameters: from variables to parameters to predictions, weights, folds, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrate.figures import Measurement
from calibrate.priors import Variable, starts, variables
from calibrate.robust import Array, Block, Settings, fit
from calibrate.serving_items import Group, groups, log_figures, scopes
from chipwise.perf.parameters import NAMES, Parameters, capped
from chipwise.perf.serving import predict_serving

SCALES = {"tpot": 0.12, "throughput": 0.12, "ttft": 0.3, "e2e": 0.15}
"""Expected scatter of ln(predicted / measured)."""
COUNT_EXPONENT = 0.4
"""A source with n figures of a kind weighs n ** 0.4 in all: more measurements count, many do not drown the rest."""
INCOMPLETE_WEIGHT = 0.5
MOST_RUNS = 8
"""Runs of one source, layout and load that a fit to part of the table takes in; they stand for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The variables in a fixed order, and where each stands."""

    variables: tuple[Variable, ...]

    @property
    def deviation(self) -> Array:
        """Of the priors."""
        return np.array([one.deviation for one in self.variables])


def model_of(parts: Iterable[Group]) -> Model:
    """The variables that the groups touch."""
    touched = {scope for group in parts for run in group.runs for scope in scopes(run)}
    return Model(variables=tuple(variables(touched)))


def parameters(model: Model, theta: Array, own: Sequence[str]) -> Parameters:
    """The parameters of a run in these scopes at `theta` (rows: sets of variables), a column each."""
    known, applies = starts(), {"all", *own}
    values: dict[str, Any] = {}
    for name in NAMES:
        base = known[name, "all"].value
        for scope in own:
            base *= known[name, scope].value if (name, scope) in known else 1.0
        places = [at for at, one in enumerate(model.variables) if one.name == name and one.scope in applies]
        values[name] = np.asarray(capped(name, base * np.exp(theta[:, places].sum(axis=1))))[:, None]
    return Parameters(**values)


def predicted(model: Model, group: Group, theta: Array) -> Array:
    """Ln of every figure of a group at `theta`."""
    asked = replace(group.asked, parameters=parameters(model, theta, scopes(group.runs[0])))
    with np.errstate(all="ignore"):
        logs = log_figures(group, predict_serving(asked))
    return np.broadcast_to(logs, (len(theta), len(group.measurements)))


def block_of(model: Model, group: Group, weight: Array) -> Block:
    """A group as the fit wants it."""
    applies = {"all", *scopes(group.runs[0])}

    def predict(theta: Array) -> Array:
        return predicted(model, group, theta)

    return Block(
        predict=predict,
        active=[at for at, one in enumerate(model.variables) if one.scope in applies],
        log_measured=np.log([one.value for one in group.measurements]),
        scale=np.array([SCALES[one.quantity] for one in group.measurements]),
        weight=weight,
    )


def weights(found: Sequence[Measurement]) -> dict[int, float]:
    """By the identity of a measurement: sources count nearly alike, whatever they print."""
    counts = Counter(_kind(one) for one in found)
    weighed = {}
    for one in found:
        share = counts[_kind(one)] ** (COUNT_EXPONENT - 1.0)
        weighed[id(one)] = share * (1.0 if one.complete else INCOMPLETE_WEIGHT)
    return weighed


def _kind(one: Measurement) -> tuple[object, ...]:
    return one.laboratory, one.quantity, one.run.load.kind, one.complete


def thinned(found: Sequence[Measurement]) -> list[Measurement]:
    """At most a few runs of one source, model, layout and load, evenly through the table."""
    runs: dict[tuple[object, ...], dict[object, None]] = {}
    for one in found:
        runs.setdefault(_sweep(one), {})[one.run] = None
    kept: set[tuple[object, object]] = set()
    for key, own in runs.items():
        listed = list(own)
        chosen = np.unique(np.linspace(0, len(listed) - 1, min(MOST_RUNS, len(listed))).round().astype(int))
        kept |= {(key, listed[at]) for at in chosen}
    return [one for one in found if (_sweep(one), one.run) in kept]


def _sweep(one: Measurement) -> tuple[object, ...]:
    run = one.run
    return one.laboratory, run.model, run.chip_id, run.engine, run.place, run.load.kind


def fitted(model: Model, found: Sequence[Measurement], settings: Settings) -> Array:
    """The variables fitted to these measurements."""
    weighed = weights(found)
    blocks = [
        block_of(model, group, np.array([weighed[id(one)] for one in group.measurements])) for group in groups(found)
    ]
    return fit(blocks, model.deviation, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """A measurement with ln(predicted / measured)."""

    measurement: Measurement
    log_ratio: float


def residuals(model: Model, theta: Array, parts: Iterable[Group]) -> list[Residual]:
    """Every figure that counts."""
    found = []
    for group in parts:
        logs = predicted(model, group, theta[None])[0]
        for one, log in zip(group.measurements, logs, strict=True):
            if np.isfinite(log):
                found.append(Residual(measurement=one, log_ratio=float(log - np.log(one.value))))
    return found


def held_out(
    model: Model, found: Sequence[Measurement], left: Callable[[Measurement], str], fold: str
) -> list[Residual]:
    """What a fit without a fold says of the fold."""
    theta = fitted(model, thinned([one for one in found if left(one) != fold]), Settings(iterations=6))
    return residuals(model, theta, groups([one for one in found if left(one) == fold]))
