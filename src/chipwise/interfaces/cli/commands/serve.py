"""`chipwise serve`: the web page and the REST interface on one port, loopback unless said otherwise."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import logging
import os
from typing import Any

import click

from chipwise.errors import KnowledgeError
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.shared_flags import COUNT

COLLECT_AFTER = 50_000
"""Objects made and kept before the garbage collector looks at them."""
TOKEN = "CHIPWISE_TOKEN"  # noqa: S105 # the name of the variable, not a secret

_WHERE = (
    Flag(name="--host", fields=("host",), parse=str, metavar="ADDRESS", help="Where to listen; loopback if unset."),
    Flag(name="--port", fields=("port",), parse=COUNT, metavar="N", help="Which port."),
    Flag(
        name="--name",
        fields=("hosts",),
        parse=str,
        many=tuple,
        metavar="HOST",
        help="Another host name it answers to; repeatable.",
    ),
)
_LIMITS = (
    Flag(name="--allow-files", fields=("leave.files",), help="Let questions name files of this machine."),
    Flag(name="--allow-hub", fields=("leave.hub",), help="Let questions name models of the Hugging Face hub."),
    Flag(
        name="--rate-limit",
        fields=("rate_per_minute",),
        parse=COUNT,
        metavar="N",
        help="Requests a minute from one address.",
    ),
    Flag(name="--at-once", fields=("at_once",), parse=COUNT, metavar="N", help="Questions computed at once."),
)


def run(fields: dict[str, Any], output: Output) -> int:
    """Serve until interrupted."""
    del output
    uvicorn = _uvicorn()
    from chipwise.interfaces.api.settings import Settings
    from chipwise.interfaces.web.pages import create_site

    settings = dataclasses.replace(_settings(Settings, fields), token=os.environ.get(TOKEN) or None)
    app = create_site(settings)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    _settle()
    click.echo(f"chipwise answers on http://{settings.host}:{settings.port}", err=True)
    uvicorn.run(app, host=settings.host, port=settings.port, access_log=False, log_level="warning", server_header=False)
    return 0


def _settle() -> None:
    """Read what every answer rests on, and look for garbage among what comes later, more rarely.

    An answer makes tens of thousands of objects that all go with it. benchmarks/serve_load.py: a tenth more plans a
    second, and memory stays even.
    """
    from chipwise.catalog import load_catalog

    load_catalog()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def _uvicorn() -> Any:
    try:
        importlib.import_module("fastapi")
        return importlib.import_module("uvicorn")
    except ModuleNotFoundError as error:
        fix = "install chipwise[web]"
        raise KnowledgeError("serving needs FastAPI and uvicorn", why="they are not installed", fix=fix) from error


def _settings(kind: type[Any], fields: dict[str, Any]) -> Any:
    from chipwise.interfaces.cli.flags import build

    return build(kind, {name: value for name, value in fields.items() if name != "models"})


command = make(
    "serve",
    run,
    argument=None,
    groups={"Where": _WHERE, "What it lets in": _LIMITS},
    about="Serve the web page and the REST interface on one port. Beyond the loopback it asks for the token that "
    f"{TOKEN} holds.",
)
