"""The memory answer as every door gives it: MIG slices, the guide's table, what to change, drafts and settings."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise import size
from chipwise.advisor.request import EngineRequest, SizeRequest, SplitRequest, TrainingRequest
from chipwise.errors import InputError, UnknownNameError

GIB = 2.0**30


def sized(model: str, **more: Any) -> dict[str, Any]:
    return size(SizeRequest(model=model, **more))


def test_the_guide_s_table_comes_out_of_the_door() -> None:
    """4K to 128K by 1 to 128 requests: 327,680 bytes a token, K = 1,024, over four chips."""
    for context, requests in ((4096, 1), (8192, 16), (32768, 64), (131072, 128)):
        answer = sized(
            "llama-3.3-70b", instance="p5.48xlarge", split=SplitRequest(tp=4), context_tokens=context,
            concurrency=requests,
        )  # fmt: skip
        assert answer["per_chip"]["cache_bytes"] * 4 == 327680 * context * requests


def test_the_guide_s_219_gb_example() -> None:
    """70B, 32 requests of 8K: 141 GB of weights and 86 of cache are four H100 or two H200, not 219 / 80 = 3."""
    load = {"context_tokens": 8192, "concurrency": 32}
    four = sized("llama-3.3-70b", chip="h100-sxm", split=SplitRequest(tp=4), **load)
    weights, cache = (4 * four["per_chip"][f"{name}_bytes"] for name in ("weights", "cache"))
    assert weights / 1e9 == pytest.approx(141.1, abs=0.3)
    assert cache / 1e9 == pytest.approx(85.9, abs=0.05)
    assert four["fits"]
    assert not sized("llama-3.3-70b", chip="h100-sxm", split=SplitRequest(tp=2), **load)["fits"]
    assert sized("llama-3.3-70b", instance="p5.48xlarge", **load)["min_chips"] == 4
    assert sized("llama-3.3-70b", instance="p5e.48xlarge", **load)["min_chips"] == 2


def test_a_slice_is_one_device_and_no_replica_goes_over_two() -> None:
    answer = sized("llama-3.1-8b", chip="h100-sxm", mig="3g.40gb")
    assert answer["chips"] == 1
    assert answer["per_chip"]["capacity_bytes"] == pytest.approx(79.19 * GIB / 2, rel=1e-6)
    with pytest.raises(InputError, match=r"tp=2 does not go over slices of 3g\.40gb"):
        sized("llama-3.1-8b", chip="h100-sxm", mig="3g.40gb", split=SplitRequest(tp=2))


def test_what_does_not_fit_a_slice_is_told_larger_slices_and_no_split() -> None:
    found = sized("llama-3.1-8b", chip="h100-sxm", mig="1g.10gb")
    assert found["min_chips"] is None
    changes = [one["change"] for one in found["to_make_it_fit"]]
    assert "a slice of 1g.20gb" in changes
    assert not [change for change in changes if change.startswith("tp ")]


def test_every_profile_says_whether_it_holds_the_model_and_how_many_there_are() -> None:
    found = sized("llama-3.1-8b", chip="h100-sxm", mig="1g.10gb")
    assert not found["fits"]
    profiles = {one["profile"]: (one["fits"], one["per_gpu"]) for one in found["mig"]}
    assert profiles["1g.10gb"] == (False, 7)
    assert profiles["1g.20gb"] == (True, 4)
    assert profiles["3g.40gb"] == (True, 2)
    assert profiles["7g.80gb"] == (True, 1)
    assert [one["profile"] for one in found["mig"]][-1] == "7g.80gb"
    assert "mig" not in sized("llama-3.1-8b", chip="h100-sxm")


def test_profiles_are_asked_at_the_precision_that_was_said() -> None:
    found = sized("llama-3.1-8b", chip="h100-sxm", mig="1g.10gb", engine=EngineRequest(precision="int4"))
    assert {one["profile"]: one["fits"] for one in found["mig"]}["1g.10gb"] is found["fits"]


def test_a_profile_alone_names_its_chip_where_one_has_it() -> None:
    assert sized("llama-3.1-8b", mig="3g.71gb")["chip"] == "h200-sxm"
    with pytest.raises(InputError, match="2 chips"):
        sized("llama-3.1-8b", mig="3g.40gb")
    with pytest.raises(InputError, match="no chips"):
        sized("llama-3.1-8b", mig="9g.999gb")


def test_fractions_of_a_gpu_are_targets() -> None:
    small, large = sized("llama-3.2-1b", instance="g6f.4xlarge"), sized("llama-3.1-8b", instance="g6f.xlarge")
    assert (small["fits"], large["fits"]) == (True, False)
    assert small["chips"] == 1
    assert large["range"] == {"low_fraction": 1.0, "high_fraction": 1.0}


def test_a_fraction_names_the_fractions_that_hold_the_model_and_how_many_share_a_gpu() -> None:
    found = sized("llama-3.2-1b", instance="g6f.xlarge")
    parts = {one["instance"]: (one["fits"], one["per_gpu"]) for one in found["fractions"]}
    assert parts["g6f.xlarge"] == (False, 8)
    assert parts["g6f.2xlarge"] == (True, 4)
    assert parts["gr6f.4xlarge"] == (True, 2)
    assert "fractions" not in sized("llama-3.2-1b", instance="g6.xlarge")


def test_a_part_of_a_chip_is_alone_and_gives_way_to_a_larger_part() -> None:
    for where in ({"chip": "h100-sxm", "mig": "1g.10gb"}, {"instance": "g6f.xlarge"}):
        found = sized("llama-3.1-8b", **where)
        assert found["min_chips"] is None
        assert not [one for one in found["to_make_it_fit"] if one["costs"] == "twice the chips"]
    changes = [one["change"] for one in sized("llama-3.1-8b", chip="h100-sxm", mig="1g.10gb")["to_make_it_fit"]]
    assert changes.index("a slice of 1g.20gb") < changes.index("g5.xlarge (a10g)")
    small = [one["change"] for one in sized("llama-3.2-1b", instance="g6f.xlarge")["to_make_it_fit"]]
    assert "g6f.2xlarge" in small


def test_beyond_a_node_stages_are_doubled() -> None:
    wide = sized("llama-3.1-405b", instance="p5.48xlarge")["to_make_it_fit"]
    assert [one["change"] for one in wide if one["costs"] == "twice the chips"] == ["pp 1 to 2"]
    inside = sized("llama-3.3-70b", chip="h100-sxm")["to_make_it_fit"]
    assert [one["change"] for one in inside if one["costs"] == "twice the chips"] == ["tp 1 to 2"]


def test_a_version_that_runs_prompts_whole_needs_room_for_the_longest() -> None:
    def activations(context: int, **more: Any) -> int:
        engine = EngineRequest(version="0.7.3", **more)
        found = sized("llama-3.1-8b", chip="h100-sxm", engine=engine, context_tokens=context)
        return int(found["per_chip"]["activations_bytes"])

    assert activations(32768) > 2.5 * activations(8192)
    assert activations(65536) < activations(32768)  # beyond 32K this version chunks by itself
    assert activations(32768, chunk_tokens=8192) == activations(8192, chunk_tokens=8192)


def test_drafted_tokens_take_the_model_s_own_layers_or_say_that_they_take_nothing() -> None:
    own = sized("deepseek-v3", chip="h200-sxm", split=SplitRequest(tp=8), engine=EngineRequest(draft_tokens=1))
    assert own["per_chip"]["draft_bytes"] > GIB
    none = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(draft_tokens=4))
    assert none["per_chip"]["draft_bytes"] == 0
    assert any("n-gram" in warning for warning in none["warnings"])


def test_instances_follow_from_chips() -> None:
    answer = sized("deepseek-v3", instance="p5.48xlarge")
    assert answer["min_chips"] > 8
    assert answer["min_instances"] == -(-answer["min_chips"] // 8)
    assert sized("llama-3.1-8b", chip="h100-sxm")["min_instances"] is None


def test_changes_come_in_the_order_of_their_cost() -> None:
    changes = sized("llama-3.3-70b", chip="l40s", split=SplitRequest(tp=2))["to_make_it_fit"]
    names = [one["change"] for one in changes]
    order = ["hold the KV cache in fp8", "hold the weights in fp8", "hold the weights in int4-g128", "tp 2 to 4"]
    assert [name for name in names if name in order] == order
    assert [one["change"] for one in changes if one["costs"] == "another instance"] == names[-2:]
    assert all(one["enough"] for one in changes[-2:])
    assert changes[-2]["change"].split(" (")[0].endswith("xlarge")


def test_formats_are_proposed_where_engine_and_chip_hold_them() -> None:
    old = [one["change"] for one in sized("llama-3.3-70b", chip="v100-sxm-32")["to_make_it_fit"]]
    assert "hold the weights in fp8" not in old
    assert "hold the weights in int4-g128" in old


def test_a_draft_model_takes_weights_and_cache() -> None:
    alone = sized("llama-3.1-8b", chip="h100-sxm")
    both = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(draft="llama-3.2-1b"))
    assert both["per_chip"]["draft_bytes"] == pytest.approx(2 * 1_235_814_400, rel=0.01)
    assert both["per_chip"]["cache_bytes"] == pytest.approx(alone["per_chip"]["cache_bytes"] * (32 + 16 / 2) / 32)
    assert both["kv_pool_bytes"] == pytest.approx(alone["kv_pool_bytes"] - both["per_chip"]["draft_bytes"], abs=2)


def test_settings_act_on_the_budget() -> None:
    usual = sized("llama-3.1-8b", chip="h100-sxm")
    eager = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(eager=True))
    assert eager["per_chip"]["graphs_bytes"] == 0
    assert eager["kv_pool_bytes"] - usual["kv_pool_bytes"] == pytest.approx(usual["per_chip"]["graphs_bytes"], abs=2)
    half = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(utilization=0.5))
    assert half["per_chip"]["reserved_bytes"] == pytest.approx(79.19 * GIB / 2, rel=1e-6)
    many = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(lora_adapters=8, lora_rank=32))
    few = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(lora_adapters=4, lora_rank=16))
    assert many["per_chip"]["adapters_bytes"] == 4 * few["per_chip"]["adapters_bytes"] > 0


def test_a_cache_format_that_no_source_of_the_engine_names_is_told() -> None:
    def told(engine: str, held: str) -> bool:
        asked = EngineRequest(engine=engine, kv_precision=held)
        return any(held in one for one in sized("llama-3.1-8b", chip="b200", engine=asked)["warnings"])

    assert told("sglang", "nvfp4")
    assert not told("vllm", "nvfp4")
    assert not told("sglang", "fp8-e5m2")


def test_an_engine_that_would_fail_after_its_pool_says_so() -> None:
    tight = EngineRequest(version="0.19.0", utilization=0.99)
    answer = sized("llama-3.1-8b", chip="h100-sxm", engine=tight)
    assert any("graphs and the driver lack" in warning for warning in answer["warnings"])
    roomy = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(version="0.19.0"))
    assert not any("graphs and the driver lack" in warning for warning in roomy["warnings"])


def trained(**more: Any) -> dict[str, Any]:
    request = {"method": "grpo", "seq_len": 2048} | more.pop("training", {})
    return sized("llama-3.1-8b", instance="p5.48xlarge", training=TrainingRequest(**request), **more)


def test_the_other_models_of_a_method_are_beside_the_trained_one_or_apart() -> None:
    turn, beside, apart = (trained(training={"roles": roles}) for roles in ("in-turn", "beside", "apart"))
    weights = 8_030_261_248 * 2
    assert turn["per_chip"]["weights_bytes"] - apart["per_chip"]["weights_bytes"] == pytest.approx(
        weights / 8, rel=1e-3
    )
    assert beside["per_chip"]["weights_bytes"] - turn["per_chip"]["weights_bytes"] == pytest.approx(weights, rel=1e-3)
    assert beside["per_chip"]["cache_bytes"] == 131072 * 2048 * beside["config"]["global_batch"] // 8
    assert turn["per_chip"]["cache_bytes"] == apart["per_chip"]["cache_bytes"] == 0


def test_context_parallelism_is_taken_and_printed() -> None:
    alone, shared = (trained(training={"method": "pretrain"}, split=SplitRequest(cp=cp)) for cp in (1, 2))
    assert shared["config"]["parallelism"] == {"tp": 1, "pp": 1, "ep": 1, "dp": 4, "cp": 2}
    assert shared["per_chip"]["activations_bytes"] == pytest.approx(
        alone["per_chip"]["activations_bytes"] / 2, rel=1e-6
    )


def test_trainer_and_offload_are_asked_by_name() -> None:
    usual = trained(training={"method": "full-ft"})
    hosted = trained(training={"method": "full-ft", "offload": "optimizer"})
    assert usual["per_chip"]["optimizer_bytes"] > 0 == hosted["per_chip"]["optimizer_bytes"]
    tuned = trained(training={"method": "full-ft", "trainer": "torchtune"})
    assert tuned["config"]["trainer"] == "torchtune"
    assert tuned["per_chip"]["weights_bytes"] == pytest.approx(usual["per_chip"]["weights_bytes"] / 2, rel=1e-6)
    with pytest.raises(UnknownNameError, match="trainer"):
        trained(training={"trainer": "abacus"})


def test_the_fewest_chips_of_a_run_are_named() -> None:
    full = TrainingRequest(method="full-ft", micro_batch=1)
    small = size(SizeRequest(model="llama-3.1-8b", chip="h100-sxm", training=full))
    assert (small["fits"], small["min_chips"]) == (False, 2)
    large = size(SizeRequest(model="llama-3.1-405b", instance="p5.48xlarge", training=full))
    assert large["min_chips"] == 8 * large["min_instances"] >= 128


@pytest.mark.parametrize(
    ("model", "chip", "tp", "version", "gib"),
    [
        ("gpt-oss-120b", "h100-sxm", 1, "0.10.1", 65.97),
        ("gpt-oss-120b", "h100-sxm", 1, "0.14.1", 64.38),
        ("gpt-oss-20b", "a100-sxm-80", 1, "0.19.0", 13.72),
        ("gpt-oss-20b", "h100-sxm", 2, "0.19.0", 7.01),
    ],
)
def test_padded_experts_are_what_logs_say(model: str, chip: str, tp: int, version: str, gib: float) -> None:
    """Issues 23278 and 33155 of vLLM, a blog's A100 and the planner project's H100."""
    asked = SizeRequest(
        model=model, chip=chip, split=SplitRequest(tp=tp), engine=EngineRequest(engine="vllm", version=version)
    )
    assert size(asked)["per_chip"]["weights_bytes"] / 2**30 == pytest.approx(gib, rel=0.011)


def test_the_large_gpt_oss_lacks_what_its_log_says() -> None:
    """Release 0.10.1 on one H100 at 0.9: "Available KV cache memory: -2.14 GiB" (issue 23278)."""
    engine = EngineRequest(engine="vllm", version="0.10.1", utilization=0.9)
    answer = size(SizeRequest(model="gpt-oss-120b", chip="h100-sxm", engine=engine, context_tokens=131072))
    lacking = answer["shortfall_bytes"] - answer["per_chip"]["cache_bytes"]
    assert lacking / 2**30 == pytest.approx(2.14, abs=0.1)
