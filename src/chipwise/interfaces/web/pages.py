"""The pages and their addresses. The question is always in the address."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from chipwise.errors import ChipwiseError
from chipwise.interfaces.api.app import create_app, query_body
from chipwise.interfaces.cli.commands.plot import KINDS, drawing
from chipwise.interfaces.lookups import list_models
from chipwise.interfaces.web.form import groups
from chipwise.interfaces.web.walk import next_step
from chipwise.report import html

if TYPE_CHECKING:
    from chipwise.interfaces.api.desk import Desk
    from chipwise.interfaces.api.settings import Settings

STATIC = {"page.js": "text/javascript", "page.css": "text/css", "app.css": "text/css", "icon.svg": "image/svg+xml"}
Body = Mapping[str, Any]
Page = Callable[[Request], Awaitable[Response]]


def create_site(settings: Settings) -> FastAPI:
    """The application with its pages: what `chipwise serve` runs.

    Raises:
        InputError: the settings may not be served.
    """
    app = create_app(settings)
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
        "/guide/{section}": made.guide,
        "/errata": made.errata,
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
    made.globals.update({"query": query, **_SHOWN})
    return made


def query(body: Body, **changes: Any) -> str:
    """A body as the query of an address, with some of it changed; None takes a name out.

    >>> query({"model": "llama-3.1-8b", "region": ["eu", "us"]}, users=8)
    'model=llama-3.1-8b&region=eu&region=us&users=8'
    """
    said = {name: value for name, value in {**body, **changes}.items() if value is not None}
    return urlencode({name: "true" if value is True else value for name, value in said.items()}, doseq=True)


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
        return {"plan": plan, "error": problem, "groups": list(groups(body, plan["workload"] if plan else None))}

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
        drawn = {kind: _marked(drawing(kind, content)) for kind, (_, part) in KINDS.items() if content[part]}
        return self._page("curves.html", content=content, drawn=drawn)

    async def plot(self, request: Request) -> Response:
        """One drawing by itself."""
        content = (await self._asked(request, "plot", {"kind": "plan", **question_of(request)})).content
        return Response(drawing(request.path_params["kind"], content), media_type="image/svg+xml")

    async def why(self, request: Request) -> Response:
        """Where one size stands, and what would make it do."""
        return await self._document(request, "why", question_of(request), "start")

    async def versus(self, request: Request) -> Response:
        """Two questions side by side: `a` and `b` are the queries of each."""
        sides = []
        for name in ("a", "b"):
            body = query_body(_parsed(request.query_params.get(name, "")))
            sides.append({"name": name.upper(), "body": body, **await self._plan(request, body)})
        return self._page("versus.html", sides=sides)

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
        return await self._document(request, "catalog/show", {"name": request.path_params["name"]}, "catalog")

    async def guide(self, request: Request) -> Response:
        """A section of the guide."""
        section = request.path_params.get("section")
        return await self._document(request, "guide/show", {"section": section} if section else {}, "guide")

    async def errata(self, request: Request) -> Response:
        """Where the guide is wrong."""
        return await self._document(request, "guide/errata", {}, "guide")

    async def _document(self, request: Request, verb: str, body: Body, place: str) -> Response:
        try:
            reply = await self._asked(request, verb, body)
        except ChipwiseError as error:
            return self._page("document.html", status=404, place=place, title=verb, content="", error=error)
        content = _marked(html.html(document_of(reply.page, reply.content)))
        return self._page("document.html", place=place, title=verb, content=content, error=None)

    async def export(self, request: Request) -> Response:
        """The answer as a file to keep."""
        form, body = request.path_params["form"], question_of(request)
        content = (await self._asked(request, "plan", body)).content
        if form not in _EXPORTS:
            return PlainTextResponse(f"no form {form}: one of {', '.join(_EXPORTS)}", status_code=404)
        kind, write = _EXPORTS[form]
        named = {"content-disposition": f'attachment; filename="chipwise-plan.{form}"'}
        return Response(write(content), media_type=kind, headers=named)

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


def _parsed(text: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return [(name, value) for name, value in parse_qsl(text) if value.strip()]


def document_of(page: str, content: Mapping[str, Any]) -> Any:
    """The page of that name, as the command line prints it."""
    from importlib import import_module

    return getattr(import_module(f"chipwise.report.{page.partition('_')[0]}"), f"{page}_page")(content)


def _blocks(*names: str) -> Callable[..., Markup]:
    """Parts of the plan's page, made when a template asks for them."""
    from importlib import import_module

    from chipwise.report.document import Document

    def made(*arguments: Any) -> Markup:
        module, name = names
        blocks = getattr(import_module(f"chipwise.report.{module}"), name)(*arguments)
        return _marked(html.html(Document(blocks=tuple(blocks))))

    return made


_SHOWN: Mapping[str, Any] = {
    "summary": _blocks("plan", "summary_blocks"),
    "option_blocks": _blocks("option", "option_blocks"),
    "also_blocks": _blocks("others", "also_feasible"),
    "guide_blocks": _blocks("others", "guide"),
    "neuron_blocks": _blocks("others", "gpu_or_neuron"),
    "needed_blocks": _blocks("others", "gpu_needed"),
    "benchmark_blocks": _blocks("others", "benchmark"),
    "warning_blocks": _blocks("others", "warnings"),
}


def _json(content: Mapping[str, Any]) -> str:
    import json

    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def _markdown(content: Mapping[str, Any]) -> str:
    from chipwise.report.markdown import markdown

    return markdown(document_of("plan", content))


def _html(content: Mapping[str, Any]) -> str:
    return html.file("chipwise plan", html.html(document_of("plan", content)))


def _csv(content: Mapping[str, Any]) -> str:
    """Every size with where it stands and why."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("instance", "stands_in", "instances", "usd_per_hour", "ttft_p99_s", "tpot_p99_s", "why"))
    for option in content["options"]:
        spread, price = option["latency"] or {}, option["cost"]["usd_per_hour"]
        p99 = [(spread.get(name) or {}).get("p99") for name in ("ttft_s", "tpot_s")]
        why = "; ".join(option["reasons"])
        rows.writerow((option["instance"], "options", option["instances"], price and price["mid"], *p99, why))
    for row in content["also_feasible"]:
        price = row["usd_per_hour"]
        figures = (row["instances"], price and price["mid"], row["ttft_p99_s"], row["tpot_p99_s"])
        rows.writerow((row["instance"], "also_feasible", *figures, row["behind_because"]))
    for place, reason in {"rejected": "reason", "not_judged": "lacks", "excluded": "by"}.items():
        for row in content[place]:
            rows.writerow((row["instance"], place, "", "", "", "", row[reason]))
    return out.getvalue()


_EXPORTS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "json": ("application/json", _json),
    "md": ("text/markdown", _markdown),
    "html": ("text/html", _html),
    "csv": ("text/csv", _csv),
}
