"""What people read: complete, within the width, the same facts in colour, in Markdown and at any width."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide.advice import Advice
from chipwise.report.document import Block, Document, Part, Table
from chipwise.report.estimate import estimate_page
from chipwise.report.json import as_json
from chipwise.report.markdown import markdown
from chipwise.report.memory import memory_page
from chipwise.report.model import model_page
from chipwise.report.plan import plan_page
from chipwise.report.text import cells_of, text

WIDTHS = (80, 100, 120)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def words(page: str) -> str:
    """The page as one line, in signs that a keyboard has."""
    return " ".join(page.split()).replace("\u00d7", "x").replace("\u2013", "-")


@pytest.fixture
def plan(advice: Advice) -> Document:
    return plan_page(as_json(advice))


@pytest.fixture
def option(advice: Advice) -> Any:
    return as_json(advice)["options"][0]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_page(plan: Document, width: int) -> None:
    assert max(map(len, text(plan, width=width, color=False).splitlines())) <= width


def test_every_size_stands_on_the_page(advice: Advice, plan: Document) -> None:
    lists = (advice.options, advice.also_feasible, advice.rejected, advice.not_judged, advice.excluded)
    names = [row.instance for rows in lists for row in rows]
    for page in (text(plan, width=100, color=False), markdown(plan)):
        assert [name for name in names if name not in page] == []


def test_the_page_says_what_a_decision_needs(plan: Document) -> None:
    page = words(text(plan, width=120, color=False))
    for said in (
        "Llama-3.3-70B-Instruct",
        "64 users in flight",
        "P99 TTFT ≤ 1.00 s",
        "facts as of 2026-11-30",
        "Option 1: 1 x p5.48xlarge ties with 2",
        "2 replicas of tp4",
        "$55.04 ($53.44-$56.69) an hour \u00b7 list price, 2026-07-20",
        "per million output tokens",
        "no price known",
        "4 idle, paid for",
        "✗ gpudirect-rdma recommended",
        "short by 14.2 GiB",
        "GPU or Neuron: nvidia",
        "$ chipwise bench verdict RESULT.json",
    ):
        assert said in page, said


def test_a_missed_bar_is_marked(advice: Advice) -> None:
    page = text(plan_page(as_json(advice)), width=100, color=False)
    first, second = (part for part in page.split("\n\n") if "alone" in part and "p5" in part.splitlines()[0])
    assert "✗ 1.00" not in first
    assert "✗ 1.00" in second


def test_colour_changes_no_word(plan: Document) -> None:
    colored = text(plan, width=100, color=True)
    assert "\x1b[" in colored
    bare = [row.rstrip() for row in ESCAPE.sub("", colored).splitlines()]
    assert bare == text(plan, width=100, color=False).splitlines()


def test_nothing_feasible_is_said(advice: Advice) -> None:
    page = text(plan_page(as_json(dataclasses.replace(advice, options=()))), width=80, color=False)
    assert "Nothing feasible" in page


def test_a_saved_plan_gives_the_same_page(advice: Advice, plan: Document) -> None:
    assert plan_page(as_json(as_json(advice))) == plan


def test_the_memory_bar_shows_every_term(option: Any) -> None:
    page = words(text(memory_page(option["memory"]), width=80, color=False))
    for said in (
        "fits on 4 x h100-sxm",
        "█ weights 33.0 GiB",
        "▓ cache 20.0 GiB",
        "· free 15.7 GiB",
        "fp8 weights",
    ):
        assert said in page, said


def test_a_shortfall_is_said(option: Any) -> None:
    per_chip = {**option["memory"]["per_chip"], "free_bytes": 0}
    answer = {**option["memory"], "fits": False, "per_chip": per_chip, "shortfall_bytes": 5 * 2**30}
    page = words(text(memory_page(answer), width=80, color=False))
    assert "does not fit" in page
    assert "5.00 GiB short" in page
    assert "free" not in page.split("cache pool")[0]


@pytest.mark.parametrize(("key", "name"), [("mig", "profile"), ("fractions", "instance")])
def test_parts_of_a_gpu_are_listed(option: Any, key: str, name: str) -> None:
    parts = [{name: "small one", "fits": False, "per_gpu": 7}, {name: "large one", "fits": True, "per_gpu": 2}]
    page = words(text(memory_page({**option["memory"], key: parts}), width=80, color=False))
    assert "small one no 7" in page
    assert "large one yes 2" in page
    assert "Parts of one GPU" not in words(text(memory_page(option["memory"]), width=80, color=False))


def test_instances_are_counted_where_a_size_was_asked(option: Any) -> None:
    page = words(text(memory_page({**option["memory"], "min_instances": 2}), width=80, color=False))
    assert "fewest instances 2" in page
    alone = {**option["memory"], "min_instances": None}
    assert "fewest instances" not in words(text(memory_page(alone), width=80, color=False))


def test_a_memory_table_has_a_row_a_context(option: Any) -> None:
    cells = [
        {
            **option["memory"],
            "context": context,
            "concurrency": count,
            "fits": fits,
            "shortfall_bytes": 0 if fits else 2**30,
        }
        for context, count, fits in ((8192, 1, True), (8192, 16, True), (32768, 1, True), (32768, 16, False))
    ]
    page = text(memory_page({**option["memory"], "table": cells}), width=100, color=False)
    rows = [row.split() for row in page.splitlines() if row.strip().startswith(("8,192", "32,768"))]
    assert [row[0] for row in rows] == ["8,192", "32,768"]
    assert "\u2717 20.0 GiB" in page


def test_an_estimate_shows_its_terms(option: Any) -> None:
    page = words(text(estimate_page(option["performance"]), width=80, color=False))
    for said in (
        "TTFT 410 ms (273-615) alone 180 ms (120-270)",
        "bound by bandwidth",
        "all-reduce 20.0 ms 4.10 ms",
    ):
        assert said in page, said


MODEL = {
    "schema_version": 1,
    "name": "tiny-moe",
    "model_type": "qwen3_moe",
    "architecture": "moe-llm",
    "params_total": 30_532_122_624,
    "params_active": 3_353_000_000,
    "params_mtp": 0,
    "params_source": "config",
    "dtype": None,
    "quantization": {
        "method": "awq",
        "weight_format": "int4",
        "bits_per_weight": 4.25,
        "inferred_from": "its name",
    },
    "weight_bytes": 17_000_000_000,
    "layers": 48,
    "hidden_size": 2048,
    "vocab_size": 151_936,
    "max_context_tokens": None,
    "attention": [
        {
            "kind": "full",
            "layers": 48,
            "query_heads": 32,
            "kv_heads": 4,
            "head_dim": 128,
            "window_tokens": None,
        }
    ],
    "kv_bytes_per_token": 98_304,
    "state_bytes_per_sequence": 0,
    "experts": {"routed": 128, "shared": 0, "per_token": 8, "moe_layers": 48},
    "legal_tp": [1, 2, 4, 8],
    "precisions": [
        {
            "format": "fp8",
            "condition": None,
            "quality_loss": None,
            "calibration_data": True,
            "source": "guide A:311",
        }
    ],
    "warnings": ["its name says AWQ, its config does not"],
}


def test_a_model_page_says_the_unknown(option: Any) -> None:
    page = words(text(model_page(MODEL), width=100, color=False))
    for said in (
        "30.5B 30,532,122,624",
        "3.35B active",
        "data type unknown",
        "context unknown",
        "4.25 bits a weight, inferred from its name",
        "8 of 128 a token, in 48 layers",
        "legal tp 1, 2, 4, 8",
        "fp8 unknown needs data",
    ):
        assert said in page, said


@pytest.mark.parametrize("page", [model_page])
def test_markdown_tables_have_as_many_cells_as_columns(page: Callable[[Any], Document], plan: Document) -> None:
    for content in (markdown(plan), markdown(page(MODEL))):
        for table in re.findall(r"(?:^\|.*\|\n?)+", content, flags=re.MULTILINE):
            counts = {len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}
            assert len(counts) == 1, table


def test_markdown_escapes_what_a_name_may_hold() -> None:
    page = markdown(model_page({**MODEL, "name": "a|b_c*d<e>"}))
    assert r"a\|b\_c\*d\<e\>" in page


sizes = st.floats(min_value=0.0, max_value=1e12)


@given(st.lists(sizes, min_size=1, max_size=11), st.integers(min_value=20, max_value=120))
def test_a_bar_never_leaves_its_room_and_hides_no_part(values: list[float], room: int) -> None:
    parts = [Part(label="x", value=value, shown="", kind="held") for value in values]
    cells = cells_of(parts, sum(values), room)
    assert sum(cells) <= room
    assert all((count > 0) == (value > 0) for count, value in zip(cells, values, strict=True))


def tables(blocks: tuple[Block, ...]) -> list[Table]:
    return [block for block in blocks if isinstance(block, Table)]


def test_every_row_has_a_cell_a_column(plan: Document) -> None:
    for table in tables(plan.blocks):
        assert {len(row) for row in table.rows} <= {len(table.columns)}


def test_square_brackets_are_text_and_not_markup() -> None:
    page = text(model_page({**MODEL, "name": "x[bold]y[/bold]:smile:"}), width=100, color=False)
    assert "x[bold]y[/bold]:smile:" in page
