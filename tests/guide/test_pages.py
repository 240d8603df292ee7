"""What `chipwise guide` and `chipwise explain` print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from chipwise.guide import section_list
from chipwise.guide.tables import table
from chipwise.interfaces.cli import cli
from chipwise.workload import presets

Ask = Callable[..., dict[str, Any]]
SECTIONS = [one["section"] for one in section_list()]
DRAWN = [one["section"] for one in section_list() if one["flow"]]


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments), prog_name="chipwise")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_is_shown(ask: Ask, name: str) -> None:
    answer = ask("guide", "show", name)
    assert answer["boxes"] or answer["tables"]
    page = run("guide", "show", name)
    assert page.exit_code == 0
    assert answer["title"] in page.stdout
    assert all(one["title"] in page.stdout for one in answer["tables"])


@pytest.mark.parametrize("name", DRAWN)
def test_every_flow_is_drawn(ask: Ask, name: str) -> None:
    boxes = ask("guide", "show", name)["boxes"]
    drawn = run("guide", "show", name, "--format", "mermaid").stdout
    assert drawn.startswith("flowchart LR\n")
    assert all(f" b{one['id'].replace('.', '_').replace('-', '_')}" in drawn for one in boxes)
    picture = ET.fromstring(run("guide", "show", name, "--format", "svg").stdout)  # noqa: S314 - our own drawing
    words = " ".join(picture.itertext())
    assert all(one["text"].split()[0] in words for one in boxes)


def test_boxes_of_a_drawing_do_not_overlap() -> None:
    picture = ET.fromstring(run("guide", "show", "8", "--format", "svg").stdout)  # noqa: S314 - our own drawing
    boxes = [one.attrib for one in picture.iter("{http://www.w3.org/2000/svg}rect") if "rx" in one.attrib]
    places = [[float(one[key]) for key in ("x", "y", "width", "height")] for one in boxes]
    for place, (x, y, width, height) in enumerate(places):
        for other in places[place + 1 :]:
            assert (
                x + width <= other[0] or other[0] + other[2] <= x or y + height <= other[1] or other[1] + other[3] <= y
            )


def test_without_a_section_the_whole_flow_is_drawn_and_the_sections_are_listed() -> None:
    assert run("guide", "show", "--format", "mermaid").stdout == run("guide", "show", "8", "-o", "mermaid").stdout
    assert all(name in run("guide", "show").stdout for name in SECTIONS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["guide", "show", "10"], "unknown section"),
        (["guide", "show", "5", "--format", "svg"], "has no flow"),
        (["guide", "show", "8", "--format", "png"], "png"),
        (["guide", "show", "8", "--format", "svg", "--json"], "contradict"),
        (["explain", "thruput-per"], "unknown term"),
        (["explain"], "TERM is missing"),
        (["guide", "shw"], "unknown command"),
    ],
)
def test_wrong_input_is_answered_with_help(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "fix:" in result.stderr


def test_errata_are_the_contract(ask: Ask) -> None:
    answer = ask("guide", "errata")
    names = {"id", "where", "claim", "verdict", "right_value", "source", "served_by"}
    assert all(names <= set(one) and one["source"] and one["served_by"] for one in answer["claims"])
    page = run("guide", "errata").stdout
    assert "The twenty that matter most" in page
    assert "8,192" in page


def test_presets_are_printed_whole(ask: Ask) -> None:
    answer = ask("guide", "presets")
    assert [one["name"] for one in answer["presets"]] == [one.name for one in presets()]
    chat = next(one for one in answer["presets"] if one["name"] == "chat")
    assert (chat["values"]["ttft_p99_s"]["value"], chat["values"]["tpot_p99_s"]["value"]) == (1, 0.06)
    page = run("guide", "presets").stdout
    assert all(one.title in page for one in presets())


def test_published_claims_are_shown_as_claims() -> None:
    page = run("guide", "show", "B-published").stdout
    assert "never used in a figure" in page
    assert [row["verdict"] for row in table("published")] == ["unverifiable"] * 3 + ["right"]


@pytest.mark.parametrize("term", ["ttft", "mfu", "time-slicing", "mig", "spot", "latency", "training-cost"])
def test_a_term_is_a_page(ask: Ask, term: str) -> None:
    answer = ask("explain", term)
    page = run("explain", term).stdout
    assert answer["title"] in page
    assert all(one["grade"] in page for one in answer["ratings"])
    assert all(one["setting"] in page for one in answer["settings"])


def test_markdown_too(tmp_path: Path) -> None:
    assert "| line | the guide says |" in run("guide", "show", "4", "-o", "md").stdout
    assert json.loads(run("guide", "show", "4", "-o", "json").stdout)["section"] == "4"
