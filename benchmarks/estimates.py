"""Processor time of one warm `estimate()`, and predictions a second where many candidates are one array."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.advisor import estimate
from chipwise.advisor.request import EstimateRequest
from chipwise.catalog import load_catalog
from chipwise.model import ModelSpec, load_model
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import hardware_of
from chipwise.perf.load import LoadKind, ServingInput, ServingLoad
from chipwise.perf.parameters import parameters_for
from chipwise.perf.serving import predict_serving
from chipwise.precision import bytes_per_param

RUNS = 100
CANDIDATES = 20_000
BATCHES = 7
MODELS = ("llama-3.3-70b", "deepseek-v3")
KINDS: tuple[LoadKind, ...] = ("single", "static", "closed", "rate", "offline")
CHIP = "h200-sxm"


def seconds(work: Callable[[], object], runs: int) -> float:
    """Median processor time of one piece of work, after one that warms it: other work on the machine does not count."""
    work()
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return statistics.median(found)


def one_by_one() -> Mapping[str, float]:
    """Median seconds of `estimate()`, by model."""
    asked = {
        name: EstimateRequest(model=name, chip=CHIP, isl_tokens=2048, osl_tokens=256, concurrency=32) for name in MODELS
    }
    return {name: seconds(partial(estimate, request), RUNS) for name, request in asked.items()}


def candidates(model: ModelSpec, kind: LoadKind) -> ServingInput:
    """Many loads and splits of a model as one question."""
    chip = load_catalog().chips[CHIP]
    formats = tuple(sorted({weight.format for weight, _ in model.all_weights()}))
    places = np.arange(CANDIDATES)
    return ServingInput(
        shards=shard(model, Split(tp=2.0 ** (places % 4))),
        hardware=hardware_of(chip, formats=formats),
        parameters=parameters_for(chip=CHIP, generation=chip.architecture, engine="vllm"),
        weight_bytes={name: bytes_per_param(name) for name in formats},
        kv_element_bytes=2.0,
        kv_pool_bytes=40e9,
        max_num_seqs=1024.0,
        chunk_tokens=8192.0,
        load=ServingLoad(
            kind=kind,
            isl=256.0 + places % 4096,
            osl=128.0 + places % 512,
            concurrency=1.0 + places % 256,
            batch=1.0 + places % 256,
            rate_per_s=0.01 + places % 8,
        ),
    )


def main() -> None:
    """Print a row a model, then a row a kind of load."""
    print(f"{'one estimate':<28}{'median us':>12}")
    for name, found_s in one_by_one().items():
        print(f"{name:<28}{found_s * 1e6:>12.0f}")
    print(f"{'a batch of candidates':<28}{'a second':>12}")
    for name in MODELS:
        model = load_model(name)
        for kind in KINDS:
            asked = candidates(model, kind)
            found_s = seconds(partial(predict_serving, replace(asked)), BATCHES)
            print(f"{name + ', ' + kind:<28}{CANDIDATES / found_s:>12,.0f}")


if __name__ == "__main__":
    main()
