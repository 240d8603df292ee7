"""The same question at the terminal, by POST and by GET: the same answer, to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from chipwise.interfaces.api.app import BASE, create_app
from chipwise.interfaces.api.openapi import EXAMPLES
from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.cli import cli
from chipwise.interfaces.verbs import PUBLISHED, command_of
from chipwise.report.schema import schema

HOME = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def client() -> TestClient:
    """A server of its own, as set up by default."""
    return TestClient(create_app(Settings()), base_url=HOME)


def at_the_terminal(verb: str, body: dict[str, Any]) -> Any:
    places = [place.field for place in command_of(verb).places]
    words = [*verb.split("/"), *(str(body[name]) for name in places if name in body), "--json"]
    for name, value in body.items():
        if name not in places:
            words += [f"--{name}", str(value)]
    return json.loads(CliRunner().invoke(cli, words, prog_name="chipwise").stdout)


@pytest.mark.parametrize("verb", PUBLISHED)
def test_every_door_gives_the_same_answer(client: TestClient, verb: str) -> None:
    body = EXAMPLES.get(verb, {})
    said = at_the_terminal(verb, body)
    posted = client.post(f"{BASE}/{verb}", json=body)
    got = client.get(f"{BASE}/{verb}", params=body)
    assert posted.status_code == got.status_code == 200
    assert posted.json() == got.json() == said
    if PUBLISHED[verb]:
        Draft202012Validator(schema(PUBLISHED[verb][0])).validate(posted.json())


def test_a_no_is_an_answer(client: TestClient) -> None:
    response = client.post(f"{BASE}/memory", json={"model": "deepseek-v3", "chip": "l4"})
    assert (response.status_code, response.json()["fits"]) == (200, False)
    assert response.headers["chipwise-exit-status"] == "1"


def test_a_description_sent_along_is_read_as_the_file_would_be(client: TestClient) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 128256,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16", "head_dim": 64,
    }  # fmt: skip
    sent = client.post(f"{BASE}/model", json={"config": config}).json()
    assert sent["params_total"] == 1_235_814_400  # Llama 3.2 1B
    text = client.get(f"{BASE}/model", params={"config": json.dumps(config)}).json()
    assert text == sent
