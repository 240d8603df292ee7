"""Estimates a second on one core: one at a time as a caller asks them, and many in arrays as `plan` and `sweep` do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chipwise import load_model
from chipwise.advisor import EstimateRequest, SplitRequest, estimate
from chipwise.catalog import load_catalog
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import hardware_of
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.parameters import parameters_for
from chipwise.perf.serving import predict_serving
from chipwise.precision import bytes_per_param

RUNS = 40
MANY = 4000
ASKED = EstimateRequest(
    model="llama-3.3-70b",
    instance="p5.48xlarge",
    split=SplitRequest(tp=8),
    isl_tokens=1000,
    osl_tokens=256,
    concurrency=16,
)


def cpu_s(work: Callable[[], object]) -> float:
    """Median CPU seconds of a piece of work, after two runs that warm it."""
    work(), work()
    found = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return statistics.median(found)


def one() -> ServingInput:
    """What `estimate` asks perf about `ASKED`, with a fixed pool."""
    catalog = load_catalog()
    size = catalog.instance("p5.48xlarge")
    chip = catalog.chip("h100-sxm")
    return ServingInput(
        shards=shard(load_model(ASKED.model), Split(tp=8)),
        hardware=hardware_of(chip, formats=("bf16",), instance=size),
        parameters=parameters_for(chip=chip.id, generation=chip.architecture, engine="vllm"),
        weight_bytes={"bf16": bytes_per_param("bf16")},
        kv_element_bytes=2.0,
        kv_pool_bytes=50e9,
        max_num_seqs=256.0,
        chunk_tokens=8192.0,
        load=ServingLoad(kind="closed", isl=1000.0, osl=256.0, concurrency=16.0),
    )


def main() -> None:
    """Print three lines."""
    single = one()
    load = replace(single.load, concurrency=np.linspace(1.0, 512.0, MANY), isl=np.linspace(100.0, 4000.0, MANY))
    many = replace(single, load=load)
    print(f"estimate()              {cpu_s(lambda: estimate(ASKED)) * 1e3:8.2f} ms")
    print(f"one prediction          {cpu_s(lambda: predict_serving(single)) * 1e3:8.2f} ms")
    print(f"{MANY} in arrays          {MANY / cpu_s(lambda: predict_serving(many)):8.0f} a second")


if __name__ == "__main__":
    main()
