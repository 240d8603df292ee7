"""Machines joined row under row answer as each of them does alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import Hardware
from chipwise.perf.load import LoadKind, Seating, ServingLoad, case_of
from chipwise.perf.machine import Machine, machine_of
from chipwise.perf.parameters import Parameters
from chipwise.perf.rates import Site
from chipwise.perf.serving import predict_case
from chipwise.perf.side_by_side import likeness, side_by_side
from chipwise.perf.work import work_of
from chipwise.precision import with_precision

BYTES = {"bf16": 2.0, "fp8": 1.0}
SEATING = Seating(kv_pool_bytes=4e10, max_num_seqs=256.0, chunk_tokens=2048.0)


def machine(model: ModelSpec, device: Hardware, parameters: Parameters, split: Split) -> Machine:
    site = Site(
        work=work_of(shard(model, split)),
        hardware=device,
        parameters=parameters,
        weight_bytes=BYTES,
        kv_element_bytes=2.0,
    )
    return machine_of(site)


@pytest.fixture(params=["dense", "routed"])
def model(request: pytest.FixtureRequest) -> ModelSpec:
    found: ModelSpec = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("kind", ["single", "static", "closed", "rate", "offline"])
def test_joined_machines_answer_as_each_does_alone(
    model: ModelSpec, device: Hardware, fitted: Parameters, ideal: Parameters, kind: LoadKind
) -> None:
    column = np.array([[2.0], [8.0]])
    parts = [
        machine(model, device, fitted, Split(tp=column)),
        machine(with_precision(model, "fp8"), device, ideal, Split(tp=4.0, pp=2.0)),
        machine(model, device, replace(fitted, exact_fraction=0.0, mixed_fraction=0.0), Split(tp=8.0)),
    ]
    rows = [2, 1, 1]
    assert len({likeness(one) for one in parts}) == 1
    load = ServingLoad(kind=kind, isl=3000.0, osl=200.0, concurrency=64.0, rate_per_s=3.0, batch=16.0)
    replicas = np.array([[1.0, 2.0, 4.0]])
    whole = predict_case(case_of(side_by_side(parts, rows), SEATING, load, replicas=replicas))
    start = 0
    for part, count in zip(parts, rows, strict=True):
        alone = predict_case(case_of(part, SEATING, load, replicas=replicas))
        for name in ("ttft_s", "tpot_s", "requests_per_s", "running", "saturation_rate_per_s", "isolated_ttft_s"):
            one, other = (
                np.broadcast_to(getattr(found, name), (size, 3)) for found, size in ((whole, 4), (alone, count))
            )
            np.testing.assert_allclose(one[start : start + count], other, rtol=1e-12, err_msg=name)
        start += count


def test_other_kinds_of_layers_are_not_joined(
    dense: ModelSpec, routed: ModelSpec, device: Hardware, ideal: Parameters
) -> None:
    near = replace(dense.layers[0].attention, kind="sliding", window_tokens=128)
    windowed = replace(dense, layers=(replace(dense.layers[0], attention=near),))
    found = {likeness(machine(model, device, ideal, Split())) for model in (dense, routed, windowed)}
    assert len(found) == 3
