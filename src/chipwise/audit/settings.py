"""Engine settings that a row states in words: `max_num_seqs=64`, `actual GPU utilization = 79.1%`, `MTP n=3`."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from chipwise.audit.names import Engine, cache_format
from chipwise.audit.table import Row
from chipwise.engines import DeviceFacts, default_kv_format, engine_defaults
from chipwise.engines.defaults import Usage
from chipwise.model import ModelSpec
from chipwise.precision import format_facts

UNLIMITED_TOKENS = 1e9
UNLIMITED_SEQUENCES = 1e6
DEFAULT_GRAPH_BATCH = 512
"""Where an engine states no largest batch of its graphs."""
_RENTED = re.compile(r"\b(?:aws|ec2|sagemaker)\b|\b(?:ml\.)?(?:[gp]\d\w*|trn\d\w*|inf\d)\.(?:\d+x|x)?large\b")
"""Words that place a run on an instance of AWS."""
GENERIC_ENGINE = "vllm"
"""What stands in for an engine of which no source was read: continuous batching, paged cache."""
_PATTERNS = {
    "sequences": r"(?:compiled batch size|max[_-](?:num[_-]seqs|batch[_-]size|running[_-]requests))[\s=:]+(\d+)",
    "chunk": r"(?:max[_-]num[_-](?:batched[_-])?tokens|chunked[_-]prefill[_-]size)[\s=:]+(\d+)",
    "percent": r"actual gpu utilization[\s=:]+([\d.]+)\s*%",
    "utilization": r"(?:gpu[_-]mem(?:ory[_-]utilization)?|mem[_-]fraction[_-]static)[\s=:]+(0?\.\d+)",
    "length": r"max(?:imum)?[_\s-](?:seq(?:uence)?(?:[_\s-]len(?:gth)?)?|model[_-]len)[\s=:]+(\d+)",
    "osl_most": r"(?:output cap|max[_ -](?:new|output)[_ -]tokens)[\s=:]+(\d+)",
    "requests": r"(?:n_requests|num_prompts)[\s=:]+(\d+)|(?<![\w.])(\d+) (?:requests|prompts)\b",
    "draft": r"\bmtp n[\s=:]*(\d+)",
    "lora_rank": r"max[_-]lora[_-]rank[\s=:]+(\d+)",
}
_LORA_ON = r"\b(?:turns? lora on|enable[_-]lora(?:[\s=:]+true)?)\b"
_HOST_SAMPLING = r"\b(?:cpu|host)[ _-]sampling\b|\bon[ _-]device[ _-]sampling[\s=:]+(?:false|off)\b"
LORA_RANK = 16.0
"""vLLM's `max_lora_rank` where nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a row says of its engine's settings; None where it says nothing."""

    sequences: float | None = None
    chunk_tokens: float | None = None
    utilization: float | None = None
    requests: float | None = None
    length_tokens: float | None = None
    osl_cv: float = 0.0
    osl_most: float | None = None
    draft_tokens: int = 0
    eager: bool = False
    host_sampling: bool = False
    """Tokens are sampled on the host, not on the device."""
    lora_rank: float | None = None
    """Of the slot that adapters take; None where they are off."""
    rented: bool = False


def settings_of(row: Row) -> Settings:
    """The settings in a row's notes and columns.

    >>> settings_of(Row(number=1, cells={"note": "turns LoRA on"})).lora_rank
    16.0
    >>> said = settings_of(Row(number=1, cells={"note": "g5.2xlarge, max_num_seqs=439 gpu_mem=0.8870 eager=true"}))
    >>> said.sequences, said.utilization, said.eager, said.rented, said.chunk_tokens
    (439.0, 0.887, True, True, None)
    >>> settings_of(Row(number=1, cells={"note": "variant std-cpu-sampling"})).host_sampling
    True
    """
    note = row.note.lower()
    found = {name: _first(pattern, note) for name, pattern in _PATTERNS.items()}
    percent = found["percent"]
    return Settings(
        sequences=found["sequences"],
        chunk_tokens=found["chunk"],
        utilization=percent / 100.0 if percent else found["utilization"],
        requests=found["requests"],
        length_tokens=found["length"],
        osl_cv=osl_cv_of(note),
        osl_most=found["osl_most"],
        draft_tokens=int(found["draft"] or 0),
        lora_rank=found["lora_rank"] or (LORA_RANK if re.search(_LORA_ON, note) else None),
        host_sampling=bool(re.search(_HOST_SAMPLING, note)),
        rented=bool(_RENTED.search(note)),
        eager=row.yes("enforce_eager") or bool(re.search(r"\beager[\s=:]+true", note)),
    )


def _first(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(next(group for group in found.groups() if group is not None)) if found else None


@cache
def _varied() -> tuple[tuple[str, float], ...]:
    text = resources.files("chipwise.audit").joinpath("data", "varied_lengths.csv").read_text(encoding="utf-8")
    return tuple((row["words"], float(row["osl_cv"])) for row in csv.DictReader(text.splitlines()))


def osl_cv_of(note: str) -> float:
    """How far answers vary (standard deviation over mean) in what a row says it ran; 0: fixed lengths.

    >>> osl_cv_of("ShareGPT, 1000 prompts"), osl_cv_of("random 1024/128")
    (0.77, 0.0)
    """
    return next((cv for words, cv in _varied() if words in note.lower()), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an engine runs with on a device: as the row says, else as the engine version defaults."""

    utilization: float
    sequences: float
    chunk_tokens: float
    whole_prompts: bool
    """Prompts are not cut into chunks."""
    graph_batch: float = 512.0
    """Largest batch captured as a graph."""
    compiled_sequences: float = 0.0
    """The batch that a compiled decode graph computes, where it is stated."""
    compiled_tokens: float = 0.0
    """The length that graphs without buckets compute, where it is stated."""
    buckets: bool = True
    """Graphs come in several lengths."""


def limits_of(engine: Engine, device: DeviceFacts, said: Settings) -> Limits:
    """The limits in force: what `said` states beats the defaults of the engine's version on the device."""
    default = _defaults(engine, device)
    return Limits(
        utilization=said.utilization or default.utilization,
        sequences=said.sequences or default.sequences,
        chunk_tokens=said.chunk_tokens or default.chunk_tokens,
        whole_prompts=default.whole_prompts and said.chunk_tokens is None,
        graph_batch=default.graph_batch,
        compiled_sequences=(said.sequences or 0.0) if _compiled(engine) else 0.0,
        compiled_tokens=(said.length_tokens or 0.0) if not default.buckets else 0.0,
        buckets=default.buckets,
    )


def _compiled(engine: Engine) -> bool:
    """Whether the engine runs graphs of a fixed batch: Neuron's do."""
    return engine.profile is not None and engine.profile.vendors == {"aws"}


@cache
def _defaults(engine: Engine, device: DeviceFacts) -> Limits:
    profile = engine.profile
    if profile is None:
        return _defaults(generic_engine(), device)
    found = engine_defaults(profile, device)
    chunk = None if _compiled(engine) else found.max_num_batched_tokens  # Neuron graphs take a whole batch of prompts
    return Limits(
        utilization=found.utilization or 1.0,
        sequences=float(found.max_num_seqs or UNLIMITED_SEQUENCES),
        chunk_tokens=float(chunk or UNLIMITED_TOKENS),
        whole_prompts=found.chunked_prefill is False,
        graph_batch=float(found.graph_max_batch or DEFAULT_GRAPH_BATCH),
        buckets=found.length_buckets is not False,
    )


@cache
def generic_engine() -> Engine:
    """The engine whose rules stand in where no source was read for one."""
    from chipwise.audit.names import engine_named

    return engine_named(GENERIC_ENGINE, "")


def kv_format_of(words: str, model: ModelSpec, engine: str) -> str:
    """The cache format: as said; else what the checkpoint states, or the engine makes of such weights."""
    said = cache_format(words)
    if said is not None:
        return said
    held = model.quantisation
    if held is None:
        return default_kv_format(engine, weight_family="")
    stored = cache_format(held.kv_format) if held.kv_format else None
    return default_kv_format(engine, weight_family=format_facts(held.weight_format).family, stored=stored)


def device_facts(chip: str, memory_bytes: float | None, *, tp: float, pp: float, usage: Usage) -> DeviceFacts:
    """What an engine looks at to choose its defaults."""
    memory = None if memory_bytes is None else int(memory_bytes)
    return DeviceFacts(chip=chip, memory_bytes=memory, tp=int(tp), pp=int(pp), usage=usage)
