"""Text to base units: worked values, round trips, refusals, and pint as the second opinion."""

from __future__ import annotations

import math
from collections.abc import Callable

import pint
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.units import parse_bytes, parse_count, parse_rate, parse_seconds, parse_usd

PINT: pint.UnitRegistry[float] = pint.UnitRegistry()
PARSERS: list[Callable[[str], float]] = [parse_bytes, parse_count, parse_rate, parse_seconds, parse_usd]

AMOUNTS = st.floats(0, 1e9, allow_nan=False).map(lambda value: round(value, 3))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("8k", 8_000),
        ("1_000", 1_000),
        ("1,000", 1_000),
        ("70b", 70_000_000_000),
        ("70B", 70_000_000_000),
        ("2.07B", 2_070_000_000),
        ("1.5T", 1_500_000_000_000),
        (" 2 M ", 2_000_000),
        ("2e3", 2_000),
        ("0", 0),
    ],
)
def test_counts(text: str, value: int) -> None:
    counted = parse_count(text)
    assert counted == value
    assert isinstance(counted, int)


@pytest.mark.parametrize(
    ("text", "value"), [("8k", 8192), ("128K", 131_072), ("1M", 1_048_576), ("8192", 8192), ("1.5k", 1536)]
)
def test_token_lengths_are_binary(text: str, value: int) -> None:
    assert parse_count(text, binary=True) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1s", 1.0),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("40us", 40e-6),
        ("40µs", 40e-6),
        ("10m", 600.0),
        ("10min", 600.0),
        ("2h", 7200.0),
        ("3d", 259_200.0),
        ("2 weeks", 1_209_600.0),
    ],
)
def test_durations(text: str, value: float) -> None:
    assert parse_seconds(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("40GB", 40_000_000_000.0),
        ("40GiB", 42_949_672_960.0),
        ("40gib", 42_949_672_960.0),
        ("1 kB", 1000.0),
        ("1KiB", 1024.0),
        ("512", 512.0),
        ("1.2TB", 1.2e12),
    ],
)
def test_sizes(text: str, value: float) -> None:
    assert parse_bytes(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5000tok/s", 5000.0),
        ("5k tok/s", 5000.0),
        ("2.5/s", 2.5),
        ("120/min", 2.0),
        ("36 requests/h", 0.01),
        ("3rps", 3.0),
        ("7", 7.0),
    ],
)
def test_rates(text: str, value: float) -> None:
    assert parse_rate(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [("$50k", 50_000.0), ("12.50", 12.5), ("USD 3", 3.0), ("3 usd", 3.0), ("$1,234.5", 1234.5)],
)
def test_prices(text: str, value: float) -> None:
    assert parse_usd(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", ["", "   ", "nan", "inf", "-inf", "1e999", "k", "8x", "8 k k", "0x10", "1.2.3", "--1"])
def test_what_is_no_number_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.what
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "1s"),
        (parse_seconds, "1GB"),
        (parse_seconds, "1M"),  # months or minutes: not guessed
        (parse_count, "1.5"),
        (parse_count, "1ms"),
        (parse_rate, "5/0"),
        (parse_rate, "5/"),
        (parse_rate, "5/0s"),
        (parse_rate, "5/e5"),
        (parse_rate, "5/s/s"),
        (parse_usd, "EUR 3"),
    ],
)
def test_another_quantity_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS)
def test_a_quantity_below_zero_is_refused(parse: Callable[[str], float]) -> None:
    with pytest.raises(InputError):
        parse("-1")


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.one_of(st.text(), st.from_regex(r"[-+$]?[0-9.,_eE]{1,12} ?[a-zµ/]{0,8}", fullmatch=True)))
@example(text="9" * 400)
@example(text="1/" + "9" * 400 + "s")
@example(text="1e308/us")
@example(text="٣GB")
def test_any_text_is_a_finite_value_or_an_input_error(parse: Callable[[str], float], text: str) -> None:
    try:
        value = parse(text)
    except InputError:
        return
    assert math.isfinite(value)
    assert value >= 0


@given(AMOUNTS)
def test_plain_numbers_come_back(value: float) -> None:
    for parse in (parse_bytes, parse_seconds, parse_rate, parse_usd):
        assert parse(repr(value)) == value


@given(st.integers(0, 2**53))
def test_whole_numbers_come_back(value: int) -> None:
    assert parse_count(str(value)) == value
    assert parse_count(f"{value:,}") == value
    assert parse_count(str(value), binary=True) == value


@given(AMOUNTS, st.sampled_from(["B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "PiB"]))
def test_sizes_agree_with_pint(amount: float, unit: str) -> None:
    expected = PINT.Quantity(amount, unit).to("byte").magnitude
    assert parse_bytes(f"{amount!r}{unit}") == pytest.approx(expected, rel=1e-12)


@given(AMOUNTS, st.sampled_from(["us", "µs", "ms", "s", "min", "h", "d", "weeks", "days", "hours"]))
def test_durations_agree_with_pint(amount: float, unit: str) -> None:
    expected = PINT.Quantity(amount, unit).to("second").magnitude
    assert parse_seconds(f"{amount!r}{unit}") == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 10**6), st.integers(0, 3), st.sampled_from(["k", "M", "B", "T"]))
def test_a_whole_count_written_with_a_decimal_point_is_whole(digits: int, places: int, unit: str) -> None:
    scale = {"k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[unit]
    assert parse_count(f"{digits / 10**places:.{places}f}{unit}") == digits * scale // 10**places
