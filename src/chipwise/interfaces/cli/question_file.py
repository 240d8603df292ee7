"""A question written down: YAML (or JSON) whose keys are the flags without their dashes.

`model:` is one MODEL, a list of them, or a mapping of several to the flags that each has of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chipwise.errors import InputError, UnknownNameError
from chipwise.interfaces.cli.flags import Flag, given


def read_question(path: str, flags: Sequence[Flag]) -> dict[str, Any]:
    """Field path to value, of the flags that the file at `path` holds; those of one model alone in `per_model`.

    Raises:
        InputError: the file cannot be read, is not a mapping, names an unknown flag or holds a wrong value.
    """
    return fields_of(_mapping(path), flags)


def fields_of(written: Mapping[Any, Any], flags: Sequence[Flag]) -> dict[str, Any]:
    """Field path to value, of flags written as a mapping: names without dashes, values as texts or plain values.

    Raises:
        InputError: an unknown flag, or a wrong value.

    >>> from chipwise.interfaces.cli.shared_flags import SPLIT
    >>> fields_of({"tp": "8"}, SPLIT)
    {'split.tp': 8}
    """
    models = written.get("model")
    if not isinstance(models, dict | list):
        return _fields(written, flags)
    found = _fields({**written, "model": ",".join(str(name) for name in models)}, flags)
    settings = models.items() if isinstance(models, dict) else ()
    own = {str(name): _fields(_own(name, said), flags) for name, said in settings if said}
    return found | ({"per_model": own} if own else {})


def _own(name: str, settings: Any) -> dict[Any, Any]:
    if not isinstance(settings, dict):
        raise InputError(
            f"model {name}: {settings!r}", why="it is no mapping", fix=f"write its flags, such as {name}: {{users: 8}}"
        )
    return settings


def _fields(written: Mapping[Any, Any], flags: Sequence[Flag]) -> dict[str, Any]:
    by_key = {flag.key: flag for flag in flags}
    values = {}
    for name, value in written.items():
        key = str(name).lstrip("-").replace("-", "_")
        if key not in by_key:
            raise UnknownNameError("flag", str(name), [flag.name.lstrip("-") for flag in flags])
        values[key] = _value(by_key[key], value)
    return given(flags, values)


def _mapping(path: str) -> dict[Any, Any]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read", why=reason, fix="give a YAML file of flags") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a question", why="it is no mapping", fix="write lines such as users: 64")
    return content


def _value(flag: Flag, value: Any) -> Any:
    if flag.parse is None:
        if not isinstance(value, bool):
            raise InputError(f"{flag.name}: {value!r}", why="it is a switch", fix="write true or false")
        return value or None
    if isinstance(value, dict):
        value = [f"{name}={amount}" for name, amount in value.items()]
    texts = [str(one) for one in (value if isinstance(value, list) else [value])]
    if flag.many is None and len(texts) != 1:
        raise InputError(f"{flag.name}: {len(texts)} values", why="it takes one", fix="keep one of them")
    read = tuple(flag.read(text) for text in texts)
    return read if flag.many is not None else read[0]
