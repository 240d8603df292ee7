"""The REST door: problems that help, limits that hold, entity tags, and what it never touches."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.interfaces.api.app import BASE, create_app
from chipwise.interfaces.api.desk import BusyError, Desk, LeftError, SlowError
from chipwise.interfaces.api.settings import Settings, checked
from chipwise.interfaces.sent import packed, unpacked
from chipwise.interfaces.verbs import TOUCHES_FILES, Leave, ask, command_of

HOME = "http://127.0.0.1:8321"


def client_of(settings: Settings = Settings(), home: str = HOME) -> TestClient:  # noqa: B008 # it is frozen
    return TestClient(create_app(settings), base_url=home)


@pytest.fixture(scope="module")
def client() -> TestClient:
    return client_of()


@pytest.mark.parametrize(
    ("asked", "sent", "status", "word"),
    [
        ("POST plan", {"json": {"model": "llama-3.3-7ob"}}, 404, "did you mean"),
        ("POST plan", {"json": {}}, 400, "MODEL"),
        ("POST plan", {"json": {"model": "llama-3.1-8b", "userz": 3}}, 400, "users"),
        ("POST plan", {"json": {"model": "llama-3.1-8b", "users": -3}}, 400, "--users"),
        ("POST plan", {"json": {"model": 3}}, 400, "model is no text"),
        ("POST plan", {"json": [1]}, 400, "no object"),
        ("POST plan", {"content": b"{"}, 400, "no JSON"),
        ("POST plan", {"content": b'{"users": NaN}'}, 400, "NaN"),
        ("POST plan", {"content": b"[" * 50_000}, 400, "no JSON"),
        ("POST plan", {"content": '{"a":' * 50 + "1" + "}" * 50}, 400, "nested too deep"),
        ("POST plan", {"json": {"model": "llama-3.1-8b", "config": {}}}, 400, "beside"),
        ("POST model", {"json": {"config": "{"}}, 400, "cannot be read"),
        ("GET catalog/show?name=p5.48xlarg", {}, 400, "p5.48xlarge"),
        ("GET catalog/show", {}, 400, "name is missing"),
        ("GET nothing", {}, 404, "openapi.json"),
        ("DELETE plan", {}, 405, "openapi.json"),
    ],
)
def test_what_is_wrong_is_told(client: TestClient, asked: str, sent: dict[str, Any], status: int, word: str) -> None:
    method, address = asked.split(" ")
    response = client.request(method, f"{BASE}/{address}", **sent)
    body = response.json()
    assert response.status_code == body["status"] == status
    assert response.headers["content-type"] == "application/problem+json"
    assert set(body["error"]) == {"what", "why", "fix", "family"}
    assert word in response.text


@pytest.mark.parametrize("name", ["/etc/passwd", "../secrets", "org/private-model", "~/x", "/dev/zero", "C:\\x"])
def test_no_file_is_read_and_no_hub_is_asked(client: TestClient, name: str) -> None:
    for verb in ("model", "plan", "memory"):
        response = client.post(f"{BASE}/{verb}", json={"model": name, **({"chip": "l4"} if verb == "memory" else {})})
        assert response.status_code == 404
        assert "is built in" in response.json()["error"]["what"]


def test_a_file_that_exists_is_told_like_one_that_does_not(client: TestClient, tmp_path: Path) -> None:
    there, absent = tmp_path / "a", tmp_path / "b"
    there.write_text("{}")
    answers = [client.post(f"{BASE}/model", json={"model": str(path)}).json() for path in (there, absent)]
    assert answers[0]["error"]["why"] == answers[1]["error"]["why"]


def test_every_flag_that_names_a_file_is_refused(client: TestClient) -> None:
    for verb in ("plan", "memory", "estimate", "why", "compare", "plot", "model"):
        for flag in command_of(verb).flags:
            if "FILE" in flag.metavar.split(".")[0].split("|") or "DIR" in flag.metavar:
                name = flag.name.lstrip("-")
                assert name in TOUCHES_FILES
                response = client.post(f"{BASE}/{verb}", json={"model": "llama-3.1-8b", name: "/srv/x"})
                assert response.status_code == 400


def test_files_are_read_with_leave(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **LLAMA}))
    body = client_of(Settings(leave=Leave(files=True))).post(f"{BASE}/model", json={"model": str(path)}).json()
    assert body["layers"] == 2


LLAMA = {
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 2, "vocab_size": 256,
}  # fmt: skip


def test_a_kept_answer_is_not_sent_again(client: TestClient) -> None:
    first = client.get(f"{BASE}/explain", params={"term": "mfu"})
    tag = first.headers["etag"]
    again = client.get(f"{BASE}/explain", params={"term": "mfu"}, headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(f"{BASE}/explain", params={"term": "ttft"}, headers={"if-none-match": tag})
    assert other.status_code == 200


def test_only_its_own_names_are_answered(client: TestClient) -> None:
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/healthz", headers={"host": "localhost:9"}).status_code == 200
    named = client_of(Settings(hosts=("chips.example",)))
    assert named.get("/healthz", headers={"host": "chips.example"}).status_code == 200


def test_a_token_is_asked_for_beyond_the_loopback() -> None:
    with pytest.raises(InputError, match="no token"):
        checked(Settings(host="0.0.0.0"))  # noqa: S104 # refused
    client = client_of(Settings(token="s3cret"))  # noqa: S106 # a made-up one
    assert client.get("/healthz").status_code == 200
    assert client.get(f"{BASE}/explain", params={"term": "mfu"}).status_code == 401
    basic = base64.b64encode(b"anyone:s3cret").decode()
    for header in ("Bearer s3cret", f"Basic {basic}"):
        assert client.get(f"{BASE}/explain?term=mfu", headers={"authorization": header}).status_code == 200
    for header in ("Bearer wrong", "Basic !!", "s3cret"):
        assert client.get(f"{BASE}/explain?term=mfu", headers={"authorization": header}).status_code == 401


def test_a_body_is_bounded_whether_it_says_its_length_or_not() -> None:
    client = client_of(Settings(most_bytes=1000))
    assert client.post(f"{BASE}/plan", content=b"x" * 2000).status_code == 413
    parts = (b"x" * 100 for _ in range(50))
    assert client.post(f"{BASE}/plan", content=parts).status_code == 413


def test_a_body_that_does_not_end_is_not_waited_for() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b'{"model": '
        await anyio.sleep_forever()

    async def sent() -> httpx.Response:
        transport = httpx.ASGITransport(app=create_app(Settings(body_s=0.05)))
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as client:
            return await client.post(f"{BASE}/plan", content=parts())

    response = anyio.run(sent)
    assert (response.status_code, response.json()["error"]["family"]) == (408, "limit")


def test_a_token_is_not_guessed_at_leisure() -> None:
    client = client_of(Settings(token="s3cret", rate_per_minute=3))  # noqa: S106 # a made-up one
    guesses = [client.get(f"{BASE}/explain?term=mfu", headers={"authorization": f"Bearer {n}"}) for n in range(5)]
    assert [one.status_code for one in guesses] == [401, 401, 401, 429, 429]


def test_no_address_is_fetched(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr(socket, "getaddrinfo", connected)
    for name in ("http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "hf://a/b", "org/model", "//host/x"):
        assert client.post(f"{BASE}/model", json={"model": name}).status_code == 404
        config = {"config": {**LLAMA, "model_type": "llama", "auto_map": {"AutoConfig": name}, "_name_or_path": name}}
        assert client.post(f"{BASE}/model", json=config).status_code in {200, 400}


def test_the_rate_is_bounded() -> None:
    client = client_of(Settings(rate_per_minute=3))
    statuses = [client.get("/healthz").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


def test_every_response_forbids_what_pages_do_not_need(client: TestClient) -> None:
    for address in ("/healthz", f"{BASE}/explain?term=mfu", f"{BASE}/nothing"):
        headers = client.get(address).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_the_server_counts_itself() -> None:
    client = client_of()
    client.get(f"{BASE}/explain?term=mfu")
    client.get("/no-such-page-1")
    text = client.get("/metrics").text
    assert 'chipwise_requests_total{route="/api/v1/explain",status="200"} 1.0' in text
    assert "no-such-page" not in text


def test_a_log_line_holds_no_payload(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="chipwise.access"):
        client_of().get(f"{BASE}/explain?term=secret-term")
    lines = [record.getMessage() for record in caplog.records if record.name == "chipwise.access"]
    assert lines
    assert all("secret-term" not in one for one in lines)


def test_the_description_holds_every_verb_and_no_dangling_reference(client: TestClient) -> None:
    body = client.get(f"{BASE}/openapi.json").json()
    assert {"post", "get"} == set(body["paths"][f"{BASE}/plan"])
    names = set(body["components"]["schemas"])
    text = json.dumps(body)
    references = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert references <= names


async def _stays() -> bool:
    return False


async def _left() -> bool:
    return True


def test_the_desk_keeps_few_answers_and_takes_few_questions() -> None:
    async def asked() -> None:
        desk = Desk(Settings(kept=1))
        first = await desk.answer("explain", {"term": "mfu"}, _stays)
        assert await desk.answer("explain", {"term": "mfu"}, _left) is first
        await desk.answer("explain", {"term": "ttft"}, _stays)
        with pytest.raises(LeftError):
            await desk.answer("explain", {"term": "mfu"}, _left)
        with pytest.raises(BusyError):
            await Desk(Settings(waiting=0)).answer("explain", {"term": "mfu"}, _stays)
        with pytest.raises(SlowError):
            await Desk(Settings(wait_s=0.0)).answer("explain", {"term": "mfu"}, _stays)

    anyio.run(asked)


def test_work_ends_soon_after_its_asker_left_and_its_turn_is_free_again() -> None:
    async def asked() -> None:
        desk = Desk(Settings(at_once=1))
        heard: list[str] = []

        async def gone() -> bool:
            return bool(heard)

        with pytest.raises(LeftError):
            await desk.answer("guide/check", {}, gone, heard.append)
        assert desk.waiting == 0
        await desk.answer("explain", {"term": "mfu"}, _stays)
        assert len(heard) < 40

    anyio.run(asked)


class LeavesError(Exception):
    """Raised by one who listens, when nobody waits any more."""


@pytest.mark.parametrize(("stage", "most"), [(0, 1), (1, 2), (2, 3)])
def test_a_plan_breaks_off_at_the_stage_at_which_its_asker_left(stage: int, most: int) -> None:
    heard: list[str] = []

    def hear(words: str) -> None:
        heard.append(words)
        if len(heard) > stage:
            raise LeavesError

    with pytest.raises(LeavesError):
        ask("plan", {"model": "llama-3.1-8b", "for": "chat", "users": 4}, Leave(), hear)
    assert len(heard) == most
    assert heard[0].startswith("plan, ")
    assert "sizes to try" in heard[0]


@given(
    config=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_a_description_packs_and_unpacks(config: Any) -> None:
    assert unpacked(packed({"a": config})) == {"a": config}


@given(text=st.text(max_size=60))
def test_no_text_for_a_description_breaks_it(text: str) -> None:
    with contextlib.suppress(InputError):
        unpacked(text)


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        unpacked(packed({"a": "0" * 5_000_000}))
