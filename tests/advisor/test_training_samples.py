"""Runs of models that are no language models, at every door of the product: what is asked, answered and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from chipwise import Request, advise, estimate, load_catalog, size
from chipwise.advisor import EstimateRequest, SizeRequest, TrainingRequest
from chipwise.decide import Advice
from chipwise.errors import InputError
from chipwise.report.estimate import estimate_page
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.schema import schema
from chipwise.report.text import text

IMAGENET, EPOCHS = 1_281_167, 90


@pytest.fixture(scope="module")
def resnet() -> Advice:
    """ResNet-50 from scratch on ImageNet."""
    return advise(Request(model="resnet-50", purpose="pretrain"))


def test_a_run_counts_images(resnet: Advice) -> None:
    assert resnet.workload["samples"] == {"value": IMAGENET, "from": "preset"}
    assert resnet.workload["unit"]["value"] == "image"
    assert "tokens" not in resnet.workload
    for option in resnet.options:
        assert option.run is not None
        assert option.run.tokens is None
        assert option.run.samples == IMAGENET * EPOCHS
        training, other = option.performance["training"], option.performance["other"]
        assert training["tokens_per_s"] is None
        assert other["unit"] == "image"
        assert other["units_per_s"] == training["samples_per_s"]
        assert option.evidence == "physics"
        worked_s = IMAGENET * EPOCHS / training["samples_per_s"].mid
        assert worked_s < option.run.duration_s.mid < worked_s * 1.1 + 1200


def test_terms_add_up_to_the_step_and_to_the_chip(resnet: Advice) -> None:
    for option in resnet.options:
        training, per_chip = option.performance["training"], option.memory["per_chip"]
        assert sum(term["seconds"] for term in training["terms"]) == pytest.approx(training["step_s"].mid)
        held = sum(value for name, value in per_chip.items() if name not in {"capacity_bytes", "free_bytes"})
        assert held + per_chip["free_bytes"] == per_chip["capacity_bytes"] + option.memory["shortfall_bytes"]


def test_every_size_stands_once(resnet: Advice) -> None:
    rows = (resnet.also_feasible, resnet.rejected, resnet.not_judged, resnet.excluded)
    names = [row.instance for some in rows for row in some]
    names += sorted({option.instance for option in resnet.options})
    assert sorted(names) == sorted(load_catalog().instances)


def test_the_page_speaks_of_samples(resnet: Advice) -> None:
    page = text(plan_page(as_json(resnet)), width=110, color=False)
    assert "samples/s" in page
    assert "tok/s" not in page
    assert "processors must keep up" in page


def test_what_the_user_counts_are_samples() -> None:
    asked = Request(
        model="resnet-50", purpose="finetune", tokens=1000.0, epochs=2.0, image_size=384, only=("g5.xlarge",)
    )
    advice = advise(asked)
    assert advice.workload["samples"] == {"value": 1000, "from": "user"}
    assert advice.workload["image_size"] == {"value": 384, "from": "user"}
    assert advice.options[0].run is not None
    assert advice.options[0].run.samples == 2000


def step(model: str, instance: str, **run: Any) -> dict[str, Any]:
    return estimate(EstimateRequest(model=model, instance=instance, training=TrainingRequest(method="pretrain", **run)))


def test_eight_a100_train_resnet_50_as_published() -> None:
    """NVIDIA/DeepLearningExamples resnet50v1.5 README: 16,621 images a second in mixed precision."""
    found = step("resnet-50", instance="p4de.24xlarge", micro_batch=256, global_batch=2048)
    other = json.loads(json.dumps(as_json(found)))["other"]
    assert other["units_per_s"]["low"] <= 16_621 <= other["units_per_s"]["high"]
    assert "Speed" not in text(estimate_page(as_json(found)), width=110, color=False)


@pytest.mark.parametrize(("model", "instance"), [("resnet-50", "g5.xlarge"), ("dlrm", "p4de.24xlarge")])
def test_the_micro_batch_that_is_not_said_is_the_fastest_that_fits(model: str, instance: str) -> None:
    found, one = step(model, instance), step(model, instance, micro_batch=1)
    chosen = found["config"]["micro_batch"]
    assert chosen > 1
    assert found["memory"]["fits"]
    assert any(f"{chosen:,} makes the shortest step" in text for text in found["warnings"])
    assert not one["warnings"]
    for other in (chosen // 2, chosen * 2):
        if other * found["config"]["devices"] <= found["config"]["global_batch"]:
            beside = step(model, instance, micro_batch=other)
            assert not beside["feasible"] or beside["training"]["step_s"].mid >= found["training"]["step_s"].mid


def test_answers_are_what_their_schemas_say(resnet: Advice) -> None:
    found = step("resnet-50", instance="p4de.24xlarge", micro_batch=256, global_batch=2048)
    for name, answer in (("plan", resnet), ("estimate", found)):
        Draft202012Validator(schema(name)).validate(json.loads(json.dumps(as_json(answer))))


@pytest.mark.parametrize("instance", ["trn1.32xlarge", "g5.xlarge"])
def test_no_range_goes_past_the_peak_of_the_hardware(instance: str) -> None:
    """Rates end where a device multiplies at its peak, and the step's time with them."""
    found = step("clip-vit-base", instance)["training"]
    assert 0 < found["hfu_fraction"].mid <= found["hfu_fraction"].high <= 1 + 1e-9
    for name in ("mfu_fraction", "samples_per_s"):
        gained = found[name].high / found[name].mid
        assert gained == pytest.approx(found["step_s"].mid / found["step_s"].low)
        assert found[name].mid / found[name].low == pytest.approx(found["step_s"].high / found["step_s"].mid)


def test_rows_of_tables_cross_the_links() -> None:
    found = step("dlrm", instance="p4de.24xlarge", micro_batch=8192)
    seconds = {term["op"]: term["seconds"] for term in found["training"]["terms"]}
    assert seconds["gather"] > seconds["dp"] > 0


def test_memory_says_what_to_change_and_how_many_chips_it_takes() -> None:
    found = size(SizeRequest(model="sdxl", chip="a10g", training=TrainingRequest(method="full-ft")))
    assert not found["fits"]
    assert found["min_chips"] == 4
    changes = [one["change"] for one in found["to_make_it_fit"]]
    assert "recompute every layer" in changes
    assert "fuse the loss with the head" not in changes


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(model="resnet-50", purpose="lora"), "--for lora does not go with a model of class cnn"),
        (Request(model="resnet-50", purpose="dpo"), "--for dpo does not go with"),
        (Request(model="resnet-50", purpose="finetune", context_tokens=512), "--context"),
        (Request(model="resnet-50", purpose="finetune", audio_s=3.0), "--audio-seconds"),
        (Request(model="llama-3.1-8b", purpose="finetune", image_size=224), "--image-size"),
    ],
)
def test_what_does_not_go_with_a_model_is_refused(request_: Request, message: str) -> None:
    with pytest.raises(InputError, match=message):
        advise(request_)


def test_a_sequence_or_a_choice_of_layers_is_refused() -> None:
    sequence = TrainingRequest(method="full-ft", seq_len=512)
    chosen = TrainingRequest(method="full-ft", recompute="selective")
    for training, message in ((sequence, "--seq-len"), (chosen, "--recompute selective")):
        with pytest.raises(InputError, match=message):
            size(SizeRequest(model="resnet-50", chip="a10g", training=training))
