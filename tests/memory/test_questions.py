"""The memory answer as every door gives it: MIG slices, the guide's table, what to change, drafts and settings."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise import size
from chipwise.advisor.request import EngineRequest, SizeRequest, SplitRequest
from chipwise.errors import InputError

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


def test_an_engine_that_would_fail_after_its_pool_says_so() -> None:
    tight = EngineRequest(version="0.19.0", utilization=0.99)
    answer = sized("llama-3.1-8b", chip="h100-sxm", engine=tight)
    assert any("graphs and the driver lack" in warning for warning in answer["warnings"])
    roomy = sized("llama-3.1-8b", chip="h100-sxm", engine=EngineRequest(version="0.19.0"))
    assert not any("graphs and the driver lack" in warning for warning in roomy["warnings"])
