"""The capacity planning rows."""

from __future__ import annotations

import pytest

from chipwise.guide import scale_signal


@pytest.mark.parametrize(
    ("kind", "params", "starts", "signal"),
    [
        ("inference", 7e9, "1 x g6e.2xlarge", "P99 TTFT"),
        ("inference", 70e9, "4 x g6e.12xlarge", "GPU memory"),
        ("finetune", 13e9, "1 x g6e.48xlarge", "tokens a second"),
        ("pretrain", 70e9, "8 to 64 x p5.48xlarge", "all-reduce latency over EFA, loss"),
    ],
)
def test_the_rows_of_the_guide(kind: str, params: float, starts: str, signal: str) -> None:
    found = scale_signal(kind=kind, params=params)
    assert found is not None
    assert (found.start_nvidia, found.signal) == (starts, signal)


def test_there_is_no_row_for_every_size() -> None:
    assert scale_signal(kind="inference", params=405e9) is None


def test_the_row_of_70b_says_what_is_amiss() -> None:
    found = scale_signal(kind="inference", params=70e9)
    assert found is not None
    assert "one g6e.12xlarge holds 70B" in found.note
