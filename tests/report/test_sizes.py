"""`why` and `compare` on the page: each list of a plan in its own words, two sizes side by side."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.decide.advice import Advice
from chipwise.report.compare import compare_page
from chipwise.report.document import Document
from chipwise.report.json import as_json
from chipwise.report.markdown import markdown
from chipwise.report.text import text
from chipwise.report.why import why_page

SPLIT = {"tp": 4, "pp": 1, "ep": 1, "dp": 1, "cp": 1}


def words(page: Document) -> str:
    return " ".join(text(page, width=110, color=False).split()).replace("\u00d7", "x").replace("\u2013", "-")


@pytest.fixture
def plan(advice: Advice) -> Any:
    return as_json(advice)


def why_of(plan: Any, place: str, number: int = 0, **other: Any) -> dict[str, Any]:
    row = plan[place][number]
    return {
        "instance": row["instance"],
        "workload": plan["workload"],
        "stands_in": place,
        "detail": row,
        "would_change_it": [],
        "best": "p5.48xlarge",
        "facts_as_of": "2026-11-30",
    } | other


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        ("options", 0, ("p5.48xlarge: one of the options", "Option 1: 1 x p5.48xlarge", "fp8 weights", "✓ 1.00 s")),
        (
            "also_feasible",
            0,
            (
                "It would do as 1 x p6-b200.48xlarge, split tp2, in fp8, at $114",
                "a P99 TTFT of 410 ms and a P99 TPOT of 17.0 ms",
                "ties on latency and costs 2.1 times as much",
                "the first option is p5.48xlarge",
            ),
        ),
        ("also_feasible", 1, ("at unknown an hour",)),
        (
            "rejected",
            0,
            ("will not do", "do not fit on one chip", "lacked 14.2 GiB", "would do with a model of 14B or less"),
        ),
        ("not_judged", 0, ("cannot be judged", "Not known here: memory, bandwidth.")),
        ("excluded", 0, ("left out by the question", "not looked at: retired.")),
    ],
)
def test_every_place_is_told_in_sentences(plan: Any, place: str, number: int, said: tuple[str, ...]) -> None:
    page = words(why_page(why_of(plan, place, number)))
    for one in said:
        assert one in page, (one, page)


def test_a_change_is_told_with_what_it_then_costs(plan: Any) -> None:
    then = {"instances": 2, "precision": "fp8", "parallelism": SPLIT, "usd_per_hour": None}
    priced = then | {"instances": 3, "usd_per_hour": {"low": 9.0, "mid": 10.0, "high": 12.0}}
    changes = [
        {"kind": "bars", "change": "--tpot-p99 80ms", "then": priced},
        {"kind": "region", "change": "any region", "then": then},
    ]
    page = words(why_page(why_of(plan, "rejected", 6, would_change_it=changes)))
    assert "bars --tpot-p99 80ms 3 of it, tp4 fp8 $10.00 ($9.00-$12.00)" in page
    assert "any region 2 of it, tp4 fp8 unknown" in page


def test_that_nothing_turns_it_or_is_feasible_is_said(plan: Any) -> None:
    page = words(why_page(why_of(plan, "rejected", best=None)))
    assert "No single change that was tried makes it do." in page
    assert "no size is feasible for this question" in page


FACTS = [
    {"fact": "chip", "first": "h100-sxm", "second": "l4"},
    {"fact": "chips", "first": 8, "second": 1},
    {"fact": "memory_bytes_per_chip", "first": 80 * 2**30, "second": 20 * 2**30},
    {"fact": "memory_bandwidth_bytes_per_s_per_chip", "first": 3.35e12, "second": None},
    {"fact": "bf16_dense_flops_per_s_per_chip", "first": 9.89e14, "second": 1.21e14},
    {"fact": "link_bytes_per_s_one_way_per_chip", "first": 4.5e11, "second": None},
    {"fact": "efa_bytes_per_s", "first": 4e11, "second": 0.0},
    {"fact": "gpudirect_rdma", "first": True, "second": False},
    {"fact": "regions", "first": ["us-east-1"], "second": []},
    {"fact": "on_demand_us_east_1_usd_per_hour", "first": 55.04, "second": 0.8048},
]


def compared(answers: Any = None) -> dict[str, Any]:
    head = {"first": "p5.48xlarge", "second": "g6.xlarge", "facts_as_of": "2026-11-30"}
    return {**head, "facts": FACTS, "answers": answers}


def test_facts_stand_side_by_side_with_their_units() -> None:
    page = words(compare_page(compared()))
    for said in (
        "chip h100-sxm l4",
        "memory per chip 80.0 GiB 20.0 GiB x 0.25",
        "memory bandwidth per chip 3.35 TB/s unknown",
        "bf16 dense per chip 989 TFLOP/s 121 TFLOP/s x 0.12",
        "link one way per chip 450 GB/s unknown",
        "EFA 400 GB/s none",
        "GPUDirect RDMA yes no",
        "regions us-east-1 none",
        "on demand an hour, us-east-1 $55.04 $0.80",
    ):
        assert said in page, said
    assert "For the question" not in page


def test_answers_stand_side_by_side_too(plan: Any) -> None:
    answers = [
        {"stands_in": "options", "detail": plan["options"][0]},
        {"stands_in": "rejected", "detail": plan["rejected"][6]},
    ]
    page = words(compare_page(compared(answers)))
    for said in (
        "it is an option will not do",
        "laid 2 x tp4 fp8",
        "P99 TTFT 819 ms",
        "an hour $55.04 ($53.44-$56.69)",
        "because P99 TPOT is 71 ms against 40 ms asked",
        "+ NVSwitch joins all 8 chips",
    ):
        assert said in page, said
    assert "MFU" not in page


def test_both_are_markdown(plan: Any) -> None:
    assert "| chips | 8 | 1 |" in markdown(compare_page(compared()))
    assert "# p5.48xlarge: one of the options" in markdown(why_page(why_of(plan, "options")))
