"""No prediction is faster than the sheet: every chip of the catalog, every runtime with parameters of its own."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog import load_catalog
from chipwise.errors import ChipwiseError
from chipwise.model import load_model
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import Hardware, hardware_of
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.parameters import parameters_for, table
from chipwise.perf.serving import predict_serving
from chipwise.precision import with_precision

CATALOG = load_catalog()
RUNTIMES = sorted({scope.removeprefix("engine:") for _, scope in table() if scope.startswith("engine:")})
PROMPTS = np.array([1.0, 100.0, 8000.0])


def device(chip_id: str, precision: str) -> Hardware:
    """The chip, or a skip that says why it cannot be judged."""
    try:
        return hardware_of(CATALOG.chip(chip_id), formats=["bf16", precision])
    except ChipwiseError as unknown:
        pytest.skip(f"{chip_id} at {precision}: {unknown}")


@pytest.mark.parametrize("precision", ["bf16", "fp8", "int4-g128"])
@pytest.mark.parametrize("chip_id", [chip.id for chip in CATALOG.chips.values() if not chip.lacks])
def test_decode_reads_the_weights_and_prefill_multiplies_them(chip_id: str, precision: str) -> None:
    chip, hardware = CATALOG.chip(chip_id), device(chip_id, precision)
    model = with_precision(load_model("llama-3.1-8b"), precision)
    layers = model.layers[0].count
    matrices = sum(weight.params for weight in model.layers[0].weights if weight.gemm) * layers
    bytes_per_param = {"bf16": 2.0, "fp8": 1.0, "int4-g128": 0.5}[precision]
    for runtime in RUNTIMES:
        link = chip.link.kind if chip.link else "none"
        parameters = parameters_for(chip=chip_id, generation=chip.architecture, engine=runtime, fabric=link)
        question = ServingInput(
            shards=shard(model, Split()),
            hardware=hardware,
            parameters=parameters,
            weight_bytes={"bf16": 2.0, precision: bytes_per_param},
            kv_element_bytes=2.0,
            kv_pool_bytes=4e9,
            max_num_seqs=64.0,
            chunk_tokens=2048.0,
            load=ServingLoad(kind="single", isl=PROMPTS, osl=10.0),
        )
        answer = predict_serving(question)
        bandwidth, peak = hardware.memory_bandwidth_bytes_per_s, hardware.gemm_flops_per_s[precision]
        assert np.all(answer.tpot_s >= matrices * bytes_per_param / bandwidth)
        assert np.all(answer.ttft_s >= 2.0 * matrices * PROMPTS / peak)


def test_a_70b_in_bf16_on_eight_h100_never_beats_its_bytes() -> None:
    """70.6e9 parameters less the embedding in 2 bytes over 8 x 3.35 TB/s: 5.19 ms."""
    chip = CATALOG.chip("h100-sxm")
    question = ServingInput(
        shards=shard(load_model("llama-3.3-70b"), Split(tp=8.0)),
        hardware=hardware_of(chip, formats=["bf16"]),
        parameters=parameters_for(chip=chip.id, generation="hopper", engine="vllm"),
        weight_bytes={"bf16": 2.0},
        kv_element_bytes=2.0,
        kv_pool_bytes=45e9,
        max_num_seqs=256.0,
        chunk_tokens=8192.0,
        load=ServingLoad(kind="closed", isl=1000.0, osl=500.0, concurrency=np.array([1.0, 16.0, 256.0])),
    )
    tpot = np.ravel(predict_serving(question).tpot_s)
    assert np.all(tpot > 0.00519)
    assert tpot[0] < 0.02
