"""The command line realises the option: how weights get to their format, buckets, several nodes, engines' own ways."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from chipwise.advisor.plans import advise
from chipwise.advisor.request import Request
from chipwise.deploy.asked.chosen import choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.serving.compilation import engine_arguments
from chipwise.deploy.serving.launch import CHECKPOINT, IMAGE
from chipwise.deploy.written.bundle import Bundle
from chipwise.errors import InfeasibleError, KnowledgeError
from chipwise.report.json import as_json

Frozen = Callable[[str], dict[str, Any]]


def made(plan: dict[str, Any], rank: int = 1, parameters: Parameters | None = None, **changes: Any) -> Bundle:
    """The files of an option with some of its fields changed; a mapping changes fields of the field."""
    changed = copy.deepcopy(plan)
    option = next(one for one in changed["options"] if one["rank"] == rank)
    for name, value in changes.items():
        option[name] = {**option[name], **value} if isinstance(value, dict) else value
    return bundle_of(choose(Part(value=changed, where=""), rank), parameters or Parameters(region="us-west-2"))


def document(bundle: Bundle, kind: str) -> dict[str, Any]:
    (text,) = [file.text for file in bundle.files if file.kind == kind]
    return dict(yaml.safe_load(text))


def container(bundle: Bundle) -> dict[str, Any]:
    spec = document(bundle, "Deployment")["spec"]["template"]["spec"]
    return dict(spec["containers"][0])


def test_weights_as_stored_need_no_flag(frozen: Frozen) -> None:
    args = container(made(frozen("chat-8b")))["args"]
    assert args[0] == "meta-llama/Llama-3.1-8B-Instruct"
    assert not [word for word in args if word.startswith(("--quantization", "--dtype", "--kv-cache"))]


def asked(model: str, purpose: str) -> Bundle:
    """What is made of the plan of a question about a model, weights as stored."""
    plan = as_json(advise(Request(model=model, purpose=purpose, min_precision="bf16", only=("p5.48xlarge",))))
    return bundle_of(choose(Part(value=plan, where="")), Parameters(region="us-west-2"))


def test_the_checkpoint_that_was_asked_for_is_served() -> None:
    """Its description is built in as that of Qwen2.5-32B, whose shape it has."""
    bundle = asked("Qwen/QwQ-32B", "chat")
    assert container(bundle)["args"][0] == "Qwen/QwQ-32B"
    assert document(bundle, "Deployment")["metadata"]["name"] == "qwq-32b"
    usual = asked("Qwen/Qwen2.5-32B", "chat")
    assert document(usual, "Deployment")["metadata"]["name"] == "qwen2-5-32b"


def test_the_checkpoint_that_was_asked_for_is_trained() -> None:
    """meta-llama/Llama-3.1-8B is the base model of the entry whose first id is the one tuned on instructions."""
    settings = document(asked("meta-llama/Llama-3.1-8B", "lora"), "ConfigMap")["data"]
    said = next(text for name, text in settings.items() if "Llama-3.1-8B" in text)
    assert "Llama-3.1-8B-Instruct" not in said


def test_fp8_is_made_while_loading(frozen: Frozen) -> None:
    args = container(made(frozen("chat-8b"), precision={"weights": "fp8", "compute": "fp8"}))["args"]
    assert "--quantization=fp8" in args


def test_int8_is_made_beforehand(frozen: Frozen) -> None:
    bundle = made(frozen("chat-8b"), precision={"weights": "int8", "compute": "int8"})
    assert container(bundle)["args"][0] == CHECKPOINT
    assert any(CHECKPOINT in warning for warning in bundle.warnings)
    given = made(
        frozen("chat-8b"),
        parameters=Parameters(checkpoint="team/llama-w8a8"),
        precision={"weights": "int8", "compute": "int8"},
    )
    assert container(given)["args"][0] == "team/llama-w8a8"
    assert not any(CHECKPOINT in warning for warning in given.warnings)


def test_a_chip_without_bf16_computes_in_fp16(frozen: Frozen) -> None:
    assert "--dtype=float16" in container(made(frozen("chat-8b"), precision={"compute": "fp16"}))["args"]


def test_a_cache_in_fp8_is_said(frozen: Frozen) -> None:
    assert "--kv-cache-dtype=fp8" in container(made(frozen("chat-8b"), precision={"kv": "fp8"}))["args"]


def test_experts_over_data_parallel_attention(frozen: Frozen) -> None:
    split = {"tp": 1, "pp": 1, "ep": 8, "dp": 8, "cp": 1}
    args = container(made(frozen("chat-deepseek"), parallelism=split))["args"]
    assert {"--tensor-parallel-size=1", "--data-parallel-size=8", "--enable-expert-parallel"} <= set(args)


def test_two_nodes_meet_by_rank_without_a_shell(frozen: Frozen) -> None:
    template = document(made(frozen("chat-deepseek"), 2), "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    pods = [template[f"{role}Template"]["spec"]["containers"][0] for role in ("leader", "worker")]
    for pod in pods:
        assert pod["command"] == ["vllm", "serve"]
        assert {"--nnodes=2", "--node-rank=$(LWS_WORKER_INDEX)", "--master-addr=$(LWS_LEADER_ADDRESS)"} <= set(
            pod["args"]
        )
        assert pod["resources"]["limits"]["vpc.amazonaws.com/efa"] == "4"
    assert ["--headless" in pod["args"] for pod in pods] == [False, True]
    assert ["startupProbe" in pod for pod in pods] == [True, False]


def test_data_parallel_nodes_reckon_their_first_rank(frozen: Frozen) -> None:
    split = {"tp": 8, "pp": 1, "ep": 16, "dp": 2, "cp": 1}
    template = document(made(frozen("chat-deepseek"), 2, parallelism=split), "LeaderWorkerSet")
    pod = template["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0]
    assert pod["command"][:2] == ["sh", "-c"]
    assert pod["command"][2] == 'exec "$@" --data-parallel-start-rank=$((LWS_WORKER_INDEX * 1))'
    assert pod["args"][:2] == ["vllm", "serve"]
    assert {"--data-parallel-size=2", "--data-parallel-size-local=1"} <= set(pod["args"])


def test_neuron_buckets_end_at_the_limits(frozen: Frozen) -> None:
    settings = {"max_num_seqs": 6, "max_num_batched_tokens": 4096}
    args = container(made(frozen("chat-70b"), settings=settings, precision={"kv": "fp8"}))["args"]
    config = yaml.safe_load(next(word for word in args if "additional-config" in word).partition("=")[2])
    assert config["neuron_config"] == {
        "kv_segment_size_buckets": [4096],
        "num_batched_tokens_buckets": [4096],
        "num_seqs_buckets": [6],
        "fp8_packed_kv": True,
    }


def test_a_neuron_model_is_compiled_with_what_serves_it(frozen: Frozen) -> None:
    shared = Parameters(region="us-west-2", file_system="fs-0123456789abcdef0", mount_name="fsx")
    bundle = made(frozen("chat-70b"), parameters=shared)
    job = document(bundle, "Job")["spec"]["template"]["spec"]["containers"][0]
    assert job["image"] == container(bundle)["image"]
    assert yaml.safe_load(job["args"][0]) == engine_arguments(container(bundle)["args"])
    names = {one["name"]: one.get("value") for one in job["env"]}
    serving = {one["name"]: one.get("value") for one in container(bundle)["env"]}
    assert names["NEURON_PLATFORM_TARGET_OVERRIDE"] == "trn2"
    assert names["NEURON_LIBTORCH_REMOTE_CACHE"] == serving["NEURON_LIBTORCH_REMOTE_CACHE"]
    assert "aws.amazon.com/neuron" not in job["resources"]["limits"]


@pytest.mark.parametrize(
    ("engine", "version", "words"),
    [
        ("sglang", "0.5.23", ["--model-path=meta-llama/Llama-3.1-8B-Instruct", "--tp-size=1", "--host=0.0.0.0"]),
        ("tensorrt-llm", "1.4.0", ["meta-llama/Llama-3.1-8B-Instruct", "--tp_size=1", "--host=0.0.0.0"]),
    ],
)
def test_other_engines_speak_their_own_words(frozen: Frozen, engine: str, version: str, words: list[str]) -> None:
    bundle = made(frozen("chat-8b"), engine=engine, settings={"engine_version": version})
    assert set(words) <= set(container(bundle)["args"])
    assert version in container(bundle)["image"]
    assert "ScaledObject" not in {file.kind for file in bundle.files}


def test_what_trtllm_reads_from_a_file_is_a_file(frozen: Frozen) -> None:
    bundle = made(
        frozen("chat-8b"), engine="tensorrt-llm", settings={"engine_version": "1.4.0"}, precision={"kv": "fp8"}
    )
    assert "--extra_llm_api_options=/etc/engine/options.yaml" in container(bundle)["args"]
    assert document(bundle, "ConfigMap")["data"] == {"options.yaml": "kv_cache_config:\n  dtype: fp8\n"}


def test_an_engine_without_an_image_is_said(frozen: Frozen) -> None:
    bundle = made(frozen("chat-8b"), engine="transformers", settings={"engine_version": None})
    assert container(bundle)["image"] == IMAGE
    assert any(IMAGE in warning or "entry point" in warning for warning in bundle.warnings)
    assert container(made(frozen("chat-8b"), parameters=Parameters(image="me/serve:1"), engine="transformers"))[
        "image"
    ] == ("me/serve:1")


@pytest.mark.parametrize(
    "split",
    [{"tp": 1, "pp": 4, "ep": 1, "dp": 1, "cp": 1}, {"tp": 1, "pp": 1, "ep": 4, "dp": 4, "cp": 1}],
)
def test_a_split_without_words_is_refused(frozen: Frozen, split: dict[str, int]) -> None:
    with pytest.raises(KnowledgeError, match="no flag"):
        made(
            frozen("chat-8b"),
            instance="inf2.48xlarge",
            engine="nxd-inference",
            settings={"engine_version": "0.10.0"},
            devices_per_replica=4,
            parallelism=split,
        )


def test_an_engine_that_knows_one_node_is_refused_two(frozen: Frozen) -> None:
    with pytest.raises(KnowledgeError, match="spans 2 nodes"):
        made(frozen("chat-deepseek"), 2, engine="tensorrt-llm", settings={"engine_version": "1.4.0"})


def test_sglang_meets_by_address_and_port(frozen: Frozen) -> None:
    bundle = made(frozen("chat-deepseek"), 2, engine="sglang", settings={"engine_version": "0.5.23"})
    template = document(bundle, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    leader, worker = (template[f"{role}Template"]["spec"]["containers"][0]["args"] for role in ("leader", "worker"))
    assert leader == worker
    assert {"--nnodes=2", "--dist-init-addr=$(LWS_LEADER_ADDRESS):20000", "--tp-size=8", "--pp-size=2"} <= set(leader)


def test_devices_that_cannot_be_dealt_evenly_are_refused(frozen: Frozen) -> None:
    split = {"tp": 9, "pp": 1, "ep": 1, "dp": 1, "cp": 1}
    with pytest.raises(InfeasibleError, match="dealt evenly"):
        made(frozen("chat-8b"), instance="p5.48xlarge", devices_per_replica=9, parallelism=split)
