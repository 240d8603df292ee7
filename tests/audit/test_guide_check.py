"""The guide asked cell by cell: every difference has a reason that the run computed; one without is shown."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from chipwise import Request, advise
from chipwise.audit.guide_check import GuideCheckRequest, check_guide
from chipwise.audit.guide_check.asked import command, remembering, request_of
from chipwise.audit.guide_check.parts import PARTS
from chipwise.decide import Advice
from chipwise.errors import UnknownNameError
from chipwise.guide import cells
from chipwise.guide.cells import questions
from chipwise.guide.tables import table
from chipwise.interfaces.cli import cli
from chipwise.interfaces.cli.commands.plan import QUESTION
from chipwise.interfaces.cli.commands.plan import command as plan_command
from chipwise.interfaces.cli.flags import build, given
from chipwise.report.json import as_json
from chipwise.report.schema import schema

KINDS = {"erratum", "price", "memory", "slo", "region", "support"}
ASK = remembering()


def check(*only: str) -> dict[str, Any]:
    answer: dict[str, Any] = as_json(check_guide(GuideCheckRequest(only=only), ask=ASK))
    return answer


def cell(name: str) -> dict[str, Any]:
    (found,) = check(name)["cells"]
    row: dict[str, Any] = found
    return row


def assert_explained(answer: dict[str, Any]) -> None:
    Draft202012Validator(schema("guide_check")).validate(answer)
    assert answer["unexplained"] == []
    assert answer["agree"] == sum(row["agrees"] for row in answer["cells"])
    assert answer["total"] == len(answer["cells"])
    for row in answer["cells"]:
        assert row["agrees"] == (not row["differs"]), row["id"]
        assert {one["kind"] for one in row["differs"]} <= KINDS
        assert all(one["value"] != "" for one in row["differs"]), row["id"]


@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_part_is_compared_and_explained(part: str) -> None:
    named = [one.id for one in cells() if one.part == part]
    assert named
    assert_explained(check(*named[:: max(len(named) // 3, 1)][:3]))


@pytest.mark.slow
def test_no_cell_of_the_guide_differs_in_silence() -> None:
    answer = check()
    assert_explained(answer)
    assert answer["total"] >= 150
    assert {one["kind"] for row in answer["cells"] for one in row["differs"]} == KINDS


def test_what_the_errata_correct_is_what_the_plan_answers() -> None:
    right = {row["id"]: row["right"] for row in table("datatypes")}
    rows = [
        row
        for row in check("A-dt-int4*", "A-dt-sparsity*", "A-dt-fp8*")["cells"]
        if "not known" not in row["answer"][0]
    ]
    assert len(rows) > 20
    for row in rows:
        assert {said.rpartition(": ")[2] for said in row["answer"] if "not known" not in said} == {right[row["id"]]}


def test_a_cache_cell_is_the_right_figure() -> None:
    right = {row["id"]: float(row["right_gb"]) for row in table("kv_cells")}
    for row in check("A-kv-4k-1", "A-kv-32k-64")["cells"]:
        held = float(row["answer"][0].removesuffix(" GB"))
        assert held == pytest.approx(right[row["id"]], rel=1e-3)
        assert not row["agrees"]
        memory = next(one for one in row["differs"] if one["kind"] == "memory")
        assert memory["value"] == pytest.approx((held - float(row["guide_recommends"][0])) * 1e9, rel=0.01)


def test_a_price_is_the_difference_of_two_offers_of_that_run() -> None:
    row = cell("1-mid")
    advice = ASK(Request(model="llama-3.1-8b", purpose="chat"))
    told = {one["id"]: one for one in row["differs"]}
    behind = {one.instance: one for one in advice.also_feasible}
    first = advice.options[0].cost.usd_per_hour
    assert first is not None
    assert set(told) == {"g6e.2xlarge", "g7e.2xlarge"}
    for name, one in told.items():
        usd = behind[name].usd_per_hour
        assert usd is not None
        assert one["kind"] == "price"
        assert one["unit"] == "USD/h"
        assert one["value"] == pytest.approx(usd.mid - first.mid)


def test_a_term_that_is_not_sold_is_a_matter_of_where_it_can_be_had() -> None:
    row = cell("8.4-speed.buy.p5e")
    assert [(one["kind"], one["id"]) for one in row["differs"]] == [
        ("erratum", "A-s8-p5e-ondemand"),
        ("region", "p5e.48xlarge"),
    ]


def test_a_format_that_is_not_taken_says_what_it_would_do() -> None:
    row = cell("8.8-latency.format")
    slower = [one for one in row["differs"] if one["kind"] == "slo"]
    assert slower
    assert all(one["unit"] == "s" and one["value"] > 0 for one in slower)


def test_a_cell_that_differs_without_a_reason_is_shown() -> None:
    def astray(request: Request) -> Advice:
        answer = advise(request)
        return replace(answer, guide={**answer.guide, "path": []})

    found = check_guide(GuideCheckRequest(only=("8.3",)), ask=astray)
    assert (found["unexplained"], found["agree"]) == (["8.3"], 0)


def test_agreement_hangs_on_the_answer() -> None:
    def elsewhere(request: Request) -> Advice:
        return advise(replace(request, exclude=("p5e", "trn2")))

    assert cell("2-moe")["agrees"]
    (row,) = check_guide(GuideCheckRequest(only=("2-moe",)), ask=elsewhere)["cells"]
    assert not row["agrees"]
    assert {one["value"] for one in row["differs"]} == {"--exclude"}


def test_a_question_without_an_answer_is_a_difference() -> None:
    def refused(request: Request) -> Advice:
        raise UnknownNameError("model", request.model, [])

    (row,) = check_guide(GuideCheckRequest(only=("8.8-latency",)), ask=refused)["cells"]
    assert [one["kind"] for one in row["differs"]] == ["support"]


@pytest.mark.parametrize("name", questions())
def test_the_printed_command_asks_the_same(name: str) -> None:
    question = questions()[name]
    words = shlex.split(command(question))
    assert words[:2] == ["chipwise", "plan"]
    values = plan_command.make_context("plan", words[2:]).params
    asked = build(Request, {"model": values["model"], **given(QUESTION, values)})
    assert asked == request_of(question)


def test_a_question_is_asked_once() -> None:
    count = 0

    def counting(request: Request) -> Advice:
        nonlocal count
        count += 1
        return advise(request)

    check_guide(
        GuideCheckRequest(only=("8.8-latency", "8.8-latency.tp", "8.8-latency.format")), ask=remembering(counting)
    )
    assert count == 1


def test_progress_is_told_after_every_cell() -> None:
    told: list[tuple[int, int]] = []
    check_guide(GuideCheckRequest(only=("8.3", "8.8")), ask=ASK, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 2), (2, 2)]


def test_the_command_prints_one_document_and_its_status() -> None:
    result = CliRunner().invoke(cli, ["guide", "check", "--only", "8.3,8.8*", "--json"], prog_name="chipwise")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert_explained(answer)
    assert {row["id"] for row in answer["cells"]} >= {"8.3", "8.8", "8.8-cost"}


@pytest.mark.parametrize("form", ["text", "md"])
def test_the_page_says_why(form: str) -> None:
    result = CliRunner().invoke(cli, ["guide", "check", "--only", "8.8-quality", "-o", form], prog_name="chipwise")
    assert result.exit_code == 0
    assert "0 of 1 cell agree" in result.stdout
    assert "dearer" in result.stdout


def test_an_unknown_cell_is_met_with_near_ones() -> None:
    result = CliRunner().invoke(cli, ["guide", "check", "--only", "8.8-latenci"], prog_name="chipwise")
    assert result.exit_code == 2
    assert "8.8-latency" in result.stderr


@pytest.mark.slow
def test_the_page_of_the_docs_has_every_cell(repo: Path) -> None:
    page = (repo / "docs" / "guide-check.md").read_text(encoding="utf-8")
    assert [one.id for one in cells() if f"| {one.id} (" not in page] == []
