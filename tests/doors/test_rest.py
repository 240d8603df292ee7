"""The same question at the terminal, by POST and by GET: the same answer, to the letter."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from chipwise.interfaces.api.app import BASE, create_app
from chipwise.interfaces.api.openapi import EXAMPLES
from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.cli import cli
from chipwise.interfaces.verbs import PUBLISHED, Leave, command_of
from chipwise.interfaces.web.pages import create_site
from chipwise.report.schema import schema

HOME = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def client() -> TestClient:
    """A server of its own, as set up by default."""
    return TestClient(create_app(Settings()), base_url=HOME)


def said(*words: str) -> Any:
    """What the terminal prints."""
    return json.loads(CliRunner().invoke(cli, [*words, "--json"], prog_name="chipwise").stdout)


def at_the_terminal(verb: str, body: dict[str, Any], folder: Path) -> Any:
    """The same question as words; what REST sends along stands in a file here."""
    places = [place.field for place in command_of(verb).places]
    words = [*verb.split("/"), *(str(body[name]) for name in places if isinstance(body.get(name), str))]
    for name, value in body.items():
        if name in {"plan", "answers"}:
            path = folder / f"{name}.json"
            path.write_text(json.dumps(value))
            words += [str(path), "--dry-run"] if name == "plan" else ["--answers", str(path)]
        elif name == "manifests":
            for path, text in value.items():
                (folder / path).write_text(text)
            words.append(str(folder))
        elif name not in places:
            words += [
                word for one in (value if isinstance(value, list) else [value]) for word in (f"--{name}", str(one))
            ]
    return said(*words)


@pytest.fixture(scope="module")
def plan() -> Any:
    """An answer of plan, to deploy."""
    return said("plan", "llama-3.1-8b", "--users", "8", "--only", "g6e.xlarge")


ASKED = sorted(verb for verb in PUBLISHED if not verb.startswith("validate/"))


@pytest.mark.parametrize("verb", ASKED)
def test_every_door_gives_the_same_answer(client: TestClient, plan: Any, verb: str, tmp_path: Path) -> None:
    body = {"plan": plan, "target": "eksctl"} if verb == "deploy" else EXAMPLES.get(verb, {})
    answer = at_the_terminal(verb, body, tmp_path)
    posted = client.post(f"{BASE}/{verb}", json=body)
    got = client.get(f"{BASE}/{verb}", params={k: json.dumps(v) if isinstance(v, dict) else v for k, v in body.items()})
    assert (posted.status_code, got.status_code) == (200, 200), posted.text[:500]
    assert posted.json() == got.json() == answer
    if PUBLISHED[verb]:
        Draft202012Validator(schema(PUBLISHED[verb][0])).validate(posted.json())


def test_a_plan_takes_the_batch_of_a_run_at_both_doors(client: TestClient) -> None:
    body = {"model": "llama-3.1-8b", "for": "lora", "global_batch": 64, "only": "p5.48xlarge"}
    answer = client.post(f"{BASE}/plan", json=body).json()
    asked = ("--for", "lora", "--global-batch", "64", "--only", "p5.48xlarge")
    assert answer == said("plan", "llama-3.1-8b", *asked)
    assert answer["workload"]["global_batch"] == {"value": 64, "from": "user"}
    assert {one["settings"]["global_batch"] for one in answer["options"]} == {64}


def test_a_table_is_replayed_with_leave_and_refused_without(client: TestClient, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "id,model,hardware,n_gpus,engine,isl,osl,concurrency,metric,value,load_kind,source\n"
        "a,llama-3.1-8b,l40s,1,vllm,512,128,1,output_tok_s_total,40,closed,x\n"
    )
    refused = client.post(f"{BASE}/validate/inference", json={"file": str(path)})
    assert (refused.status_code, "names a file" in refused.text) == (400, True)
    let = TestClient(create_app(Settings(leave=Leave(files=True))), base_url=HOME)
    asked = let.post(f"{BASE}/validate/inference", json={"file": str(path)})
    assert asked.json() == said("validate", "inference", str(path))


def test_manifests_come_as_a_zip_of_the_files(client: TestClient, plan: Any) -> None:
    body = {"plan": plan, "form": "kustomize"}
    response = client.post(f"{BASE}/deploy", json=body, headers={"accept": "application/zip"})
    files = zipfile.ZipFile(io.BytesIO(response.content))
    assert response.headers["content-type"] == "application/zip"
    told = {one["path"]: one["text"] for one in client.post(f"{BASE}/deploy", json=body).json()["files"]}
    assert {name: files.read(name).decode() for name in files.namelist()} == told
    assert "README.md" in told
    found = client.post(f"{BASE}/deploy/lint", json={"manifests": told}).json()["findings"]
    assert found == []


@pytest.mark.parametrize("verb", ["plan", "guide/check"])
def test_who_follows_hears_how_far_it_is_and_gets_the_same_answer(client: TestClient, verb: str) -> None:
    body = {"only": ["8.1*", "8.2*"]} if verb == "guide/check" else {"model": "llama-3.2-1b", "only": "g6e.xlarge"}
    with client.stream("POST", f"{BASE}/{verb}", json=body, headers={"accept": "text/event-stream"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [tuple(event.split("\n", 1)) for event in "".join(response.iter_text()).split("\n\n") if event]
    *progress, (last, data) = [(name, text.removeprefix("data: ")) for name, text in events]
    assert last == "event: answer"
    assert json.loads(data) == client.post(f"{BASE}/{verb}", json=body).json()
    if verb == "guide/check":
        cells = len(json.loads(data)["cells"])
        assert [json.loads(text)["words"] for _, text in progress] == [
            f"guide check, {done} of {cells} cells" for done in range(1, cells + 1)
        ]


def test_who_follows_is_told_what_is_wrong(client: TestClient) -> None:
    response = client.post(f"{BASE}/plan", json={"model": "llama-9"}, headers={"accept": "text/event-stream"})
    name, data = response.text.strip().split("\n")
    assert name == "event: problem"
    assert json.loads(data.removeprefix("data: "))["status"] == 404


@pytest.mark.parametrize(
    ("verb", "body", "word"),
    [
        ("deploy", {}, "plan"),
        ("deploy", {"plan": {"schema_version": 1}}, "options"),
        ("deploy", {"plan": "/etc/passwd"}, "cannot be read"),
        ("deploy", {"plan": {}, "output": "/srv/x"}, "writes"),
        ("deploy", {"plan": {}, "force": True}, "writes"),
        ("plan", {"model": "llama-3.1-8b", "deploy": "/srv/x"}, "writes"),
        ("deploy/lint", {"folder": "/etc"}, "manifests"),
        ("deploy/lint", {"manifests": {"../x.yaml": ""}}, "no plain name"),
        ("deploy/lint", {"manifests": {"/x.yaml": ""}}, "no plain name"),
        ("deploy/lint", {"manifests": {"a.yaml": 3}}, "no plain name"),
        ("deploy/lint", {"manifests": {"a": "", "a/b.yaml": ""}}, "stands"),
        ("deploy/lint", {"manifests": {f"{count}.yaml": "" for count in range(501)}}, "at most"),
        ("guide/ask", {"answers": {"work": {"a": 1}}}, "answers"),
    ],
)
def test_what_is_sent_in_place_of_a_file_is_bounded(
    client: TestClient, verb: str, body: dict[str, Any], word: str
) -> None:
    response = client.post(f"{BASE}/{verb}", json=body)
    assert (response.status_code, word in response.text) == (400, True), response.text[:300]


def test_the_page_gives_the_same_answer_too() -> None:
    site = TestClient(create_site(Settings()), base_url=HOME)
    asked = {"model": "llama-3.1-8b", "users": "8", "only": "g6e.xlarge"}
    answer = said("plan", "llama-3.1-8b", "--users", "8", "--only", "g6e.xlarge")
    assert site.get("/export.json", params=asked).json() == answer
    option = answer["options"][0]
    page = site.get("/", params=asked).text
    assert f"Option 1: {option['instances']} &times; {option['instance']}" in page
    assert f"{round(option['latency']['ttft_s']['p99'] * 1000)} ms" in page


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
