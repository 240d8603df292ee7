"""Worked numbers, physics and refusals of the serving model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.model import ModelSpec
from chipwise.parallelism import Split
from chipwise.perf.hardware import Hardware
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.parameters import Parameters
from chipwise.perf.serving import alone_s, bound_by, explain_serving, predict_serving, serving_terms
from chipwise.perf.spread import tpot_spread, ttft_spread

Ask = Callable[..., ServingInput]
KINDS = ("single", "static", "closed", "rate", "offline")
calm = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def load(kind: Any = "closed", **fields: Any) -> ServingLoad:
    base = ServingLoad(kind=kind, isl=1024.0, osl=512.0, concurrency=32.0, rate_per_s=1.0, batch=32.0)
    return replace(base, **fields)


def test_decode_of_a_70b_in_bf16_is_its_bytes_over_the_bandwidth(ask: Ask, ideal: Parameters) -> None:
    """69.5e9 parameters in 2 bytes over 8 x 3 TB/s are 5.79 ms; context and activations add a little."""
    tpot = float(predict_serving(ask(load("single"), parameters=ideal)).tpot_s)
    assert 139.0e9 / 24e12 < tpot < 1.03 * 139.0e9 / 24e12


def test_prefill_is_two_flops_a_parameter_and_token(ask: Ask, ideal: Parameters) -> None:
    """2 * 68.4e9 * 8192 over 8 PFLOP/s is 0.140 s; attention, all-reduces and norms add their own."""
    ttft = float(predict_serving(ask(load("single", isl=8192.0), parameters=ideal)).ttft_s)
    gemms = 2 * 68.45e9 * 8192 / 8e15
    attention = 80 * 64 * 2 * 256 * 8192 * 4096 / 8e15
    all_reduces = 160 * 2 * 7 / 8 * 8192 * 8192 * 2 / 450e9
    norms = 80 * 8 * 8192 * 8192 * 2 / 3e12
    assert ttft == pytest.approx(gemms + attention + all_reduces + norms, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
@calm
@given(
    tp=st.sampled_from([1.0, 2.0, 4.0, 8.0]),
    clients=st.integers(min_value=1, max_value=600),
    lengths=st.tuples(st.integers(1, 30000), st.integers(1, 4000)),
)
def test_nothing_is_faster_than_physics(ask: Ask, kind: str, tp: float, clients: int, lengths: tuple[int, int]) -> None:
    isl, osl = lengths
    question = ask(
        load(kind, isl=float(isl), osl=float(osl), concurrency=float(clients), batch=float(clients)),
        split=Split(tp=tp),
    )
    answer = predict_serving(question)
    weights_s = 2 * 68.45e9 / tp / 3e12
    prefill_s = 2 * 68.45e9 * isl / (tp * 1e15)
    assert float(answer.tpot_s) >= weights_s
    assert float(answer.ttft_s) >= prefill_s
    tokens_per_s = float(answer.output_tokens_per_s)
    assert tokens_per_s * (1 + isl / osl) * 2 * 68.45e9 <= tp * 1e15 * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_answer_as_scalars_do(ask: Ask, kind: str) -> None:
    points = np.array([1.0, 7.0, 64.0, 500.0])
    together = predict_serving(ask(load(kind, concurrency=points, batch=points, rate_per_s=points / 20.0)))
    for index, point in enumerate(points):
        one = predict_serving(ask(load(kind, concurrency=float(point), batch=float(point), rate_per_s=point / 20.0)))
        for name in ("ttft_s", "tpot_s", "output_tokens_per_s", "running"):
            several = np.broadcast_to(getattr(together, name), points.shape)
            assert float(several[index]) == pytest.approx(float(getattr(one, name)), rel=1e-9)


def test_more_clients_wait_longer_and_get_more_done(ask: Ask) -> None:
    answer = predict_serving(ask(load(concurrency=np.array([1.0, 2.0, 8.0, 32.0, 128.0, 256.0]))))
    assert np.all(np.diff(answer.tpot_s) > 0)
    assert np.all(np.diff(answer.ttft_s) > 0)
    assert np.all(np.diff(answer.output_tokens_per_s) > 0)


def test_clients_beyond_the_seats_queue_and_are_not_refused(ask: Ask) -> None:
    answer = predict_serving(ask(load(concurrency=np.array([256.0, 1024.0]))))
    tpot, ttft, output = (np.ravel(x) for x in (answer.tpot_s, answer.ttft_s, answer.output_tokens_per_s))
    assert tpot[1] == pytest.approx(tpot[0], rel=0.02)
    assert ttft[1] > 5 * ttft[0]
    assert output[1] == pytest.approx(output[0], rel=0.1)


def test_little_s_law_holds_in_a_closed_loop(ask: Ask) -> None:
    clients = np.array([1.0, 16.0, 200.0, 900.0])
    answer = predict_serving(ask(load(concurrency=clients)))
    np.testing.assert_allclose(answer.requests_per_s * answer.e2e_s, clients, rtol=0.02)


def test_a_cache_for_ten_sequences_lets_ten_run(ask: Ask) -> None:
    per_token = 80 * 2 * 128 * 2.0
    held = 1024 + 512 * (0.5 + 0.5 * 0.5)
    answer = predict_serving(ask(load("offline"), kv_pool_bytes=10.4 * per_token * held))
    assert float(answer.sequence_limit) == 10.0
    assert float(answer.running) == 10.0


def test_a_rate_above_capacity_is_saturated_and_has_no_ttft(ask: Ask) -> None:
    capacity = float(predict_serving(ask(load("offline"))).requests_per_s)
    answer = predict_serving(ask(load("rate", rate_per_s=np.array([0.1, 0.9, 1.2]) * capacity)))
    np.testing.assert_array_equal(answer.saturated, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(np.isinf(answer.ttft_s), [False, False, True])
    assert np.ravel(answer.requests_per_s)[2] == pytest.approx(capacity)
    np.testing.assert_allclose(answer.saturation_rate_per_s, capacity)


def test_a_rate_is_served_as_it_comes(ask: Ask) -> None:
    answer = predict_serving(ask(load("rate", rate_per_s=2.0)))
    assert float(answer.output_tokens_per_s) == pytest.approx(2.0 * 512)
    assert float(answer.running) == pytest.approx(2.0 * 511 * float(answer.tpot_s), rel=0.03)


@calm
@given(tokens=st.integers(min_value=1, max_value=4096), width=st.sampled_from([1.0, 2.0, 4.0]))
def test_more_devices_never_slow_a_gemm(ask: Ask, tokens: int, width: float) -> None:
    question = load("single", isl=float(tokens))

    def gemms(tp: float) -> float:
        terms = {term.operation: term for term in serving_terms(ask(question, split=Split(tp=tp)))}
        return float(terms["mlp"].prefill_s) + float(terms["attention projections"].prefill_s)

    assert gemms(2 * width) <= gemms(width)


def test_bandwidth_and_context_move_tpot_the_right_way(ask: Ask, device: Hardware) -> None:
    plain = float(predict_serving(ask(load())).tpot_s)
    faster = replace(device, memory_bandwidth_bytes_per_s=6e12)
    assert float(predict_serving(ask(load(), hardware=faster)).tpot_s) < plain
    assert float(predict_serving(ask(load(isl=8192.0))).tpot_s) > plain
    assert float(predict_serving(ask(load(), kv_element_bytes=1.0)).tpot_s) < plain


def test_a_prefix_in_the_cache_needs_no_prefill(ask: Ask) -> None:
    cold = predict_serving(ask(load("single", isl=8192.0)))
    warm = predict_serving(ask(load("single", isl=8192.0, prefix_hit_fraction=0.75)))
    assert float(warm.ttft_s) < 0.5 * float(cold.ttft_s)
    assert float(warm.tpot_s) == pytest.approx(float(cold.tpot_s))


def test_speculation_pays_when_drafts_are_accepted(ask: Ask) -> None:
    plain = float(predict_serving(ask(load("single"))).tpot_s)
    good = float(predict_serving(ask(load("single"), draft_tokens=3.0, acceptance=0.8)).tpot_s)
    useless = float(predict_serving(ask(load("single"), draft_tokens=3.0, acceptance=0.0)).tpot_s)
    assert good < 0.5 * plain
    assert useless >= plain


def test_two_replicas_serve_twice_the_load(ask: Ask) -> None:
    one = predict_serving(ask(load(concurrency=32.0)))
    two = predict_serving(ask(load(concurrency=64.0), replicas=2.0))
    assert float(two.output_tokens_per_s) == pytest.approx(2 * float(one.output_tokens_per_s))
    assert float(two.tpot_s) == pytest.approx(float(one.tpot_s))


def test_one_request_keeps_one_replica_busy(ask: Ask) -> None:
    one = predict_serving(ask(load("single")))
    two = predict_serving(ask(load("single"), replicas=2.0))
    assert float(two.output_tokens_per_s) == pytest.approx(float(one.output_tokens_per_s))


def test_eager_mode_costs_launches(ask: Ask) -> None:
    small = ask(load("single"), split=Split(tp=8.0))
    assert float(predict_serving(replace(small, eager=1.0)).tpot_s) > float(predict_serving(small).tpot_s)


def test_pipeline_stages_do_not_shorten_a_token(ask: Ask) -> None:
    flat = float(predict_serving(ask(load("single"), split=Split(tp=4.0))).tpot_s)
    staged = float(predict_serving(ask(load("single"), split=Split(tp=4.0, pp=2.0))).tpot_s)
    assert staged == pytest.approx(flat, rel=0.1)
    assert staged > flat * 0.999


def test_a_batch_touches_more_experts_than_a_token(ask: Ask, routed: ModelSpec, ideal: Parameters) -> None:
    def experts_s(batch: float) -> float:
        question = ask(load("static", batch=batch), model=routed, split=Split(tp=1.0), parameters=ideal)
        terms = {term.operation: term for term in serving_terms(question)}
        return float(terms["routed experts"].decode_s)

    touched = 64 * (1 - (1 - 4 / 64) ** 32)
    assert experts_s(32.0) / experts_s(1.0) == pytest.approx(touched / 4, rel=0.02)


def test_data_parallel_attention_swaps_all_reduce_for_all_to_all(ask: Ask, routed: ModelSpec) -> None:
    spread = ask(load(), model=routed, split=Split(tp=1.0, dp=8.0, ep=8.0))
    terms = {term.operation: float(term.decode_s) for term in serving_terms(spread)}
    assert terms["all-to-all"] > 0
    assert terms["all-reduce"] == 0


@pytest.mark.parametrize("kind", ["single", "static", "closed", "rate"])
@pytest.mark.parametrize("engine_mixes", [0.0, 1.0])
def test_terms_add_up(ask: Ask, fitted: Parameters, kind: str, engine_mixes: float) -> None:
    question = ask(load(kind), parameters=replace(fitted, mixed_fraction=engine_mixes))
    answer, terms = predict_serving(question), serving_terms(question)
    assert sum(float(term.prefill_s) for term in terms) == pytest.approx(float(answer.ttft_s))
    assert sum(float(term.decode_s) for term in terms) == pytest.approx(float(answer.tpot_s))
    assert all(float(term.prefill_s) >= -1e-12 and float(term.decode_s) >= -1e-12 for term in terms)


def test_a_compressed_past_is_read_by_the_entry(ask: Ask, dense: ModelSpec, ideal: Parameters) -> None:
    """A longer context costs a window nothing, one with a compressed past a quarter of a full one, if unpicked."""

    def attention_s(context: int, **shape: Any) -> float:
        layer = dense.layers[0]
        spec = replace(dense, layers=(replace(layer, attention=replace(layer.attention, **shape)),))
        terms = serving_terms(ask(load("single", isl=context), model=spec, parameters=ideal))
        return sum(float(term.decode_s) for term in terms if term.operation == "attention")

    window: dict[str, Any] = {"kind": "sliding", "window_tokens": 128, "values_cached": False}
    full, near = attention_s(100_000) - attention_s(50_000), attention_s(100_000, **window)
    assert near == pytest.approx(attention_s(50_000, **window))
    past = {**window, "compressed_every": 4}
    # Half the elements (keys are the values), a quarter of the entries.
    assert attention_s(100_000, **past) - attention_s(50_000, **past) == pytest.approx(full / 8)
    assert attention_s(100_000, **past, sparse_tokens=512) == pytest.approx(near * (128 + 512) / 128)


def test_what_binds_has_a_name(ask: Ask) -> None:
    def bound(question: ServingInput) -> list[str]:
        return bound_by(question, predict_serving(question), serving_terms(question))

    assert bound(ask(load("single"), split=Split(tp=1.0))) == ["bandwidth"]
    assert bound(ask(load("offline", isl=8192.0, osl=16.0), split=Split(tp=1.0), kv_pool_bytes=1e12)) == ["compute"]
    assert bound(ask(load("offline"), kv_pool_bytes=1e9)) == ["capacity"]


@pytest.mark.parametrize("kind", ["closed", "rate"])
def test_percentiles_rise_and_straddle_the_mean(ask: Ask, kind: str) -> None:
    answer = predict_serving(ask(load(kind, rate_per_s=4.0)))
    for spread in (ttft_spread(answer, isl_cv=0.3), tpot_spread(answer, steps=511.0)):
        assert float(spread.p50) <= float(spread.p90) <= float(spread.p95) <= float(spread.p99)
        assert float(spread.p50) <= float(spread.mean) * 1.05
        assert float(spread.p99) >= float(spread.mean)


@pytest.mark.parametrize("wrong", [{"isl": 0.0}, {"osl": 0.0}, {"prefix_hit_fraction": 1.5}])
def test_impossible_questions_are_refused(ask: Ask, wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        predict_serving(ask(load(**wrong)))


def test_an_unknown_format_is_not_guessed(ask: Ask) -> None:
    with pytest.raises(KeyError):
        predict_serving(ask(load(), weight_bytes={"fp8": 1.0}))


@pytest.mark.parametrize("kind", KINDS)
def test_explained_at_once_or_apart_is_the_same(ask: Ask, kind: str) -> None:
    question = ask(load(kind, concurrency=np.array([1.0, 64.0])))
    prediction, terms = explain_serving(question)
    assert np.array_equal(prediction.tpot_s, predict_serving(question).tpot_s)
    apart = serving_terms(question)
    assert [one.operation for one in terms] == [one.operation for one in apart]
    assert all(np.array_equal(one.decode_s, other.decode_s) for one, other in zip(terms, apart, strict=True))


def test_alone_is_what_every_load_calls_isolated(ask: Ask) -> None:
    question = ask(load("closed"))
    prediction = predict_serving(question)
    assert alone_s(question) == (prediction.isolated_ttft_s, prediction.isolated_tpot_s)
