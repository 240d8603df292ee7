"""Ten ways through the pages, as people take them."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
    "torch_dtype": "bfloat16", "max_position_embeddings": 131072,
}  # fmt: skip
SMALL = "model=llama-3.1-8b&users=8&only=g6e.xlarge"
VERSUS = "/versus?a=model%3Dllama-3.1-8b%26users%3D8&b=model%3Dllama-3.3-70b%26users%3D8"

pytestmark = pytest.mark.slow


def settled(page: Page) -> None:
    """The answer has come and nothing is on its way."""
    expect(page.locator("#answer")).not_to_have_class(re.compile("busy"))
    page.wait_for_load_state("networkidle")


def test_paste_a_config_and_get_an_answer(page: Page, home: str) -> None:
    page.goto(home)
    page.get_by_label("The content of a config.json").fill(json.dumps(CONFIG))
    expect(page.locator("#answer")).to_contain_text("8.03B parameters", timeout=20_000)
    expect(page.locator("#answer .verdict")).to_contain_text("an hour")
    if (page.viewport_size or {"width": 0})[
        "width"
    ] < 500:  # the answer lies below the form: its line at the foot leads there
        page.get_by_role("link", name="an hour").click()
    expect(page.locator("#answer .verdict")).to_be_in_viewport()
    expect(page.locator("#answer h2").first).to_contain_text("Options")
    settled(page)
    page.reload()
    expect(page.locator("#answer")).to_contain_text("8.03B parameters")


def test_drop_a_config_and_what_was_open_stays_open(page: Page, home: str) -> None:
    page.goto(home)
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "config.json"));
          document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        json.dumps(CONFIG),
    )
    expect(page.locator("#answer")).to_contain_text("8.03B parameters", timeout=20_000)
    page.get_by_text("What these words mean").click()
    page.get_by_label("Show only rows with").fill("p3.2xlarge")
    page.get_by_label("Users at once", exact=True).fill("16")
    expect(page.locator("#answer")).to_contain_text("16 users in flight", timeout=20_000)
    expect(page.locator(".words dl")).to_be_visible()
    expect(page.get_by_label("Show only rows with")).to_have_value("p3.2xlarge")
    expect(page.locator("#rejected tbody tr:visible")).to_have_count(1)


def test_search_a_built_in_model(page: Page, home: str) -> None:
    page.goto(home)
    names = page.locator("#models option").evaluate_all("all => all.map(one => one.value)")
    assert "llama-3.3-70b" in names
    page.get_by_label("Model", exact=True).fill("llama-3.3-70b")
    expect(page.locator("#answer")).to_contain_text("70.6B parameters", timeout=20_000)


def test_walk_the_flow_to_an_answer(page: Page, home: str) -> None:
    page.goto(f"{home}/walk")
    page.get_by_label("Your answer").fill("llama-3.1-8b")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="Serving").click()
    page.get_by_role("link", name="People in a conversation").click()
    expect(page.locator(".flow svg").first).to_be_visible()
    while page.get_by_role("link", name="See the answer").count() == 0:
        if page.locator(".ways a").count():
            page.locator(".ways a").first.click()
        else:
            page.get_by_role("button", name="Next").click()
        page.wait_for_load_state()
    page.get_by_role("link", name="See the answer").click()
    expect(page.locator("#answer")).to_contain_text("llama-3.1-8b")


def test_the_boxes_of_the_flow_are_ways(page: Page, home: str) -> None:
    page.goto(f"{home}/walk?model=llama-3.3-70b&8.1=serving&ask-serving=chat")
    page.locator(".flow a", has_text="TP 8").click()
    expect(page.locator("main")).to_contain_text("Speed")
    assert len(parse_qs(urlparse(page.url).query)) == 4


def test_move_the_context_until_something_stops_fitting(page: Page, home: str) -> None:
    page.goto(f"{home}/?{SMALL}")
    expect(page.locator("#answer")).to_contain_text("Option 1")
    slider = page.get_by_label("Context, tokens, slider")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#answer")).not_to_contain_text("Option 1", timeout=20_000)
    assert parse_qs(urlparse(page.url).query)["context"] == ["1M"]


def test_a_bar_nothing_meets_and_the_change_that_is_offered(page: Page, home: str) -> None:
    page.goto(f"{home}/?{SMALL}&tpot-p99=1ms")
    expect(page.locator("#answer")).to_contain_text("Nothing feasible")
    row = page.locator("#rejected tr", has_text="g6e.xlarge").filter(has_text="slo")
    row.first.get_by_role("link", name="what would make it do?").click()
    expect(page.locator("main")).to_contain_text("g6e.xlarge")
    looser = page.get_by_role("link", name="P99 time per token")
    expect(looser).to_be_visible()
    missed = re.search(r"a bar of ([\d.]+) times", page.locator("main").inner_text())
    allowed = re.search(r"([\d.]+)ms", looser.inner_text())
    assert missed is not None
    assert allowed is not None
    assert float(missed.group(1)) <= float(allowed.group(1)) <= 1.1 * float(missed.group(1)) + 0.1
    looser.click()
    expect(page.locator("#answer")).to_contain_text("Option 1")


def test_what_comes_nearest_is_offered_and_does(page: Page, home: str) -> None:
    page.goto(f"{home}/?model=llama-3.3-70b&for=chat&users=64&tpot-p99=2ms")
    expect(page.locator("#answer")).to_contain_text("What comes nearest")
    page.get_by_role("link", name="Allow P99 TPOT").first.click()
    expect(page.locator("#answer .verdict")).to_contain_text("an hour")
    assert parse_qs(urlparse(page.url).query).keys() == {"model", "for", "users", "tpot-p99"}


def test_back_takes_a_change_back(page: Page, home: str) -> None:
    page.goto(f"{home}/?{SMALL}")
    for label, key, name, value in (
        ("Context, tokens, slider", "Home", "context", "1k"),
        ("Users at once, slider", "Home", "users", "1"),
    ):
        page.get_by_label(label).focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(rf"[?&]{name}={value}(&|$)"))
    settled(page)
    page.go_back()
    expect(page.get_by_label("Users at once", exact=True)).to_have_value("8")
    expect(page.get_by_label("Context, tokens", exact=True)).to_have_value("1k")
    expect(page.locator("#answer")).to_contain_text("8 users in flight")
    page.go_back()
    expect(page).to_have_url(f"{home}/?{SMALL}")


def test_a_name_half_typed_is_completed_by_a_click(page: Page, home: str) -> None:
    page.goto(home)
    page.get_by_label("Model", exact=True).fill("llama-3.3")
    page.get_by_role("link", name="llama-3.3-70b", exact=True).click()
    expect(page.locator("#answer")).to_contain_text("70.6B parameters")


def test_read_why_one_size_was_rejected(page: Page, home: str) -> None:
    page.goto(f"{home}/?model=llama-3.3-70b&users=8")
    page.get_by_label("Show only rows with").fill("g5.xlarge memory")
    shown = page.locator("#rejected tbody tr:visible")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("does not fit")


def test_two_scenarios_side_by_side(page: Page, home: str) -> None:
    page.goto(f"{home}{VERSUS}")
    expect(page.get_by_role("region", name="Scenario A")).to_contain_text("llama-3.1-8b")
    other = page.get_by_role("region", name="Scenario B")
    expect(other).to_contain_text("llama-3.3-70b")
    other.get_by_label("Users at once").fill("64")
    other.get_by_role("button", name="Change B").click()
    expect(page.get_by_role("region", name="Scenario B")).to_contain_text("64 users in flight")
    expect(page.get_by_role("region", name="Scenario A")).to_contain_text("8 users in flight")


def test_an_address_holds_the_question(page: Page, home: str) -> None:
    page.goto(home)
    page.get_by_label("Model", exact=True).fill("llama-3.1-8b")
    page.get_by_label("Users at once", exact=True).fill("16")
    expect(page.locator("#answer")).to_contain_text("16 users in flight", timeout=20_000)
    settled(page)
    before = page.locator("#answer dl").first.inner_text()
    page.goto(page.url)
    assert page.get_by_label("Users at once", exact=True).input_value() == "16"
    assert page.locator("#answer dl").first.inner_text() == before


@pytest.mark.parametrize("form", ["Report", "Markdown", "JSON", "CSV"])
def test_take_the_answer_along(page: Page, home: str, form: str) -> None:
    page.goto(f"{home}/?{SMALL}")
    with page.expect_download() as waiting:
        page.get_by_role("link", name=form, exact=True).click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert "g6e.xlarge" in text
    if form == "Report":
        assert "<script" not in text
        assert "http" not in text.split("</style>")[0]


@pytest.mark.parametrize("target", ["karpenter", "auto-mode", "eksctl"])
def test_take_the_manifests_along(page: Page, home: str, target: str) -> None:
    page.goto(f"{home}/?{SMALL}")
    with page.expect_download() as waiting:
        page.get_by_role("link", name=target, exact=True).first.click()
    files = zipfile.ZipFile(waiting.value.path())
    assert {"README.md", "serving/20-deployment.yaml"} <= set(files.namelist())


def test_look_a_fact_up_to_its_source(page: Page, home: str) -> None:
    page.goto(f"{home}/catalog")
    page.get_by_label("Show only rows with").fill("p5en")
    page.get_by_role("link", name="p5en.48xlarge").click()
    expect(page.locator("main")).to_contain_text("ec2-api")


@pytest.mark.parametrize(
    "address",
    [
        f"/?{SMALL}",
        "/walk?model=llama-3.1-8b",
        "/catalog",
        "/guide/8.1",
        "/errata",
        "/accuracy",
        "/",
        "/catalog/p5.48xlarge",
        VERSUS,
        f"/why?{SMALL}&instance=g6e.xlarge",
    ],
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_a_screen_reader_out(
    page: Page, home: str, address: str, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{home}{address}")
    page.wait_for_load_state("networkidle")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_everything_is_reached_by_keyboard(page: Page, home: str) -> None:
    page.goto(home)
    page.keyboard.press("Shift+Tab")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert {"f-model", "f-users", "f-context", "Answer"} <= seen


def test_a_page_is_light(page: Page, home: str) -> None:
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(f"{home}/?{SMALL}")
    page.wait_for_load_state("networkidle")
    assert sum(sizes) < 300_000


@pytest.mark.parametrize("address", ["/", f"/?{SMALL}", "/walk?model=llama-3.1-8b", "/catalog", VERSUS, "/accuracy"])
def test_nothing_is_wider_than_the_sheet(page: Page, home: str, address: str) -> None:
    page.goto(f"{home}{address}")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
