"""Processor time of one warm `estimate()`, and predictions a second where many candidates are one array."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.advisor import estimate
from chipwise.advisor.request import EstimateRequest, SplitRequest
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
LOAD = EstimateRequest(model=MODELS[0], isl_tokens=2048, osl_tokens=256, concurrency=32)
QUESTIONS = (
    replace(LOAD, model="llama-3.1-8b", instance="g6e.xlarge"),
    replace(LOAD, instance="p5.48xlarge", split=SplitRequest(tp=8)),
    replace(LOAD, chip="h200-sxm"),
    replace(LOAD, model="deepseek-v3", instance="p5en.48xlarge", split=SplitRequest(tp=8)),
)
"""A small model, a large one over eight GPUs, the same where it does not fit, and a mixture of experts."""
KINDS: tuple[LoadKind, ...] = ("single", "static", "closed", "rate", "offline")
CHIP = "h200-sxm"


def seconds(works: Sequence[Callable[[], object]]) -> list[float]:
    """Processor time of each piece of work, after one that warms them: other work on the machine does not count."""
    works[0]()
    found = []
    for work in works:
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return found


def one_by_one() -> Mapping[str, list[float]]:
    """Seconds of `estimate()` by question, each time of prompts of another length."""
    return {
        " ".join(filter(None, (asked.model, asked.instance or asked.chip))): seconds(
            [partial(estimate, replace(asked, isl_tokens=2048 + more)) for more in range(RUNS)]
        )
        for asked in QUESTIONS
    }


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
    """Print a row a question, then a row a kind of load."""
    print(f"{'one estimate':<36}{'median us':>12}")
    found = one_by_one()
    for name, found_s in (*found.items(), ("all of them", [one for each in found.values() for one in each])):
        print(f"{name:<36}{statistics.median(found_s) * 1e6:>12.0f}")
    print(f"{'a batch of candidates':<36}{'a second':>12}")
    for name in MODELS:
        model = load_model(name)
        for kind in KINDS:
            work = partial(predict_serving, replace(candidates(model, kind)))
            found_s = seconds([work] * BATCHES)
            print(f"{name + ', ' + kind:<36}{CANDIDATES / statistics.median(found_s):>12,.0f}")


if __name__ == "__main__":
    main()
