"""What the tests of the room share: real plans, and a check as strict as an API server's, without one.

Built-in kinds go through kubernetes-validate; all others through the OpenAPI schema of their custom resource
definition, in which unknown fields are refused, and its CEL rules, evaluated by cel-python.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import celpy
import kubernetes_validate
import pytest
import yaml
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError
from jsonschema import Draft202012Validator

from chipwise.advisor.plans import advise
from chipwise.advisor.request import Request
from chipwise.deploy.asked.chosen import Chosen, choose
from chipwise.deploy.asked.plan_file import Part
from chipwise.report.json import as_json

# It reads its schemas anew for every document: once is enough.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)

Strict = Callable[[Mapping[str, Any]], list[str]]
_KUBERNETES = "1.36"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"


def _strict_schema(schema: Any) -> Any:
    """An OpenAPI v3 schema as JSON Schema that refuses what it does not name."""
    if isinstance(schema, list):
        return [_strict_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict_schema(value) for key, value in schema.items() if key not in {"format", _RULES}}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
        made.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    if "properties" in schema and "additionalProperties" not in schema and not schema.get(_OPEN):
        made["additionalProperties"] = False
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def _with_head(schema: dict[str, Any]) -> dict[str, Any]:
    """Metadata is the API server's own: any object will do here, kubernetes-validate checks it elsewhere."""
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {**schema, "properties": {**schema["properties"], **head}}


class Definitions:
    """The custom resource definitions of a folder, read when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unread: set[str] = set()
        """CEL rules that could not be evaluated."""

    @functools.cache  # noqa: B019 - one instance a session
    def schema(self, group: str, version: str, kind: str) -> dict[str, Any] | None:
        if group == "eksctl.io":
            return None
        for path in self.folder.glob(f"{group}_*"):
            found = _definition(path, version, kind)
            if found:
                return found
        return None

    @functools.cache  # noqa: B019 - one instance a session
    def validator(self, group: str, version: str, kind: str) -> Draft202012Validator:
        if group == "eksctl.io":
            path = self.folder / "eksctl.io_v1alpha5.schema.json"
            return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))
        schema = self.schema(group, version, kind)
        assert schema is not None, f"no definition of {group}/{version} {kind}"
        return Draft202012Validator(_strict_schema(schema))

    def errors(self, document: Mapping[str, Any]) -> list[str]:
        group, _, version = document["apiVersion"].rpartition("/")
        key = (group, version, document["kind"])
        found = [f"{error.json_path}: {error.message}" for error in self.validator(*key).iter_errors(document)]
        schema = self.schema(*key)
        return found + ([] if schema is None else list(self._broken_rules(schema, document, "$")))

    def _broken_rules(self, schema: dict[str, Any], value: Any, where: str) -> Iterator[str]:
        for rule in schema.get(_RULES, ()):
            if "oldSelf" not in rule["rule"] and not self._holds(rule["rule"], value):
                yield f"{where}: {rule.get('message') or rule['rule']}"
        if isinstance(value, Mapping):
            for key, inner in value.items():
                below = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
                if isinstance(below, dict):
                    yield from self._broken_rules(below, inner, f"{where}.{key}")
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for place, inner in enumerate(value):
                yield from self._broken_rules(schema["items"], inner, f"{where}[{place}]")

    def _holds(self, rule: str, value: Any) -> bool:
        answer = _evaluated(rule, json.dumps(value, sort_keys=True))
        if answer is None:
            self.unread.add(rule)
        return answer is not False


def _definition(path: Path, version: str, kind: str) -> dict[str, Any] | None:
    if path.suffix == ".json":
        schema = json.loads(path.read_text(encoding="utf-8"))
        same = f"_{kind.lower()}_{version}" in path.name
        return _widened(schema, kind) if same else None
    definition = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    if definition["spec"]["names"]["kind"] != kind:
        return None
    versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"]}
    return _with_head(versions[version])


def _widened(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    """The public extract of EKS Auto Mode's NodeClass is older than these fields of its documentation."""
    if kind == "NodeClass":
        term = {"id": {"type": "string"}, "tags": {"type": "object"}, "owner": {"type": "string"}}
        reserved = {"type": "array", "items": {"type": "object", "properties": term, "additionalProperties": False}}
        schema["properties"]["spec"]["properties"]["capacityReservationSelectorTerms"] = reserved
    return schema


def _find(text: celtypes.StringType, pattern: celtypes.StringType) -> celtypes.StringType:
    found = re.search(pattern, text)
    return celtypes.StringType(found.group(0) if found else "")


def _split(text: celtypes.StringType, separator: celtypes.StringType) -> celtypes.ListType:
    return celtypes.ListType([celtypes.StringType(part) for part in text.split(separator)])


@functools.cache
def _evaluated(rule: str, value: str) -> bool | None:
    """Whether a rule holds of a value, as JSON; None where it cannot be evaluated."""
    program = _program(rule)
    try:
        return None if program is None else bool(program.evaluate({"self": json_to_cel(json.loads(value))}))
    except CELEvalError:
        return None


@functools.cache
def _program(rule: str) -> Any:
    environment = celpy.Environment()
    try:
        return environment.program(environment.compile(rule), functions={"find": _find, "split": _split})
    except CELParseError:
        return None


@pytest.fixture(scope="session")
def definitions(shared: Path) -> Definitions:
    return Definitions(shared / "ecosystem" / "crds")


@pytest.fixture(scope="session")
def strict(definitions: Definitions) -> Strict:
    """What is wrong with a document, as far as schemas and rules can tell; empty where nothing is."""

    @functools.cache
    def errors_of(text: str) -> list[str]:
        document = json.loads(text)
        if document["apiVersion"] not in _BUILT_IN:
            return definitions.errors(document)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kubernetes_validate.validate(dict(document), _KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            return [f"{document['kind']}: {error.message}"]
        return []

    return lambda document: errors_of(json.dumps(document))


_BUILT_IN = {"v1", "apps/v1", "batch/v1", "policy/v1", "autoscaling/v2", "resource.k8s.io/v1"}


QUESTIONS: dict[str, dict[str, Any]] = {
    "chat 8b": {"model": "llama-3.1-8b", "purpose": "chat"},
    "chat 70b": {"model": "llama-3.3-70b", "purpose": "chat"},
    "chat 70b neuron": {"model": "llama-3.1-70b", "purpose": "chat", "vendor": "neuron"},
    "chat 8b spot": {"model": "llama-3.1-8b", "purpose": "chat", "purchase": "spot"},
    "chat 70b block": {"model": "llama-3.1-70b", "purpose": "chat", "purchase": "capacity-block"},
    "chat moe": {"model": "deepseek-v3", "purpose": "chat"},
    "chat large moe": {"model": "kimi-k2", "purpose": "chat", "users": 200},
    "rag 405b": {"model": "llama-3.1-405b", "purpose": "rag", "regions": ("us-east-1",)},
    "agent": {"model": "gpt-oss-120b", "purpose": "agent"},
    "tenants": {"model": "llama-3.1-8b", "purpose": "chat", "isolation": "hardware", "only": ("p5.48xlarge",)},
    "embed": {"model": "bge-m3", "purpose": "embed"},
    "transcribe": {"model": "whisper-large-v3", "purpose": "transcribe"},
    "diffusion": {"model": "sdxl", "purpose": "diffusion"},
    "lora": {"model": "llama-3.1-8b", "purpose": "lora"},
    "lora spot": {"model": "llama-3.1-8b", "purpose": "lora", "purchase": "spot"},
    "finetune": {"model": "llama-3.1-8b", "purpose": "finetune"},
    "finetune neuron": {"model": "llama-3.1-70b", "purpose": "finetune", "vendor": "neuron"},
    "pretrain": {"model": "llama-3.1-70b", "purpose": "pretrain", "tokens": 100e9},
    "rlhf": {"model": "qwen3-8b", "purpose": "grpo"},
}
"""Questions whose options, taken together, need every kind of manifest."""


@functools.cache
def plan_of(name: str) -> Part:
    """The plan of a question, as its JSON says it."""
    return Part(value=as_json(advise(Request(**QUESTIONS[name]))), where="")


@pytest.fixture(scope="session")
def every() -> tuple[Chosen, ...]:
    """Every option of every question."""
    plans = [plan_of(name) for name in QUESTIONS]
    return tuple(choose(plan, one["rank"]) for plan in plans for one in plan.value["options"])


@pytest.fixture(scope="session")
def option() -> Callable[..., Chosen]:
    """An option of one question."""
    return lambda name, rank=1: choose(plan_of(name), rank)


@pytest.fixture(scope="session")
def disaggregated() -> Chosen:
    """An option whose prefill and decode run on pools of their own."""
    plan = copy.deepcopy(plan_of("chat moe").value)
    split = plan["options"][0]["parallelism"]
    pool = {"devices_per_replica": 8, "parallelism": split}
    plan["options"][0]["pools"] = [
        {"role": "prefill", "instance": "p5en.48xlarge", "instances": 1, "replicas": 1, **pool},
        {"role": "decode", "instance": "p5e.48xlarge", "instances": 2, "replicas": 2, **pool},
    ]
    return choose(Part(value=plan, where=""))


@pytest.fixture(scope="session")
def plan_json() -> Callable[[str], Part]:
    """The plan of one question; do not change it in place."""
    return plan_of


@pytest.fixture(scope="session")
def frozen() -> Callable[[str], dict[str, Any]]:
    """A plan of `plans/`, which holds what deploy reads of one and does not change with the facts."""

    @functools.cache
    def read(name: str) -> dict[str, Any]:
        return dict(json.loads((Path(__file__).parent / "plans" / f"{name}.json").read_text(encoding="utf-8")))

    return read


@pytest.fixture(scope="session")
def chat(frozen: Callable[[str], dict[str, Any]]) -> Chosen:
    """A small chat model on one GPU."""
    return choose(Part(value=frozen("chat-8b"), where=""))
