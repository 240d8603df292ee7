"""The application: an address a verb, health, metrics, the description of it all. A server runs `create_app`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from chipwise.errors import ChipwiseError, InputError
from chipwise.interfaces.api import openapi
from chipwise.interfaces.api.desk import Answered, BusyError, Desk, LeftError, SlowError, etag
from chipwise.interfaces.api.forms import EVENTS, JSON, ZIP, followed, form_of, zipped
from chipwise.interfaces.api.guard import BodyTooLongError, BodyTooSlowError, Guard
from chipwise.interfaces.api.meter import Figures, Meter
from chipwise.interfaces.api.problems import busy, limited, of_error, problem, slow
from chipwise.interfaces.api.settings import Settings, checked
from chipwise.interfaces.verbs import PUBLISHED

BASE = "/api/v1"
MOST_NESTED = 40
_LEFT = 499
"""What is logged for one who left; nobody reads the response."""


def create_app(settings: Settings) -> FastAPI:
    """The application for these settings.

    Raises:
        InputError: they may not be served.
    """
    app = FastAPI(
        title="chipwise",
        version=version("chipwise"),
        description="Which AWS accelerators for this model and this workload, and why not the others.",
        openapi_url=f"{BASE}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    desk = Desk(checked(settings))
    app.state.desk = desk
    app.state.settings = settings
    for verb in PUBLISHED:
        _publish(app, desk, verb)
    figures = Figures(desk)
    _serve_itself(app, figures)
    _explain_failures(app)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Meter, figures=figures)
    _describe(app)
    return app


def _publish(app: FastAPI, desk: Desk, verb: str) -> None:
    name = verb.replace("/", "_")

    async def posted(request: Request) -> Response:
        return await _answered(request, desk, verb, await _body(request))

    async def got(request: Request) -> Response:
        body = query_body(request.query_params.multi_items())
        form, tag = form_of(request, verb), etag(verb, body)
        if form == JSON and tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"etag": tag, "vary": "accept"})
        response = await _answered(request, desk, verb, body)
        if form == JSON:
            response.headers["etag"] = tag
            response.headers["cache-control"] = "private, no-cache"
        return response

    said = openapi.operation(verb)
    sent = {**said, "operationId": f"{name}_post", "requestBody": openapi.body_of(verb)}
    asked = {**said, "operationId": f"{name}_get", "parameters": openapi.parameters_of(verb)}
    app.add_api_route(f"{BASE}/{verb}", posted, methods=["POST"], openapi_extra=sent, name=f"{name}_post")
    app.add_api_route(f"{BASE}/{verb}", got, methods=["GET"], openapi_extra=asked, name=f"{name}_get")


async def _answered(request: Request, desk: Desk, verb: str, body: Mapping[str, Any]) -> Response:
    form = form_of(request, verb)
    if form == EVENTS:
        return followed(desk, verb, body)
    answered = await desk.answer(verb, body, request.is_disconnected)
    headers = {**_exit(answered), "vary": "accept"}
    if form == ZIP:
        return Response(zipped(answered.reply.content), media_type=ZIP, headers=headers)
    return Response(answered.body, media_type=JSON, headers=headers)


def _exit(answered: Answered) -> dict[str, str]:
    """The exit status of the command: 1 where the answer is no."""
    return {"chipwise-exit-status": str(answered.reply.status)}


async def _body(request: Request) -> dict[str, Any]:
    raw = await request.body()
    try:
        body = json.loads(raw or b"{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError("the body is no JSON", why=str(error)[:200], fix="send one JSON object") from error
    if not isinstance(body, dict):
        raise InputError("the body is no object", why=f"it is {type(body).__name__}", fix='send {"model": "…"}')
    if _depth(body) > MOST_NESTED:
        raise InputError("the body is nested too deep", why=f"{MOST_NESTED} levels are read", fix="send less")
    return body


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _depth(value: Any) -> int:
    """Levels of objects and lists, without recursion.

    >>> _depth({"a": [1]})
    2
    """
    level, here = 0, [value]
    while here := [one for one in here if isinstance(one, dict | list)]:
        level += 1
        here = [inner for one in here for inner in (one.values() if isinstance(one, dict) else one)]
    return level


def query_body(items: list[tuple[str, str]]) -> dict[str, Any]:
    """A query as a body: a name given again makes a list, true and false are switches.

    >>> query_body([("region", "eu"), ("region", "us-east-1"), ("users", "8"), ("eager", "true")])
    {'region': ['eu', 'us-east-1'], 'users': '8', 'eager': True}
    """
    body: dict[str, Any] = {}
    for name, text in items:
        value: Any = {"true": True, "false": False}.get(text, text)
        if name in body:
            held = body[name] if isinstance(body[name], list) else [body[name]]
            value = [*held, value]
        body[name] = value
    return body


def _serve_itself(app: FastAPI, figures: Figures) -> None:
    """Health and metrics."""

    async def health() -> dict[str, str]:
        return {"status": "ok", "version": version("chipwise")}

    async def metrics() -> Response:
        return Response(generate_latest(figures.registry), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/healthz", health, methods=["GET"], include_in_schema=False)
    app.add_api_route("/metrics", metrics, methods=["GET"], include_in_schema=False)


def _explain_failures(app: FastAPI) -> None:
    """Every failure as a problem that says what, why and fix; a bug keeps its traceback and becomes a plain 500."""
    handlers: dict[type[Exception], Callable[[Request, Exception], Response]] = {
        ChipwiseError: lambda _, error: of_error(cast("ChipwiseError", error)),
        HTTPException: lambda request, error: _unrouted(request, cast("HTTPException", error)),
        BodyTooLongError: lambda *_: limited(413, "the body is too long", why="its size is bounded", fix="send less"),
        BodyTooSlowError: lambda *_: limited(
            408, "the body is too slow", why="its time is bounded", fix="send it at once"
        ),
        BusyError: lambda *_: busy(),
        SlowError: lambda *_: slow(),
        LeftError: lambda *_: Response(status_code=_LEFT),
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _unrouted(request: Request, error: HTTPException) -> Response:
    """No such address, or not by this method: then with the methods that the address knows."""
    what, fix = str(error.detail), f"see {BASE}/openapi.json"
    headers = dict(error.headers or {})
    path = request.url.path
    known = {name for route in request.app.routes if route.path == path for name in route.methods or ()}
    if known:
        headers["allow"] = ", ".join(sorted(known))
    return problem(error.status_code, "address", what, why="no such address or method", fix=fix, headers=headers)


def _describe(app: FastAPI) -> None:
    """The published schemas go into the description once it is asked for."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            body = made()
            body["components"] = openapi.components()
            app.openapi_schema = body
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign] # FastAPI's own way to extend the description
