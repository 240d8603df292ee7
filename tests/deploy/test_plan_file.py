"""A plan that is cut off, foreign or hostile is refused with what, why and fix; none brings the command down."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.deploy.asked.chosen import choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part, read_plan
from chipwise.deploy.build import bundle_of
from chipwise.deploy.written.bundle import File
from chipwise.errors import ChipwiseError, InfeasibleError, InputError, UnknownNameError

Frozen = Callable[[str], dict[str, Any]]
HOSTILE = [
    "x; rm -rf /",
    "$(id)",
    "a\nb: c",
    "--trust-remote-code",
    "{{ .Values }}",
    "a: b # c",
    "'\"`",
    "&anchor *alias",
    "!!python/object:os.system",
    "../../etc",
    "",
    " ",
    "\u202eevil",
    "a" * 5000,
]


def write(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ('{"schema_version": 1, "options": [{"rank": 1', "is not JSON"),
        ("[]", "holds no JSON object"),
        ("{}", "schema_version"),
        ('{"schema_version": 2}', "is not 1"),
        ('{"schema_version": 1}', "options"),
        ('{"schema_version": 1, "options": {}}', "is no list"),
        ('{"error": {"what": "x"}}', "holds an error"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: str, what: str) -> None:
    with pytest.raises(InputError) as refused:
        read_plan(write(tmp_path / "plan.json", content))
    assert what in refused.value.what + refused.value.why
    assert "plan" in refused.value.fix


def test_a_plan_without_option_is_no_fault_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError):
        read_plan(write(tmp_path / "plan.json", '{"schema_version": 1, "options": []}'))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(str(tmp_path / "none.json"))


def test_an_option_that_is_not_there_is_refused(frozen: Frozen) -> None:
    with pytest.raises(UnknownNameError) as refused:
        choose(Part(value=frozen("chat-8b"), where=""), 9)
    assert "option 1, 2, 3" in refused.value.fix


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a plan."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, one in inner for below in paths(one, (*path, key)))][1 if not path else 0 :]


def changed(plan: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    made: Any = copy.deepcopy(plan)
    around = made
    for step in path[:-1]:
        around = around[step]
    if value is ...:
        del around[path[-1]]
    else:
        around[path[-1]] = value
    return dict(made)


ODD: list[Any] = [..., None, True, -1, 0, 2**60, 1.5, float("nan"), float("inf"), [], {}, *HOSTILE]


def files_or_refusal(plan: dict[str, Any]) -> tuple[File, ...]:
    """The files of a plan; none where it is refused, which must be told whole."""
    try:
        return bundle_of(choose(Part(value=plan, where="")), Parameters(region="us-west-2")).files
    except ChipwiseError as error:
        told = error.as_json()["error"]
    assert all(told[part] for part in ("what", "why", "fix"))
    return ()


@given(data=st.data())
def test_any_fault_in_a_plan_is_told_or_harmless(frozen: Frozen, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["chat-8b", "chat-deepseek", "pretrain-70b", "tenants"]))
    plan = frozen(name)
    path = data.draw(st.sampled_from(paths(plan)))
    odd = data.draw(st.sampled_from(ODD))
    for file in files_or_refusal(changed(plan, path, odd)):
        if file.kind:
            document = yaml.load(file.text, Loader=yaml.CSafeLoader)
            assert document["kind"] == file.kind
            assert document["apiVersion"] == file.api_version


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_model_name_becomes_no_word_of_a_command(frozen: Frozen, hostile: str) -> None:
    plan = changed(frozen("chat-8b"), ("model", "name"), hostile)
    try:
        bundle = bundle_of(choose(Part(value=plan, where="")), Parameters())
    except InputError:
        return
    (workload,) = [yaml.safe_load(file.text) for file in bundle.files if file.kind == "Deployment"]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["vllm", "serve"]
    assert container["args"][0] == "CHECKPOINT"
    assert all(word.startswith("--") for word in container["args"][1:])
