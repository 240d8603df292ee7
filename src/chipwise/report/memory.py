"""The answer of `size` as a page: the bar, its terms, what is left for requests, what would make it fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chipwise.report.document import (
    Bar,
    Block,
    Bullets,
    Column,
    Document,
    Heading,
    Line,
    Pairs,
    Part,
    Table,
    bad,
    dim,
    good,
    line,
    strong,
    warn,
)
from chipwise.report.phrases import amount, gib, maybe, plural, times

Answer = Mapping[str, Any]
_Kind = Literal["held", "cache", "trained", "working", "reserved", "free", "over"]

PART_KINDS: dict[str, _Kind] = {
    "weights_bytes": "held",
    "draft_bytes": "held",
    "adapters_bytes": "trained",
    "gradients_bytes": "trained",
    "optimizer_bytes": "trained",
    "cache_bytes": "cache",
    "activations_bytes": "working",
    "graphs_bytes": "working",
    "overhead_bytes": "working",
    "reserved_bytes": "reserved",
}
"""What each term of the memory is, for its color."""


def memory_page(answer: Answer) -> Document:
    """The whole page."""
    blocks: list[Block] = [Heading(line=_verdict(answer), level=1), memory_bar(answer)]
    blocks.append(Pairs(rows=_room(answer)))
    if parts := answer.get("mig") or answer.get("fractions"):
        blocks += [Heading(line=line("Parts of one GPU")), _parts(parts)]
    if answer.get("table"):
        note = dim("  down: context; across: requests in flight; \u2717 does not fit")
        blocks += [Heading(line=line("Cache of one chip", note)), _table(answer)]
    if answer["to_make_it_fit"]:
        blocks += [Heading(line=line("To make it fit")), _remedies(answer)]
    blocks += [Bullets(items=tuple(line(text) for text in answer["warnings"]), mark=warn("!"))]
    return Document(blocks=tuple(blocks))


def _verdict(answer: Answer) -> Line:
    word = good("fits") if answer["fits"] else bad("does not fit")
    profile = answer.get("profile")
    where = f"a {profile} slice of {answer['chip']}" if profile else times(answer["chips"], answer["chip"])
    return line(word, f" on {where}", dim(f"  {answer['evidence']}"))


def memory_bar(answer: Answer, indent: int = 0) -> Bar:
    """The memory of the fullest chip: every term, what is free, or what lies beyond it."""
    per_chip = answer["per_chip"]
    terms = [(name, per_chip.get(name) or 0) for name in PART_KINDS]
    parts = [_part(name.removesuffix("_bytes"), size, PART_KINDS[name]) for name, size in terms if size]
    free, short = per_chip["free_bytes"], answer["shortfall_bytes"]
    parts += [_part("free", free, "free")] if free else []
    part, said = ("one chip ", " as its driver reports it")
    if answer.get("profile"):
        part, said = ("one slice ", " of what the driver reports for the whole GPU")
    if answer.get("device") == "instance":
        part, said = ("one instance ", " as EC2 states it")
    caption = line(part, strong(gib(per_chip["capacity_bytes"])), dim(said))
    if short:
        caption = (*caption, *line(" · ", bad(f"{gib(short)} short")))
    return Bar(parts=tuple(parts), total=per_chip["capacity_bytes"], caption=caption, indent=indent)


def _part(label: str, size_bytes: float, kind: _Kind) -> Part:
    return Part(label=label, value=size_bytes, shown=gib(size_bytes), kind=kind, about=_ABOUT[label])


_ABOUT = {
    "weights": "the parameters at the precision they are stored in; every chip of a split holds its share",
    "draft": "the small model that proposes tokens in speculative decoding",
    "adapters": "the trained adapters beside the weights",
    "gradients": "one value a trained parameter",
    "optimizer": "what the optimizer keeps of each trained parameter: moments, and a copy at full precision",
    "cache": "keys and values (or states) of the requests in flight",
    "activations": "what a step holds between its layers",
    "graphs": "recorded launches of a step, which the engine replays",
    "overhead": "what the runtime takes for itself: context, libraries, buffers of the collectives",
    "reserved": "what the engine is told to leave alone",
    "free": "planned for nothing",
}


def _room(answer: Answer) -> tuple[tuple[str, Line], ...]:
    rows = [*_cache(answer), ("fewest chips", line(maybe(answer["min_chips"], amount)))]
    if answer.get("min_instances") is not None:
        rows.append(("fewest instances", line(amount(answer["min_instances"]))))
    spread = answer["range"]
    if spread and answer["kv_pool_bytes"]:
        shown = f"{spread['low_fraction'] * 100:.0f} % to {spread['high_fraction'] * 100:.0f} %"
        rows.append(("as measured", line(shown, dim(" of this pool, 8 times in 10"))))
    return tuple(rows)


def _cache(answer: Answer) -> list[tuple[str, Line]]:
    """What is left for requests; nothing where a run has no cache."""
    held = ("kv_pool_bytes", "kv_cache_tokens", "max_concurrency_at_context", "longest_context")
    if all(answer[name] is None for name in held):
        return []
    pool, tokens, requests, longest = (answer[name] for name in held)
    replica = dim(" per replica")
    if pool is None:
        return [("requests", line(maybe(requests, amount), dim(" at once beside the weights, per replica")))]
    return [
        ("cache pool", line(maybe(pool, gib), dim(" per slice" if answer.get("profile") else " per chip"))),
        ("cache holds", line(maybe(tokens, lambda n: plural(round(n), "token")), replica)),
        ("requests", line(maybe(requests, amount), dim(" at full context"), replica)),
        ("longest context", line(maybe(longest, lambda n: plural(round(n), "token")))),
    ]


def _parts(parts: Sequence[Answer]) -> Table:
    """Every MIG profile or fraction of the GPU: whether one holds the model, and how many one GPU gives."""
    columns = (Column(title="part"), Column(title="holds it"), Column(title="a GPU gives", right=True))
    rows = tuple(
        (
            line(one.get("profile") or one["instance"]),
            line(good("yes")) if one["fits"] else line(bad("no")),
            line(amount(one["per_gpu"])),
        )
        for one in parts
    )
    return Table(columns=columns, rows=rows)


def _remedies(answer: Answer) -> Table:
    columns = (
        Column(title="change", wraps=True),
        Column(title="frees", right=True),
        Column(title="costs", wraps=True),
    )
    rows = tuple(
        (line(one["change"]), line(maybe(one["frees_bytes"], gib)), line(one["costs"] or ""))
        for one in answer["to_make_it_fit"]
    )
    return Table(columns=columns, rows=rows)


def _table(answer: Answer) -> Table:
    cells = answer["table"]
    across = list(dict.fromkeys(cell["concurrency"] for cell in cells))
    down = list(dict.fromkeys(cell["context"] for cell in cells))
    by_place = {(cell["context"], cell["concurrency"]): cell for cell in cells}
    rows = tuple((line(strong(f"{context:,}")), *(_cell(by_place[context, one]) for one in across)) for context in down)
    titles = (
        Column(title="context", right=True),
        *(Column(title=plural(one, "request"), right=True) for one in across),
    )
    return Table(columns=titles, rows=rows)


def _cell(cell: Answer) -> Line:
    size = gib(cell["per_chip"]["cache_bytes"])
    return line(good(size)) if cell["fits"] else line(bad(f"\u2717 {size}"))
