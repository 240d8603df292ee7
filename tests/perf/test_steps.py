"""A step is the sum of its terms, for one candidate and for many."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard
from chipwise.perf.costs import stacked
from chipwise.perf.hardware import Hardware
from chipwise.perf.machine import Machine, machine_of
from chipwise.perf.parameters import Parameters
from chipwise.perf.rates import Site
from chipwise.perf.steps import StepLoad, step_s, step_terms
from chipwise.perf.work import work_of

LOADS = (
    StepLoad(decode_sequences=np.array([1.0, 16.0, 300.0]), decode_context=1500.0),
    StepLoad(prefill_tokens=np.array([0.0, 512.0, 8192.0]), prefill_sequences=1.0, prefill_past=100.0),
    StepLoad(prefill_tokens=700.0, prefill_sequences=2.0, decode_sequences=32.0, decode_context=np.array([10.0, 9e4])),
)


def machine(model: ModelSpec, device: Hardware, parameters: Parameters, split: Split) -> Machine:
    site = Site(
        work=work_of(shard(model, split)),
        hardware=device,
        parameters=parameters,
        weight_bytes={"bf16": 2.0},
        kv_element_bytes=2.0,
    )
    return machine_of(site)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("split", [Split(tp=2.0), Split(tp=2.0, pp=4.0), Split(tp=1.0, dp=4.0, ep=4.0)])
def test_a_step_is_the_sum_of_its_terms(
    routed: ModelSpec, device: Hardware, fitted: Parameters, split: Split, load: StepLoad
) -> None:
    site = machine(routed, device, fitted, split)
    total = sum(np.asarray(term.seconds) for term in step_terms(site, load))
    assert np.asarray(step_s(site, load)) == pytest.approx(total * split.pp)


def test_many_splits_at_once_are_each_alone(routed: ModelSpec, device: Hardware, fitted: Parameters) -> None:
    degrees = [(1.0, 1.0), (2.0, 4.0), (8.0, 1.0)]
    tp, pp = (np.array([pair[place] for pair in degrees])[:, None] for place in (0, 1))
    load = StepLoad(decode_sequences=np.array([[1.0, 64.0]]), decode_context=4096.0)
    together = step_s(machine(routed, device, fitted, Split(tp=tp, pp=pp)), load)
    for row, (one, other) in enumerate(degrees):
        alone = step_s(machine(routed, device, fitted, Split(tp=one, pp=other)), load)
        assert np.asarray(together)[row] == pytest.approx(np.ravel(alone))


def test_a_step_without_tokens_reads_no_weights(dense: ModelSpec, device: Hardware, ideal: Parameters) -> None:
    site = machine(dense, device, ideal, Split(tp=1.0))
    terms = step_terms(site, StepLoad(prefill_tokens=np.array([0.0, 1.0]), prefill_sequences=np.array([0.0, 1.0])))
    (mlp,) = [term for term in terms if term.operation == "mlp"]
    nothing, one = np.asarray(mlp.seconds)
    assert nothing == 0.0
    assert one > 0.0


def test_matrices_of_a_layer_are_bytes_over_bandwidth_or_flops_over_peak(
    dense: ModelSpec, device: Hardware, ideal: Parameters
) -> None:
    """One token reads every weight of the MLP; many compute: twice the tokens, twice the time."""
    site = machine(dense, device, ideal, Split(tp=1.0))
    few, many, more = (
        next(float(term.seconds) for term in step_terms(site, StepLoad(decode_sequences=n)) if term.operation == "mlp")
        for n in (1.0, 8192.0, 16384.0)
    )
    weights = 3 * 28672 * 8192 * 80
    assert few == pytest.approx(2.0 * weights / float(device.memory_bandwidth_bytes_per_s), rel=1e-3)
    assert more == pytest.approx(2.0 * many)
    assert many == pytest.approx(2.0 * 8192.0 * weights / float(device.gemm_flops_per_s["bf16"]), rel=1e-6)


def test_nothing_stacks_to_nothing() -> None:
    assert stacked([]).shape == (0,)
