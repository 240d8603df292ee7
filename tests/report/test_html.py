"""HTML of every page: nothing a text says becomes markup, nothing is fetched, what adds up is drawn to scale."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide import Advice
from chipwise.report import html
from chipwise.report.document import Bar, Column, Commands, Document, Heading, Part, Table, Text, line, strong
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page

VOID = {"meta", "link", "input", "br"}


class Balanced(HTMLParser):
    """Every element that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_a_plan_is_one_file_that_fetches_nothing(advice: Advice) -> None:
    drawn = html.file("a plan", html.html(plan_page(as_json(advice))))
    read(drawn.removeprefix("<!doctype html>"))
    assert "<script" not in drawn
    assert not re.search(r"(src|href)=", drawn)
    for option in advice.options:
        assert option.instance in drawn


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_no_text_becomes_markup(text: str) -> None:
    blocks = (
        Heading(line=line(text)),
        Text(line=line(strong(text))),
        Table(columns=(Column(title=text),), rows=((line(text),),)),
        Commands(lines=(text,)),
    )
    assert "".join(read(html.html(Document(blocks=blocks))).words).count(text) >= len(blocks)


def test_a_bar_is_drawn_to_scale() -> None:
    parts = (
        Part(label="weights", value=30.0, shown="30", kind="held"),
        Part(label="free", value=10.0, shown="10", kind="free"),
    )
    drawn = html.html(Document(blocks=(Bar(parts=parts, total=40.0, caption=line("one chip")),)))
    assert re.findall(r'x="([\d.]+)%".*?width="([\d.]+)%"', drawn) == [("0.000", "75.000"), ("75.000", "25.000")]
    assert "weights 30" in drawn
