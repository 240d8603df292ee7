"""Every document of every option passes the strict check and the lint, for every target and in every form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.asked.parameters import TARGETS, Parameters, Target
from chipwise.deploy.build import bundle_of
from chipwise.deploy.facts import kinds
from chipwise.deploy.lint import lint_texts
from chipwise.deploy.written.bundle import Bundle

Strict = Callable[[Mapping[str, Any]], list[str]]
Option = Callable[..., Chosen]
SAID = {"stand-in", "compile-memory"}
"""Warnings that are true of what was planned: a word only the user knows, a host on which compilers ran out."""
RESERVATION = "cr-0123456789abcdef0"
SHARED = {"file_system": "fs-0123456789abcdef0", "mount_name": "fsx"}


_MADE: dict[tuple[int, Target], Bundle] = {}


def made_of(chosen: Chosen, target: Target) -> Bundle:
    """The files of an option of the session, made once."""
    key = (id(chosen), target)
    if key not in _MADE:
        _MADE[key] = bundle_of(chosen, Parameters(target=target, region="us-west-2"))
    return _MADE[key]


def documents(bundle: Bundle) -> list[dict[str, Any]]:
    return [
        yaml.load(file.text, Loader=yaml.CSafeLoader)
        for file in bundle.files
        if file.kind and file.kind != "Kustomization"
    ]


def faults(bundle: Bundle) -> list[str]:
    """What the lint says, beside what is true of the plan itself."""
    texts = {file.path: file.text for file in bundle.files if file.kind}
    return [f"{one.file}:{one.line} {one.rule}: {one.why}" for one in lint_texts(texts) if one.rule not in SAID]


def wrong(bundle: Bundle, strict: Strict) -> list[str]:
    return [f"{one['kind']}: {error}" for one in documents(bundle) for error in strict(one)] + faults(bundle)


def test_every_option_is_valid_and_clean(every: tuple[Chosen, ...], strict: Strict) -> None:
    """Each option for one target in turn; the slow test below takes each for all."""
    assert len(every) >= 40
    taken = [(one, TARGETS[place % len(TARGETS)]) for place, one in enumerate(every)]
    found = {f"{one.model.name} {one.instance} {target}": wrong(made_of(one, target), strict) for one, target in taken}
    assert {name: errors for name, errors in found.items() if errors} == {}


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_option_is_valid_and_clean_for_every_target(
    every: tuple[Chosen, ...], strict: Strict, target: Target
) -> None:
    found = {f"{one.model.name} {one.instance}": wrong(made_of(one, target), strict) for one in every}
    assert {name: errors for name, errors in found.items() if errors} == {}


VARIANTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "static pool": ("chat 70b", 1, {"static": True}),
    "static pool of nodes with EFA": ("chat moe", 2, {"static": True}),
    "reservation by id": ("chat 70b", 1, {"purchase": "reserved", "reservation": RESERVATION}),
    "reservation of another account": ("chat 70b", 1, {"purchase": "reserved", "account": "123456789012"}),
    "Capacity Block": ("chat 70b block", 2, {"purchase": "capacity-block", "reservation": RESERVATION}),
    "Capacity Block by eksctl": (
        "chat 70b block",
        2,
        {"target": "eksctl", "reservation": RESERVATION, "zone": "us-west-2a"},
    ),
    "Capacity Block on Auto Mode": ("chat 70b block", 2, {"target": "auto-mode", "reservation": RESERVATION}),
    "Spot": ("chat 8b spot", 1, {}),
    "Spot by eksctl": ("chat 8b spot", 1, {"target": "eksctl", "region": "us-west-2"}),
    "placement group": ("chat moe", 2, {"placement_group": "near", "zone": "us-west-2a"}),
    "shared file system": ("chat 70b", 1, SHARED),
    "compiled beforehand": ("chat 70b neuron", 1, SHARED),
    "HPA": ("chat 8b", 1, {"scaler": "hpa"}),
    "no scaler": ("chat 8b", 1, {"scaler": "none"}),
    "through a Gateway": ("chat 8b", 1, {"gateway": "main"}),
    "MIG": ("tenants", 1, {"sharing": "mig"}),
    "MIG by eksctl": ("tenants", 1, {"sharing": "mig", "target": "eksctl", "region": "us-west-2"}),
    "time-slicing": ("embed", 1, {"sharing": "time-slicing", "tenants": 4}),
    "MPS": ("embed", 1, {"sharing": "mps", "tenants": 2}),
    "claims": ("chat 8b", 1, {"devices": "dra"}),
    "claims on Auto Mode": ("chat 8b", 1, {"devices": "dra", "target": "auto-mode"}),
    "claims with EFA": ("chat moe", 2, {"devices": "dra"}),
    "claims of slices": ("tenants", 1, {"devices": "dra", "sharing": "mig", "target": "eksctl", "region": "us-west-2"}),
    "claims of Neuron devices": ("chat 70b neuron", 1, {"devices": "dra", "target": "eksctl", "region": "us-west-2"}),
    "run by JobSet": ("pretrain", 1, {"runner": "jobset", **SHARED}),
    "run on a static pool": ("pretrain", 2, {"static": True, **SHARED}),
    "run without queue": ("pretrain", 1, {"queue": "none"}),
    "run with claims": ("finetune", 2, {"devices": "dra"}),
    "run on Spot": ("lora spot", 2, SHARED),
    "Neuron run by eksctl": ("finetune neuron", 1, {"target": "eksctl", "region": "us-west-2", **SHARED}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_valid_and_clean(option: Option, strict: Strict, name: str) -> None:
    question, rank, parameters = VARIANTS[name]
    assert wrong(bundle_of(option(question, rank), Parameters(**parameters)), strict) == []


def test_prefill_and_decode_are_valid_and_clean(disaggregated: Chosen, strict: Strict) -> None:
    for target in TARGETS:
        bundle = bundle_of(disaggregated, Parameters(target=target, region="us-west-2"))
        assert "DisaggregatedSet" in {file.kind for file in bundle.files}
        assert wrong(bundle, strict) == []


def test_the_variants_write_every_kind(every: tuple[Chosen, ...], option: Option, disaggregated: Chosen) -> None:
    bundles = [made_of(one, TARGETS[place % len(TARGETS)]) for place, one in enumerate(every)]
    bundles += [bundle_of(option(question, rank), Parameters(**given)) for question, rank, given in VARIANTS.values()]
    bundles.append(bundle_of(option("chat 8b"), Parameters(form="kustomize")))
    bundles.append(bundle_of(disaggregated, Parameters()))
    written = {file.kind for bundle in bundles for file in bundle.files if file.kind}
    assert written == set(kinds())


def test_every_rule_of_karpenter_and_its_kin_is_evaluated(
    every: tuple[Chosen, ...], definitions: Any, strict: Strict
) -> None:
    for one in documents(made_of(every[0], "karpenter")):
        strict(one)
    assert [rule for rule in definitions.unread if "sectionName" not in rule] == []  # those of HTTPRoute's parents
