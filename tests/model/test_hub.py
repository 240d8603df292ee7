"""The hub, against a small server that speaks its resolve protocol on the loopback: no mocks, no network."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chipwise.errors import ChipwiseError, InputError, KnowledgeError
from chipwise.model import load_model
from chipwise.model.hub import Address, address

pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")

TINY = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}
# 2 x (64x64 q, 32x64 k, 32x64 v, 64x64 o, three 128x64 MLP matrices, two norms) + two 100x64 tables + a norm.
TINY_PARAMS = 2 * (64 * 64 * 2 + 2 * 32 * 64 + 3 * 128 * 64 + 2 * 64) + 2 * 100 * 64 + 64


def _safetensors(padding: int) -> bytes:
    header = {"model.layers.0.mlp.up_proj.weight": {"dtype": "BF16", "shape": [8, 4], "data_offsets": [0, 64]}}
    text = json.dumps({"__metadata__": {"note": "x" * padding}, **header}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(3_000_000)


class _Hub(BaseHTTPRequestHandler):
    """Repositories by name; a name that is a number answers with that status."""

    files: dict[str, bytes]
    asked: list[tuple[str, str | None, str | None]]

    def do_GET(self) -> None:
        if not self.path.startswith("/api/agent"):  # the library's own question
            self.asked.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        repo = self.path.strip("/").split("/")[1]
        if repo.startswith("status-"):
            self._answer(int(repo.removeprefix("status-")), b"", gated=repo.endswith("403"))
            return
        if repo == "silent":
            threading.Event().wait(2)
            return
        body = self.files.get(self.path)
        known = any(path.startswith("/".join(self.path.split("/")[:3]) + "/") for path in self.files)
        if body is None:
            self._answer(404, b"", error="EntryNotFound" if known else "RepoNotFound")
            return
        span = self.headers.get("Range")
        if span:
            first, last = span.removeprefix("bytes=").split("-")
            self._answer(206, body[int(first) : int(last) + 1])
        else:
            self._answer(200, body)

    def _answer(self, status: int, body: bytes, *, error: str = "", gated: bool = False) -> None:
        self.send_response(status)
        revision = self.path.split("/")[4] if self.path.count("/") > 3 else "main"
        self.send_header("X-Repo-Commit", hashlib.sha256(revision.encode()).hexdigest()[:40])
        if error or gated:
            self.send_header("X-Error-Code", "GatedRepo" if gated else error)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Quiet."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Hub]]:
    class Serving(_Hub):
        files: dict[str, bytes] = {}  # noqa: RUF012 - one server a test
        asked: list[tuple[str, str | None, str | None]] = []  # noqa: RUF012 - one server a test

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield Serving
    server.shutdown()
    server.server_close()


def _put(hub: type[_Hub], name: str, body: object, *, repo: str = "acme/tiny", revision: str = "main") -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    hub.files[f"/{repo}/resolve/{revision}/{name}"] = raw


def test_config_is_fetched_once_and_then_read_from_the_cache(hub: type[_Hub]) -> None:
    _put(hub, "config.json", TINY)
    assert load_model("acme/tiny").params_total == TINY_PARAMS
    asked = len(hub.asked)
    assert load_model("acme/tiny").params_total == TINY_PARAMS
    assert len(hub.asked) == asked


def test_only_small_files_are_asked_for(hub: type[_Hub]) -> None:
    _put(hub, "config.json", TINY)
    load_model("acme/tiny")
    asked = {path.rpartition("/main/")[2] for path, _, _ in hub.asked}
    assert asked == {"config.json", "hf_quant_config.json", "model.safetensors.index.json"}


def test_revision_is_pinned(hub: type[_Hub]) -> None:
    _put(hub, "config.json", {**TINY, "num_hidden_layers": 1}, revision="v2")
    _put(hub, "config.json", TINY)
    assert load_model("acme/tiny@v2").layer_count == 1
    assert load_model("acme/tiny").layer_count == 2


def test_sidecar_quantisation_comes_along(hub: type[_Hub]) -> None:
    _put(hub, "config.json", TINY)
    _put(hub, "hf_quant_config.json", {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})
    found = load_model("acme/tiny").quantisation
    assert found is not None
    assert found.weight_format == "fp8"


def test_native_format_without_a_config(hub: type[_Hub]) -> None:
    native = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden_dim": 128}
    _put(hub, "params.json", {**native, "vocab_size": 100})
    assert load_model("acme/tiny").params_total == TINY_PARAMS


def test_pipeline_with_its_parts(hub: type[_Hub]) -> None:
    clip = {"model_type": "clip_text_model", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    clip |= {"intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 77}
    index = {"_class_name": "ToyPipeline", "text_encoder": ["transformers", "CLIPTextModel"], "scheduler": [None, None]}
    _put(hub, "model_index.json", index)
    _put(hub, "text_encoder/config.json", clip)
    assert load_model("acme/tiny").architecture == "diffusion"


@pytest.mark.parametrize("padding", [10, 1_200_000])
def test_safetensors_header_by_range(hub: type[_Hub], padding: int) -> None:
    _put(hub, "part.safetensors", _safetensors(padding))
    assert load_model("acme/tiny/part.safetensors").params_total == 32
    assert all(span for _, span, _ in hub.asked)


def test_a_lone_weight_file_is_found(hub: type[_Hub]) -> None:
    _put(hub, "only.safetensors", _safetensors(10))
    hub.files["/api/models/acme/tiny/revision/main"] = json.dumps(
        {"siblings": [{"rfilename": "README.md"}, {"rfilename": "only.safetensors"}]}
    ).encode()
    assert load_model("acme/tiny").params_total == 32


def test_several_weight_files_are_named(hub: type[_Hub]) -> None:
    _put(hub, "README.md", b"")
    hub.files["/api/models/acme/tiny/revision/main"] = json.dumps(
        {"siblings": [{"rfilename": "a-Q4_K_M.gguf"}, {"rfilename": "a-Q8_0.gguf"}]}
    ).encode()
    with pytest.raises(KnowledgeError) as told:
        load_model("acme/tiny")
    assert "acme/tiny/FILE: a-Q4_K_M.gguf, a-Q8_0.gguf" in told.value.fix


@pytest.mark.parametrize(
    ("status", "family", "words"),
    [
        (401, InputError, "HF_TOKEN"),
        (403, InputError, "ask for access"),
        (404, InputError, "spelling"),
        (429, KnowledgeError, "wait"),
        (500, KnowledgeError, "try again later"),
        (503, KnowledgeError, "try again later"),
    ],
)
def test_each_refusal_says_what_to_do(hub: type[_Hub], status: int, family: type[ChipwiseError], words: str) -> None:
    assert hub.files == {}
    with pytest.raises(family) as told:
        load_model(f"acme/status-{status}")
    assert words in told.value.fix
    assert f"acme/status-{status}" in told.value.what or status == 429


def test_unknown_repository(hub: type[_Hub]) -> None:
    assert hub.files == {}
    with pytest.raises(InputError, match="the hub has no acme/nowhere"):
        load_model("acme/nowhere")


def test_a_hub_that_does_not_answer(hub: type[_Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.files == {}
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "1")
    with pytest.raises(KnowledgeError, match="did not answer in time"):
        load_model("acme/silent")


@pytest.mark.parametrize("said", ["0.2", "soon", "-1", ""])
def test_an_odd_timeout_is_told(hub: type[_Hub], monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    assert hub.files == {}
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", said)
    with pytest.raises(InputError, match="HF_HUB_DOWNLOAD_TIMEOUT"):
        load_model("acme/silent")


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(KnowledgeError, match="cannot be reached"):
        load_model("acme/tiny")


def test_offline_asks_nobody(hub: type[_Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    _put(hub, "config.json", TINY)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(KnowledgeError, match="HF_HUB_OFFLINE"):
        load_model("acme/tiny")
    assert hub.asked == []


def test_the_token_is_sent(hub: type[_Hub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_made_up")
    _put(hub, "config.json", TINY)
    load_model("acme/tiny")
    assert {sent for _, _, sent in hub.asked} == {"Bearer hf_made_up"}


def test_built_in_facts_come_before_the_hub(hub: type[_Hub]) -> None:
    assert load_model("meta-llama/Llama-3.1-8B").params_total == 8_030_261_248
    assert hub.asked == []


@pytest.mark.parametrize("text", ["tiny", "a/b/c/d", "acme/../etc", "acme/ti ny", "params", ""])
def test_what_is_no_address(text: str) -> None:
    assert address(text) is None


def test_addresses() -> None:
    assert address("a/b@refs/pr/1") == Address(repo="a/b", revision="refs/pr/1")
    assert address("a/b/x/y.gguf@v1") == Address(repo="a/b", revision="v1", file="x/y.gguf")


@pytest.mark.parametrize("path", ["./config.json", "folder/config.json", "/nowhere/at/all", "~/nothing-here.json"])
def test_a_path_to_nothing_is_not_asked_of_the_hub(hub: type[_Hub], path: str) -> None:
    asked = list(hub.asked)
    with pytest.raises(KnowledgeError, match="there is no file or folder"):
        load_model(path)
    assert hub.asked == asked
