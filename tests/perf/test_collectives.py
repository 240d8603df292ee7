"""Worked numbers and properties of the collectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.parallelism import Number
from chipwise.perf import collectives as co
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.parameters import NAMES, Parameters


def test_all_reduce_moves_twice_seven_eighths(device: Hardware, ideal: Parameters) -> None:
    """450 MB among 8 at 450 GB/s: 2 * 7/8 ms."""
    seconds = co.all_reduce_s(size_bytes=450e6, devices=8.0, hardware=device, parameters=ideal)
    assert float(seconds) == pytest.approx(1.75e-3)


def test_an_all_gather_is_half_an_all_reduce(device: Hardware, ideal: Parameters) -> None:
    whole = co.all_reduce_s(size_bytes=1e8, devices=4.0, hardware=device, parameters=ideal)
    gather = co.all_gather_s(size_bytes=1e8, devices=4.0, hardware=device, parameters=ideal)
    assert float(whole) == pytest.approx(2.0 * float(gather))


@pytest.mark.parametrize("collective", [co.all_reduce_s, co.all_gather_s, co.all_to_all_s])
def test_one_device_has_nobody_to_talk_to(
    collective: Callable[..., Number], device: Hardware, fitted: Parameters
) -> None:
    assert float(collective(size_bytes=1e9, devices=1.0, hardware=device, parameters=fitted)) == 0.0


def test_latency_is_paid_for_nothing(device: Hardware, fitted: Parameters) -> None:
    seconds = co.all_reduce_s(size_bytes=0.0, devices=2.0, hardware=device, parameters=fitted)
    assert float(seconds) == pytest.approx(float(fitted.collective_s))


@pytest.mark.parametrize("fabric", ["pcie", "nvswitch"])
def test_every_device_beyond_two_costs_a_hop(device: Hardware, fitted: Parameters, fabric: str) -> None:
    joined = replace(device, fabric=float(FABRICS.index(fabric)))
    nothing = [
        float(co.all_reduce_s(size_bytes=0.0, devices=n, hardware=joined, parameters=fitted)) for n in (2.0, 4.0, 8.0)
    ]
    assert nothing[1] - nothing[0] == pytest.approx(2.0 * float(fitted.hop_s))
    assert nothing[2] - nothing[1] == pytest.approx(4.0 * float(fitted.hop_s))


def test_host_memory_on_the_way_doubles_the_bytes(device: Hardware, ideal: Parameters) -> None:
    staged = replace(device, peer_to_peer=0.0)
    direct = co.all_reduce_s(size_bytes=1e8, devices=4.0, hardware=device, parameters=ideal)
    twice = co.all_reduce_s(size_bytes=1e8, devices=4.0, hardware=staged, parameters=ideal)
    assert float(twice) == pytest.approx(2.0 * float(direct))


def test_leaving_the_node_costs_more(device: Hardware, fitted: Parameters) -> None:
    inside = co.all_reduce_s(size_bytes=1e8, devices=8.0, hardware=device, parameters=fitted)
    across = co.all_reduce_s(size_bytes=1e8, devices=16.0, hardware=device, parameters=fitted)
    assert float(across) > float(inside)


def test_without_a_network_a_second_node_is_out_of_reach(device: Hardware, fitted: Parameters) -> None:
    alone = replace(device, network_bytes_per_s=0.0)
    assert float(co.all_reduce_s(size_bytes=1.0, devices=16.0, hardware=alone, parameters=fitted)) == float("inf")


@given(size=st.floats(min_value=0.0, max_value=1e10), more=st.floats(min_value=1.0, max_value=1e9))
def test_more_bytes_take_longer(size: float, more: float) -> None:
    hardware = Hardware(
        gemm_flops_per_s={},
        widened={},
        attention_flops_per_s=1.0,
        memory_bandwidth_bytes_per_s=1.0,
        fabric=0.0,
        link_bytes_per_s=1e11,
        peer_to_peer=1.0,
        node_devices=8.0,
        network_bytes_per_s=1e11,
    )
    names = dict.fromkeys(NAMES, 0.5)
    few = co.all_to_all_s(size_bytes=size, devices=16.0, hardware=hardware, parameters=Parameters(**names))
    many = co.all_to_all_s(size_bytes=size + more, devices=16.0, hardware=hardware, parameters=Parameters(**names))
    assert float(many) > float(few)
