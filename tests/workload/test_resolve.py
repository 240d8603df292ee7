from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from chipwise.errors import InputError, UnknownNameError
from chipwise.workload import (
    Given,
    ModelHints,
    OtherWorkload,
    ServingWorkload,
    TrainingWorkload,
    WorkloadRequest,
    as_json,
    load_preset,
    presets,
    request_rate_per_s,
    requests_in_flight,
    resolve_workload,
)
from chipwise.workload.training import tokens_for

LLM = ModelHints(architecture="dense-llm", max_context_tokens=131072, params_total=70_000_000_000)


def serving(hints: ModelHints = LLM, **said: Any) -> ServingWorkload:
    found = resolve_workload(WorkloadRequest(**said), hints)
    assert isinstance(found, ServingWorkload)
    return found


def training(hints: ModelHints = LLM, **said: Any) -> TrainingWorkload:
    found = resolve_workload(WorkloadRequest(**said), hints)
    assert isinstance(found, TrainingWorkload)
    return found


def other(architecture: str, **said: Any) -> OtherWorkload:
    hints = ModelHints(architecture=architecture, max_context_tokens=512)
    found = resolve_workload(WorkloadRequest(**said), hints)
    assert isinstance(found, OtherWorkload)
    return found


# ------------------------------------------------------------------------------------- origins and defaults


def test_nothing_said_is_the_preset_of_the_models_class() -> None:
    chat = serving()
    assert (chat.preset.value, chat.preset.origin) == ("chat", "model")
    assert chat.ttft_p99_s is not None
    assert (chat.ttft_p99_s.value, chat.ttft_p99_s.origin) == (1.0, "preset")
    assert chat.users is not None
    assert chat.users.origin == "preset"


@pytest.mark.parametrize(
    ("architecture", "preset"),
    [
        ("moe-llm", "chat"), ("vision-language", "chat"), ("encoder", "embed"), ("cnn", "vision"),
        ("diffusion", "diffusion"), ("audio", "transcribe"), ("recommender", "recommend"), ("tabular", "tabular"),
    ],
)  # fmt: skip
def test_the_default_preset_of_a_class(architecture: str, preset: str) -> None:
    found = resolve_workload(WorkloadRequest(), ModelHints(architecture=architecture))
    assert found.preset.value == preset


@pytest.mark.parametrize("name", [preset.name for preset in presets()])
def test_every_preset_resolves_and_prints_its_origins(name: str) -> None:
    classes = load_preset(name).architectures or {"dense-llm"}
    for architecture in sorted(classes):
        hints = ModelHints(architecture=architecture, max_context_tokens=8192, params_total=10**9)
        printed = as_json(resolve_workload(WorkloadRequest(preset=name), hints))
        assert printed["preset"] == {"value": name, "from": "user"}
        assert all(set(entry) == {"value", "from"} for entry in printed.values())
        assert {entry["from"] for entry in printed.values()} <= {"user", "preset", "model"}
        json.dumps(printed)


def test_what_the_user_says_wins_and_is_marked() -> None:
    printed = as_json(serving(preset="chat", users=64, ttft_p99_s=0.3, isl=500, goal="latency,cost"))
    assert printed["users"] == {"value": 64.0, "from": "user"}
    assert printed["ttft_p99_s"] == {"value": 0.3, "from": "user"}
    assert printed["tpot_p99_s"] == {"value": 0.06, "from": "preset"}
    assert printed["isl"] == {"value": 500, "from": "user"}
    assert printed["osl"]["from"] == "preset"
    assert printed["goals"] == {"value": ["latency", "cost"], "from": "user"}


# ---------------------------------------------------------------------------------------- context and lengths


def test_a_small_context_clips_the_presets_lengths() -> None:
    chat = serving(context=512)
    assert chat.context.value == 512
    assert chat.isl.value + chat.osl.value == 512
    assert chat.osl.value == 211
    assert chat.isl.origin == chat.osl.origin == "preset"


def test_the_models_limit_clips_the_presets_context() -> None:
    chat = serving(ModelHints(architecture="dense-llm", max_context_tokens=1024))
    assert (chat.context.value, chat.context.origin) == (1024, "model")
    assert chat.isl.value + chat.osl.value <= 1024


def test_long_lengths_of_the_user_raise_the_context() -> None:
    chat = serving(isl=30_000, osl=2_000)
    assert (chat.context.value, chat.context.origin) == (32_000, "user")
    assert (chat.isl.value, chat.osl.value) == (30_000, 2_000)


@given(
    context=st.integers(1, 200_000),
    isl=st.none() | st.integers(1, 200_000),
    osl=st.none() | st.integers(1, 200_000),
    limit=st.none() | st.integers(1, 200_000),
    given_context=st.booleans(),
)
def test_means_fit_the_context_and_the_users_words_stand(
    context: int, isl: int | None, osl: int | None, limit: int | None, *, given_context: bool
) -> None:
    said = WorkloadRequest(preset="chat", context=context if given_context else None, isl=isl, osl=osl)
    try:
        found = resolve_workload(said, ModelHints(architecture="dense-llm", max_context_tokens=limit))
    except InputError:
        reject()
    assert isinstance(found, ServingWorkload)
    assert found.isl.value >= 1
    assert found.isl.value + found.osl.value <= found.context.value or found.context.value == 1
    assert limit is None or found.context.value <= limit
    assert isl is None or (found.isl.value, found.isl.origin) == (isl, "user")
    assert osl is None or (found.osl.value, found.osl.origin) == (osl, "user")
    assert not given_context or (found.context.value, found.context.origin) == (context, "user")


def test_lengths_beyond_the_context_are_refused() -> None:
    with pytest.raises(InputError, match="do not fit a context of 4096") as caught:
        serving(context=4096, isl=5000)
    assert "5001" in caught.value.fix
    with pytest.raises(InputError, match="do not fit"):
        serving(context=4096, isl=4000, osl=200)
    assert serving(context=4096, isl=4000, osl=96).osl.value == 96


def test_a_context_beyond_the_models_is_refused() -> None:
    with pytest.raises(InputError, match="beyond what the model takes"):
        serving(context=200_000)
    with pytest.raises(InputError, match="beyond what the model takes"):
        serving(isl=200_000)


# ---------------------------------------------------------------------------------------------------- load


def test_loads() -> None:
    assert serving(users=8).load.value == "closed"
    assert serving(rate_per_s=2.5).load.value == "rate"
    assert serving(rate_per_s=2.5).users is None
    assert serving(offline=True).load.value == "offline"
    assert serving(batch=16).load.value == "static"
    assert serving(preset="batch").load.value == "offline"
    wanted = serving(throughput_tokens_per_s=5000.0)
    assert (wanted.load.value, wanted.users) == ("throughput", None)


def test_users_with_a_throughput_is_a_load_with_a_bar() -> None:
    found = serving(users=32, throughput_tokens_per_s=5000.0)
    assert found.load.value == "closed"
    assert found.throughput_tokens_per_s is not None


@pytest.mark.parametrize(
    "said",
    [
        {"users": 8, "rate_per_s": 1.0},
        {"users": 8, "offline": True},
        {"rate_per_s": 1.0, "batch": 4},
        {"rate_per_s": 1.0, "throughput_tokens_per_s": 10.0},
        {"offline": True, "throughput_tokens_per_s": 10.0, "users": 3},
        {"rate_per_s": 1.0, "think_s": 5.0},
        {"offline": True, "think_s": 5.0},
    ],
)
def test_two_statements_of_the_load_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        serving(**said)
    assert caught.value.fix
    assert "--" in caught.value.what


def test_think_time_keeps_the_people() -> None:
    found = serving(users=300, think_s=10.0)
    assert found.users is not None
    assert found.think_s is not None
    assert (found.users.value, found.think_s.value) == (300, 10.0)
    assert requests_in_flight(people=300, e2e_s=5.0, think_s=10.0) == 100.0


@given(people=st.floats(1, 1e6), e2e_s=st.floats(1e-3, 1e3), think_s=st.floats(0, 1e4))
def test_requests_in_flight_never_exceed_the_people(people: float, e2e_s: float, think_s: float) -> None:
    waiting = requests_in_flight(people=people, e2e_s=e2e_s, think_s=think_s)
    assert 0 < waiting <= people * (1 + 1e-12)
    assert math.isclose(requests_in_flight(people=people, e2e_s=e2e_s, think_s=0.0), people, rel_tol=1e-12)


def test_the_rate_that_a_load_implies() -> None:
    assert request_rate_per_s(serving(rate_per_s=2.5)) == 2.5
    assert request_rate_per_s(serving(throughput_tokens_per_s=1000.0, osl=100)) == 10.0
    assert request_rate_per_s(serving(users=8)) is None


# ----------------------------------------------------------------------------------------- what does not go


@pytest.mark.parametrize(
    ("said", "flag"),
    [
        ({"deadline_s": 3600.0}, "--deadline"),
        ({"tokens": 1e9}, "--tokens"),
        ({"preset": "finetune", "users": 4}, "--users"),
        ({"preset": "finetune", "ttft_p99_s": 1.0}, "--ttft-p99"),
        ({"preset": "lora", "rate_per_s": 1.0}, "--rate"),
        ({"preset": "lora", "throughput_tokens_per_s": 1.0}, "--throughput"),
        ({"preset": "embed", "tpot_p99_s": 0.1}, "--tpot-p99"),
        ({"preset": "embed", "osl": 10}, "--osl"),
        ({"preset": "chat", "image_size": 512}, "--image-size"),
        ({"preset": "pretrain", "isl": 10}, "--isl"),
    ],
)
def test_flags_of_another_kind_are_refused(said: dict[str, Any], flag: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_workload(WorkloadRequest(**said), LLM)
    assert flag in caught.value.what
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    "said",
    [
        {"users": 0}, {"users": -1}, {"rate_per_s": 0.0}, {"isl": 0}, {"osl": -1}, {"context": 0}, {"think_s": -1.0},
        {"prefix_hit_fraction": 1.5}, {"ttft_p99_s": 0.0}, {"batch": 0}, {"rate_per_s": math.nan},
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        serving(**said)


def test_a_preset_for_another_class_is_refused() -> None:
    with pytest.raises(InputError, match="does not go with a model of class diffusion") as caught:
        resolve_workload(WorkloadRequest(preset="chat"), ModelHints(architecture="diffusion"))
    assert "diffusion" in caught.value.fix


def test_unknown_presets_and_goals_are_refused() -> None:
    with pytest.raises(UnknownNameError):
        resolve_workload(WorkloadRequest(preset="talk"), LLM)
    with pytest.raises(UnknownNameError):
        resolve_workload(WorkloadRequest(goal="speedd"), LLM)
    with pytest.raises(InputError, match="method"):
        resolve_workload(WorkloadRequest(method="alchemy"), LLM)


# ------------------------------------------------------------------------------------------------ training


def test_pretraining_takes_twenty_tokens_a_parameter() -> None:
    run = training(preset="pretrain")
    assert run.tokens is not None
    assert (run.tokens.value, run.tokens.origin) == (1_400_000_000_000, "model")
    assert run.tokens_total == 1.4e12
    assert run.global_batch.value == 1024  # 4,194,304 tokens a step / 4,096


def test_pretraining_counts_the_active_parameters_of_experts() -> None:
    hints = ModelHints(architecture="moe-llm", params_total=47 * 10**9, params_active=13 * 10**9)
    run = training(hints, preset="pretrain")
    assert run.tokens is not None
    assert run.tokens.value == 260 * 10**9


def test_a_long_pretraining_takes_the_batch_that_llama_3_was_raised_to() -> None:
    # Llama 3 report, section 3.4.1: 16M tokens a step after 2.87T; shorter runs keep Llama 2's 4M
    assert training(preset="pretrain", tokens=2.87e12).global_batch.value == 1024
    long = training(preset="pretrain", tokens=15e12).global_batch
    assert (long.value, long.origin) == (4096, "preset")
    assert training(preset="pretrain", tokens=1e12, epochs=3).global_batch.value == 4096
    assert training(preset="pretrain", tokens=15e12, seq_len=8192).global_batch.value == 2048


@pytest.mark.parametrize("preset", ["finetune", "lora", "dpo"])
def test_a_long_fine_tune_keeps_its_batch(preset: str) -> None:
    assert training(preset=preset, tokens=15e12).global_batch.value == 128


def test_a_batch_that_the_user_gives_is_taken_however_long_the_run() -> None:
    own = training(preset="pretrain", tokens=15e12, global_batch=512).global_batch
    assert (own.value, own.origin) == (512, "user")


def test_pretraining_of_an_unknown_size_has_no_tokens() -> None:
    run = training(ModelHints(architecture="dense-llm"), preset="pretrain")
    assert run.tokens is None
    assert run.tokens_total is None


def test_tokens_times_epochs() -> None:
    run = training(preset="lora", tokens=1_000_000, epochs=4)
    assert run.tokens_total == 4_000_000
    assert run.method.value == "lora"
    assert run.goals.value == ("training-cost",)
    assert run.deadline_s is not None
    assert run.deadline_s.value == 3 * 86400


def test_samples_of_the_user_are_all_that_are_seen() -> None:
    """The preset's 300 passes are over its own 1,281,167 images; a preset of tokens keeps its passes."""
    vision = ModelHints(architecture="vision")
    assert training(vision, preset="pretrain").tokens_total == 300 * 1_281_167
    assert training(vision, preset="pretrain", tokens=12_800_000_000).tokens_total == 12_800_000_000
    assert training(vision, preset="pretrain", tokens=1_000_000, epochs=4).tokens_total == 4_000_000
    assert training(preset="lora", tokens=1_000_000).tokens_total == 3_000_000


def test_a_method_chooses_its_preset() -> None:
    run = training(method="ppo")
    assert (run.preset.value, run.method.value, run.method.origin) == ("rlhf", "ppo", "user")
    with pytest.raises(InputError, match="does not go with --for lora"):
        training(method="ppo", preset="lora")


def test_the_sequence_fits_the_model() -> None:
    short = ModelHints(architecture="dense-llm", max_context_tokens=1024, params_total=10**9)
    assert training(short, preset="finetune").seq_len == Given(value=1024, origin="model")
    assert training(preset="finetune", seq_len=512).seq_len == Given(value=512, origin="user")
    assert training(preset="finetune", context=512).seq_len == Given(value=512, origin="user")
    with pytest.raises(InputError, match="beyond what the model takes"):
        training(short, preset="finetune", seq_len=4096)


def test_the_global_batch_holds_a_micro_batch() -> None:
    assert training(preset="finetune").global_batch.value == 128
    assert training(preset="finetune", micro_batch=500).global_batch.value == 500
    with pytest.raises(InputError, match="below --micro-batch 8"):
        training(preset="finetune", micro_batch=8, global_batch=4)


def test_a_batch_of_rollouts_is_cut_by_what_is_generated_not_by_the_context() -> None:
    """262,144 tokens in sequences of 2,048 are 128 of 512 + 512 tokens: a quarter as many of 2,048 + 2,048."""
    for context in (2048, 8192):
        assert training(preset="rlhf", context=context).global_batch.value == 128
    assert training(preset="rlhf", isl=2048, osl=2048, context=8192).global_batch.value == 32
    assert training(preset="dpo", context=8192).global_batch.value == 32


def test_only_methods_that_generate_have_answers() -> None:
    run = training(preset="grpo", isl=100, osl=1000)
    assert run.isl is not None
    assert run.osl is not None
    assert (run.isl.value, run.osl.value) == (100, 1000)
    assert run.group is not None
    assert run.group.value == 8


@given(per_param=st.floats(1, 100), params=st.floats(1e6, 1e13))
def test_compute_optimal_tokens_grow_with_the_model(per_param: float, params: float) -> None:
    tokens = tokens_for(tokens_per_param=per_param, params_active=params)
    assert math.isclose(tokens / params, per_param)


# --------------------------------------------------------------------------------------------------- other


def test_embeddings_answer_at_once() -> None:
    found = other("encoder", preset="embed", ttft_p99_s=0.2)
    assert found.unit.value == "request"
    assert found.latency_p99_s is not None
    assert (found.latency_p99_s.value, found.latency_p99_s.origin) == (0.2, "user")
    assert found.isl is not None
    assert found.isl.value == 512


def test_inputs_longer_than_an_encoder_takes_are_refused() -> None:
    with pytest.raises(InputError, match="beyond what the model takes"):
        other("encoder", isl=1000)


def test_a_batch_of_images_is_the_size_of_a_request_not_a_load() -> None:
    found = other("diffusion", batch=4, users=2)
    assert found.load.value == "closed"
    assert found.batch is not None
    assert (found.batch.value, found.batch.origin) == (4, "user")
    assert found.steps is not None
    assert found.steps.value == 28


@pytest.mark.parametrize(
    ("architecture", "preset", "unit"),
    [
        ("vision", "vision", "image"), ("diffusion", "diffusion", "image"), ("audio", "transcribe", "audio-second"),
        ("recommender", "recommend", "request"), ("tabular", "tabular", "row"),
    ],
)  # fmt: skip
def test_units(architecture: str, preset: str, unit: str) -> None:
    assert other(architecture, preset=preset).unit.value == unit


def test_the_inputs_of_a_preset_give_way_to_a_short_model() -> None:
    short = ModelHints(architecture="encoder", max_context_tokens=128)
    found = resolve_workload(WorkloadRequest(preset="embed"), short)
    assert isinstance(found, OtherWorkload)
    assert found.isl is not None
    assert found.context is not None
    assert (found.isl.value, found.isl.origin) == (128, "model")
    assert (found.context.value, found.context.origin) == (128, "model")


def test_a_preset_that_trains_by_the_method_may_be_named_with_it() -> None:
    assert training(method="grpo", preset="grpo").preset == training(method="grpo").preset


def test_a_class_nobody_has_a_preset_for_is_refused() -> None:
    with pytest.raises(InputError, match="no preset is the default"):
        resolve_workload(WorkloadRequest(), ModelHints(architecture="oracle"))
