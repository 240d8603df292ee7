"""A whole run: durations, checkpoints, failures, interruptions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.memory.training_job import TrainingJob
from chipwise.perf.training_run import (
    checkpoint_bytes,
    checkpoint_interval_s,
    chip_hours,
    final_bytes,
    goodput_fraction,
    interruption_cost_usd,
    mean_time_between_failures_s,
    restart_s,
    run_duration,
    stall_s,
)
from chipwise.units import Range

RATE = Range(low=8e5, mid=1e6, high=1.25e6)


def test_two_trillion_tokens_at_a_million_a_second_take_23_days() -> None:
    duration = run_duration(tokens=2e12, tokens_per_s=RATE)
    assert duration.mid / 86400 == pytest.approx(23.15, abs=0.01)
    assert duration.low == pytest.approx(2e12 / RATE.high)
    assert duration.high == pytest.approx(2e12 / RATE.low)
    assert run_duration(tokens=2e12, tokens_per_s=RATE, goodput_fraction=0.5).mid == pytest.approx(2 * duration.mid)
    assert chip_hours(duration_s=duration, chips=256).mid == pytest.approx(2e6 / 3600 * 256)


def test_a_checkpoint_of_70b_with_adamw_is_14_bytes_a_parameter() -> None:
    job = TrainingJob(method="pretrain", seq_len=4096, micro_batch=1)
    assert checkpoint_bytes(params=70e9, job=job) == pytest.approx(980e9)
    lora = TrainingJob(method="lora", seq_len=4096, micro_batch=1)
    assert checkpoint_bytes(params=70e9, adapter_params=1e8, job=lora) == pytest.approx(1.2e9)


def test_what_a_run_leaves_holds_no_states() -> None:
    lora = TrainingJob(method="lora", seq_len=4096, micro_batch=1)
    assert final_bytes(params=70e9, adapter_params=1e8, job=lora) == pytest.approx(4e8)
    full = TrainingJob(method="full-ft", seq_len=4096, micro_batch=1)
    assert final_bytes(params=70e9, job=full) < checkpoint_bytes(params=70e9, job=full) / 6


def test_training_stands_for_the_copy_and_for_the_write_where_no_host_memory_holds_it() -> None:
    beside = float(stall_s(size_bytes=980e9, chips=64, write_s=200.0, host_bytes=8 * 2e12))
    assert beside == pytest.approx(980e9 / (64 * 16e9))
    assert float(stall_s(size_bytes=980e9, chips=64, write_s=200.0, host_bytes=1e12)) == 200.0
    assert float(stall_s(size_bytes=980e9, chips=64, write_s=0.5, host_bytes=8 * 2e12)) == 0.5


def test_what_was_trained_while_a_checkpoint_was_written_is_lost_too() -> None:
    def good(lag_s: float) -> float:
        return float(goodput_fraction(write_s=1, interval_s=600, mtbf_s=36000, restart_s=600, lag_s=lag_s))

    assert 1 / good(360) - 1 / good(0) == pytest.approx(0.01)


def test_failures_scale_with_the_cluster() -> None:
    # 419 unexpected interruptions in 54 days on 16,384 chips: one in 3.1 hours
    assert mean_time_between_failures_s(16384) / 3600 == pytest.approx(3.09, abs=0.01)
    assert mean_time_between_failures_s(1) == pytest.approx(16384 * float(mean_time_between_failures_s(16384)))
    assert restart_s() > 0


@given(write_s=st.floats(1, 600), mtbf_s=st.floats(3600, 1e7))
def test_the_best_interval_beats_its_neighbours(write_s: float, mtbf_s: float) -> None:
    best = float(checkpoint_interval_s(write_s=write_s, mtbf_s=mtbf_s))

    def goodput(interval_s: float) -> float:
        return float(goodput_fraction(write_s=write_s, interval_s=interval_s, mtbf_s=mtbf_s, restart_s=60.0))

    assert goodput(best) >= goodput(best * 1.3)
    assert goodput(best) >= goodput(best / 1.3)
    assert 0 < goodput(best) < 1


def test_interruptions_cost_half_an_interval_and_a_restart() -> None:
    cost = interruption_cost_usd(
        interruptions=4, interval_s=1800, restart_s=900, usd_per_hour=Range(low=10, mid=20, high=40)
    )
    assert (cost.low, cost.mid, cost.high) == (20.0, 40.0, 80.0)
