"""The guide as pages: a section, the errata, the presets, a term, the way through the questionnaire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Commands,
    Document,
    Heading,
    Line,
    Pairs,
    Table,
    Text,
    Word,
    accent,
    bad,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import plural

Answer = Mapping[str, Any]

_TONES = {
    "right": good,
    "wrong": bad,
    "outdated": bad,
    "contradicted": warn,
    "misleading": warn,
    "unverifiable": dim,
}
_CELL, _ROOM, _FEW_ROWS = 40, 120, 20
_WIDE = {
    *("why", "note", "claim", "right", "bottleneck", "role", "needed_when", "effect", "rule", "caution", "value"),
    *("guide_possible", "right_possible", "instances", "remedy", "condition", "today", "training", "tradeoff"),
    *("best_for", "judge", "what", "threshold", "nvidia", "reason", "use"),
}


def guide_show_page(answer: Answer) -> Document:
    """A section: its flow, its tables, and what is not right in it; without a section, the list of them."""
    return Document(blocks=tuple(_list(answer) if "sections" in answer else _section(answer)))


def _list(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line("Sections of the guide"), level=1)
    columns = (Column(title="section"), Column(title="title", wraps=True), Column(title="line"), Column(title="flow"))
    rows = tuple(
        (line(accent(one["section"])), line(one["title"]), line(dim(one["where"])), line("yes" if one["flow"] else ""))
        for one in answer["sections"]
    )
    yield Table(columns=columns, rows=rows)
    yield Text(line=line(dim("chipwise guide show SECTION · --format mermaid or svg draws its flow")))


def _section(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line(f"{answer['section']}  {answer['title']} ", dim(f"guide {answer['where']}")), level=1)
    yield from _flow(answer["boxes"])
    for table in answer["tables"]:
        yield Heading(line=line(table["title"]))
        yield from _shown(table["columns"], table["rows"])
    amiss = [one for one in answer["claims"] if one["verdict"] not in {"right", "unverifiable"}]
    if amiss:
        yield Heading(line=line("What is not right here", dim("  "), dim(plural(len(amiss), "claim"))))
        yield _claims(amiss)
    yield Text(line=line(dim(_counts(answer["claims"]))))


def _flow(boxes: Sequence[Answer]) -> Iterator[Block]:
    """The flow as a tree; a box that two ways lead to is drawn once and named again."""
    known = {one["id"]: one for one in boxes}
    targets = {edge["to"] for one in boxes for edge in one["edges"]}
    drawn: set[str] = set()
    for one in boxes:
        if one["id"] not in targets:
            yield from _branch(one, "", 0, known, drawn)


def _branch(one: Answer, label: str, depth: int, known: Mapping[str, Answer], drawn: set[str]) -> Iterator[Block]:
    answer = (strong(label), dim(" -> ")) if label else (dim("then "),) if depth or one["id"] in drawn else ()
    if one["id"] in drawn:
        yield Text(line=line(*answer, dim(f"see {one['id']}")), indent=depth)
        return
    drawn.add(one["id"])
    yield Text(line=line(*answer, *_box(one)), indent=depth)
    for edge in one["edges"]:
        if edge["to"] in known:
            deeper = depth + 1 if one["kind"] == "question" else depth
            yield from _branch(known[edge["to"]], edge["label"], deeper, known, drawn)


def _box(one: Answer) -> Line:
    parts: list[str | Word] = [dim(f"[{one['id']}] "), one["text"]]
    if one["recommends"]:
        parts += [": ", accent(", ".join(one["recommends"]))]
    if one["precision"]:
        parts.append(f" in {' or '.join(one['precision'])}")
    if one["note"]:
        parts.append(warn(f" ({one['note']})"))
    return line(*parts, dim(f"  {one['where']}"))


def _shown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """A table, or where it is too wide to be read as one, a record a row."""
    longest = [max([len(name), *(min(len(row[place]), _CELL) for row in rows)]) for place, name in enumerate(columns)]
    if sum(longest) <= _ROOM or len(rows) > _FEW_ROWS:
        yield _plain_table(columns, rows)
        return
    for row in rows:
        yield Text(line=line(strong(row[0]), dim(f"  {row[-1]}")), indent=1)
        cells = [(name, value) for name, value in zip(columns[1:-1], row[1:-1], strict=True) if value]
        yield Pairs(rows=tuple((name.replace("_", " "), _cell(name, value)) for name, value in cells), indent=2)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(
        columns=tuple(Column(title=name.replace("_", " "), wraps=name in _WIDE) for name in columns),
        rows=tuple(tuple(_cell(name, value) for name, value in zip(columns, row, strict=True)) for row in rows),
        indent=1,
    )


def _cell(column: str, value: str) -> Line:
    if column == "verdict" and value in _TONES:
        return line(_TONES[value](value))
    return line(dim(value) if column in {"where", "source"} else value)


def _claims(claims: Sequence[Answer]) -> Table:
    columns = (
        Column(title="line"),
        Column(title="the guide says", wraps=True),
        Column(title="verdict"),
        Column(title="right is", wraps=True),
    )
    return Table(columns=columns, rows=tuple(map(_claim, claims)), indent=1)


def _claim(one: Answer) -> tuple[Line, ...]:
    verdict = one["verdict"]
    return (
        line(dim(one["where"])),
        line(one["claim"]),
        line(_TONES[verdict](verdict)),
        line(one["right_value"] or dim("no source found")),
    )


def _counts(claims: Sequence[Answer]) -> str:
    counted = {name: sum(one["verdict"] == name for one in claims) for name in _TONES}
    said = ", ".join(f"{count} {name}" for name, count in counted.items() if count)
    return f"{plural(len(claims), 'claim')}: {said}" if claims else "no claim"


def guide_errata_page(answer: Answer) -> Document:
    """Where the guide is not right and what is, document by document."""
    blocks: list[Block] = [Heading(line=line("Where the guide is wrong, and what is right"), level=1)]
    blocks.append(Text(line=line(_counts(answer["claims"]))))
    blocks += [Heading(line=line("The twenty that matter most")), _twenty(answer)]
    for letter, title in answer["documents"].items():
        amiss = [one for one in answer["claims"] if one["where"][0] == letter and one["verdict"] != "right"]
        blocks.append(Heading(line=line(f"{letter}  {title}")))
        blocks.append(_sourced(amiss))
    return Document(blocks=tuple(blocks))


def _twenty(answer: Answer) -> Table:
    by_id = {one["id"]: one for one in answer["claims"]}
    columns = (
        Column(title="", right=True),
        Column(title="erratum", wraps=True),
        Column(title="lines", wraps=True),
        Column(title="right is", wraps=True),
    )
    rows = tuple(_one_of_twenty(one, [by_id[name] for name in one["claims"]]) for one in answer["twenty"])
    return Table(columns=columns, rows=rows)


def _one_of_twenty(one: Answer, claims: Sequence[Answer]) -> tuple[Line, ...]:
    lines = ", ".join(claim["where"] for claim in claims)
    return line(str(one["number"])), line(one["title"]), line(dim(lines)), line(claims[0]["right_value"])


def _sourced(claims: Sequence[Answer]) -> Table:
    table = _claims(claims)
    columns = (*table.columns, Column(title="source", wraps=True))
    sources = [line(dim(one["source"])) for one in claims]
    rows = tuple((*row, source) for row, source in zip(table.rows, sources, strict=True))
    return Table(columns=columns, rows=rows)


def guide_check_page(answer: Answer) -> Document:
    """Every cell with the question it asks, the guide's word, the answer, and why they differ, section by section."""
    return Document(blocks=tuple(_checked(answer)))


def _checked(answer: Answer) -> Iterator[Block]:
    cells = answer["cells"]
    yield Heading(line=line("The guide, cell by cell"), level=1)
    yield Text(line=line(_agreement(cells), ". ", dim("What differs says why, as computed when it was asked.")))
    if answer["unexplained"]:
        yield Text(line=line(bad("Without a reason: "), ", ".join(answer["unexplained"])))
    yield Pairs(rows=tuple(_reasons(cells)))
    for title, group in groupby(sorted(cells, key=_by_section), key=lambda one: one["section"]):
        rows = list(group)
        yield Heading(line=line(f"{title}  ", dim(_agreement(rows))))
        alike = [one for one in rows if one["agrees"]]
        if alike:
            yield _alike(alike)
        for one in rows:
            if not one["agrees"]:
                yield from _apart(one)


def _by_section(cell: Answer) -> tuple[bool, float, str]:
    """8.1 after 8, the second document after the first."""
    number = cell["section"].partition(" ")[0]
    second = number.startswith("B")
    return second, 0.0 if second else float(number), number


def _agreement(cells: Sequence[Answer]) -> str:
    return f"{sum(one['agrees'] for one in cells)} of {plural(len(cells), 'cell')} agree"


def _reasons(cells: Sequence[Answer]) -> Iterator[tuple[str, Line]]:
    """How many of the cells that differ give a reason of each kind."""
    apart = [{one["kind"] for one in cell["differs"]} for cell in cells if not cell["agrees"]]
    for kind in sorted({kind for kinds in apart for kind in kinds}):
        yield kind, line(f"a reason of {plural(sum(kind in kinds for kinds in apart), 'cell')}")


def _alike(cells: Sequence[Answer]) -> Table:
    columns = (
        Column(title="agrees"),
        Column(title="line"),
        Column(title="asked", wraps=True),
        Column(title="the guide", wraps=True),
    )
    rows = tuple((line(one["id"]), line(dim(one["where"])), line(_asked(one)), line(_word(one))) for one in cells)
    return Table(columns=columns, rows=rows, indent=1)


def _apart(cell: Answer) -> Iterator[Block]:
    yield Text(line=line(strong(cell["id"]), dim(f"  {cell['where']}  "), accent(cell["question"])), indent=1)
    rows = [("the guide", line(_word(cell))), ("the answer", line(", ".join(cell["answer"])))]
    rows += [(one["kind"], line(f"{one['why']} ", dim(one["id"]))) for one in cell["differs"]]
    yield Pairs(rows=tuple(rows), indent=2)


def _asked(cell: Answer) -> str:
    return str(cell["question"].removeprefix("chipwise plan "))


def _word(cell: Answer) -> str:
    return f"{cell['part']}: {', '.join(cell['guide_recommends'])}"


def guide_coverage_page(answer: Answer) -> Document:
    """Every claim and every box, and what serves it: file, command, test."""
    blocks: list[Block] = [Heading(line=line("What serves each claim and box of the guide"), level=1)]
    blocks.append(Text(line=line(_counts(answer["claims"]))))
    blocks.append(Heading(line=line("Topics")))
    blocks.append(_plain_table(("topic", "file", "command", "test"), answer["topics"]))
    blocks.append(Heading(line=line("Claims")))
    rows = [[one["id"], one["where"], one["claim"], one["verdict"], one["topic"]] for one in answer["claims"]]
    blocks.append(_plain_table(("id", "where", "claim", "verdict", "topic"), rows))
    blocks.append(Heading(line=line("Boxes")))
    boxes = [[one["id"], one["where"], one["text"], one["topic"]] for one in answer["boxes"]]
    blocks.append(_plain_table(("box", "where", "text", "topic"), boxes))
    return Document(blocks=tuple(blocks))


def guide_presets_page(answer: Answer) -> Document:
    """Every preset with its values, where they come from, and the goals."""
    return Document(blocks=tuple(_presets(answer)))


def _presets(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line("Presets ", dim("--for NAME")), level=1)
    for one in answer["presets"]:
        yield Heading(line=line(accent(one["name"]), f"  {one['title']}"), level=3)
        rows = tuple((key, _value(value)) for key, value in one["values"].items())
        yield Pairs(rows=rows, indent=1)
    yield Heading(line=line("Goals ", dim("--goal NAME[,SECOND]")))
    rows = tuple((goal["name"], line(goal["title"], dim(f"  {goal['source']}"))) for goal in answer["goals"])
    yield Pairs(rows=rows, indent=1)


def _value(value: Answer) -> Line:
    unit = f" {value['unit']}" if value["unit"] else ""
    return line(f"{value['value']}{unit}", dim(f"  {value['kind']}: {value['why']}; {value['source']}"))


def guide_explain_page(answer: Answer) -> Document:
    """A term: what it means, what decides it, its grades, how to improve it."""
    return Document(blocks=tuple(_term(answer)))


def _term(answer: Answer) -> Iterator[Block]:
    yield Heading(line=line(answer["title"], dim(f"  {answer['term']}")), level=1)
    labels = {
        "meaning": "means",
        "equation": "is",
        "decided_by": "decided by",
        "factors": "moved by",
        "felt": "felt as",
    }
    said = [(label, line(answer[key])) for key, label in labels.items() if answer[key]]
    if answer["improve"]:
        said.append(("to improve it" if answer["decided_by"] else "in practice", line(answer["improve"])))
    yield Pairs(rows=tuple(said))
    if answer["ratings"]:
        yield Heading(line=line("Grades", dim("  policy of the guide, no source outside it")))
        yield _grades(answer["ratings"])
    for one in answer["diagnoses"]:
        yield Heading(line=line("When ", one["symptom"]), level=3)
        steps = (line("because ", one["cause"]), line("look at ", one["check"]), line("then ", one["remedy"]))
        yield Bullets(items=steps, mark=dim("-"), indent=1)
    if answer["config"]:
        yield Heading(line=line("Configuration"))
        yield Text(line=line(accent(answer["config"])), indent=1)
    if answer["settings"]:
        yield Heading(line=line("What it sets"))
        yield Pairs(rows=tuple((one["setting"], _setting(one)) for one in answer["settings"]), indent=1)
    yield Text(line=line(dim(answer["source"])))


def _setting(one: Answer) -> Line:
    erratum = warn(f"  see {one['erratum']}") if one["erratum"] else ""
    return line(strong(one["value"]), f"  {one['why']}", erratum, dim(f"  {one['source']}"))


def _grades(ratings: Sequence[Answer]) -> Table:
    columns = (Column(title="of"), Column(title="grade"), Column(title="value", right=True), Column(title="line"))
    return Table(columns=columns, rows=tuple(map(_grade, ratings)), indent=1)


def _grade(one: Answer) -> tuple[Line, ...]:
    low, high, unit = one["at_least"], one["below"], one["unit"]
    if high is None:
        value = f"{low:g} {unit} and more"
    else:
        value = f"below {high:g} {unit}" if low is None else f"{low:g} to {high:g} {unit}"
    return line(one["statistic"]), line(one["grade"]), line(value), line(dim(one["source"]))


def guide_way_page(answer: Answer) -> Document:
    """The way through the questionnaire, and the plan it asks for."""
    rows = tuple((one["question"], _step(one)) for one in answer["steps"])
    head = Heading(line=line("Your answers"), level=2)
    return Document(blocks=(head, Pairs(rows=rows, indent=1), Commands(lines=(answer["command"],), indent=1)))


def _step(one: Answer) -> Line:
    return line(strong(one["answer"]), f"  {one['explains']}" if one["explains"] else "", dim(f"  {one['source']}"))
