"""The calibration: what it fits is found again, and what it writes is what the product reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from chipwise.perf.parameters import NAMES, table
from chipwise.perf.training_coefficients import NAMES as COEFFICIENTS


@pytest.fixture(scope="module")
def calibrate(repo: Path) -> Iterator[ModuleType]:
    """The folder beside src: it is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repo))
        import calibrate.__main__
        import calibrate.priors
        import calibrate.robust
        import calibrate.scores
        import calibrate.training

        yield calibrate


def test_a_robust_fit_finds_the_truth_past_an_outlier(calibrate: ModuleType) -> None:
    slopes = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    truth = np.array([0.3, -0.2])
    measured = slopes @ truth
    measured[-1] += 3.0
    block = calibrate.robust.Block(
        predict=lambda theta: theta @ slopes.T,
        active=[0, 1],
        log_measured=measured,
        scale=np.full(5, 0.02),
        weight=np.ones(5),
    )
    found = calibrate.robust.fit([block], np.array([1.0, 1.0]), calibrate.robust.Settings(iterations=30))
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_without_measurements_the_prior_stays(calibrate: ModuleType) -> None:
    found = calibrate.robust.fit([], np.array([0.5]), calibrate.robust.Settings())
    np.testing.assert_allclose(found, [0.0])


def test_the_longest_matching_prior_counts(calibrate: ModuleType) -> None:
    found = calibrate.priors.variables(["generation:hopper", "generation:neuroncore-v3", "engine:vllm", "engine:tgi"])
    widths = {(one.name, one.scope): one.deviation for one in found}
    assert widths["bandwidth_fraction", "generation:neuroncore-v3"] > widths["bandwidth_fraction", "generation:hopper"]
    assert widths["collective_s", "engine:tgi"] > widths["collective_s", "engine:vllm"]
    assert ("collective_s", "engine:sglang") not in widths


def test_every_parameter_starts_somewhere(calibrate: ModuleType) -> None:
    known = calibrate.priors.starts()
    assert {name for name, scope in known if scope == "all"} == set(NAMES)
    assert {one.name for one in calibrate.priors.variables([])} <= set(NAMES)
    assert {(name, scope) for name, scope in known if scope == "all"} <= set(table())


def test_every_training_coefficient_starts_somewhere(calibrate: ModuleType) -> None:
    training = calibrate.training
    values = training.values_at(np.zeros(len(training.fitted_rows())))
    assert {name for name, _ in values} == set(COEFFICIENTS)
    for one in training.coefficients():
        if one.deviation is not None:
            assert float(values[one.name, one.scope]) == pytest.approx(one.start)


def test_sources_weigh_alike(calibrate: ModuleType) -> None:
    values, sources = [1.0] * 98 + [9.0, 9.0], ["big"] * 98 + ["small"] * 2
    assert calibrate.scores.weighted_quantile(values, sources, 0.6) == 9.0


def test_without_the_measurements_nothing_is_done_aloud(
    calibrate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(calibrate.__main__, "TRUTH", tmp_path / "absent")
    assert calibrate.__main__.main(["collect", "training"]) == 0
    assert "collect skipped" in capsys.readouterr().out


def test_an_unknown_part_is_refused(calibrate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate.__main__, "TRUTH", tmp_path)
    assert calibrate.__main__.main(["weather"]) == 2
