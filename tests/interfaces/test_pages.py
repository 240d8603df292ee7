"""The pages without a browser: every address answers, the question survives, nothing inline, nothing from elsewhere."""

from __future__ import annotations

import html
import io
import re
import zipfile
import zlib
from pathlib import Path
from urllib.parse import parse_qs, quote, urlparse

import pytest
from fastapi.testclient import TestClient

from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.sent import packed
from chipwise.interfaces.web.pages import STATIC, create_site

ASKED = "model=llama-3.1-8b&users=8&only=g6e.xlarge"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_site(Settings()), base_url="http://127.0.0.1:8321")


@pytest.mark.parametrize(
    "address",
    [
        "/", f"/?{ASKED}", f"/answer?{ASKED}", f"/curves?{ASKED}", f"/why?{ASKED}&instance=g6e.xlarge", "/walk",
        f"/versus?a={quote(ASKED)}&b={quote(ASKED)}", "/catalog", "/catalog/p5.48xlarge", "/guide", "/guide/8.1",
        "/errata", "/accuracy", "/explain/ttft", "/explain/tpot", f"/export.zip?{ASKED}",
        *(f"/export.{form}?{ASKED}" for form in ("json", "md", "html", "csv")), f"/plot/latency.svg?{ASKED}",
        *(f"/static/{name}" for name in STATIC),
    ],
)  # fmt: skip
def test_every_address_answers_without_anything_inline_or_from_elsewhere(client: TestClient, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 200
    if response.headers["content-type"].startswith("text/html") and "export" not in address:
        assert not re.search(r"<script(?![^>]*src=\"/static/)", response.text)
        assert " style=" not in response.text
        assert not re.search(r"(src|href)=\"(https?:)?//", response.text)


def test_what_is_left_empty_shows_what_the_answer_used(client: TestClient) -> None:
    text = client.get(f"/?{ASKED}").text
    assert re.search(r'id="f-users"[^>]*value="8"', text)
    assert re.search(r'id="f-context"[^>]*value=""[^>]*placeholder="8192"', text)


def test_every_section_of_the_guide_is_a_link_away(client: TestClient) -> None:
    sections = re.findall(r'href="(/guide/[^"]+)"', client.get("/guide").text)
    assert {"/guide/8.1", "/guide/B-matrix"} <= set(sections)
    assert {client.get(address).status_code for address in sections} == {200}
    assert "Training or serving?" in client.get("/guide/8.1").text.split("<svg")[1]
    assert "<svg" not in client.get("/guide/5").text


def test_where_nobody_waits_the_price_of_the_tokens_stands_beside(client: TestClient) -> None:
    asked = "model=llama-3.1-8b&for=batch&goal=cost&only=g6e.xlarge"
    plan = client.get(f"/export.json?{asked}").json()["options"][0]
    text = client.get(f"/answer?{asked}").text
    cost = plan["cost"]["usd_per_million_output_tokens"]["mid"]
    assert f"${cost:.2f} a million output tokens" in text.split("</p>")[0]
    assert "TTFT p99" not in text


def test_a_long_count_is_written_short(client: TestClient) -> None:
    text = client.get("/?model=llama-3.1-8b&for=lora&only=g6e.xlarge").text
    assert re.search(r'id="f-tokens"[^>]*placeholder="50.0M"', text)


def test_an_error_names_the_inputs_of_the_page(client: TestClient) -> None:
    text = client.get("/answer?model=llama-3.1-8b&context=1M").text
    assert "Context 1048576 is beyond what the model takes" in text
    assert "--context" not in text


@pytest.mark.parametrize("hostile", ['"><script>alert(1)</script>', "{{ 7*7 }}", "' onload='x"])
def test_hostile_words_stay_words(client: TestClient, hostile: str) -> None:
    for address in (
        f"/?model={quote(hostile)}",
        f"/catalog/{quote(hostile, safe='')}",
        f"/walk?model={quote(hostile)}",
    ):
        text = client.get(address).text
        assert "<script>alert" not in text
        assert "49" not in re.findall(r"<b class=\"bad\">(.*?)</b>", text)


def test_an_error_is_shown_with_its_fix(client: TestClient) -> None:
    text = client.get("/?model=llama-3.3-7ob").text
    assert "is built in" in text
    assert "did you mean" in text


def test_a_walk_ends_in_a_plan_and_goes_back(client: TestClient) -> None:
    page = client.get("/walk?model=llama-3.1-8b&8.1=serving&ask-serving=chat").text
    assert "Small model: what comes first?" in page
    assert 'href="/walk?model=llama-3.1-8b&amp;8.1=serving"' in page
    wrong = client.get("/walk?model=llama-3.1-8b&8.1=flying").text
    assert "flying" in wrong
    assert "Training or serving?" in wrong


def test_no_static_file_beyond_the_list(client: TestClient) -> None:
    for name in ("../pages.py", "..%2Fpages.py", "nothing.js"):
        assert client.get(f"/static/{name}").status_code == 404


def test_the_csv_holds_every_size_once(client: TestClient) -> None:
    rows = client.get(f"/export.csv?{ASKED}").text.splitlines()
    content = client.get(f"/export.json?{ASKED}").json()
    lists = ("options", "also_feasible", "rejected", "not_judged", "excluded")
    assert len(rows) == 1 + sum(len(content[name]) for name in lists)


def test_the_manifests_of_an_option_come_as_a_zip(client: TestClient) -> None:
    response = client.get(f"/export.zip?{ASKED}&option=1&target=auto-mode")
    files = zipfile.ZipFile(io.BytesIO(response.content))
    assert "README.md" in files.namelist()
    assert any("NodeClass" in files.read(name).decode() for name in files.namelist())
    wrong = client.get(f"/export.zip?{ASKED}&option=9")
    assert (wrong.status_code, wrong.json()["error"]["family"]) == (400, "input")


def test_the_manifests_of_a_pasted_model_ask_for_its_checkpoint(client: TestClient) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 128256,
        "torch_dtype": "bfloat16", "max_position_embeddings": 131072,
    }  # fmt: skip
    sent = {"config": packed(config), "users": "4", "only": "g6e.xlarge"}
    files = zipfile.ZipFile(io.BytesIO(client.get("/export.zip", params=sent).content))
    assert "- CHECKPOINT\n" in files.read("serving/20-deployment.yaml").decode()
    assert "--checkpoint names it" in files.read("README.md").decode()


def test_a_change_that_is_enough_is_a_question_that_can_be_taken(client: TestClient) -> None:
    page = client.get("/why?model=llama-3.1-8b&users=8&tpot-p99=5ms&instance=g6e.xlarge").text
    (address,) = re.findall(r'<li><a href="(/\?[^"]*)">P99 time per token [\d.]+ms', page)
    taken = client.get(html.unescape(address)).text
    assert "Option 1: 1 &times; g6e.xlarge" in taken


def test_the_form_of_a_scenario_changes_that_one_alone(client: TestClient) -> None:
    sides = {"a": "model=llama-3.1-8b&users=8", "b": "model=llama-3.1-8b&goal=cost&users=8"}
    changed = client.get("/versus", params={**sides, "side": "b", "model": "llama-3.1-8b", "users": "64", "region": ""},
                         follow_redirects=False)  # fmt: skip
    assert changed.status_code == 303
    query = parse_qs(urlparse(changed.headers["location"]).query)
    assert query["a"] == [sides["a"]]
    assert parse_qs(query["b"][0]) == {"model": ["llama-3.1-8b"], "goal": ["cost"], "users": ["64"]}


def test_the_accuracy_page_holds_what_make_docs_wrote(client: TestClient, repo: Path) -> None:
    written = (repo / "docs" / "accuracy.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in one.strip("|").split("|")] for one in written.splitlines() if one.startswith("|")]
    page = client.get("/accuracy").text
    shown = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    assert [row for row in shown if row] == rows[2:]


def test_every_page_travels_light(client: TestClient) -> None:
    """What a first visit loads, deflated as a server in front would send it: far below 300 KB."""
    parts = [client.get(f"/?{ASKED}").content, client.get(f"/curves?{ASKED}").content]
    parts += [client.get(f"/static/{name}").content for name in STATIC]
    assert sum(len(zlib.compress(part, 6)) for part in parts) < 100_000
    assert sum(map(len, parts)) < 300_000


def test_a_large_page_is_sent_compressed_to_those_who_take_it(client: TestClient) -> None:
    response = client.get(f"/?{ASKED}", headers={"accept-encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["vary"].lower() == "accept-encoding"


def test_the_chart_of_candidates_draws_what_misses_a_bar_and_counts_what_has_no_place(client: TestClient) -> None:
    asked = "model=llama-3.3-70b&users=64&region=us-east-1"
    text = client.get(f"/curves?{asked}").text
    rejected = client.get(f"/export.json?{asked}").json()["rejected"]
    near = [row["instance"] for row in rejected if row["nearest"].get("usd_per_hour")]
    crosses = re.findall(r"l8 8m0 -8l-8 8\"[^>]*><title>\d+ × ([\w.-]+): ([^<]+)", text)  # noqa: RUF001 # the page's sign
    assert near
    assert {name for name, _ in crosses} == set(near)
    lacking = sum(row["rule"] == "memory" for row in rejected)
    assert f"{lacking} lack memory" in text
