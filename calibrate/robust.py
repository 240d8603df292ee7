"""A robust maximum-a-posteriori fit of logarithms: Gaussian priors, Student-t residuals, Gauss-Newton steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
"""A numpy array of floats."""
STEP, LONGEST, TRIES, ENOUGH = 0.03, 1.0, 5, 0.02
"""Width of the numeric derivative, longest step in a logarithm, damping tries, the gain that ends a fit."""
DEGREES = 4.0
"""Degrees of freedom of the Student-t: residuals beyond twice their scale hardly pull."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Measurements that are predicted in one call.

    `predict` takes many sets of variables (rows) and gives ln(prediction) for each measurement (columns), not a
    number where the measurement does not count. `active` are the variables that it depends on.
    """

    predict: Callable[[Array], Array]
    active: Sequence[int]
    log_measured: Array
    scale: Array
    weight: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How long to fit, and how much the measurements weigh against the priors."""

    iterations: int = 8
    trust: float = 0.5


def _cost(blocks: Sequence[Block], theta: Array, deviation: Array, trust: float) -> float:
    total = 0.5 * float(np.sum((theta / deviation) ** 2))
    for block in blocks:
        residual = (block.predict(theta[None])[0] - block.log_measured) / block.scale
        counts = np.isfinite(residual)
        loss = trust * (DEGREES + 1.0) / 2.0 * np.log1p(residual[counts] ** 2 / DEGREES)
        total += float(np.sum(block.weight[counts] * loss))
    return total


def _slopes(block: Block, theta: Array) -> tuple[Array, Array]:
    """ln(prediction) at `theta` and its derivatives by the active variables."""
    active = np.asarray(block.active, dtype=int)
    tried = np.repeat(theta[None], len(active) + 1, axis=0)
    tried[np.arange(1, len(active) + 1), active] += STEP
    found = block.predict(tried)
    return found[0], (found[1:] - found[0]).T / STEP


def _normal(blocks: Sequence[Block], theta: Array, deviation: Array, trust: float) -> tuple[Array, Array]:
    """The normal equations of one step: curvature and downhill direction."""
    curvature, downhill = np.diag(1.0 / deviation**2), -theta / deviation**2
    for block in blocks:
        at, slopes = _slopes(block, theta)
        residual = (at - block.log_measured) / block.scale
        counts = np.isfinite(residual) & np.isfinite(slopes).all(axis=1)
        jacobian, residual = slopes[counts] / block.scale[counts, None], residual[counts]
        pull = block.weight[counts] * trust * (DEGREES + 1.0) / (DEGREES + residual**2)
        places = np.ix_(block.active, block.active)
        curvature[places] += (jacobian * pull[:, None]).T @ jacobian
        np.add.at(downhill, list(block.active), -((jacobian * pull[:, None]).T @ residual))
    return curvature, downhill


def fit(blocks: Sequence[Block], deviation: Array, settings: Settings) -> Array:
    """The variables (logarithms, 0 = prior) that fit best: from 0, damped Gauss-Newton, the same every time.

    Args:
        blocks: the measurements.
        deviation: standard deviation of each variable's prior.
        settings: how long.
    """
    theta, damping = np.zeros(len(deviation)), 1e-2
    best = _cost(blocks, theta, deviation, settings.trust)
    for _ in range(settings.iterations):
        curvature, downhill = _normal(blocks, theta, deviation, settings.trust)
        before = best
        for _ in range(TRIES):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), downhill)
            tried = theta + np.clip(step, -LONGEST, LONGEST)
            cost = _cost(blocks, tried, deviation, settings.trust)
            if cost < best:
                theta, best, damping = tried, cost, max(damping / 4.0, 1e-4)
                break
            damping *= 6.0
        if before - best < ENOUGH:
            break
    return theta
