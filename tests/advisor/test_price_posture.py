"""GPU or Neuron by price, and which feasible sizes are so far behind that a page folds them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from chipwise import Request, advise, load_catalog
from chipwise.decide import Advice
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.text import text

SMALL = Request(model="llama-3.1-8b", purpose="chat", users=4)
KIND = {size.name: size.kind for size in load_catalog().instances.values()}
VENDOR = {"gpu": "nvidia", "neuron": "neuron"}


def price(advice: Advice) -> dict[str, Any] | None:
    """The signal of the price, if any."""
    return next((one for one in advice.gpu_or_neuron["signals"] if one["signal"] == "price here"), None)


def hourly(advice: Advice) -> dict[str, tuple[str, float, float]]:
    """Size, lowest and middle cost an hour of the best option of each kind."""
    found: dict[str, tuple[str, float, float]] = {}
    for option in advice.options:
        usd = option.cost.usd_per_hour
        assert usd is not None
        found.setdefault(KIND[option.instance], (option.instance, usd.low, usd.mid))
    return found


def test_the_cheaper_side_is_the_verdict_where_cost_orders() -> None:
    """g4dn.xlarge at $0.53 and inf2.xlarge at $0.76 an hour: the whole range of the dearer lies beyond $0.53."""
    advice = advise(SMALL)
    best, signal = hourly(advice), price(advice)
    cheaper = min(best, key=lambda kind: best[kind][2])
    dearer = next(kind for kind in best if kind != cheaper)
    assert best[dearer][1] > best[cheaper][2]
    assert signal is not None
    assert signal["points_to"] == advice.gpu_or_neuron["verdict"] == VENDOR[cheaper]
    for name, _, mid in best.values():
        assert f"{name} at ${mid:.2f}" in signal["why"]
    assert "list price of" in signal["source"]


def test_a_price_of_one_s_own_turns_the_verdict() -> None:
    cheap = dataclasses.replace(SMALL, prices_usd_per_hour={"inf2.xlarge": 0.05})
    advice = advise(cheap)
    assert advice.gpu_or_neuron["verdict"] == "neuron"
    assert advice.options[0].instance == "inf2.xlarge"


def test_where_latency_orders_price_is_told_and_does_not_decide() -> None:
    advice = advise(dataclasses.replace(SMALL, goal="latency"))
    assert price(advice) is not None
    assert advice.gpu_or_neuron["verdict"] == "either"


def test_ranges_that_reach_each_other_s_middle_leave_it_open() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="batch"))
    signal = price(advice)
    assert signal is not None
    assert (signal["points_to"], advice.gpu_or_neuron["verdict"]) == ("either", "either")
    assert "a million output tokens" in signal["why"]


@pytest.mark.parametrize(("vendor", "verdict"), [("nvidia", "nvidia"), ("neuron", "neuron")])
def test_a_side_alone_is_the_verdict_without_a_price(vendor: str, verdict: str) -> None:
    advice = advise(dataclasses.replace(SMALL, vendor=vendor))
    assert (price(advice), advice.gpu_or_neuron["verdict"]) == (None, verdict)


def test_sizes_far_behind_come_last_and_say_by_what_multiple() -> None:
    advice = advise(dataclasses.replace(SMALL, users=300))
    flags = [row.aside is not None for row in advice.also_feasible]
    assert flags == sorted(flags)
    assert True in flags
    assert False in flags
    first = advice.options[0]
    assert first.cost.usd_per_hour is not None
    for row in advice.also_feasible:
        assert row.usd_per_hour is not None
        dear = row.usd_per_hour.mid > 3 * first.cost.usd_per_hour.mid
        large = row.instances > 10 * first.instances
        assert (row.aside is not None) == (dear or large), row.instance
        if dear:
            assert row.aside == f"over 3 times the cost of {first.instance}"


def test_a_fleet_of_tiny_sizes_is_folded_whatever_it_costs() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="chat", rate_per_s=20.0, goal="latency"))
    fleets = [row for row in advice.also_feasible if row.aside and "instances of" in row.aside]
    assert fleets
    assert all(row.instances > 10 * advice.options[0].instances for row in fleets)


def test_a_page_tells_them_in_a_line_and_the_json_in_full() -> None:
    advice = advise(dataclasses.replace(SMALL, users=300))
    dear = f"over 3 times the cost of {advice.options[0].instance}"
    folded = [row for row in advice.also_feasible if row.aside == dear]
    page = text(plan_page(as_json(advice)), width=160, color=False)
    told = page.partition("Would do as well")[2].partition("Will not do")[0]
    assert f"{len(folded)} more at {dear}" in told
    assert len(told.splitlines()) < len(advice.also_feasible)
    assert len(as_json(advice)["also_feasible"]) == len(advice.also_feasible)
