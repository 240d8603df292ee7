"""A throughput to reach, of whatever a model answers in: the fewest instances whose devices reach it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chipwise import Request, advise
from chipwise.errors import InputError

KINDS = [
    ("resnet-50", 20_000.0, "image"), ("vit-base", 20_000.0, "image"), ("sdxl", 5.0, "image"),
    ("whisper-large-v3", 20_000.0, "audio-second"), ("bge-m3", 20_000.0, "request"), ("dlrm", 50_000.0, "request"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "wanted", "unit"), KINDS)
def test_as_many_instances_as_reach_it_and_no_fewer(model: str, wanted: float, unit: str) -> None:
    option = advise(Request(model=model, throughput_tokens_per_s=wanted, only=("g7e.2xlarge",))).options[0]
    other = option.performance["other"]
    assert other["unit"] == unit
    assert other["units_per_s"].mid == pytest.approx(wanted)
    each = other["capacity_units_per_s"].mid / option.instances
    assert option.instances == math.ceil(wanted / each)
    assert option.sizing.binding == "throughput"


def test_the_bar_of_the_preset_is_for_people_and_that_of_the_user_holds() -> None:
    free = advise(Request(model="vit-base", throughput_tokens_per_s=5000.0, only=("g6e.xlarge",)))
    assert "latency_p99_s" not in free.workload
    assert free.workload["throughput_units_per_s"] == {"value": 5000.0, "from": "user"}
    bound = advise(Request(model="vit-base", throughput_tokens_per_s=5000.0, ttft_p99_s=0.1, only=("g6e.xlarge",)))
    for option in bound.options:
        assert option.performance["other"]["latency_p99_s"].mid <= 0.1


@pytest.mark.parametrize("load", [{"users": 4.0}, {"rate_per_s": 3.0}])
def test_two_loads_are_one_too_many(load: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="state the load twice"):
        advise(Request(model="resnet-50", throughput_tokens_per_s=100.0, **load))
