"""Which model runs on which AWS chip with which part of the Neuron SDK, and which release it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, cast

from chipwise.engines.profile import DATA, load_engine
from chipwise.engines.support import Status
from chipwise.engines.versions import Version, at_least, parse_version
from chipwise.facts import read_rows

Task = Literal["serve", "embed", "vision", "audio", "diffusion", "train"]
Level = Literal["recipe", "supported", "contrib", "end-of-support", "not-supported"]
COLUMNS = (
    "model_types", "task", "stack", "engine", "chips", "sdk_from", "sdk_to", "level", "tp", "formats",
    "kv_formats",
    "max_model_len", "max_num_seqs", "pp", "ep", "constraints", "source", "where", "read_on",
)  # fmt: skip
_RANK = {"recipe": 4, "supported": 3, "contrib": 2, "end-of-support": 1, "not-supported": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronSupport:
    """The best way a model runs on a chip with Neuron, or that there is none.

    `sdk_pin` is the last SDK that has it, None where the current one does. `tp`, `formats`, `kv_formats` are
    what its page names; empty: it names none. Lengths are what was shown to work, None: not stated.
    """

    status: Status
    level: Level | None
    stack: str | None
    engine: str | None
    sdk_pin: str | None
    tp: tuple[int, ...]
    formats: tuple[str, ...]
    kv_formats: tuple[str, ...]
    max_model_len: int | None
    max_num_seqs: int | None
    pipeline_parallel: bool | None
    expert_parallel: bool | None
    constraints: str
    why: str
    source: str

    @property
    def named(self) -> bool:
        """Whether a page names the model; otherwise a page speaks of any model."""
        return not self.why.startswith(UNNAMED)


UNNAMED = "no page names"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    patterns: tuple[str, ...]
    task: str
    stack: str
    engine: str
    chips: frozenset[str]
    sdk_to: Version | None
    sdk_to_text: str
    level: Level
    cells: Mapping[str, str]

    @property
    def any_model(self) -> bool:
        return self.patterns == ("*",)

    @property
    def current(self) -> bool:
        return self.sdk_to is None or at_least(self.sdk_to, _current())


@cache
def neuron_support(model_type: str, task: str, chip_id: str, engine: str | None = None) -> NeuronSupport:
    """The best documented way to run `model_type` for `task` on that chip, current or pinned to an older SDK.

    Current beats pinned, except that a supported older stack beats a current contribution; then recipe,
    supported, contrib; then the newer SDK. A row for any model (automatic porting, native PyTorch) counts
    only where no row names the model, and then as `unknown` or `beta`.

    Args:
        model_type: as in config.json (`llama`, `qwen3_moe`, …).
        task: `serve`, `embed`, `vision`, `audio`, `diffusion` or `train`.
        chip_id: `trainium1`, `trainium2`, `trainium3`, `inferentia1` or `inferentia2`.
        engine: only stacks that this engine runs (`nxd-inference`, `vllm-neuron`); None: any.

    >>> neuron_support("llama", "serve", "trainium2").level
    'recipe'
    >>> neuron_support("llama", "serve", "inferentia2").sdk_pin
    '2.28'
    >>> neuron_support("llama", "serve", "trainium2", "nxd-inference").sdk_pin
    '2.31.0'
    >>> neuron_support("mamba", "serve", "inferentia2").status
    'unsupported'
    """
    rows = [row for row in _rows() if row.task == task and chip_id in row.chips and engine in {None, row.engine}]
    named = [row for row in rows if not row.any_model and _names(row, model_type)]
    useful = [row for row in named if row.level != "not-supported"]
    if useful:
        return _answer(max(useful, key=_merit), model_type)
    fallback = [row for row in rows if row.any_model and row.level not in {"not-supported", "end-of-support"}]
    if fallback:
        return _ported(max(fallback, key=_merit), model_type)
    return _refusal(named, rows, model_type, chip_id)


def neuron_sdk() -> str:
    """The release of the Neuron SDK whose state the tables describe.

    >>> neuron_sdk()
    '2.32.0'
    """
    facts = load_engine("vllm-neuron").facts
    return next(str(fact.value) for fact in facts if fact.key == "neuron_sdk")


def _current() -> Version:
    return parse_version(neuron_sdk()) or (0,)


def _merit(row: _Row) -> tuple[int, int, Version]:
    rank = _RANK[row.level]
    solid = 1 if rank >= _RANK["supported"] else 0
    return solid, (1 if row.current else 0) + rank, row.sdk_to or _current()


def _names(row: _Row, model_type: str) -> bool:
    wanted = re.sub(r"[^a-z0-9]+", "_", model_type.lower())
    return any(fnmatchcase(wanted, pattern) for pattern in row.patterns)


def _answer(row: _Row, model_type: str) -> NeuronSupport:
    pin = None if row.current else row.sdk_to_text
    solid = _RANK[row.level] >= _RANK["supported"]
    why = f"{model_type} on {row.stack}: {row.level}" + (f", only up to Neuron SDK {pin}" if pin else "")
    return _support(row, "ok" if solid else "beta", why, pin)


def _ported(row: _Row, model_type: str) -> NeuronSupport:
    status: Status = "beta" if row.task == "train" else "unknown"
    return _support(row, status, f"{UNNAMED} {model_type}; {row.cells['constraints']}", None)


def _refusal(named: list[_Row], rows: list[_Row], model_type: str, chip_id: str) -> NeuronSupport:
    said = [row for row in [*named, *rows] if row.level == "not-supported" and (row.any_model or row in named)]
    why = said[0].cells["constraints"] if said else f"no Neuron stack lists {model_type} on {chip_id}"
    source = _cite(said[0]) if said else "aws-neuron/aws-neuron-sdk@81ce03ae261e: model lists of SDK 2.32.0"
    return NeuronSupport(
        status="unsupported",
        level="not-supported",
        stack=None,
        engine=None,
        sdk_pin=None,
        tp=(),
        formats=(),
        kv_formats=(),
        max_model_len=None,
        max_num_seqs=None,
        pipeline_parallel=None,
        expert_parallel=None,
        constraints=why,
        why=why,
        source=source,
    )


def _support(row: _Row, status: Status, why: str, pin: str | None) -> NeuronSupport:
    cells = row.cells
    return NeuronSupport(
        status=status,
        level=row.level,
        stack=row.stack,
        engine=row.engine or None,
        sdk_pin=pin,
        tp=tuple(int(degree) for degree in cells["tp"].split()),
        formats=tuple(cells["formats"].split()),
        kv_formats=tuple(cells["kv_formats"].split()),
        max_model_len=_int(cells["max_model_len"]),
        max_num_seqs=_int(cells["max_num_seqs"]),
        pipeline_parallel=_flag(cells["pp"]),
        expert_parallel=_flag(cells["ep"]),
        constraints=cells["constraints"],
        why=why,
        source=_cite(row),
    )


def _cite(row: _Row) -> str:
    return f"{row.cells['source']}: {row.cells['where']}"


def _int(text: str) -> int | None:
    return int(text) if text else None


def _flag(text: str) -> bool | None:
    return {"yes": True, "no": False}.get(text)


@cache
def _rows() -> tuple[_Row, ...]:
    read = read_rows(DATA / "neuron_support.csv", COLUMNS)
    return tuple(_row(dict(zip(COLUMNS, row, strict=True))) for _, row in read)


def _row(cells: Mapping[str, str]) -> _Row:
    return _Row(
        patterns=tuple(cells["model_types"].split()),
        task=cells["task"],
        stack=cells["stack"],
        engine=cells["engine"],
        chips=frozenset(cells["chips"].split()),
        sdk_to=parse_version(cells["sdk_to"]),
        sdk_to_text=cells["sdk_to"],
        level=cast("Level", cells["level"]),
        cells=cells,
    )
