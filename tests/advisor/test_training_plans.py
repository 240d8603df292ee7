"""Training plans: clusters an engineer would order, bars that bind, runs whose parts fit together."""

from __future__ import annotations

import dataclasses

import pytest

from chipwise import Request, advise, load_catalog, size
from chipwise.advisor import EstimateRequest, SizeRequest, SplitRequest, TrainingRequest, estimate
from chipwise.decide import Advice
from chipwise.errors import InputError, UnknownNameError

LORA = Request(model="llama-3.1-8b", purpose="lora", regions=("us",))
FULL = Request(model="llama-3.3-70b", purpose="finetune", deadline_s=3 * 86400.0, goal="training-cost")


@pytest.fixture(scope="module")
def lora() -> Advice:
    """A LoRA fine-tune of an 8B model."""
    return advise(LORA)


@pytest.fixture(scope="module")
def full() -> Advice:
    """A full fine-tune of a 70B model in three days at least cost."""
    return advise(FULL)


@pytest.mark.parametrize("which", ["lora", "full"])
def test_every_size_stands_once(which: str, request: pytest.FixtureRequest) -> None:
    advice: Advice = request.getfixturevalue(which)
    rows = (advice.also_feasible, advice.rejected, advice.not_judged, advice.excluded)
    names = [row.instance for some in rows for row in some]
    names += sorted({option.instance for option in advice.options})
    assert sorted(names) == sorted(load_catalog().instances)


def test_one_gpu_is_enough_for_a_lora_of_8b(lora: Advice) -> None:
    feasible = {option.instance for option in lora.options} | {row.instance for row in lora.also_feasible}
    assert "g6e.xlarge" in feasible
    assert all(option.instances == 1 for option in lora.options)


def test_the_70b_needs_many_chips_and_meets_its_deadline(full: Advice) -> None:
    for option in full.options:
        assert option.chips >= 8
        assert option.run is not None
        assert option.run.duration_s.mid <= 3 * 86400.0 * 1.05
        assert option.performance["training"] is not None
        assert option.memory["fits"]


def test_gpu_and_neuron_both_stand(full: Advice) -> None:
    catalog = load_catalog()
    assert {catalog.instance(option.instance).kind for option in full.options} == {"gpu", "neuron"}


def test_a_runs_parts_fit_together(full: Advice) -> None:
    for option in full.options:
        run, cost = option.run, option.cost
        assert run is not None
        assert cost.usd_per_run is not None
        assert cost.usd_per_hour is not None
        hours = run.duration_s.mid / 3600
        assert run.chip_hours.mid == pytest.approx(hours * option.chips)
        assert cost.usd_per_run.mid == pytest.approx(hours * cost.usd_per_hour.mid, rel=0.15)
        assert run.checkpoint_bytes > option.memory["per_chip"]["weights_bytes"]


def test_pre_training_and_lora_differ_by_a_hundred_in_gpus(lora: Advice) -> None:
    pretrain = advise(
        Request(model="llama-3.3-70b", purpose="pretrain", tokens=2e12, deadline_s=30 * 86400.0, budget_usd=5e7)
    )
    gpus = [one for one in pretrain.options if load_catalog().instance(one.instance).kind == "gpu"]
    smallest = min(row.instances for row in lora.also_feasible)
    assert gpus[0].chips >= 100 * smallest


def test_a_tight_deadline_takes_more_instances() -> None:
    loose = advise(
        dataclasses.replace(FULL, tokens=5e9, budget_usd=1e6, only=("p5.48xlarge",), deadline_s=30 * 86400.0)
    )
    tight = advise(dataclasses.replace(FULL, tokens=5e9, budget_usd=1e6, only=("p5.48xlarge",), deadline_s=4 * 86400.0))
    assert tight.options[0].instances >= loose.options[0].instances


def test_an_impossible_deadline_rejects_with_the_time_it_takes() -> None:
    advice = advise(dataclasses.replace(FULL, deadline_s=60.0, only=("p5.48xlarge",)))
    assert not advice.options
    (row,) = [row for row in advice.rejected if row.instance == "p5.48xlarge"]
    assert row.rule == "slo"
    assert "deadline" in row.reason


def test_memory_of_a_method_adds_up() -> None:
    answer = size(SizeRequest(model="llama-3.1-8b", chip="l40s", training=TrainingRequest(method="lora", seq_len=2048)))
    per_chip = dict(answer["per_chip"])
    capacity, free = per_chip.pop("capacity_bytes"), per_chip.pop("free_bytes")
    assert sum(per_chip.values()) + free == pytest.approx(capacity + answer["shortfall_bytes"], abs=16)
    assert per_chip["adapters_bytes"] > 0
    assert per_chip["optimizer_bytes"] == 0


def test_estimate_of_a_method_gives_a_step() -> None:
    answer = estimate(
        EstimateRequest(
            model="llama-3.1-8b",
            instance="p5.48xlarge",
            training=TrainingRequest(method="full-ft", seq_len=8192, micro_batch=1, global_batch=64, recompute="full"),
        )
    )
    training = answer["training"]
    assert training is not None
    assert 0.15 < training["mfu_fraction"].mid < 0.75
    step = sum(term["seconds"] for term in training["terms"])
    assert step == pytest.approx(training["step_s"].mid, rel=1e-6)


@pytest.mark.parametrize(
    ("training", "split", "error"),
    [
        (TrainingRequest(method="sorcery"), SplitRequest(), UnknownNameError),
        (TrainingRequest(method="lora", recompute="sometimes"), SplitRequest(), InputError),
        (TrainingRequest(method="full-ft"), SplitRequest(tp=3), InputError),
        (TrainingRequest(method="full-ft", global_batch=2), SplitRequest(), InputError),
    ],
)
def test_wrong_training_requests_are_refused(
    training: TrainingRequest, split: SplitRequest, error: type[Exception]
) -> None:
    with pytest.raises(error):
        estimate(EstimateRequest(model="llama-3.1-8b", instance="p5.48xlarge", training=training, split=split))


def test_capacity_blocks_end_at_256_instances() -> None:
    """P5e is sold in Capacity Blocks alone: more than 256 of them stand behind what is sold as listed."""
    asked = Request(
        model="llama-3.1-405b", purpose="pretrain", tokens=2e12, deadline_s=60 * 86400.0,
        only=("p5e.48xlarge", "p6-b300.48xlarge"),
    )  # fmt: skip
    listed, quoted = advise(asked).options
    assert (listed.instance, quoted.instance) == ("p6-b300.48xlarge", "p5e.48xlarge")
    assert quoted.instances > 256
    assert "purchase: Capacity Blocks" in {rule.rule for rule in quoted.discouraged_by}
    assert not listed.discouraged_by


def test_several_capacity_blocks_are_named_and_the_dearer_vendor_stands_apart() -> None:
    asked = Request(
        model="llama-3.3-70b", purpose="pretrain", tokens=2e12, deadline_s=30 * 86400.0,
        only=("p5e.48xlarge", "trn1.32xlarge"),
    )  # fmt: skip
    gpu, neuron = advise(asked).options
    assert any("2 Capacity Blocks for the same days" in risk for risk in gpu.risks)
    assert neuron.risks[0].startswith("stands as the best Neuron option alone: 2.")


@pytest.mark.parametrize(("purpose", "context"), [("lora", 65536), ("qlora", 131072)])
def test_a_long_sequence_is_cut_over_a_node_where_the_batch_has_fewer_than_devices(purpose: str, context: int) -> None:
    """262,144 tokens a step are 4 (2) sequences: eight devices share them by context parallelism."""
    asked = Request(model="llama-3.1-8b", purpose=purpose, context_tokens=context, only=("p5.48xlarge",))
    (option,) = advise(asked).options
    split = option.parallelism
    assert option.settings["global_batch"] == 262144 // context
    assert split.cp >= 2
    assert split.tp * split.pp * split.cp * split.dp == option.chips == 8
    assert split.dp * option.settings["micro_batch"] <= option.settings["global_batch"]


def test_fewer_sequences_than_devices_is_said_where_nothing_cuts_them() -> None:
    """Two sequences of 131,072 on eight devices; no ring goes round the windows of GPT-OSS."""
    asked = Request(model="gpt-oss-20b", purpose="lora", context_tokens=131072, only=("p5.48xlarge",))
    (row,) = [row for row in advise(asked).rejected if row.instance == "p5.48xlarge"]
    assert (row.rule, row.source) == ("split", "parallelism")
    assert "its 8 devices" in row.reason
    assert row.reason.endswith("a step holds 2")
