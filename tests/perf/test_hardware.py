"""From the catalog's chips to plain rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog import load_catalog
from chipwise.errors import InputError, KnowledgeError
from chipwise.perf.hardware import FABRICS, hardware_of, stack


def test_an_h100_multiplies_fp8_natively_and_widens_int4() -> None:
    chip = load_catalog().chip("h100-sxm")
    found = hardware_of(chip, formats=["bf16", "fp8", "int4-g128"])
    assert found.gemm_flops_per_s["fp8"] == chip.dense_flops_per_s["fp8"]
    assert found.gemm_flops_per_s["int4-g128"] == chip.dense_flops_per_s["bf16"]
    assert found.widened == {"bf16": 0.0, "fp8": 0.0, "int4-g128": 1.0}
    assert FABRICS[int(float(found.fabric))] == "nvswitch"
    assert found.node_devices == 8.0


def test_an_a100_widens_fp8() -> None:
    found = hardware_of(load_catalog().chip("a100-sxm-80"), formats=["bf16", "fp8"])
    assert found.gemm_flops_per_s["fp8"] == found.gemm_flops_per_s["bf16"]
    assert found.widened["fp8"] == 1.0


def test_a_core_gets_its_share_of_the_chip() -> None:
    chip = load_catalog().chip("trainium2")
    found = hardware_of(chip, formats=["bf16"])
    assert chip.memory_bandwidth_bytes_per_s is not None
    assert found.memory_bandwidth_bytes_per_s == chip.memory_bandwidth_bytes_per_s / chip.cores
    assert found.gemm_flops_per_s["bf16"] == chip.dense_flops_per_s["bf16"] / chip.cores


def test_an_instance_brings_its_network() -> None:
    catalog = load_catalog()
    found = hardware_of(catalog.chip("h100-sxm"), formats=["bf16"], instance=catalog.instance("p5.48xlarge"))
    assert found.network_bytes_per_s == pytest.approx(400e9)
    assert found.node_devices == 8.0


def test_a_domain_of_many_instances_has_the_network_of_all() -> None:
    catalog = load_catalog()
    tray = catalog.instance("p6e-gb200.36xlarge")
    found = hardware_of(catalog.chip("gb200"), formats=["bf16"], instance=tray)
    assert found.node_devices == 72.0
    assert tray.efa_bytes_per_s is not None
    assert found.network_bytes_per_s == pytest.approx(18 * tray.efa_bytes_per_s)


def test_stacked_devices_are_columns() -> None:
    catalog = load_catalog()
    both = stack(
        [
            hardware_of(catalog.chip("h100-sxm"), formats=["bf16", "fp8"]),
            hardware_of(catalog.chip("a10g"), formats=["bf16"]),
        ]
    )
    np.testing.assert_array_equal(np.isnan(both.gemm_flops_per_s["fp8"]), [False, True])
    assert np.shape(both.memory_bandwidth_bytes_per_s) == (2,)


def test_what_no_source_says_is_an_error_of_knowledge() -> None:
    chip = load_catalog().chip("h100-sxm")
    with pytest.raises(KnowledgeError, match="bandwidth"):
        hardware_of(replace(chip, memory_bandwidth_bytes_per_s=None), formats=["bf16"])
    with pytest.raises(KnowledgeError, match="peak"):
        hardware_of(replace(chip, dense_flops_per_s={"fp16": 1e15}), formats=["fp8"])


def test_a_format_the_chip_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match="nvfp4"):
        hardware_of(load_catalog().chip("inferentia2"), formats=["nvfp4"])
