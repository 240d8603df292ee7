"""MIG slices as devices of `plan`: counts add up, memory is that of `memory --mig`, what no slice holds is refused."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chipwise import Request, SizeRequest, advise, load_catalog, size
from chipwise.advisor import EngineRequest
from chipwise.decide.advice import Advice, Option
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.text import text

SMALL = Request(model="llama-3.2-1b", purpose="chat", users=8, needs=("mig",))
TENANTS = dataclasses.replace(SMALL, needs=(), isolation="hardware")


def first(request: Request, name: str) -> Option:
    """The first option where only one size may be taken."""
    return advise(dataclasses.replace(request, only=(name,))).options[0]


def per_gpu(option: Option) -> int:
    """Slices of the option's profile on one GPU, by the catalog."""
    assert option.sharing is not None
    profiles = {one.name: one.count for one in load_catalog().chips[option.chip].mig_profiles}
    return profiles[option.sharing["profile"]] or 0


def test_a_small_model_takes_one_small_slice_of_a_large_gpu() -> None:
    """1.2B parameters in BF16 are 2.5 GB: one of the 7 slices of 1g.10gb that the single H100 of a p5.4xlarge gives."""
    option = first(SMALL, "p5.4xlarge")
    assert option.sharing is not None
    assert (option.sharing["technique"], option.sharing["profile"]) == ("mig", "1g.10gb")
    assert (option.sharing["slices"], option.sharing["slices_used"], option.sharing["tenants"]) == (7, 1, 7)
    assert (option.instances, option.chips, option.chips_used, option.replicas) == (1, 1, 1, 1)
    assert (option.devices_per_replica, option.parallelism.tp) == (1, 1)


def test_more_users_take_more_slices_of_the_same_gpu() -> None:
    few, many = (
        first(dataclasses.replace(SMALL, model="llama-3.1-8b", users=users), "p4de.24xlarge") for users in (4, 200)
    )
    assert many.replicas > few.replicas
    assert many.instances == few.instances == 1
    assert many.chips_used == math.ceil(many.replicas / per_gpu(many))


def test_throughput_of_a_chip_is_that_of_all_its_slices() -> None:
    option = first(dataclasses.replace(SMALL, goal="concurrency", users=400), "p4de.24xlarge")
    serving = option.performance["serving"]
    assert option.chips_used < option.replicas
    assert serving["output_tokens_per_s_per_chip"].mid * option.chips_used == pytest.approx(
        serving["output_tokens_per_s"].mid
    )


@pytest.mark.parametrize(("name", "chip"), [("p5.4xlarge", "h100-sxm"), ("g7e.2xlarge", "rtx-pro-6000")])
def test_memory_is_what_the_memory_command_prints(name: str, chip: str) -> None:
    option = first(SMALL, name)
    assert option.sharing is not None
    asked = SizeRequest(
        model=SMALL.model,
        chip=chip,
        mig=option.sharing["profile"],
        context_tokens=option.memory["context_tokens"],
        concurrency=round(option.memory["concurrency"]),
        engine=EngineRequest(precision=option.precision.weights),
    )
    found = size(asked)
    for key in ("per_chip", "kv_pool_bytes", "kv_cache_tokens", "chips", "profile", "min_chips", "fits"):
        assert option.memory[key] == found[key], key


def test_the_price_of_the_slices_and_what_is_left_stand_in_the_reasons() -> None:
    option = first(SMALL, "p5.4xlarge")
    hourly = option.cost.usd_per_hour
    assert hourly is not None
    (told,) = [reason for reason in option.reasons if "MIG slices" in reason]
    assert "1 of 7 MIG slices of 1g.10gb (7 a GPU)" in told
    assert f"${hourly.mid / 7:.2f} an hour" in told
    assert "6 are left" in told


def test_the_page_names_the_profile_in_the_option_and_among_the_others() -> None:
    page = text(plan_page(as_json(advise(SMALL))), width=140, color=False)
    assert "1 of 4 MIG slices 1g.24gb" in page
    assert "1g.24gb bf16" in page.partition("Would do as well")[2]


def test_what_is_slower_on_a_slice_is_its_share_of_the_chip() -> None:
    """Decode reads the weights: an eighth of the bandwidth is near to eight times the time of a token."""
    slice_ = first(SMALL, "p5.4xlarge").performance["serving"]["isolated"]["tpot_s"].mid
    whole = first(dataclasses.replace(SMALL, needs=()), "p5.4xlarge").performance["serving"]["isolated"]["tpot_s"].mid
    assert 2.0 < slice_ / whole < 8.0


def test_measurements_of_whole_chips_are_only_carried_over() -> None:
    assert first(dataclasses.replace(SMALL, model="llama-3.1-8b"), "p5.4xlarge").evidence == "transferred"


def test_isolated_tenants_see_the_best_slices_beside_cheaper_sizes() -> None:
    advice = advise(dataclasses.replace(TENANTS, model="llama-3.1-8b", users=4))
    profiles = [option.memory["profile"] for option in advice.options]
    assert None in profiles
    assert [one for one in profiles if one]
    assert {load_catalog().instances[option.instance].kind for option in advice.options} == {"gpu", "neuron"}
    assert advice.options[0].memory["profile"] is None


def test_without_isolation_no_gpu_is_cut() -> None:
    advice = advise(dataclasses.replace(SMALL, needs=()))
    assert not [option for option in advice.options if option.memory["profile"]]
    assert not [row for row in advice.also_feasible if row.profile]


def test_a_model_larger_than_a_slice_has_whole_gpus_where_isolation_is_asked() -> None:
    """70B in FP8 is 70 GB: no slice of an 80 GB GPU holds it, and a GPU of one's own is isolated too."""
    option = first(dataclasses.replace(TENANTS, model="llama-3.3-70b"), "p5.48xlarge")
    assert option.memory["profile"] is None
    assert option.sharing is None or "no MIG slice" in option.sharing["why"]


def test_slices_that_need_more_instances_do_not_drive_out_whole_gpus() -> None:
    asked = dataclasses.replace(TENANTS, model="llama-3.1-8b", users=200, min_precision="bf16")
    assert first(asked, "p5.4xlarge").instances == 1


def test_a_model_that_no_slice_holds_takes_whole_gpus_of_sizes_that_have_mig() -> None:
    advice = advise(dataclasses.replace(SMALL, model="llama-3.3-70b", min_precision="bf16"))
    assert advice.options
    for option in advice.options:
        assert option.memory["profile"] is None
        assert load_catalog().chips[option.chip].mig_profiles
    rows = {row.instance: row for row in advice.rejected}
    assert rows["g6e.48xlarge"].rule == "needs-mig"


def assert_counts(advice: Advice) -> None:
    """Replicas, slices, chips and instances of every option on slices fit into each other."""
    catalog = load_catalog()
    for option in advice.options:
        if option.memory["profile"] is None:
            continue
        chips = catalog.instances[option.instance].chips or 1
        assert option.devices_per_replica == 1
        assert option.chips == option.instances * chips
        assert option.chips_used == math.ceil(option.replicas / per_gpu(option)) <= option.chips
        assert option.replicas <= option.chips * per_gpu(option)
        assert option.sizing.chips_by_memory <= option.chips_used
        assert option.memory["fits"]
        assert sum(option.memory["per_chip"].values()) == 2 * option.memory["per_chip"]["capacity_bytes"]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(model="llama-3.2-1b", users=3, goal="cost", ha_factor=1.0, alone=True)
@given(
    model=st.sampled_from(["llama-3.2-1b", "llama-3.1-8b", "qwen3-30b-a3b", "params:3b"]),
    users=st.integers(1, 600),
    goal=st.sampled_from(["cost", "latency", "concurrency", "quality"]),
    ha_factor=st.sampled_from([1.0, 1.5, 2.0]),
    alone=st.booleans(),
)
def test_counts_of_slices_hold_whatever_is_asked(
    model: str, users: int, goal: str, ha_factor: float, *, alone: bool
) -> None:
    needs, isolation = (("mig",), None) if alone else ((), "hardware")
    asked = Request(
        model=model, purpose="chat", users=users, goal=goal, ha_factor=ha_factor, needs=needs, isolation=isolation
    )
    assert_counts(advise(asked))
