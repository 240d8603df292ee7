"""Every document of every option passes the strict check, for every target that can have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from chipwise.deploy.build import deploy
from chipwise.deploy.bundle import Bundle
from chipwise.deploy.chosen import Chosen
from chipwise.deploy.parameters import TARGETS, Parameters, Target

Strict = Callable[[Mapping[str, Any]], list[str]]
Options = Callable[[], list[tuple[str, int]]]


def documents(bundle: Bundle) -> list[dict[str, Any]]:
    return [yaml.safe_load(file.text) for file in bundle.files if file.path.endswith(".yaml")]


@pytest.mark.parametrize("target", TARGETS)
def test_every_document_is_valid(every: tuple[Chosen, ...], strict: Strict, target: Target) -> None:
    found: dict[str, list[str]] = {}
    for chosen in every:
        bundle = deploy(chosen, Parameters(target=target, region="us-west-2"))
        for document in documents(bundle):
            errors = strict(document)
            if errors:
                found[f"{chosen.model.name} {chosen.instance} {document['kind']}"] = errors
    assert len(every) >= 40
    assert found == {}
