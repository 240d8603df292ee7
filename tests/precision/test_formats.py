from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.precision import (
    bytes_per_param,
    canonical,
    format_facts,
    format_names,
    kv_bytes_per_element,
    kv_format_names,
    meets_floor,
    precision_rank,
)
from chipwise.precision.formats import matrix_bytes

WORKED_BITS = [
    ("fp32", 32.0),
    ("bf16", 16.0),
    ("fp16", 16.0),
    ("fp8", 8.0),
    ("fp8-block", 8 + 32 / 128**2),
    ("int8", 8.0),
    ("int4-g128", 4 + (16 + 4) / 128),
    ("int4-g64", 4 + (16 + 4) / 64),
    ("int4-g32", 4 + (16 + 4) / 32),
    ("nf4", 4 + 32 / 64),
    ("nf4-dq", 4 + (8 + 32 / 256) / 64),
    ("nvfp4", 4 + 8 / 16),
    ("mxfp4", 4 + 8 / 32),
    ("mxfp8", 8 + 8 / 32),
    # blocks of ggml: bytes x 8 / weights
    ("gguf-q4_0", 18 * 8 / 32),
    ("gguf-q8_0", 34 * 8 / 32),
    ("gguf-q2_k", 84 * 8 / 256),
    ("gguf-q3_k", 110 * 8 / 256),
    ("gguf-q4_k", 144 * 8 / 256),
    ("gguf-q5_k", 176 * 8 / 256),
    ("gguf-q6_k", 210 * 8 / 256),
    ("gguf-iq4_xs", 136 * 8 / 256),
    ("gguf-q4_k_m", 4.8944),
]


@pytest.mark.parametrize(("name", "bits"), WORKED_BITS)
def test_bits_per_weight_are_those_of_the_block(name: str, bits: float) -> None:
    assert math.isclose(format_facts(name).bits_per_weight, bits, rel_tol=1e-12)
    assert math.isclose(bytes_per_param(name), bits / 8, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("fp8_e4m3", "fp8"), ("float8_e4m3fn", "fp8"), ("FP8 dynamic", "fp8-channel"), ("fp8_block", "fp8-block"),
        ("w8a8", "int8"), ("w8a16", "int8-weight-only"), ("int4", "int4-g128"), ("awq", "int4-g128"),
        ("gptq", "int4-g128"), ("w4a16", "int4-g128"), ("gptq-marlin (int4)", "int4-g128"), ("4bit", "int4-g128"),
        ("bfloat16", "bf16"), ("float16", "fp16"), ("half", "fp16"), ("float32", "fp32"), ("nf4", "nf4"),
        ("bitsandbytes", "nf4"), ("fp4", "nvfp4"), ("MXFP4", "mxfp4"), ("q4_k_m", "gguf-q4_k_m"), ("Q8_0", "gguf-q8_0"),
    ],
)  # fmt: skip
def test_an_alias_means_one_format(alias: str, name: str) -> None:
    assert canonical(alias) == name


def test_every_alias_names_one_format_only() -> None:
    owners: dict[str, set[str]] = {}
    for name in format_names():
        for alias in (name, *format_facts(name).aliases):
            owners.setdefault(alias, set()).add(name)
    assert {alias: names for alias, names in owners.items() if len(names) > 1} == {}
    assert all(canonical(alias) == next(iter(names)) for alias, names in owners.items())


def test_every_format_says_where_it_was_read() -> None:
    assert all(format_facts(name).source and format_facts(name).where for name in format_names())


@pytest.mark.parametrize(
    ("name", "bits"), [("int4-g256", 4 + 20 / 256), ("int8-g64", 8 + 24 / 64), ("int3-g64", 3 + 19 / 64)]
)
def test_group_sizes_outside_the_table_follow_its_rule(name: str, bits: float) -> None:
    assert math.isclose(format_facts(name).bits_per_weight, bits)
    assert format_facts(name).name == name


def test_eight_bit_integers_outside_the_table_are_of_the_eight_bit_family() -> None:
    assert format_facts("int8-g32").family == format_facts("int8-g128").family
    assert format_facts("mlx-int6-g64").bits_per_weight == 6.5


@pytest.mark.parametrize("name", ["fp9", "int4-g0x", "", "bf17"])
def test_unknown_formats_are_refused_with_near_names(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        format_facts(name)
    assert caught.value.exit_status == 2


def test_the_refusal_proposes_a_near_name() -> None:
    with pytest.raises(UnknownNameError, match="precision") as caught:
        format_facts("bfloat17")
    assert "bfloat16" in caught.value.fix


def test_cache_formats_have_bytes_and_others_are_refused() -> None:
    assert [kv_bytes_per_element(name) for name in ("bf16", "fp16", "fp8", "int8", "nvfp4")] == [2, 2, 1, 1, 0.5625]
    assert "mxfp4" not in kv_format_names()
    with pytest.raises(UnknownNameError, match="KV-cache"):
        kv_bytes_per_element("int4")


def test_the_floor_goes_by_bits_of_an_element() -> None:
    assert precision_rank("bf16") == precision_rank("fp16") > precision_rank("fp8") == precision_rank("int8")
    assert meets_floor("fp8-block", "fp8")
    assert meets_floor("int8", "fp8")
    assert not meets_floor("nvfp4", "fp8")
    assert meets_floor("fp32", "bf16")


def test_a_matrix_takes_whole_scales() -> None:
    assert matrix_bytes(format_facts("bf16"), rows=3, cols=5) == 30
    assert matrix_bytes(format_facts("fp8-block"), rows=129, cols=128) == 129 * 128 + 2 * 4  # 2 x 1 blocks
    assert matrix_bytes(format_facts("fp8-channel"), rows=10, cols=100) == 1000 + 10 * 4
    assert matrix_bytes(format_facts("fp8"), rows=10, cols=100) == 1000 + 4
    assert matrix_bytes(format_facts("int4-g128"), rows=2, cols=256) == 256 + 2 * 2 * 20 / 8
    assert matrix_bytes(format_facts("nvfp4"), rows=1, cols=17) == math.ceil((17 * 4 + 2 * 8) / 8)


@given(
    rows=st.integers(1, 4096),
    cols=st.integers(1, 4096),
    name=st.sampled_from([name for name in format_names() if "mixture" not in format_facts(name).kind]),
)
def test_a_matrix_never_takes_less_than_its_elements(rows: int, cols: int, name: str) -> None:
    fmt = format_facts(name)
    taken = matrix_bytes(fmt, rows=rows, cols=cols)
    assert taken >= rows * cols * fmt.bits / 8
    # partial groups cost at most one more scale a row and a block row
    slack = (rows + cols + 2) * fmt.scale_bits / 8 + 1
    assert taken <= rows * cols * fmt.bits_per_weight / 8 + slack
