"""Prefill and decode apart: pools add up, they are joined, they cost less where they stand, and say why where not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from chipwise import Request, advise, load_catalog, load_model
from chipwise.decide import Advice, Option
from chipwise.decide.pools.search import kinds_of, least_saving
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.text import text

LONG = Request(
    model="llama-3.3-70b",
    purpose="chat",
    users=256,
    isl_tokens=8192,
    osl_tokens=256,
    context_tokens=16384,
    ttft_p99_s=2.0,
    tpot_p99_s=0.02,
)
"""Long prompts, short answers, a tight bar on TPOT: every prompt holds up those who wait for a token."""
PROMPT_BYTES = 2 * 80 * 8 * 128 * 2 * 8192
"""Of cache: keys and values of 8 heads of 128 in 80 layers at two bytes, 8,192 tokens: 2.7 GB."""


@pytest.fixture(scope="module")
def long() -> Advice:
    return advise(LONG)


@pytest.fixture(scope="module")
def pooled(long: Advice) -> Option:
    return next(option for option in long.options if option.pools)


def test_pools_cost_clearly_less_than_what_does_both(long: Advice, pooled: Option) -> None:
    together = advise(dataclasses.replace(LONG, only=(pooled.instance,)))
    price = pooled.cost.usd_per_hour
    assert price is not None
    words = next(reason for reason in pooled.reasons if reason.startswith("prefill and decode apart: $"))
    assert f"for {together.options[0].instances if not together.options[0].pools else ''}".strip() in words
    against = float(words.partition("against $")[2].partition(" ")[0].replace(",", ""))
    assert price.mid <= against * (1.0 - least_saving()) * 1.001
    assert all(option.rank == place for place, option in enumerate(long.options, start=1))


def test_what_both_pools_rent_adds_up(pooled: Option) -> None:
    assert pooled.pools is not None
    assert [pool["role"] for pool in pooled.pools] == ["prefill", "decode"]
    assert pooled.chips == sum(pool["chips"] for pool in pooled.pools)
    assert pooled.replicas == sum(pool["replicas"] for pool in pooled.pools)
    assert pooled.chips_used == sum(pool["chips_used"] for pool in pooled.pools) <= pooled.chips
    own = [pool["instances"] for pool in pooled.pools if pool["instance"] == pooled.instance]
    assert pooled.instances == sum(own) > 0
    cost = pooled.cost.usd_per_hour
    assert cost is not None
    assert cost.mid == pytest.approx(sum(pool["usd_per_hour"].mid for pool in pooled.pools if pool["usd_per_hour"]))


def test_both_bars_hold(long: Advice) -> None:
    for option in (one for one in long.options if one.pools):
        assert option.latency is not None
        assert option.latency.ttft_s.p99 is not None
        assert option.latency.tpot_s.p99 is not None
        assert option.latency.ttft_s.p99 <= 2.0
        assert option.latency.tpot_s.p99 <= 0.02


def test_the_cache_crosses_efa_between_unlike_sizes_of_one_region(pooled: Option) -> None:
    assert pooled.pools is not None
    prefill, decode = pooled.pools
    transfer = prefill["kv_transfer"]
    assert transfer["bytes_per_request"] == PROMPT_BYTES
    catalog = load_catalog()
    if prefill["instance"] != decode["instance"]:
        assert transfer["over"] == "EFA"
        rates = [catalog.instances[pool["instance"]].efa_bytes_per_s or 0.0 for pool in pooled.pools]
        shares = [
            pool["devices_per_replica"] / (catalog.instances[pool["instance"]].devices or 1) for pool in pooled.pools
        ]
        wire_s = max(PROMPT_BYTES / (rate * share) for rate, share in zip(rates, shares, strict=True))
        assert wire_s <= transfer["seconds"] <= 2.0 * wire_s
        assert all(
            set(pooled.regions) <= set(catalog.regions_of(pool["instance"], priced=True)) for pool in pooled.pools
        )
        assert next(check for check in pooled.infrastructure if check.feature == "efa").need == "required"


def test_terms_add_up_to_the_first_token_and_to_the_next(pooled: Option) -> None:
    serving = pooled.performance["serving"]
    assert sum(term["prefill_s"] for term in serving["terms"]) == pytest.approx(serving["ttft_s"].mid)
    assert sum(term["decode_s"] for term in serving["terms"]) == pytest.approx(serving["tpot_s"].mid)
    crossing = next(term for term in serving["terms"] if term["op"] == "cache crossing")
    assert pooled.pools is not None
    assert crossing["prefill_s"] == pooled.pools[0]["kv_transfer"]["seconds"]


def test_prefill_stands_on_the_chip_that_is_heavier_in_compute(pooled: Option) -> None:
    """FLOP a byte of memory bandwidth: what prompts ask more of than answers."""
    assert pooled.pools is not None
    chips = [load_catalog().chips[pool["chip"]] for pool in pooled.pools]
    prefill, decode = (
        chip.dense_flops_per_s["fp8"] / chip.memory_bandwidth_bytes_per_s
        for chip in chips
        if chip.memory_bandwidth_bytes_per_s
    )
    assert prefill >= decode


def test_headroom_counts_for_both_pools(pooled: Option) -> None:
    twice = advise(dataclasses.replace(LONG, ha_factor=2.0))
    option = next(one for one in twice.options if one.pools and one.instance == pooled.instance)
    assert option.pools is not None
    assert pooled.pools is not None
    for more, pool in zip(option.pools, pooled.pools, strict=True):
        assert more["replicas"] >= 2 * pool["replicas"] or more["instance"] != pool["instance"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 4, "tpot_p99_s": 0.06, "isl_tokens": 1024}, "does both, and two pools need no less"),
        ({"purpose": "batch", "users": None, "ttft_p99_s": None, "tpot_p99_s": None}, "nobody waits for a token"),
        ({"model": "qwen2.5-vl-7b", "users": 4000}, "multimodal models are not validated apart"),
        (
            {"model": "llama-3.1-8b", "users": 400, "only": ("g6e.xlarge",), "tpot_p99_s": 0.06},
            "has one device and no EFA",
        ),
        ({"users": 512, "isl_tokens": 1024, "tpot_p99_s": 0.06, "only": ("p5.48xlarge",)}, "it does not pay"),
    ],
)
def test_where_pools_do_not_stand_a_reason_says_why(change: dict[str, Any], words: str) -> None:
    option = advise(dataclasses.replace(LONG, **change)).options[0]
    assert option.pools is None
    assert words in next(reason for reason in option.reasons if reason.startswith("prefill and decode apart"))


def test_what_does_not_pay_is_told_with_its_price() -> None:
    asked = dataclasses.replace(LONG, users=512, isl_tokens=1024, tpot_p99_s=0.06, only=("p5.48xlarge",))
    option = advise(asked).options[0]
    words = next(reason for reason in option.reasons if reason.startswith("prefill and decode apart would cost $"))
    apart = float(words.partition("would cost $")[2].partition(" ")[0].replace(",", ""))
    cost = option.cost.usd_per_hour
    assert cost is not None
    assert apart > cost.mid * (1.0 - least_saving())


def test_the_start_lines_name_the_connector_and_both_pools(long: Advice) -> None:
    lines = long.benchmark["commands"]
    assert any(line.startswith("# prefill pool: ") for line in lines)
    assert any(line.startswith("# decode pool: ") for line in lines)
    assert any("NixlConnector" in line for line in lines)


def test_the_page_shows_both_pools(long: Advice) -> None:
    page = text(plan_page(as_json(long)), width=110, color=False)
    assert "prefill" in page
    assert "crossing" in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("llama-3.1-8b", {"dense-llm"}),
        ("deepseek-v3", {"moe-llm", "mla"}),
        ("qwen3-next-80b-a3b", {"moe-llm", "recurrent"}),
        ("qwen2.5-vl-7b", {"vision-language"}),
    ],
)
def test_engines_part_models_by_these_words(name: str, words: set[str]) -> None:
    assert kinds_of(load_model(name)) == words
