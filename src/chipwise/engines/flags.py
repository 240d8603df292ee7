"""An engine's own names for the settings of a plan, and the command line they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from chipwise.engines.profile import DATA, EngineProfile, load_engine
from chipwise.engines.versions import at_least, parse_version
from chipwise.errors import InputError
from chipwise.facts import read_rows

COLUMNS = ("engine", "since", "setting", "flag", "form", "note", "source", "where")
Form = Literal["value", "switch", "config", "positional", "env"]
"""value: `--flag VALUE`; switch: `--flag` alone; config: a dotted key of the engine's file; env: a
variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """How one engine spells one setting."""

    setting: str
    flag: str
    form: Form
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """Every setting an engine knows, in the order a command line takes them."""

    engine: str
    launcher: str
    """What starts it: `vllm serve`, `python -m sglang.launch_server`, …"""
    by_setting: Mapping[str, Flag]


def engine_flags(profile: EngineProfile) -> EngineFlags:
    """The engine's own names for the settings of a plan, those it has.

    Settings: model, tp, pp, ep, dp, cp, quantization, dtype, kv, context, max_num_seqs, utilization,
    chunk_tokens, eager, draft, lora, port; for trainers also shard, micro_batch, global_batch, seq_len,
    recompute.

    >>> engine_flags_of("vllm").by_setting["tp"].flag
    '--tensor-parallel-size'
    """
    found: dict[str, Flag] = {}
    version = parse_version(profile.version) or (0,)
    for row in _rows():
        if row["engine"] == profile.name and at_least(version, parse_version(row["since"]) or (0,)):
            found[row["setting"]] = Flag(
                setting=row["setting"],
                flag=row["flag"],
                form=cast("Form", row["form"]),
                note=row["note"] or None,
            )
    launcher = found.pop("launcher", None)
    return EngineFlags(engine=profile.name, launcher=launcher.flag if launcher else profile.name, by_setting=found)


def engine_flags_of(engine: str, version: str | None = None) -> EngineFlags:
    """`engine_flags` of an engine by name.

    Raises:
        UnknownNameError: no engine of that name.
    """
    return engine_flags(load_engine(engine, version))


def command_arguments(flags: EngineFlags, settings: Mapping[str, str | int | float | bool]) -> list[str]:
    """The arguments for `settings`, in the table's order; a switch appears when its value is true.

    Settings of form `config` and `env` make no argument: they belong to the engine's file or environment.

    Raises:
        InputError: a setting the engine has no name for.

    >>> command_arguments(engine_flags_of("vllm"), {"tp": 8, "ep": True, "context": 8192})
    ['--tensor-parallel-size', '8', '--enable-expert-parallel', '--max-model-len', '8192']
    """
    unknown = [setting for setting in settings if setting not in flags.by_setting]
    if unknown:
        raise InputError(
            f"{flags.engine} has no setting {unknown[0]!r}",
            why="the engine's flag table does not name it",
            fix="choose one of " + ", ".join(flags.by_setting),
        )
    arguments: list[str] = []
    for setting, flag in flags.by_setting.items():
        value = settings.get(setting)
        if value is None or value is False:
            continue
        if flag.form == "switch":
            arguments.append(flag.flag)
        elif flag.form == "value":
            arguments += [flag.flag, str(value)]
        elif flag.form == "positional":
            arguments.append(str(value))
    return arguments


@cache
def _rows() -> tuple[Mapping[str, str], ...]:
    return tuple(dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "flags.csv", COLUMNS))
