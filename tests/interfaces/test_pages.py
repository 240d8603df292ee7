"""The pages without a browser: every address answers, the question survives, nothing inline, nothing from elsewhere."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from chipwise.interfaces.api.settings import Settings
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
        "/errata", *(f"/export.{form}?{ASKED}" for form in ("json", "md", "html", "csv")), f"/plot/latency.svg?{ASKED}",
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
