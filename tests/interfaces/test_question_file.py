"""A file of flags may name the model; a model on the command line wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import InputError
from chipwise.interfaces.cli.commands import plan


def test_a_file_may_name_its_model(tmp_path: Path) -> None:
    path = tmp_path / "question.yaml"
    path.write_text("model: llama-3.1-8b\nfor: chat\nusers: 8\n")
    asked = plan.asked({"workload": str(path)})
    assert (asked.model, asked.purpose, asked.users) == ("llama-3.1-8b", "chat", 8)
    assert plan.asked({"workload": str(path), "model": "qwen2.5-7b"}).model == "qwen2.5-7b"


def test_a_question_about_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "question.yaml"
    path.write_text("for: chat\n")
    with pytest.raises(InputError, match="MODEL is missing"):
        plan.asked({"workload": str(path)})
