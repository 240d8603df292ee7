"""Serving rows become the questions they state, and their metrics the figures of the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipwise.audit import inference
from chipwise.audit.figures import wanted
from chipwise.audit.items import Context, Line, SkipError
from chipwise.audit.replay import Replayed, replay
from chipwise.audit.runs import place_of, run_of
from chipwise.audit.score import summary
from chipwise.audit.settings import Settings, settings_of
from chipwise.audit.table import Row
from chipwise.catalog import load_catalog
from chipwise.perf.serving import predict_serving

CONTEXT = Context(file=Path("table.csv"))


@pytest.fixture
def row(served: dict[str, Any]) -> Callable[..., Row]:
    def made(**cells: Any) -> Row:
        merged = served | cells
        return Row(number=2, cells={name: str(value) for name, value in merged.items() if value is not None})

    return made


def lines(*rows: Row, incomplete: bool = False) -> list[Line]:
    context = Context(file=Path("table.csv"), incomplete=incomplete)
    return inference.predict(inference.items_of(list(rows), context), context)


@pytest.fixture
def mid(row: Callable[..., Row]) -> Callable[..., float]:
    def figure(**cells: Any) -> float:
        (found,) = lines(row(**cells))
        assert found.prediction is not None, found.code
        return float(found.prediction.mid)

    return figure


@pytest.fixture
def code(row: Callable[..., Row]) -> Callable[..., str | None]:
    def reason(**cells: Any) -> str | None:
        (found,) = lines(row(**cells))
        return found.code

    return reason


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"isl": ""}, "conditions-missing:isl"),
        ({"osl": "n/a"}, "conditions-missing:osl"),
        ({"concurrency_or_batch": ""}, "conditions-missing:concurrency_or_batch"),
        ({"load_kind": "request-rate"}, "conditions-missing:request_rate"),
        ({"load_kind": ""}, "conditions-missing:load_kind"),
        ({"load_kind": "trace-replay"}, "load-kind-not-covered"),
        ({"hardware": "abacus"}, "chip-unknown"),
        ({"hardware": ""}, "conditions-missing:hardware"),
        ({"model": "nobody/knows-this"}, "model-unknown"),
        ({"engine": ""}, "conditions-missing:engine"),
        ({"metric": "joules_per_token"}, "metric-not-covered"),
        ({"metric": "ttft_ms_p42"}, "metric-not-covered"),
        ({"value": "?"}, "conditions-missing:value"),
        ({"flags": "conditions-complete some-condition-assumed;suspect"}, "flagged"),
        ({"flags": "conditions-complete,wip"}, "flagged"),
        ({"flags": ""}, "conditions-missing:flags"),
        ({"flags": "", "tp": ""}, "conditions-missing:tp"),
        ({"n_devices": "", "tp": ""}, "conditions-missing:n_devices"),
    ],
)
def test_what_is_not_predicted_says_why(code: Callable[..., Any], cells: dict[str, Any], reason: str) -> None:
    assert code(**cells) == reason


def test_a_table_without_flags_is_taken_at_its_word(code: Callable[..., Any]) -> None:
    assert code(flags=None) is None


def test_an_incomplete_row_is_predicted_where_that_is_asked(row: Callable[..., Any]) -> None:
    (found,) = lines(row(flags=""), incomplete=True)
    assert found.prediction is not None


@pytest.mark.parametrize(
    "load", [{"load_kind": "offline-max-throughput"}, {"load_kind": "request-rate", "request_rate": "inf"}]
)
def test_latency_of_a_full_queue_is_saturated(code: Callable[..., Any], load: dict[str, Any]) -> None:
    assert code(metric="ttft_ms_mean", **load) == "saturated"
    assert code(metric="e2e_ms_mean", **load) == "saturated"
    assert code(metric="output_tok_s_total", **load) is None


def test_a_rate_above_capacity_is_saturated_and_one_below_is_not(code: Callable[..., Any]) -> None:
    assert code(metric="ttft_ms_mean", load_kind="request-rate", request_rate="5000") == "saturated"
    assert code(metric="ttft_ms_mean", load_kind="request-rate", request_rate="0.5") is None


def test_the_figure_is_what_perf_answers(row: Callable[..., Any]) -> None:
    (found,) = lines(row())
    (answer,) = replay([run_of(row(), None)]).values()
    assert isinstance(answer, Replayed)
    direct = predict_serving(answer.asked)
    assert found.prediction is not None
    assert found.prediction.mid == pytest.approx(1e3 * float(np.ravel(direct.tpot_s)[0]))


def test_runs_replayed_together_answer_as_alone(row: Callable[..., Any]) -> None:
    rows = [row(run_id=f"r{n}", concurrency_or_batch=n, tp=tp, n_devices=tp) for n, tp in ((1, 1), (64, 2), (8, 4))]
    together = [line.prediction.mid for line in lines(*rows) if line.prediction]
    alone = [line.prediction.mid for one in rows for line in lines(one) if line.prediction]
    assert together == pytest.approx(alone)


def test_units_are_the_tables_own(mid: Callable[..., Any]) -> None:
    assert mid(metric="tpot_s_mean") == pytest.approx(mid(metric="tpot_ms_mean") / 1e3)
    whole = mid(metric="output_tok_s_total", tp=1, n_devices=2)
    assert mid(metric="output_tok_s_per_gpu", tp=1, n_devices=2) == pytest.approx(whole / 2)
    assert mid(metric="total_tok_s") == pytest.approx(mid(metric="output_tok_s_total") * (1024 + 256) / 256)
    assert mid(metric="req_s") == pytest.approx(mid(metric="output_tok_s_total") / 256)


def test_percentiles_are_in_order(mid: Callable[..., Any]) -> None:
    ttft = [mid(metric=f"ttft_ms_{name}") for name in ("p50", "p90", "p99")]
    itl = [mid(metric=f"itl_ms_{name}") for name in ("p50", "p99")]
    assert ttft == sorted(ttft)
    assert itl == sorted(itl)


def test_unspecified_statistics_count_as_means(mid: Callable[..., Any]) -> None:
    assert mid(metric="ttft_ms_unspec") == mid(metric="ttft_ms_mean")


def test_terms_of_a_token_add_up_to_it(row: Callable[..., Any]) -> None:
    (found,) = lines(row())
    assert found.prediction is not None
    seconds = sum(value for name, value in found.prediction.terms.items() if name != "running")
    assert seconds * 1e3 == pytest.approx(found.prediction.mid, rel=1e-6)


def test_the_range_holds_the_middle(row: Callable[..., Any]) -> None:
    (found,) = lines(row())
    assert found.prediction is not None
    assert found.prediction.low < found.prediction.mid < found.prediction.high


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ({"tp": 2, "n_devices": 8}, (2, 1, 1, 1, 4)),
        ({"tp": "", "n_devices": 4}, (4, 1, 1, 1, 1)),
        ({"tp": 4, "n_devices": ""}, (4, 1, 1, 1, 1)),
        ({"tp": 1, "dp": 8, "ep": 8, "n_devices": 8}, (1, 1, 8, 8, 1)),
        ({"tp": 4, "dp": 2, "n_devices": 8}, (4, 1, 1, 1, 2)),
        ({"tp": 16, "n_devices": 8}, (8, 1, 1, 1, 1)),
        ({"tp": 8, "ep": 64, "n_devices": 8}, (8, 1, 8, 1, 1)),
    ],
)
def test_degrees_and_replicas(row: Callable[..., Any], cells: dict[str, Any], place: tuple[int, ...]) -> None:
    found = place_of(row(**cells), load_catalog().chips["h100-sxm"])
    assert (found.tp, found.pp, found.ep, found.dp, found.replicas) == place


def test_data_parallel_ranks_of_a_mixture_cut_its_experts_where_none_says_how_they_are_dealt_out(
    row: Callable[..., Any],
) -> None:
    cells = {"tp": 1, "dp": 4, "n_devices": 4, "hardware": "b200"}
    routed = run_of(row(model="gpt-oss-120b", **cells), None).place
    assert (routed.tp, routed.dp, routed.ep, routed.replicas) == (1, 4, 1, 1)
    dense = run_of(row(**cells), None).place
    assert (dense.dp, dense.replicas) == (1, 4)


def test_copies_that_cannot_hold_a_routed_model_share_its_experts(row: Callable[..., Any]) -> None:
    cells = {"tp": 1, "n_devices": 8, "hardware": "h200-sxm"}
    routed = run_of(row(model="deepseek-v3", **cells), None).place
    assert (routed.tp, routed.dp, routed.ep, routed.replicas) == (1, 8, 8, 1)
    small = run_of(row(**cells), None).place
    assert (small.dp, small.ep, small.replicas) == (1, 1, 8)


def test_a_row_without_a_release_takes_that_of_its_day_and_stands_apart(row: Callable[..., Any]) -> None:
    said, dated, unknown = (
        run_of(row(engine_version=version, source=source), None)
        for version, source in (("0.11.0", "x/y@1"), ("", "vllm-project/vllm#16570"), ("", "x/y@1"))
    )
    assert (said.engine.version, said.assumed_release) == ("0.11.0", False)
    assert (dated.engine.version, dated.assumed_release) == ("0.8.4", True)
    assert (unknown.engine.version, unknown.assumed_release) == (None, True)
    (sure,), (assumed,) = lines(row()), lines(row(engine_version="", flags=""))
    assert sure.prediction is not None
    assert assumed.prediction is not None
    assert sure.prediction.evidence != assumed.prediction.evidence
    assert assumed.prediction.high / assumed.prediction.low >= sure.prediction.high / sure.prediction.low
    answer = summary([sure, assumed], rows=2, by=())
    assert (answer["metrics"]["tpot_ms_mean"]["n"], answer["release_assumed"]["n"], answer["scored"]) == (1, 1, 2)


def test_endless_requests_to_a_server_keep_the_servers_limits(row: Callable[..., Any]) -> None:
    cells = {"engine": "tensorrt-llm", "engine_version": "0.12.0"}
    server = run_of(row(load_kind="request-rate", request_rate="inf", **cells), None)
    batch = run_of(row(load_kind="offline-max-throughput", **cells), None)
    assert (server.load.kind, batch.load.kind) == ("offline", "offline")
    assert (server.limits.sequences, batch.limits.sequences) == (256, 2048)


def test_mxfp4_weights_stay_where_a_row_names_what_they_are_multiplied_in(row: Callable[..., Any]) -> None:
    for words in ("mxfp4", "nvfp4", "fp8", ""):
        held = run_of(row(model="openai/gpt-oss-20b", weight_precision=words), None).model.model
        assert held.quantisation is not None
        assert held.quantisation.weight_format == "mxfp4"


def test_neuron_tp_counts_cores(row: Callable[..., Any]) -> None:
    found = place_of(row(tp=8, n_devices=4), load_catalog().chips["trainium1"])
    assert (found.tp, found.replicas, found.chips) == (8, 1, 4)


def test_settings_are_read_from_the_notes(row: Callable[..., Any]) -> None:
    said = settings_of(row(note="compiled batch size 32 per replica; max_num_batched_tokens=5962, 1000 requests"))
    assert said == Settings(sequences=32.0, chunk_tokens=5962.0, requests=1000.0)


def test_a_stated_batch_limit_bounds_throughput(mid: Callable[..., Any]) -> None:
    load = {"metric": "output_tok_s_total", "load_kind": "offline-max-throughput"}
    assert mid(note="max_num_seqs=8", **load) < 0.5 * mid(**load)


def test_an_engine_nobody_read_is_predicted_with_less_backing(row: Callable[..., Any]) -> None:
    (found,) = lines(row(engine="lmdeploy"))
    assert found.prediction is not None
    assert found.prediction.evidence in {"transferred", "physics"}


def test_a_metric_that_is_none_has_no_reading() -> None:
    with pytest.raises(SkipError, match="metric-not-covered"):
        wanted("watts")


def test_a_compiled_engine_runs_the_batch_and_length_that_the_row_states(row: Callable[..., Row]) -> None:
    note = "compiled batch size 32 per replica, max seq 4096"
    cells = {"hardware": "inf2", "engine": "vllm + optimum-neuron", "engine_version": None, "tp": 8, "n_devices": 4}
    limits = run_of(row(**cells, note=note), None).limits
    assert (limits.compiled_sequences, limits.compiled_tokens) == (32.0, 4096.0)
    buckets = run_of(row(**(cells | {"engine": "nxd-inference"}), note=note), None).limits
    assert (buckets.compiled_sequences, buckets.compiled_tokens) == (32.0, 0.0)
    gpu = run_of(row(note=note), None).limits
    assert (gpu.compiled_sequences, gpu.compiled_tokens) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("note", "osl", "cv"),
    [
        ("ShareGPT, 1000 prompts", 214, 0.77),
        ("ShareGPT, 1000 prompts", 256, 0.0),
        ("random 1000 requests", 214, 0.0),
    ],
)
def test_answers_of_a_data_set_vary_unless_their_length_is_a_cap(
    row: Callable[..., Row], note: str, osl: int, cv: float
) -> None:
    load = run_of(row(note=note, osl=osl), None).load
    assert load.osl_cv == cv
    assert load.requests == 1000.0


@pytest.mark.parametrize(("note", "lanes"), [("one card", 16.0), ("g6e.12xlarge", 8.0)])
def test_a_card_has_sixteen_lanes_where_aws_does_not_wire_eight(
    row: Callable[..., Row], note: str, lanes: float
) -> None:
    found = next(iter(replay([run_of(row(hardware="l40s", note=note), None)]).values()))
    assert isinstance(found, Replayed)
    assert found.at(found.asked.hardware.link_bytes_per_s) == pytest.approx(15.75e9 * lanes / 8.0)
