"""GPU or Neuron: every signal, both ways."""

from __future__ import annotations

import dataclasses

import pytest

from chipwise.guide import NeuronQuestion, neuron_signals
from chipwise.guide.tables import table

ASKED = NeuronQuestion(
    architecture="dense-llm", training=False, support="ok", support_why="a recipe", support_source="engines"
)


def pulls(**changes: object) -> dict[str, str]:
    question = dataclasses.replace(ASKED, **changes)  # type: ignore[arg-type] # any field of the question
    return {one.signal: one.points_to for one in neuron_signals(question)}


@pytest.mark.parametrize(
    ("changes", "signal", "points_to"),
    [
        ({}, "workload", "neuron"),
        ({"training": True}, "workload", "nvidia"),
        ({"architecture": "cnn"}, "workload", "nvidia"),
        ({}, "support today", "neuron"),
        ({"support": "beta"}, "support today", "either"),
        ({"support": "unsupported"}, "support today", "nvidia"),
        ({"support": "unknown"}, "support today", "nvidia"),
        ({"custom_kernels": True}, "custom kernels", "nvidia"),
        ({}, "custom kernels", "either"),
        ({"architecture": "vision-language"}, "multimodality", "nvidia"),
        ({"ttft_p99_s": 0.09}, "TTFT below 100 ms", "nvidia"),
        ({"team": "cuda"}, "team", "nvidia"),
        ({"team": "neuron"}, "team", "neuron"),
        ({"team": "none"}, "team", "either"),
        ({"timeline_weeks": 4.0}, "timeline", "either"),
        ({"goal": "cost"}, "cost posture", "neuron"),
        ({"stability": "steady"}, "stability", "neuron"),
        ({"stability": "exploring"}, "stability", "nvidia"),
    ],
)
def test_every_signal_can_pull(changes: dict[str, object], signal: str, points_to: str) -> None:
    assert pulls(**changes)[signal] == points_to


def test_a_timeline_shorter_than_the_ramp_points_to_nvidia() -> None:
    assert pulls(timeline_weeks=1.0)["timeline"] == "nvidia"
    assert pulls(timeline_weeks=2.0)["timeline"] == "either"


def test_what_was_not_said_is_silent() -> None:
    assert set(pulls()) == {"workload", "support today", "custom kernels", "multimodality"}
    assert "TTFT below 100 ms" not in pulls(ttft_p99_s=0.1)


def test_every_signal_cites_the_guide_and_support_its_own_source() -> None:
    found = neuron_signals(ASKED)
    assert all(one.why and "guide B:" in one.source for one in found)
    (support,) = [one for one in found if one.signal == "support today"]
    assert (support.why, support.source) == ("a recipe", "engines; guide B:13")


def test_every_row_points_somewhere() -> None:
    assert {row["points_to"] for row in table("signals")} == {"nvidia", "neuron", "either"}
