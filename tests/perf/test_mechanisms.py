"""What compiled graphs, narrow weights, tiles, switches that reduce and the end of a run cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from chipwise.model import ModelSpec
from chipwise.parallelism import Split
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.machine import Machine, machine_of
from chipwise.perf.parameters import Parameters, parameters_for
from chipwise.perf.rates import Site, rates_of
from chipwise.perf.serving import predict_serving, serving_terms
from chipwise.perf.steady import lengths_of
from chipwise.perf.steps import StepLoad, step_terms
from chipwise.perf.work import work_of

Ask = Callable[..., ServingInput]
NEURON = parameters_for(chip="trainium2", generation="neuroncore-v3", engine="nxd-inference", fabric="neuronlink")


def test_compiled_graphs_compute_the_next_power_of_two() -> None:
    assert float(lengths_of(isl=1500.0, osl=200.0, exact=0.0).fresh) == 2048.0
    assert float(lengths_of(isl=1500.0, osl=200.0, exact=0.0, compiled=4096.0).fresh) == 4096.0
    assert float(lengths_of(isl=1500.0, osl=200.0, compiled=4096.0).fresh) == 1500.0
    assert float(lengths_of(isl=1000.0, osl=2048.0, exact=0.0).decode_context) == 2048.0


def test_a_prompt_costs_what_its_bucket_costs(ask: Ask) -> None:
    load = ServingLoad(kind="single", isl=np.array([1100.0, 2048.0, 2049.0]), osl=64.0)
    short, full, next_one = np.ravel(predict_serving(ask(load, parameters=NEURON)).ttft_s)
    assert short == pytest.approx(full, rel=1e-9)
    assert next_one > 1.5 * full


def test_a_compiled_batch_is_computed_however_few_run(ask: Ask) -> None:
    one = ServingLoad(kind="single", isl=1024.0, osl=256.0)
    full = ServingLoad(kind="static", isl=1024.0, osl=256.0, batch=32.0)
    padded = predict_serving(ask(one, compiled_sequences=32.0))
    assert float(padded.tpot_s) == pytest.approx(float(predict_serving(ask(full)).tpot_s))
    assert float(padded.tpot_s) > 1.02 * float(predict_serving(ask(one)).tpot_s)
    terms = serving_terms(ask(one, compiled_sequences=32.0))
    assert sum(float(term.decode_s) for term in terms) == pytest.approx(float(padded.tpot_s))


def test_prefill_and_decode_are_graphs_of_their_own_on_neuron() -> None:
    assert float(NEURON.mixed_fraction) == 0.0
    assert float(NEURON.exact_fraction) == 0.0


def site(dense: ModelSpec, device: Hardware, parameters: Parameters, tp: float = 1.0) -> Site:
    from chipwise.parallelism import shard

    return Site(
        work=work_of(shard(dense, Split(tp=tp))),
        hardware=device,
        parameters=parameters,
        weight_bytes={"bf16": 2.0, "int4": 0.5},
        kv_element_bytes=2.0,
    )


@pytest.mark.parametrize(("widened", "counted"), [(1.0, 0.625), (0.0, 0.5)])
def test_narrow_weights_that_are_widened_count_for_more_than_they_take(
    dense: ModelSpec, device: Hardware, fitted: Parameters, widened: float, counted: float
) -> None:
    """Half a byte a parameter, streamed at 0.8 of the bandwidth of wide ones, takes the time of 0.625 bytes."""
    on = replace(device, widened={"bf16": widened})
    at = replace(site(dense, on, replace(fitted, narrow_fraction=0.8)), weight_bytes={"bf16": 0.5})
    wide = replace(at, weight_bytes={"bf16": 2.0})
    narrow_s, wide_s = (machine_of(one).costs.streams.weights_s for one in (at, wide))
    np.testing.assert_allclose(narrow_s / wide_s, counted / 2.0)


def test_activations_are_narrowed_by_kernels_of_their_own(
    dense: ModelSpec, device: Hardware, fitted: Parameters
) -> None:
    """A dense layer multiplies four times: where cores take both factors narrow, four inputs are narrowed before."""
    at = site(dense, device, replace(fitted, gap_s=1e-6))
    for size_bytes, widened, kernels in ((2.0, 0.0, 8), (1.0, 0.0, 12), (0.5, 1.0, 8)):
        narrow = replace(at, hardware=replace(device, widened={"bf16": widened}), weight_bytes={"bf16": size_bytes})
        _, decode_s = machine_of(narrow).costs.launches_s
        assert float(np.asarray(decode_s)) == pytest.approx(80 * kernels * 1e-6)


def closed_loop(users: float, **other: float) -> ServingLoad:
    return ServingLoad(kind="closed", isl=128.0, osl=128.0, concurrency=users, **other)


def test_short_prompts_of_a_benchmark_share_the_steps_that_carry_them(ask: Ask, fitted: Parameters) -> None:
    """64 prompts of 128 tokens fill one step of 8,192; where answers differ in length each takes a step of its own."""
    together = predict_serving(ask(closed_loop(64.0)))
    apart = predict_serving(ask(closed_loop(64.0, osl_cv=0.5)))
    service = predict_serving(ask(closed_loop(64.0), parameters=replace(fitted, burst_fraction=0.0)))
    assert float(together.prefill_share) < float(apart.prefill_share) / 10.0
    assert float(together.tpot_s) < float(apart.tpot_s)
    assert float(service.prefill_share) == pytest.approx(float(apart.prefill_share), rel=0.2)


def test_a_prompt_stands_on_one_data_parallel_rank(routed: ModelSpec, device: Hardware, fitted: Parameters) -> None:
    """Attention of one prompt takes as long on eight ranks as on one; eight prompts take no longer than one."""
    from chipwise.parallelism import shard

    split = Split(tp=1.0, dp=8.0, ep=8.0)
    eight = machine_of(replace(site(routed, device, fitted), work=work_of(shard(routed, split))))
    alone = machine_of(site(routed, device, fitted))

    def attention_s(machine: Machine, prompts: float, ranks: float) -> float:
        load = StepLoad(prefill_tokens=4096.0 * prompts, prefill_sequences=prompts, prompt_ranks=ranks)
        return sum(float(one.seconds) for one in step_terms(machine, load) if one.operation == "attention")

    assert attention_s(eight, 1.0, 1.0) == pytest.approx(attention_s(alone, 1.0, 1.0))
    assert attention_s(eight, 8.0, 8.0) == pytest.approx(attention_s(eight, 1.0, 1.0))


@pytest.mark.parametrize(("ring", "passages"), [(1.0, 2 * 7 / 8), (0.0, 1.0)])
def test_a_switch_that_reduces_takes_the_bytes_once(
    dense: ModelSpec, device: Hardware, ideal: Parameters, ring: float, passages: float
) -> None:
    rates = rates_of(site(dense, device, replace(ideal, ring_fraction=ring), tp=8.0))
    assert float(rates.all_reduce.seconds(450e9)) == pytest.approx(passages)


def test_without_a_switch_nothing_reduces_on_the_way(dense: ModelSpec, device: Hardware, ideal: Parameters) -> None:
    joined = replace(device, fabric=float(FABRICS.index("nvlink")))
    rates = rates_of(site(dense, joined, replace(ideal, ring_fraction=0.0), tp=8.0))
    assert float(rates.all_reduce.seconds(450e9)) == pytest.approx(2 * 7 / 8)


def test_every_expert_that_is_touched_computes_half_a_tile_for_nothing(
    routed: ModelSpec, device: Hardware, ideal: Parameters
) -> None:
    """64 experts, 4 a token: 16384 tokens are 1024 an expert, and 32 more are computed."""
    matrices = 3 * 2048 * 8192
    flops = 40 * 2.0 * matrices * 64 * (1024 + 32)
    assert experts_s(routed, device, replace(ideal, expert_tile_tokens=64.0)) == pytest.approx(flops / 1e15, rel=1e-6)


def experts_s(routed: ModelSpec, device: Hardware, parameters: Parameters, tp: float = 1.0) -> float:
    """Seconds of the routed experts in a step of 16384 prompt tokens."""
    machine = machine_of(site(routed, device, parameters, tp))
    terms = step_terms(machine, StepLoad(prefill_tokens=16384.0, prefill_sequences=16.0))
    (experts,) = [term for term in terms if term.operation == "routed experts"]
    return float(experts.seconds)


def test_a_compiled_graph_holds_the_blocks_of_the_worst_case(
    routed: ModelSpec, device: Hardware, ideal: Parameters
) -> None:
    """64 experts, 4 a token: 16384 tokens are 65536 pairs, and 63 almost empty blocks of 512 are computed too."""
    compiled = replace(ideal, exact_fraction=0.0, expert_tile_tokens=512.0)
    flops = 40 * 2.0 * 3 * 2048 * 8192 * (65536 + 63 * 512)
    assert experts_s(routed, device, compiled) == pytest.approx(flops / 1e15, rel=1e-6)


def test_a_narrow_piece_fills_the_lanes_of_the_array(routed: ModelSpec, device: Hardware, ideal: Parameters) -> None:
    """At tp 64 a piece of 2048 / 64 = 32 columns is computed as 128; a whole one is as wide as it is."""
    fast, lanes = replace(device, memory_bandwidth_bytes_per_s=1e18), replace(ideal, array_lanes=128.0)
    for tp, times in ((64.0, 4.0), (1.0, 1.0)):
        narrow, bare = (experts_s(routed, fast, one, tp=tp) for one in (lanes, ideal))
        assert narrow == pytest.approx(times * bare, rel=1e-6)


def test_sampling_on_the_host_copies_the_compiled_batch_and_samples_what_runs(ask: Ask) -> None:
    load = ServingLoad(kind="single", isl=1024.0, osl=128.0)
    device = ask(load, compiled_sequences=32.0)
    host = replace(device, host_sampling=1.0)
    parameters = host.parameters
    added_s = 128256 * (32 * float(parameters.host_copy_s) + float(parameters.host_sample_s))
    assert float(predict_serving(host).tpot_s) - float(predict_serving(device).tpot_s) == pytest.approx(added_s)


def test_answers_of_unequal_length_end_a_run_slowly(ask: Ask) -> None:
    fixed = ServingLoad(kind="offline", isl=256.0, osl=200.0, requests=1000.0)
    steady = float(predict_serving(ask(replace(fixed, requests=np.inf, osl_cv=0.8))).requests_per_s)
    equal = predict_serving(ask(fixed))
    unequal = predict_serving(ask(replace(fixed, osl_cv=0.8)))
    assert float(equal.requests_per_s) == pytest.approx(steady)
    longest = 0.8 * np.sqrt(2.0 * np.log(float(unequal.running))) * 199.0 * float(unequal.isolated_tpot_s)
    assert float(unequal.requests_per_s) == pytest.approx(1000.0 / (1000.0 / steady + longest))


def test_a_short_run_at_a_rate_is_slower_than_the_rate(ask: Ask) -> None:
    load = ServingLoad(kind="rate", isl=256.0, osl=200.0, rate_per_s=4.0)
    for requests in (100.0, 10_000.0):
        answer = predict_serving(ask(replace(load, requests=requests)))
        last_s = float(answer.own_prefill_s) + 199.0 * float(answer.tpot_s)
        assert float(answer.requests_per_s) == pytest.approx(requests / (requests / 4.0 + last_s))
    assert float(predict_serving(ask(load)).requests_per_s) == pytest.approx(4.0)


def test_clients_of_a_short_run_all_start_together(ask: Ask) -> None:
    load = ServingLoad(kind="closed", isl=1024.0, osl=128.0, concurrency=32.0)
    once = predict_serving(ask(replace(load, requests=32.0)))
    long_run = predict_serving(ask(replace(load, requests=32_000.0)))
    assert float(once.burst_share) == 1.0
    assert float(long_run.burst_share) == pytest.approx(0.001)
    assert float(once.ttft_s) > 3.0 * float(long_run.ttft_s)


def test_a_run_that_ends_before_its_seats_are_taken_is_not_saturated(ask: Ask) -> None:
    load = ServingLoad(kind="rate", isl=256.0, osl=256.0)
    capacity = float(predict_serving(ask(load, max_num_seqs=64.0)).saturation_rate_per_s)
    above = replace(load, rate_per_s=1.5 * capacity)
    endless = predict_serving(ask(above, max_num_seqs=64.0))
    assert float(endless.saturated) == 1.0
    short = predict_serving(ask(replace(above, requests=60.0), max_num_seqs=64.0))
    assert float(short.saturated) == 0.0
    assert float(short.isolated_ttft_s) <= float(short.ttft_s) < 10.0 * float(short.isolated_ttft_s)
    assert float(short.isolated_tpot_s) < float(short.tpot_s)
    long_run = predict_serving(ask(replace(above, requests=6000.0), max_num_seqs=64.0))
    assert float(long_run.saturated) == 1.0


def test_when_all_have_a_seat_at_once_prompts_come_first(ask: Ask) -> None:
    load = ServingLoad(kind="offline", isl=1024.0, osl=128.0)
    seated = predict_serving(ask(replace(load, requests=100.0)))
    prompts_s = 100.0 * 1024.0 / float(seated.requests_per_s) / 1024.0  # longer than what the prompts alone take
    assert float(seated.plain_step_s) < float(seated.tpot_s) < float(seated.plain_step_s) + prompts_s / 2.0 / 127.0
