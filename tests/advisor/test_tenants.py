"""Several models on shared devices: who lives where adds up, what isolation asks is given, loads are shared by rule."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from chipwise import Request, advise, load_catalog
from chipwise.advisor.tenants import model_names
from chipwise.decide import Advice, Option
from chipwise.errors import InputError
from chipwise.interfaces.cli.commands import plan
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.text import text

NAMES = ("llama-3.1-8b", "qwen3-0.6b", "qwen3-4b")
TOGETHER = Request(model=",".join(NAMES), purpose="multi-serving", regions=("us",))
TURNS = dataclasses.replace(TOGETHER, isolation="none")


@pytest.fixture(scope="module")
def isolated() -> Advice:
    """The preset's own isolation."""
    return advise(TOGETHER)


@pytest.fixture(scope="module")
def turns() -> Advice:
    """Nothing is isolated."""
    return advise(TURNS)


def on(request: Request, size: str) -> Option:
    """The first option where only one size may be taken."""
    return advise(dataclasses.replace(request, only=(size,))).options[0]


def sharing(option: Option) -> dict[str, Any]:
    assert option.sharing is not None
    return option.sharing


@pytest.mark.parametrize("name", ["isolated", "turns"])
def test_every_size_stands_once_and_every_model_somewhere(name: str, request: pytest.FixtureRequest) -> None:
    advice: Advice = request.getfixturevalue(name)
    counted = Counter({option.instance for option in advice.options})
    for rows in (advice.also_feasible, advice.rejected, advice.not_judged, advice.excluded):
        counted.update(row.instance for row in rows)
    assert set(counted) == set(load_catalog().instances)
    assert max(counted.values()) == 1
    for option in advice.options:
        placed = Counter(row["model"] for row in sharing(option)["placement"])
        assert placed == {one["model"]: one["replicas"] for one in sharing(option)["models"]}
        assert set(placed) == set(NAMES)
        assert sum(placed.values()) == option.replicas


@pytest.mark.parametrize("name", ["isolated", "turns"])
def test_no_device_holds_more_than_it_has(name: str, request: pytest.FixtureRequest) -> None:
    """Shares of time and of compute add up to one at most, bytes to the chip's memory, devices to the instance's."""
    advice: Advice = request.getfixturevalue(name)
    for option in advice.options:
        shares: dict[tuple[int, int], float] = defaultdict(float)
        held: dict[tuple[int, int], float] = defaultdict(float)
        for row in sharing(option)["placement"]:
            where = row["instance"], row["device"]
            assert row["instance"] <= option.instances
            assert row["device"] + row["devices"] <= (load_catalog().instances[option.instance].devices or 1)
            shares[where] += row["share"]
            held[where] += row["memory_bytes"]
        memory = load_catalog().chips[option.chip].memory_bytes or 0
        assert max(shares.values()) <= 1.0 + 1e-9
        assert max(held.values()) <= memory
        per_chip = option.memory["per_chip"]
        rest = sum(size for key, size in per_chip.items() if key != "capacity_bytes")
        assert rest == per_chip["capacity_bytes"] + option.memory["shortfall_bytes"]


def test_isolated_models_never_take_turns(isolated: Advice, turns: Advice) -> None:
    techniques = {sharing(option)["technique"] for option in isolated.options}
    assert techniques <= {"mig", "fractional", "separate"}
    assert "mig" in techniques
    assert "time-slicing" in {sharing(option)["technique"] for option in turns.options}
    assert isolated.workload["isolation"] == {"value": "hardware", "from": "preset"}


def test_slices_of_one_gpu_hold_models_of_unlike_size() -> None:
    """A g7e.2xlarge has one RTX PRO 6000: 8B in BF16 is 16 GB and fits one of its four slices of 24 GB."""
    option = on(TOGETHER, "g7e.2xlarge")
    rows = sharing(option)["placement"]
    assert (option.instances, sharing(option)["technique"]) == (1, "mig")
    assert {row["profile"] for row in rows} <= {"1g.24gb", "2g.48gb"}
    assert {row["device"] for row in rows} == {0}


def test_a_model_that_no_slice_holds_takes_a_whole_gpu_beside_sliced_ones() -> None:
    """70B at FP8 is 70 GB: more than half of an H100's 80 GB, so it has a GPU of its own on the same instance."""
    asked = dataclasses.replace(TOGETHER, model="llama-3.3-70b,qwen3-0.6b", min_precision="fp8", regions=())
    option = on(asked, "p5.48xlarge")
    rows = {row["model"]: row for row in sharing(option)["placement"]}
    assert rows["llama-3.3-70b"]["profile"] is None
    assert rows["llama-3.3-70b"]["device"] != rows["qwen3-0.6b"]["device"] or not rows["qwen3-0.6b"]["profile"]


def test_turns_cost_time_and_the_answer_says_how_much() -> None:
    alone = on(dataclasses.replace(TURNS, model="qwen3-4b", purpose="chat", users=1), "g6e.xlarge")
    option = on(TURNS, "g6e.xlarge")
    assert sharing(option)["technique"] == "time-slicing"
    slower = next(one for one in sharing(option)["models"] if one["model"] == "qwen3-4b")
    assert slower["tpot_p99_s"] > 1.5 * alone.performance["serving"]["isolated"]["tpot_s"].mid
    assert any(risk.startswith("interference: a token of qwen3-4b takes") for risk in option.risks)
    used = sum(one["settings"]["gpu_memory_utilization"] for one in sharing(option)["models"])
    assert used <= 0.93


def test_totals_are_those_of_all_models(isolated: Advice) -> None:
    for option in isolated.options:
        each = [one["output_tokens_per_s"].mid for one in sharing(option)["models"]]
        assert option.performance["serving"]["output_tokens_per_s"].mid == pytest.approx(sum(each))
    assert isolated.model["params_total"] == sum(one["params_total"] for one in isolated.model["models"])
    assert isolated.model["name"] == TOGETHER.model


def test_users_are_shared_equally_and_the_answer_says_so(isolated: Advice) -> None:
    shares = isolated.workload["shares"]["value"]
    assert [round(shares[name]["users"], 6) for name in NAMES] == [round(4 / 3, 6)] * 3
    assert any("shared equally" in warning for warning in isolated.warnings)
    few = advise(dataclasses.replace(TOGETHER, users=1, only=("g7e.2xlarge",)))
    assert {one["users"] for one in few.workload["shares"]["value"].values()} == {1.0}


def test_a_file_gives_a_model_a_load_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("model:\n  llama-3.1-8b: {users: 16, tpot-p99: 80ms}\n  qwen3-0.6b:\nonly: g7e.2xlarge\n")
    asked = plan.asked({"workload": str(path)})
    assert asked.per_model == {"llama-3.1-8b": {"users": 16, "tpot_p99_s": 0.08}}
    shares = advise(asked).workload["shares"]["value"]
    assert (shares["llama-3.1-8b"]["users"], shares["llama-3.1-8b"]["tpot_p99_s"]) == (16, 0.08)
    assert (shares["qwen3-0.6b"]["users"], shares["qwen3-0.6b"]["tpot_p99_s"]) == (2.0, 0.06)


def test_a_size_that_does_not_hold_one_model_says_which_and_what_it_lacks() -> None:
    asked = dataclasses.replace(TOGETHER, model="llama-3.3-70b,qwen3-0.6b", only=("g6.xlarge",), regions=())
    (row,) = advise(asked).rejected
    assert row.rule == "memory"
    assert row.reason.startswith("llama-3.3-70b: does not fit")
    assert row.shortfall is not None
    assert float(row.shortfall["value"]) > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"purpose": "chat"}, "--for chat does not go with 3 models"),
        ({"model": "qwen3-4b,qwen3-4b"}, "qwen3-4b is named twice"),
        ({"model": ",".join(f"params:{size}b" for size in range(1, 12))}, "11 models are too many"),
        ({"per_model": {"qwen3-8b": {"users": 2}}}, "unknown model of this question 'qwen3-8b'"),
        ({"per_model": {"qwen3-4b": {"vendor": "nvidia"}}}, "vendor is no setting of qwen3-4b alone"),
        ({"model": "llama-3.1-8b,bge-m3"}, "--for multi-serving does not go with a model of class encoder"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as refused:
        advise(dataclasses.replace(TOGETHER, **change))
    assert words in refused.value.what


def test_a_path_with_a_comma_is_one_model(tmp_path: Path) -> None:
    path = tmp_path / "one,two.json"
    path.write_text("{}")
    assert model_names(str(path)) == (str(path),)


def test_the_page_tells_who_lives_where(turns: Advice) -> None:
    page = text(plan_page(as_json(turns)), width=100, color=False)
    for name in NAMES:
        assert name in page
    assert "time-slicing" in page


def test_the_benchmark_starts_every_model_with_its_part_of_the_memory() -> None:
    advice = advise(dataclasses.replace(TURNS, only=("g6e.xlarge",)))
    starts = [line for line in advice.benchmark["commands"] if line.startswith("vllm serve ")][: len(NAMES)]
    shares = [float(line.partition("--gpu-memory-utilization ")[2].split()[0]) for line in starts]
    assert sum(shares) <= 0.93
