"""Names, images, accounts and tags: what Kubernetes and AWS take passes unchanged, everything else is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.deploy.asked.chosen import Chosen, choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.errors import InputError

Frozen = Callable[[str], dict[str, Any]]


def given_as(fields: dict[str, Any]) -> Parameters:
    """Parameters of any shape, as a door passes them on."""
    return Parameters(**fields)


TEXTS = (
    *("name", "namespace", "image", "checkpoint", "script", "account", "region", "zone", "cluster", "role"),
    *("reservation", "placement_group", "ami_alias", "queue", "secret", "prometheus", "gateway"),
)
HOSTILE = [
    "x; rm -rf /",
    "$(reboot)",
    "`id`",
    "a\nkind: Pod",
    "a: b",
    "- a",
    "{a: b}",
    "a # b",
    '"a',
    "'a'",
    "*a",
    "&a",
    "!!python/object/apply:os.system [id]",
    "a|b",
    "a>b",
    "a b",
    "",
    " ",
    "\u0430bc",
    "--flag",
    "a\x00",
    "%2e%2e",
]
GOOD: dict[str, str] = {
    "name": "chat-70b",
    "namespace": "team-a",
    "image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/vllm:v0.33.0",
    "checkpoint": "org/model-1.0",
    "region": "us-west-2",
    "zone": "us-west-2a",
    "cluster": "Prod_1",
    "role": "nodes",
    "secret": "hub.token",
    "prometheus": "https://prometheus.monitoring.svc:9090/api",
    "ami_alias": "bottlerocket@v1.50.0",
}


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_is_refused(field: str, hostile: str) -> None:
    with pytest.raises(InputError) as refused:
        given_as({field: hostile})
    assert field.replace("_", " ") in refused.value.what
    assert refused.value.fix


@pytest.mark.parametrize("field", ["subnet_tags", "security_group_tags", "reservation_tags"])
@pytest.mark.parametrize("tag", [{"a\nb": "c"}, {"a": "b\nc"}, {"": "a"}, {"a": "$(x)"}, {"a": "{b}"}])
def test_a_hostile_tag_is_refused(field: str, tag: dict[str, str]) -> None:
    with pytest.raises(InputError):
        given_as({field: tag})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "vllm"},
        {"target": "gke"},
        {"form": "jsonnet"},
        {"purchase": "auction"},
        {"sharing": "magic"},
        {"tenants": 0},
        {"max_replicas": 0},
        {"file_system": "fs-0123456789abcdef0"},
        {"name": "a" * 37},
        {"name": "Chat"},
        {"account": "12345"},
        {"reservation": "r-0123456789abcdef0"},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        given_as(wrong)


def test_what_is_said_stands_in_the_files(frozen: Frozen) -> None:
    plan = frozen("chat-deepseek")
    bundle = bundle_of(choose(Part(value=plan, where=""), 2), given_as(dict(GOOD)))
    text = "\n".join(file.text for file in bundle.files)
    for field, value in GOOD.items():
        if field != "region":
            assert value in text, field
    assert "CLUSTER" not in text


words = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=30)


@given(field=st.sampled_from(TEXTS), text=words | st.from_regex(r"[a-z0-9./:@-]{1,30}", fullmatch=True))
def test_a_text_is_refused_or_stands_unchanged(chat: Chosen, field: str, text: str) -> None:
    try:
        parameters = given_as({field: text})
    except InputError:
        return
    assert not re.search(r"[\s;|&<>`'\"\\{}()$#*!%]", text)
    bundle = bundle_of(chat, parameters)
    for file in bundle.files:
        if file.kind:
            assert yaml.load(file.text, Loader=yaml.CSafeLoader)["kind"] == file.kind


def test_no_token_is_ever_written(every: tuple[Chosen, ...]) -> None:
    for chosen in every[:6]:
        for file in bundle_of(chosen, Parameters()).files:
            assert not re.search(r"hf_[A-Za-z0-9]{8}|AKIA[A-Z0-9]{8}|kind: Secret\b", file.text)
