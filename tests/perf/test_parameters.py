"""The calibrated table, its scopes and the ranges around a prediction."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from chipwise.perf.parameters import (
    NAMES,
    capped,
    parameters_for,
    runtime_of,
    stack_parameters,
    table,
)
from chipwise.perf.ranges import Evidence, Metric, evidence_of, range_of

EVIDENCE: tuple[Evidence, ...] = ("measured", "calibrated", "transferred", "physics")
METRICS: tuple[Metric, ...] = ("ttft", "tpot", "throughput")


def test_every_parameter_has_a_value_for_all_and_every_row_a_source() -> None:
    rows = table()
    assert {name for name, scope in rows if scope == "all"} == set(NAMES)
    assert {name for name, _ in rows} == set(NAMES)
    assert all(row.source and row.kind in {"calibrated", "assumed", "derived", "vendor"} for row in rows.values())


def test_fractions_are_at_most_one_and_nothing_is_negative() -> None:
    chips = [("h100-sxm", "hopper", "nvswitch"), ("b200", "blackwell", "nvswitch"), ("a10g", "ampere", "pcie")]
    runtimes = ["vllm", "sglang", "tensorrt-llm", "vllm-v0", "tensorrt-llm-cpp", "tgi", "unheard-of"]
    for (chip, generation, fabric), runtime in itertools.product(chips, runtimes):
        found = parameters_for(chip=chip, generation=generation, engine=runtime, fabric=fabric)
        for name in NAMES:
            value = float(getattr(found, name))
            assert value >= 0.0
            assert value <= 1.0 or not name.endswith("_fraction")
            assert value > 0.0 or name in {"mixed_fraction", "ring_fraction", "prompt_token_s"}


def test_factors_of_every_scope_multiply() -> None:
    rows = table()
    found = parameters_for(chip="h100-sxm", generation="hopper", engine="vllm", fabric="nvswitch")
    scopes = ("all", "fabric:nvswitch", "generation:hopper", "chip:h100-sxm", "engine:vllm")
    expected = np.prod([rows["gap_s", scope].value for scope in scopes if ("gap_s", scope) in rows])
    assert float(found.gap_s) == pytest.approx(expected)


def test_an_unknown_runtime_and_chip_take_the_common_values() -> None:
    found = parameters_for(chip="new", generation="newer", engine="newest", fabric="none")
    assert float(found.step_s) == table()["step_s", "all"].value


def test_only_fractions_are_capped() -> None:
    assert float(capped("link_fraction", 3.0)) == 1.0
    assert float(capped("expert_imbalance", 3.0)) == 3.0


def test_stacked_parameters_are_columns() -> None:
    one = parameters_for(chip="h100-sxm", generation="hopper", engine="vllm")
    both = stack_parameters([one, replace(one, step_s=1.0)])
    np.testing.assert_allclose(both.step_s, [float(one.step_s), 1.0])


@pytest.mark.parametrize(
    ("engine", "version", "runtime"),
    [
        ("vllm", "0.7.3", "vllm-v0"),
        ("vllm", "0.8.0", "vllm"),
        ("vllm", None, "vllm"),
        ("vllm", "main", "vllm"),
        ("tensorrt-llm", "0.17", "tensorrt-llm-cpp"),
        ("tensorrt-llm", "1.2.0", "tensorrt-llm"),
        ("optimum-neuron", "0.4.6", "optimum-neuron"),
        ("vllm-neuron", "0.24.0", "nxd-inference"),
    ],
)
def test_rewrites_of_an_engine_are_runtimes(engine: str, version: str | None, runtime: str) -> None:
    assert runtime_of(engine, version) == runtime


def test_evidence_falls_with_distance() -> None:
    measured = {"chip": "h100-sxm", "runtime": "tensorrt-llm-cpp", "model_type": "llama"}
    assert evidence_of(**measured) == "measured"
    assert evidence_of(**{**measured, "model_type": "unheard-of"}) == "calibrated"
    assert evidence_of(**{**measured, "runtime": "unheard-of"}) == "transferred"
    assert evidence_of(**{**measured, "chip": "unheard-of"}) == "transferred"
    assert evidence_of(chip="unheard-of", runtime="unheard-of", model_type="llama") == "physics"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("load", ["single", "static", "closed", "rate", "offline"])
def test_less_evidence_never_narrows_a_range(metric: Metric, load: str) -> None:
    widths = []
    for evidence in EVIDENCE:
        found = range_of(10.0, evidence=evidence, metric=metric, load=load)
        assert found.low < found.mid == 10.0 < found.high
        widths.append(found.high / found.low)
    assert widths == sorted(widths)


def test_an_unknown_metric_is_not_guessed() -> None:
    with pytest.raises(KeyError):
        range_of(1.0, evidence="physics", metric="colour", load="any")  # type: ignore[arg-type] # wrong on purpose


def test_a_newer_neuron_core_is_no_slower_an_operation() -> None:
    older, newer = (
        parameters_for(chip=chip, generation=generation, engine="nxd-inference", fabric="neuronlink")
        for chip, generation in (("trainium1", "neuroncore-v2"), ("trainium2", "neuroncore-v3"))
    )
    assert float(newer.collective_s) <= float(older.collective_s)
    assert float(newer.step_s) <= float(older.step_s)
    for name in ("compute_fraction", "bandwidth_fraction", "cache_bandwidth_fraction"):
        assert float(getattr(newer, name)) >= 0.9 * float(getattr(older, name))
