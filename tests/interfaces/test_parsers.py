"""Text becomes a value, or an error that says how to write it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.interfaces.cli.parsers import (
    choice,
    fraction,
    grid,
    number,
    positive,
    price,
    tokens,
    weeks,
    whole_or_zero,
)
from chipwise.units import parse_count


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (tokens, "8k", 8192),
        (positive(tokens), "128k", 131072),
        (positive(parse_count), "8k", 8000),
        (fraction, "90%", 0.9),
        (fraction, "0.999", 0.999),
        (fraction, "0", 0.0),
        (weeks, "6", 6.0),
        (weeks, "14d", 2.0),
        (weeks, "2w", 2.0),
        (whole_or_zero, "0", 0),
        (number, "1e3", 1000.0),
        (price, "g6e.12xlarge=$7.5", ("g6e.12xlarge", 7.5)),
        (grid, "4k,8k,32k,128k x 1,16,64,128", ((4096, 8192, 32768, 131072), (1, 16, 64, 128))),
        (grid, "8k\u00d71", ((8192,), (1,))),
    ],
)
def test_it_reads(parse: Callable[[str], Any], text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (positive(parse_count), "0"),
        (positive(parse_count), "-5"),
        (positive(parse_count), "1e300"),
        (whole_or_zero, "-1"),
        (fraction, "1.1"),
        (fraction, "110%"),
        (fraction, "90%%"),
        (fraction, "-0.1"),
        (number, "nan"),
        (number, "inf"),
        (number, "ten"),
        (weeks, "..."),
        (price, "g6e.12xlarge"),
        (price, "=3"),
        (price, "g6e.12xlarge=0"),
        (grid, "8k"),
        (grid, "8kx1x2"),
        (grid, "0x1"),
        (grid, "x"),
    ],
)
def test_it_refuses(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert all((caught.value.what, caught.value.why, caught.value.fix))


def test_a_choice_proposes_near_ones_or_all() -> None:
    with pytest.raises(InputError) as near:
        choice("on-demand", "spot")("ondemand")
    assert near.value.fix == "did you mean on-demand?"
    with pytest.raises(InputError) as far:
        choice("on-demand", "spot")("zzz")
    assert far.value.fix == "choose on-demand, spot"


@given(st.text())
@pytest.mark.parametrize("parse", [tokens, positive(parse_count), fraction, weeks, whole_or_zero, number, price, grid])
def test_any_text_is_a_value_or_an_input_error(parse: Callable[[str], Any], text: str) -> None:
    with contextlib.suppress(InputError):
        parse(text)
