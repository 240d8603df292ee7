"""The pages and their addresses. The question is always in the address."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.middleware.gzip import GZipMiddleware

from chipwise.errors import ChipwiseError
from chipwise.interfaces.api.app import create_app, query_body
from chipwise.interfaces.api.forms import ZIP, zipped
from chipwise.interfaces.cli.commands.plot import KINDS, drawing, has
from chipwise.interfaces.lookups import list_models
from chipwise.interfaces.web.changes import changed, offered
from chipwise.interfaces.web.documents import document_of
from chipwise.interfaces.web.exports import EXPORTS
from chipwise.interfaces.web.form import compared, groups, labelled
from chipwise.interfaces.web.walk import flow_drawn, next_step
from chipwise.report import html
from chipwise.report.plan import figures_of, headline

if TYPE_CHECKING:
    from chipwise.interfaces.api.desk import Desk
    from chipwise.interfaces.api.settings import Settings

STATIC = {"page.js": "text/javascript", "page.css": "text/css", "app.css": "text/css", "icon.svg": "image/svg+xml"}
TRIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Chat with Llama 3.3 70B, 64 people at once", {"model": "llama-3.3-70b", "for": "chat", "users": 64}),
    (
        "Answers from documents (RAG), Llama 3.1 8B, 20 at once",
        {"model": "llama-3.1-8b", "for": "rag", "users": 20},
    ),
    ("Summarise in batches, the cheapest way", {"model": "llama-3.1-8b", "for": "batch", "goal": "cost"}),
    ("Fine-tune Llama 3.1 8B with LoRA within three days", {"model": "llama-3.1-8b", "for": "lora", "deadline": "3d"}),
)
"""Questions that somebody who comes for the first time can ask with one click."""
LEAST_PACKED = 2000
"""Bytes from which a response is compressed for those who take it so."""
MOST_NAMES = 12
"""Of the models whose name holds what was typed, how many are offered."""
Body = Mapping[str, Any]
Page = Callable[[Request], Awaitable[Response]]


def create_site(settings: Settings) -> FastAPI:
    """The application with its pages: what `chipwise serve` runs.

    Raises:
        InputError: the settings may not be served.
    """
    app = create_app(settings)
    app.add_middleware(GZipMiddleware, minimum_size=LEAST_PACKED, compresslevel=5)
    _add_pages(app, app.state.desk)
    return app


def _add_pages(app: FastAPI, desk: Desk) -> None:
    """Every page at its address; none stands in the OpenAPI description."""
    made = _Pages(desk)
    pages: dict[str, Page] = {
        "/": made.start,
        "/answer": made.answer,
        "/curves": made.curves,
        "/why": made.why,
        "/versus": made.versus,
        "/walk": made.walk,
        "/catalog": made.catalog,
        "/catalog/{name}": made.thing,
        "/guide": made.guide,
        "/guide/{section}": made.section,
        "/errata": made.errata,
        "/explain/{term}": made.explain,
        "/accuracy": made.accuracy,
        "/export.zip": made.manifests,
        "/export.{form}": made.export,
        "/plot/{kind}.svg": made.plot,
        "/static/{name}": made.static,
    }
    for address, page in pages.items():
        app.add_api_route(address, page, methods=["GET"], include_in_schema=False)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("chipwise.interfaces.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update({"query": query, "offered": offered, "names_like": names_like, **_SHOWN})
    made.filters["labelled"] = labelled
    return made


def query(body: Body, **changes: Any) -> str:
    """A body as the query of an address, with some of it changed; None takes a name out.

    >>> query({"model": "llama-3.1-8b", "region": ["eu", "us"]}, users=8)
    'model=llama-3.1-8b&region=eu&region=us&users=8'
    """
    said = {name: value for name, value in {**body, **changes}.items() if value is not None}
    return urlencode({name: "true" if value is True else value for name, value in said.items()}, doseq=True)


def names_like(text: str) -> list[str]:
    """Built-in models whose name holds the text, for somebody who has not typed all of it.

    >>> names_like("3.3-70")
    ['llama-3.3-70b']
    """
    said = text.strip().lower()
    return [one["name"] for one in list_models()["models"] if said and said in one["name"]][:MOST_NAMES]


def question_of(request: Request) -> dict[str, Any]:
    """The question of an address; empty inputs of the form say nothing."""
    said = query_body([(name, value) for name, value in request.query_params.multi_items() if value.strip()])
    return {name: value for name, value in said.items() if value is not False}


class _Pages:
    """What all pages need: where questions are answered, and the templates."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._templates = _environment()

    def _page(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(name).render(**values), status_code=status)

    async def _asked(self, request: Request, verb: str, body: Body) -> Any:
        return (await self._desk.answer(verb, body, request.is_disconnected)).reply

    async def _plan(self, request: Request, body: Body) -> dict[str, Any]:
        """What the templates show of an answer: the plan, or the error that stands in its place."""
        plan, problem = None, None
        if {"model", "config"} & body.keys():
            try:
                plan = (await self._asked(request, "plan", body)).content
            except ChipwiseError as error:
                problem = error
        workload = plan["workload"] if plan else None
        asked = bool(plan or problem)
        return {"plan": plan, "error": problem, "asked": asked, "tries": TRIES, "groups": list(groups(body, workload))}

    async def start(self, request: Request) -> Response:
        """The form, and under it the answer."""
        body = question_of(request)
        found = await self._plan(request, body)
        names = [one["name"] for one in list_models()["models"]]
        return self._page("start.html", body=body, models=names, **found)

    async def answer(self, request: Request) -> Response:
        """The answer alone, for a page that asks again."""
        body = question_of(request)
        return self._page("answer.html", body=body, **await self._plan(request, body))

    async def curves(self, request: Request) -> Response:
        """The drawings of one option."""
        body = question_of(request)
        content = (await self._asked(request, "plot", {"kind": "plan", **body})).content
        drawn = {kind: _marked(drawing(kind, content)) for kind in KINDS if has(content, kind)}
        return self._page("curves.html", content=content, drawn=drawn)

    async def plot(self, request: Request) -> Response:
        """One drawing by itself."""
        content = (await self._asked(request, "plot", {"kind": "plan", **question_of(request)})).content
        return Response(drawing(request.path_params["kind"], content), media_type="image/svg+xml")

    async def why(self, request: Request) -> Response:
        """Where one size stands, what would make it do, and each such change as a question to take."""
        body = question_of(request)
        try:
            content = (await self._asked(request, "why", body)).content
        except ChipwiseError as error:
            return self._page("document.html", status=404, title="why", content="", flow="", error=error)
        question = {name: value for name, value in body.items() if name != "instance"}
        takes = [(one["change"], changed(question, content, one)) for one in content["would_change_it"]]
        drawn = _marked(html.html(document_of("why", content)))
        return self._page("why.html", body=question, content=content, drawn=drawn, takes=takes)

    async def versus(self, request: Request) -> Response:
        """Two questions side by side: `a` and `b` are the queries of each; `side` says which one the form changes."""
        given = request.query_params
        bodies = {name: query_body(_parsed(given.get(name, ""))) for name in ("a", "b")}
        side = given.get("side", "")
        if side in bodies:
            said = {name: value for name, value in question_of(request).items() if name not in {"a", "b", "side"}}
            shown = {"model", *(field.name for field in compared({}, None))}
            kept = {name: value for name, value in bodies[side].items() if name not in shown}
            if "model" in said:
                kept.pop("config", None)
            bodies[side] = {**kept, **said}
            address = query({name: query(body) for name, body in bodies.items()})
            return RedirectResponse(f"/versus?{address}", status_code=303)
        sides = []
        for name, body in bodies.items():
            found = await self._plan(request, body)
            workload = found["plan"]["workload"] if found["plan"] else None
            sides.append({"name": name.upper(), "body": body, "fields": list(compared(body, workload)), **found})
        return self._page("versus.html", sides=sides, rows=_firsts(sides))

    async def walk(self, request: Request) -> Response:
        """The guide's flows as questions, with the flow drawn and the way taken lit."""
        step = next_step(dict(request.query_params.items()))
        return self._page("walk.html", step=step, flow=_marked(step.flow))

    async def catalog(self, request: Request) -> Response:
        """Every size and chip."""
        content = (await self._asked(request, "catalog/list", {})).content
        return self._page("catalog.html", content=content)

    async def thing(self, request: Request) -> Response:
        """Every fact of one size or chip with its source."""
        return await self._document(request, "catalog/show", {"name": request.path_params["name"]})

    async def guide(self, request: Request) -> Response:
        """Every section of the guide."""
        return self._page("guide.html", **(await self._asked(request, "guide/show", {})).content)

    async def section(self, request: Request) -> Response:
        """A section of the guide, its flow drawn."""
        section = request.path_params["section"]
        return await self._document(request, "guide/show", {"section": section}, flow=flow_drawn(section))

    async def errata(self, request: Request) -> Response:
        """Where the guide is wrong."""
        return await self._document(request, "guide/errata", {})

    async def explain(self, request: Request) -> Response:
        """What a term means, its grades and how to improve it."""
        return await self._document(request, "explain", {"term": request.path_params["term"]})

    async def accuracy(self, request: Request) -> Response:
        """How far off the predictions are, as `make docs` last wrote it."""
        del request
        return self._page("accuracy.html", page=_accuracy())

    async def _document(self, request: Request, verb: str, body: Body, *, flow: str = "") -> Response:
        try:
            reply = await self._asked(request, verb, body)
        except ChipwiseError as error:
            return self._page("document.html", status=404, title=verb, content="", flow="", error=error)
        content = _marked(html.html(document_of(reply.page, reply.content)))
        return self._page("document.html", title=verb, content=content, flow=_marked(flow), error=None)

    async def export(self, request: Request) -> Response:
        """The answer as a file to keep."""
        form, body = request.path_params["form"], question_of(request)
        if form not in EXPORTS:
            return PlainTextResponse(f"no form {form}: one of {', '.join(EXPORTS)}, zip", status_code=404)
        content = (await self._asked(request, "plan", body)).content
        kind, write = EXPORTS[form]
        return Response(write(content), media_type=kind, headers=_named(f"chipwise-plan.{form}"))

    async def manifests(self, request: Request) -> Response:
        """The manifests of an option of the answer, as files in a zip."""
        body = question_of(request)
        fields: dict[str, Any] = {name: body.pop(name) for name in ("option", "target") if name in body}
        plan = (await self._asked(request, "plan", body)).content
        content = (await self._asked(request, "deploy", {**fields, "plan": plan})).content
        return Response(zipped(content), media_type=ZIP, headers=_named("chipwise-manifests.zip"))

    async def static(self, request: Request) -> Response:
        """Styles and the one script, as they lie in the package."""
        name = request.path_params["name"]
        if name not in STATIC:
            return PlainTextResponse("no such file", status_code=404)
        text = html.stylesheet() if name == "page.css" else (files(__package__) / "static" / name).read_text("utf-8")
        return Response(text, media_type=STATIC[name], headers={"cache-control": "public, max-age=3600"})


def _marked(drawn: str) -> Markup:
    """Our own HTML or SVG, in which every text is escaped already."""
    return Markup(drawn)  # noqa: S704 # made by report.html and report.drawings, whose tests feed them hostile texts


def _named(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


@cache
def _accuracy() -> dict[str, Any]:
    read: dict[str, Any] = json.loads((files(__package__) / "data" / "accuracy.json").read_text("utf-8"))
    return read


def _firsts(sides: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """The first option of each side, figure by figure; nothing where a side has none."""
    if not all(side["plan"] and side["plan"]["options"] for side in sides):
        return []
    firsts = [figures_of(side["plan"]["options"][0]) for side in sides]
    return [
        (label, [one.get(label, "") for one in firsts]) for label in dict.fromkeys(k for one in firsts for k in one)
    ]


def _parsed(text: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return [(name, value) for name, value in parse_qsl(text) if value.strip()]


def _blocks(*names: str) -> Callable[..., Markup]:
    """Parts of the plan's page, made when a template asks for them."""
    from importlib import import_module

    from chipwise.report.document import Document

    def made(*arguments: Any) -> Markup:
        module, name = names
        blocks = getattr(import_module(f"chipwise.report.{module}"), name)(*arguments)
        return _marked(html.html(Document(blocks=tuple(blocks))))

    return made


def _headline(option: Body) -> Markup:
    return _marked(html.inline(headline(option)))


_SHOWN: Mapping[str, Any] = {
    "headline": _headline,
    "summary": _blocks("plan", "summary_blocks"),
    "option_blocks": _blocks("option", "option_blocks"),
    "also_blocks": _blocks("others", "also_feasible"),
    "guide_blocks": _blocks("others", "guide"),
    "neuron_blocks": _blocks("others", "gpu_or_neuron"),
    "needed_blocks": _blocks("others", "gpu_needed"),
    "benchmark_blocks": _blocks("others", "benchmark"),
    "warning_blocks": _blocks("others", "warnings"),
}
