"""A training run on the page: step, waits, run and cost against what was asked, memory of what is trained."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chipwise.decide.advice import Advice
from chipwise.report.document import Document
from chipwise.report.estimate import estimate_page
from chipwise.report.json import as_json
from chipwise.report.markdown import markdown
from chipwise.report.memory import memory_page
from chipwise.report.plan import plan_page
from chipwise.report.schema import schema
from chipwise.report.text import text
from chipwise.report.training import step_bar

GIB = 2**30


def words(page: Document) -> str:
    return " ".join(text(page, width=110, color=False).split()).replace("\u00d7", "x").replace("\u2013", "-")


def around(mid: float, factor: float = 2.0) -> dict[str, float]:
    return {"low": mid / factor, "mid": mid, "high": mid * factor}


TERMS = {
    "gemm": (8.0, "compute"),
    "elementwise": (0.5, "bandwidth"),
    "tp": (1.0, "communication"),
    "bubble": (0.46, "overhead"),
    "host": (0.04, "overhead"),
    "ep": (0.0, "communication"),
}
TRAINING: dict[str, Any] = {
    "step_s": around(10.0),
    "tokens_per_s": around(16384.0),
    "tokens_per_s_per_chip": around(2048.0),
    "samples_per_s": around(8.0),
    "mfu_fraction": {"low": 0.3, "mid": 0.4, "high": 0.5},
    "hfu_fraction": {"low": 0.4, "mid": 0.52, "high": 0.6},
    "communication_efficiency": {
        "overall": {"low": 0.85, "mid": 0.9, "high": 0.95},
        "tp": {"low": 0.86, "mid": 0.91, "high": 0.96},
        "dp": None,
        "ep": None,
        "pp": None,
    },
    "pipeline_bubble_fraction": 0.046,
    "terms": [{"op": op, "seconds": seconds, "bound_by": bound} for op, (seconds, bound) in TERMS.items()],
}
MEMORY_TERMS = {"weights": 16, "gradients": 32, "optimizer": 20, "adapters": 0, "activations": 8, "overhead": 2}


def memory() -> dict[str, Any]:
    terms = {f"{name}_bytes": gib * GIB for name, gib in MEMORY_TERMS.items()}
    none = dict.fromkeys(("reserved_bytes", "cache_bytes", "graphs_bytes", "draft_bytes"), 0)
    return {
        "fits": True,
        "chip": "h100-sxm",
        "chips": 8,
        "per_chip": {"capacity_bytes": 80 * GIB, "free_bytes": 2 * GIB, **none, **terms},
        "shortfall_bytes": 0,
        **dict.fromkeys(("kv_pool_bytes", "kv_cache_tokens", "max_concurrency_at_context", "longest_context")),
        "min_chips": None,
        "to_make_it_fit": [],
        "range": {"low_fraction": 0.9, "high_fraction": 1.1},
        "evidence": "calibrated",
        "warnings": [],
    }


def performance() -> dict[str, Any]:
    return {
        "feasible": True,
        "config": {"instance": "p5.48xlarge", "parallelism": {"tp": 4, "pp": 2, "ep": 1, "dp": 1, "cp": 1}},
        "serving": None,
        "training": copy.deepcopy(TRAINING),
        "other": None,
        "memory": memory(),
        "watts": None,
        "evidence": "calibrated",
        "warnings": [],
    }


@pytest.fixture
def plan(advice: Advice) -> Any:
    """The sample plan with its first option turned into a training run."""
    answer = as_json(advice)
    option = answer["options"][0]
    option |= {"performance": performance(), "memory": memory(), "latency": None, "rating_mfu": "average"}
    option["run"] = {
        "duration_s": around(86400.0),
        "chip_hours": around(192.0),
        "tokens": 1.5e9,
        "checkpoint_bytes": 920 * GIB,
        "checkpoint_interval_s": 7200.0,
        "interruption_cost_usd": around(12.0),
    }
    option["cost"]["usd_per_run"] = around(1320.0)
    option["cost"]["usd_per_million_output_tokens"] = option["cost"]["usd_per_million_at_capacity"] = None
    asked = {"deadline_s": {"value": 3 * 86400.0, "from": "user"}, "budget_usd": {"value": 1000.0, "from": "user"}}
    behind = [row | {"ttft_p99_s": None, "tpot_p99_s": None} for row in answer["also_feasible"]]
    return answer | {"options": [option], "workload": asked, "also_feasible": behind}


def test_the_page_says_what_a_run_needs(plan: Any) -> None:
    page = words(plan_page(plan))
    for said in (
        "tok/s MFU run $/h $ a run",
        "tp4 fp8 16,384 40 % 24.0 h $55.04 $1,320",
        "step 10.0 s (5.00-20.0)",
        "16,384 (8,192-32,768) tok/s \u00b7 2,048 (1,024-4,096) a chip",
        "MFU 40 % (30-50) average \u00b7 HFU 52 % (40-60)",
        "90 % (85-95) efficient \u00b7 tp 91 % (86-96) on target",
        "pipeline bubble 5 % of the step",
        "\u2588 matrix products 80 %",
        "\u2592 tensor parallelism 10 %",
        "\u2591 other < 1 %",
        "run 24.0 h (12.0 h-2.00 d) \u00b7 1.50B tokens \u00b7 \u2713 \u2264 3.00 d",
        "checkpoint 920 GiB every 2.00 h",
        "interruptions $12.00 ($6.00-$24.00) on Spot",
        "$1,320 ($660-$2,640) for the run \u00b7 \u2717 \u2264 $1,000",
        "\u2593 optimizer 20.0 GiB",
    ):
        assert said in page, said


def test_what_only_serving_has_is_not_on_it(plan: Any) -> None:
    page = words(plan_page(plan))
    for not_said in ("TTFT p99", "with TTFT", "percentiles", "replica of", "cache,"):
        assert not_said not in page, not_said


def test_it_is_markdown_too(plan: Any) -> None:
    page = markdown(plan_page(plan))
    for said in ("| matrix products | 80 % |", "| optimizer | 20.0 GiB |", "- **checkpoint**: 920 GiB"):
        assert said in page, said


def test_an_estimate_of_a_run_is_a_page() -> None:
    page = words(estimate_page(performance()))
    for said in ("parallelism tp4 pp2", "matrix products 8.00 s compute", "host 40.0 ms overhead", "\u2593 gradients"):
        assert said in page, said
    assert "expert exchange" not in page


def test_memory_of_a_run_says_nothing_of_requests() -> None:
    page = words(memory_page(memory()))
    assert "fits on 8 x h100-sxm" in page
    assert "cache" not in page
    assert "requests" not in page


def test_chips_that_wait_for_nobody_are_said_so() -> None:
    answer = performance()
    answer["training"]["communication_efficiency"] = dict.fromkeys(("tp", "dp", "ep", "pp")) | {"overall": around(1.0)}
    answer["training"]["hfu_fraction"] = answer["training"]["mfu_fraction"]
    page = words(estimate_page(answer))
    assert "devices wait for nobody" in page
    assert "HFU" not in page


@pytest.mark.parametrize(("waits", "named"), [({"cp"}, "cp 91 %"), ({"tp", "cp"}, "tp+cp 91 %"), ({"tp"}, "tp 91 %")])
def test_a_wait_is_named_after_what_cuts_the_run(waits: set[str], named: str) -> None:
    answer = performance()
    terms = [term for term in answer["training"]["terms"] if term["op"] not in {"tp", "cp"}]
    waited = [{"op": op, "seconds": 0.5, "bound_by": "communication"} for op in sorted(waits)]
    answer["training"]["terms"] = [*terms, *waited]
    assert f"efficient · {named}" in words(estimate_page(answer))


def test_the_schema_takes_the_run_and_no_bare_step() -> None:
    validator = Draft202012Validator(schema("estimate"))
    answer = performance()
    validator.validate(answer)
    answer["training"]["step_s"] = 10.0
    assert not validator.is_valid(answer)


@given(st.lists(st.floats(min_value=0.0, max_value=1e6), min_size=1, max_size=16))
def test_the_step_bar_loses_no_time(seconds: list[float]) -> None:
    terms = [{"op": f"term_{place}", "seconds": one, "bound_by": "compute"} for place, one in enumerate(seconds)]
    bar = step_bar({"terms": terms})
    assert sum(part.value for part in bar.parts) == pytest.approx(sum(seconds))
