"""Flags are the fields of a request: a table of `Flag` becomes click options, and their values the request.

A flag that is not given is not passed on, so that every default lives in the request's dataclass or below it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from chipwise.errors import InputError
from chipwise.interfaces.cli.completion import Names, completing

Parser = Callable[[str], Any]
Request = TypeVar("Request")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag: `fields` are the paths it sets (`users`, `split.tp`); without `parse` it is a switch.

    `many` makes it repeatable, its values collected by that function; commas part values where `listed`.
    A shell completes it with `names`, else with the choices that `metavar` shows, else with files.
    """

    name: str
    fields: tuple[str, ...]
    help: str
    parse: Parser | None = None
    metavar: str = ""
    many: Callable[[Iterable[Any]], Any] | None = None
    listed: bool = False
    names: Names | None = None
    short: str = ""
    """A second name of one letter: `-o`."""

    @property
    def key(self) -> str:
        """The name of click's parameter: the flag without its dashes.

        >>> Flag(name="--ttft-p99", fields=("ttft_p99_s",), help="").key
        'ttft_p99'
        """
        return self.name.lstrip("-").replace("-", "_")

    def read(self, text: str) -> Any:
        """The value of one text; an error names the flag."""
        if self.parse is None:
            return text
        try:
            if self.listed:
                return tuple(self.parse(part.strip()) for part in text.split(",") if part.strip())
            return self.parse(text)
        except InputError as error:
            raise InputError(f"{self.name}: {error.what}", why=error.why, fix=error.fix) from error

    def option(self) -> click.Option:
        """This flag as click's option."""
        spelled = [*filter(None, [self.short]), self.name, self.key]
        if self.parse is None:
            return click.Option(spelled, is_flag=True, default=None, help=self.help)
        return click.Option(
            spelled,
            type=_Text(self),
            metavar=self.metavar or "TEXT",
            multiple=self.many is not None,
            help=self.help,
            shell_complete=completing(self.names or self._choices, listed=self.listed, files="FILE" in self.metavar),
        )

    @property
    def _choices(self) -> Names | None:
        """The choices of a metavar such as `any|nvidia|neuron`."""
        shown = self.metavar.split("|")
        return (lambda: shown) if len(shown) > 1 and self.metavar.islower() else None


class _Text(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2, we run on 8.1 too
    """Click's view of a flag's parser."""

    def __init__(self, flag: Flag) -> None:
        self.flag = flag
        self.name = flag.metavar or "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value; click's `param` and `ctx` are not needed."""
        del param, ctx
        return self.flag.read(value) if isinstance(value, str) else value


def given(flags: Sequence[Flag], values: Mapping[str, Any]) -> dict[str, Any]:
    """Field path to value, of the flags that were given.

    >>> given([Flag(name="--tp", fields=("split.tp",), help="", parse=int)], {"tp": 8})
    {'split.tp': 8}
    """
    found: dict[str, Any] = {}
    for flag in flags:
        value = values.get(flag.key)
        if value is None or value == ():
            continue
        if flag.many is not None:
            parts = [part for one in value for part in one] if flag.listed else value
            value = flag.many(parts)
        found.update(dict.fromkeys(flag.fields, value))
    return found


def build(request: type[Request], fields: Mapping[str, Any]) -> Request:
    """The request whose fields, nested by dots, hold these values; all others keep the dataclass's default.

    >>> from chipwise.advisor.request import SizeRequest
    >>> build(SizeRequest, {"model": "m", "split.tp": 4}).split.tp
    4
    """
    flat = {path: value for path, value in fields.items() if "." not in path}
    nested = {path.partition(".")[0] for path in fields} - set(flat)
    for name in nested:
        inner = {path.partition(".")[2]: value for path, value in fields.items() if path.startswith(f"{name}.")}
        flat[name] = build(_nested_type(request, name), inner)
    return request(**flat)


def _nested_type(request: type[Any], name: str) -> type[Any]:
    """The dataclass of a nested field: it is its own default factory."""
    (factory,) = (field.default_factory for field in dataclasses.fields(request) if field.name == name)
    return factory  # type: ignore[return-value] # a dataclass is its own factory here; a test walks all
