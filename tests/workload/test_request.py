from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import InputError, UnknownNameError
from chipwise.workload import WorkloadRequest, parse_request, request_keys


def test_units_are_understood() -> None:
    assert parse_request(
        {
            "for": "chat", "goal": "latency,cost", "ttft-p99": "500ms", "tpot_p99": "0.04", "users": "1k",
            "think": "10s", "context": "8k", "isl": 1000, "osl": "200", "prefix-hit": "50%",
            "lengths": "trace.csv", "budget": "$50k",
        }
    ) == WorkloadRequest(
        preset="chat", goal="latency,cost", ttft_p99_s=0.5, tpot_p99_s=0.04, users=1000, think_s=10.0, context=8192,
        isl=1000, osl=200, prefix_hit_fraction=0.5, lengths=Path("trace.csv"), budget_usd=50_000.0,
    )  # fmt: skip


def test_a_training_request() -> None:
    said = parse_request({"method": "lora", "tokens": "2B", "epochs": 1.5, "deadline": "3d", "seq-len": "4k"})
    assert said == WorkloadRequest(method="lora", tokens=2 * 10**9, epochs=1.5, deadline_s=259200.0, seq_len=4096)


def test_what_is_not_said_is_left_out() -> None:
    assert parse_request({"users": None, "offline": False, "rate": "120/min"}) == WorkloadRequest(rate_per_s=2.0)
    assert parse_request({"offline": True}) == WorkloadRequest(offline=True)
    assert parse_request({"offline": "yes", "batch": 16.0}) == WorkloadRequest(offline=True, batch=16)


def test_concurrency_is_users() -> None:
    assert parse_request({"concurrency": 8}) == WorkloadRequest(users=8)
    with pytest.raises(InputError, match="given twice"):
        parse_request({"concurrency": 8, "users": 8})


@pytest.mark.parametrize("options", [{"users": "many"}, {"context": "8q"}, {"prefix-hit": "half"}, {"budget": "free"}])
def test_what_cannot_be_read_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        parse_request(options)


def test_unknown_keys_are_refused_with_near_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_request({"contxt": "8k"})
    assert "context" in caught.value.fix
    assert "context" in request_keys()
