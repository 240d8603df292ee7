"""Classes of transformers and diffusers as subjects, built on torch's meta device: shapes without storage."""

from __future__ import annotations

import copy
import inspect
import json
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any

from huggingface_hub.errors import StrictDataclassError

from chipwise.errors import ChipwiseError
from chipwise.model.families import MODULES
from chipwise.model.families.listed import read_nested
from chipwise.model.keys import Keys
from induce.explore import Shapes
from induce.paths import Config

# What a class may raise at a config that it does not like.
REFUSALS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    StrictDataclassError,
    TypeError,
    ValueError,
)
_BUILD_S = 25
_WHOLE = re.compile(r"(Model|ForCausalLM|WithProjection|ForConditionalGeneration)$")


class _TooLongError(RuntimeError):
    pass


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLongError


def _start() -> None:
    """Give the next build so much processor time and no more."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, _BUILD_S)


def _stop() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)


def _plain(value: Any) -> Any:
    """A config as JSON has it."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A nested config whose own family reads it: where it stands, the class it is built as, and its model_type."""

    path: str
    class_name: str
    model_type: str


@dataclass(slots=True, kw_only=True)
class Transformers:
    """A class of transformers. Tensors of parts that chipwise reads by their own family are left to it.

    `given` is what a config must say for the class to be built at all; the rest are the class's defaults.
    """

    model_type: str
    class_name: str
    config: Config = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    given: Config = field(default_factory=dict)
    read: dict[tuple[str, str], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        self.config = self._defaults()

    def _defaults(self) -> dict[str, Any]:
        text = self._config_class()(**self.given).to_json_string(use_diff=False)
        config: dict[str, Any] = _plain(json.loads(text))
        for name in ("transformers_version", "architectures", "dtype"):
            config.pop(name, None)
        return {**config, "num_labels": 2}

    def _config_class(self) -> Any:
        return import_module("transformers").models.auto.configuration_auto.CONFIG_MAPPING[self.model_type]

    def build(self, config: Config) -> tuple[Any, Any]:
        """The model and its config object."""
        given = copy.deepcopy(dict(config))
        labels = given.pop("num_labels", 2)
        made = self._config_class().from_dict(
            {key: value for key, value in given.items() if key not in ("id2label", "label2id")}
        )
        made.num_labels = labels
        with import_module("torch").device("meta"):
            model = getattr(import_module("transformers"), self.class_name)(made)
        model.tie_weights()
        return model, made

    def shapes(self, config: Config) -> Shapes | None:
        """Tensor shapes but for those of parts."""
        _start()
        try:
            model, made = self.build(config)
            inside = self._parts(model, made)
        except REFUSALS:
            return None
        finally:
            _stop()
        if config == self.config:
            self.parts = tuple(dict.fromkeys(inside.values()))
        inside = {name: part for name, part in inside.items() if part in self.parts}
        named = {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
        return {name: shape for name, shape in named.items() if not any(name.startswith(f"{at}.") for at in inside)}

    def _parts(self, model: Any, made: Any) -> dict[str, Part]:
        configs = dict(_nested(made, ()))
        known = {name for types in MODULES.values() for name in types.split()}
        out: dict[str, Part] = {}
        for name, module in model.named_modules():
            found = configs.get(id(getattr(module, "config", None)))
            if "backbone_config" in self.given and type(module).__name__ == "ResNetBackbone":
                out[name] = Part(path="backbone_config", class_name="frozen-resnet", model_type="resnet")
                continue
            if not name or found is None or any(name == at or name.startswith(f"{at}.") for at in out):
                continue
            part = Part(path=found[0], class_name=type(module).__name__, model_type=found[1])
            whole = _WHOLE.search(part.class_name) and "Backbone" not in part.class_name
            if whole and part.model_type in known and self._reads(part, made, module):
                out[name] = part
        return out

    def _reads(self, part: Part, made: Any, module: Any) -> bool:
        """Whether chipwise counts this part as the module has it."""
        key = (part.path, part.class_name)
        if key not in self.read:
            config = _plain(json.loads(made.to_json_string(use_diff=False)))
            wanted = sum(tensor.numel() for tensor in module.parameters())
            try:
                draft = read_nested(Keys(data=config, nested=True), part.path, part.class_name)
                self.read[key] = draft.tower("part").params == wanted
            except ChipwiseError:
                self.read[key] = False
        return self.read[key]


def _nested(config: Any, path: tuple[str, ...]) -> list[tuple[int, tuple[str, str]]]:
    out = []
    for name in getattr(config, "sub_configs", None) or {}:
        inner = getattr(config, name, None)
        if inner is not None:
            out.append((id(inner), (".".join((*path, name)), getattr(inner, "model_type", ""))))
            out += _nested(inner, (*path, name))
    return out


@dataclass(slots=True, kw_only=True)
class Diffusers:
    """A model class of diffusers, made from its constructor's arguments."""

    class_name: str
    config: Config = field(default_factory=dict)
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        with import_module("torch").device("meta"):
            model = self._class()()
        self.config = {key: _plain(value) for key, value in dict(model.config).items() if not key.startswith("_")}

    def _class(self) -> Any:
        found = getattr(import_module("diffusers"), self.class_name)
        return found if inspect.isclass(found) else None

    def shapes(self, config: Config) -> Shapes | None:
        """Tensor shapes under a config."""
        _start()
        try:
            with import_module("torch").device("meta"):
                model = self._class()(**copy.deepcopy(dict(config)))
        except REFUSALS:
            return None
        finally:
            _stop()
        return {name: tuple(tensor.shape) for name, tensor in model.named_parameters()}
