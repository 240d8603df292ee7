"""What a plan says of the market: commitments, UltraServers, Spot, availability, Regions."""

from __future__ import annotations

import dataclasses

from chipwise import Request, advise, load_catalog


def test_a_savings_plan_is_sold_at_a_price_that_nobody_prints() -> None:
    advice = advise(Request(model="llama-3.1-8b", goal="latency", purchase="savings-plan", only=("p5", "p5e")))
    first = advice.options[0]
    assert first.instance.startswith("p5.")
    assert first.cost.usd_per_hour is None
    assert first.cost.price_kind is None
    rejected = {row.instance: row.rule for row in advice.rejected}
    assert rejected["p5e.48xlarge"] == "purchase"


def test_where_cost_decides_a_savings_plan_cannot_be_judged() -> None:
    advice = advise(Request(model="llama-3.1-8b", goal="cost", purchase="reserved", only=("g6e",)))
    assert not advice.options
    assert {row.instance for row in advice.not_judged} >= {"g6e.xlarge", "g6e.48xlarge"}
    assert all("price" in row.lacks for row in advice.not_judged if row.instance.startswith("g6e"))


def test_a_price_of_your_own_prices_a_savings_plan() -> None:
    asked = Request(model="llama-3.1-8b", goal="cost", purchase="savings-plan", prices_usd_per_hour={"g6e.xlarge": 1.2})
    advice = advise(asked)
    assert {option.instance for option in advice.options} == {"g6e.xlarge"}
    assert advice.options[0].cost.price_kind == "user"


def test_an_ultraserver_is_priced_by_the_instance_and_says_so() -> None:
    advice = advise(Request(model="deepseek-v3", regions=("us-east-1-dfw",)))
    first = advice.options[0]
    assert first.instance == "p6e-gb200.36xlarge"
    assert first.cost.usd_per_hour is not None
    assert abs(first.cost.usd_per_hour.mid - first.instances * 380.952 / 9) < 1e-6
    assert any("9 instances" in text for text in first.cost.caveats)


def test_gpus_have_spot_prices_for_work_that_may_be_interrupted() -> None:
    advice = advise(Request(model="mistral-7b", purpose="finetune", purchase="spot"))
    kinds = {load_catalog().instance(option.instance).kind for option in advice.options}
    assert "gpu" in kinds
    spot = [option for option in advice.options if option.cost.price_kind == "assumed"]
    assert spot
    assert all("estimated" in " ".join(option.cost.caveats) for option in spot)


def test_an_availability_target_doubles_what_carries_the_load() -> None:
    alone = advise(Request(model="llama-3.1-8b", only=("g6e.xlarge",)))
    held = advise(Request(model="llama-3.1-8b", only=("g6e.xlarge",), availability=0.999))
    assert held.options[0].instances == 2 * alone.options[0].instances
    assert held.options[0].sizing.ha_factor == 2.0
    assert held.workload["availability"] == {"value": 0.999, "from": "user"}
    assert held.workload["ha_factor"] == {"value": 2.0, "from": "preset"}
    assert any("Availability Zones" in text for text in held.warnings)
    assert "availability" not in alone.workload


def test_headroom_of_your_own_comes_before_the_targets() -> None:
    advice = advise(Request(model="llama-3.1-8b", only=("g6e.xlarge",), availability=0.999, ha_factor=1.0))
    assert advice.workload["ha_factor"] == {"value": 1.0, "from": "user"}
    assert any("below its target" in text for text in advice.warnings)


def test_a_size_in_one_zone_only_is_told_where_availability_is_asked() -> None:
    catalog = load_catalog()
    one_zone = next(
        (name, row.region)
        for name in ("p5.48xlarge", "p5en.48xlarge", "g6e.xlarge", "p4d.24xlarge", "inf2.48xlarge")
        for row in catalog.offerings(name)
        if len(row.zones) == 1 and catalog.regions[row.region].kind == "commercial"
    )
    asked = Request(model="llama-3.1-8b", only=(one_zone[0],), regions=(one_zone[1],), availability=0.99)
    assert any(f"offers {one_zone[0]} in 2 zones" in text for text in advise(asked).warnings)


def test_a_region_without_an_answer_explains_itself() -> None:
    advice = advise(Request(model="deepseek-v3", regions=("af-south-1",)))
    assert not advice.options
    told = " ".join(advice.warnings)
    assert "g4dn, inf1" in told
    assert "other Regions only" in told


def test_the_checklist_has_a_row_for_mig() -> None:
    plain = advise(Request(model="llama-3.1-8b", only=("p5.48xlarge",))).options[0]
    (row,) = [check for check in plain.infrastructure if check.feature == "mig"]
    assert (row.need, row.has) == ("not-needed", True)
    tenants = advise(Request(model="llama-3.1-8b", only=("g6e.xlarge",), isolation="hardware")).options[0]
    (row,) = [check for check in tenants.infrastructure if check.feature == "mig"]
    assert (row.need, row.has) == ("required", False)
    assert any("mig required" in one.rule for one in tenants.discouraged_by)


def test_named_regions_are_weighed_those_of_the_users_geography_first() -> None:
    question = Request(model="llama-3.1-8b", only=("g6e.xlarge",), regions=("eu-central-1", "us-east-1", "eu-west-3"))
    (option, *_) = advise(question).options
    found = {one.region: one for one in option.region_advice}
    assert set(found) == {"eu-central-1", "us-east-1", "eu-west-3"}
    assert option.regions[0] == "eu-central-1"
    assert found["us-east-1"].why.startswith("users are in eu")
    assert found["eu-west-3"].why == "the size is not offered there"
    assert "eu-west-3" not in option.regions
    assert advise(dataclasses.replace(question, regions=())).options[0].region_advice == ()
