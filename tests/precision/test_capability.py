from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.catalog import load_catalog
from chipwise.catalog.types import Chip
from chipwise.errors import UnknownNameError
from chipwise.precision import capability, format_names


def chip(name: str) -> Chip:
    return load_catalog().chip(name)


NATIVE = [
    ("h100-sxm", "fp8", "fp8"), ("l4", "fp8", "fp8"), ("a100-sxm-80", "int8", "int8"), ("t4", "int8", "int8"),
    ("b200", "nvfp4", "fp4"), ("b200", "mxfp4", "fp4"), ("b200", "mxfp8", "mxfp8"), ("rtx-pro-6000", "nvfp4", "fp4"),
    ("trainium2", "fp8", "fp8"), ("trainium3", "mxfp4", "mxfp8"), ("trainium3", "mxfp8", "mxfp8"),
    ("trainium1", "fp8", "fp8"), ("inferentia2", "bf16", "bf16"), ("a10g", "bf16", "bf16"),
]  # fmt: skip
WEIGHT_ONLY = [
    ("a100-sxm-80", "fp8", "bf16"), ("a10g", "fp8", "bf16"), ("t4", "fp8", "fp16"), ("h100-sxm", "int4", "bf16"),
    ("b200", "awq", "bf16"), ("t4", "gptq", "fp16"), ("v100-sxm-32", "gptq", "fp16"), ("h100-sxm", "nvfp4", "bf16"),
    ("l40s", "mxfp4", "bf16"), ("a10g", "nvfp4", "bf16"), ("trainium2", "int8", "bf16"), ("l4", "q4_k_m", "bf16"),
]  # fmt: skip
NONE = [
    ("v100-sxm-32", "fp8"), ("v100-sxm-32", "int8"), ("v100-sxm-32", "nvfp4"), ("trainium2", "mxfp4"),
    ("trainium2", "int4"), ("trainium3", "nvfp4"), ("inferentia2", "nf4"), ("trainium1", "q4_k_m"),
    ("a100-sxm-80", "w4afp8"), ("t4", "mxfp8"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fmt", "compute"), NATIVE)
def test_native(name: str, fmt: str, compute: str) -> None:
    found = capability(chip(name), fmt)
    assert (found.mode, found.compute_format) == ("native", compute)


@pytest.mark.parametrize(("name", "fmt", "compute"), WEIGHT_ONLY)
def test_weight_only_runs_at_the_sixteen_bit_rate(name: str, fmt: str, compute: str) -> None:
    found = capability(chip(name), fmt)
    assert (found.mode, found.compute_format) == ("weight-only", compute)
    assert found.flops_per_s == chip(name).dense_flops_per_s[compute]


@pytest.mark.parametrize(("name", "fmt"), NONE)
def test_none(name: str, fmt: str) -> None:
    found = capability(chip(name), fmt)
    assert (found.mode, found.compute_format, found.flops_per_s) == ("none", None, None)
    assert found.why


@pytest.mark.parametrize("name", ["t4", "v100-sxm-32"])
def test_chips_without_bf16_hold_it_as_fp16(name: str) -> None:
    found = capability(chip(name), "bf16")
    assert (found.mode, found.stored_format, found.compute_format) == ("native", "fp16", "fp16")
    assert "fp16" in found.why


def test_cfp8_saves_bytes_not_time() -> None:
    eight, sixteen = capability(chip("trainium1"), "fp8"), capability(chip("trainium1"), "bf16")
    assert eight.flops_per_s == sixteen.flops_per_s


def test_trainium2_multiplies_fp8_about_twice_as_fast() -> None:
    eight, sixteen = capability(chip("trainium2"), "fp8"), capability(chip("trainium2"), "bf16")
    assert eight.flops_per_s is not None
    assert sixteen.flops_per_s is not None
    assert 1.9 < eight.flops_per_s / sixteen.flops_per_s <= 2.0


def test_mxfp4_gains_nothing_over_mxfp8_on_trainium3() -> None:
    assert capability(chip("trainium3"), "mxfp4").flops_per_s == capability(chip("trainium3"), "mxfp8").flops_per_s


@pytest.mark.parametrize("name", ["b300", "gb300", "b200", "rtx-pro-6000"])
def test_int8_is_not_advisable_on_blackwell(name: str) -> None:
    found = capability(chip(name), "int8")
    assert found.mode == "native"
    assert not found.advisable


def test_a_rate_that_nobody_prints_stays_unknown() -> None:
    bare = replace(chip("h100-sxm"), dense_flops_per_s={"bf16": 989e12})
    assert capability(bare, "fp8").flops_per_s is None
    assert capability(bare, "bf16").flops_per_s == 989e12


def test_vendors_without_rules_go_by_their_native_formats() -> None:
    other = replace(chip("h100-sxm"), id="other", vendor="elsewhere", native=frozenset({"bf16"}))
    assert capability(other, "bf16").mode == "native"
    assert capability(other, "fp8").mode == "none"
    assert "other" in capability(other, "fp8").why


def test_compute_capability_twelve_lies_above_ten() -> None:
    assert capability(replace(chip("b200"), compute_capability="12.10"), "mxfp8").advisable is False
    assert capability(replace(chip("b200"), compute_capability="10.3"), "mxfp8").advisable is True


def test_every_chip_answers_for_every_format_with_a_source() -> None:
    for one in load_catalog().chips.values():
        for name in format_names():
            found = capability(one, name)
            assert found.why
            assert found.source
            assert found.mode != "none" or found.flops_per_s is None
            assert found.mode == "none" or found.compute_format is not None


def test_what_the_catalog_calls_native_is_never_refused() -> None:
    for one in load_catalog().chips.values():
        for name in one.native & {"fp16", "bf16", "fp8"}:
            assert capability(one, name).mode == "native", (one.id, name)


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(UnknownNameError):
        capability(chip("h100-sxm"), "fp5")
