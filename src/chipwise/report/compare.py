"""The answer of `compare` as a page: two sizes fact by fact, then what each would do for a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chipwise.report.document import (
    Block,
    Bullets,
    Column,
    Document,
    Heading,
    Line,
    Table,
    Text,
    accent,
    bad,
    dim,
    good,
    line,
    warn,
)
from chipwise.report.phrases import (
    TIMES,
    UNKNOWN,
    amount,
    decimal,
    gib,
    listing,
    percent,
    rate,
    seconds,
    split_text,
    times,
    usd,
)
from chipwise.units import show_seconds, show_usd

Answer = Mapping[str, Any]
_UNITS: Mapping[str, Callable[[float], str]] = {
    "usd_per_hour": show_usd,
    "flops_per_s": lambda value: decimal(value, "FLOP/s"),
    "bytes_per_s": lambda value: decimal(value, "B/s"),
    "bytes": gib,
}
"""What a fact's name says of its unit, and how that is shown."""
_NAMES = {"vcpu": "vCPU", "ram": "host memory", "nvme": "NVMe", "efa": "EFA", "gpudirect rdma": "GPUDirect RDMA"}
_NAMES |= {"on demand us east 1": "on demand an hour, us-east-1"}
_SHOWN_REGIONS = 4


def compare_page(answer: Answer) -> Document:
    """The whole page."""
    return Document(blocks=tuple(_blocks(answer)))


def _blocks(answer: Answer) -> Iterator[Block]:
    names = (answer["first"], answer["second"])
    yield Heading(line=line(accent(names[0]), " and ", accent(names[1])), level=1)
    columns = (
        Column(title=""),
        *(Column(title=name, wraps=True) for name in names),
        Column(title="second is", right=True),
    )
    yield Table(columns=columns, rows=tuple(map(_fact, answer["facts"])))
    if answer["answers"]:
        yield Heading(line=line("For the question"))
        yield _question(names, answer["answers"])
        yield from _reasons(names, answer["answers"])
    yield Text(line=line(dim(f"facts as of {answer['facts_as_of']}")))


def _fact(row: Answer) -> tuple[Line, ...]:
    first, second = row["first"], row["second"]
    name, show = _named(row["fact"])
    return line(dim(name)), line(_shown(first, show)), line(_shown(second, show)), _ratio(first, second)


def _named(fact: str) -> tuple[str, Callable[[float], str]]:
    """A fact's name in words, and how its unit is shown.

    >>> _named("memory_bytes_per_chip")[0], _named("efa_bytes_per_s")[0]
    ('memory per chip', 'EFA')
    """
    base = fact.removesuffix("_per_chip")
    per_chip = " per chip" if base != fact else ""
    for unit, show in _UNITS.items():
        for suffix, ending in ((f"_{unit}", ""), (f"_{unit}_one_way", " one way")):
            if base.endswith(suffix):
                return f"{_words(base.removesuffix(suffix))}{ending}{per_chip}", show
    return f"{_words(base)}{per_chip}", amount


def _words(name: str) -> str:
    plain = name.replace("_", " ")
    return _NAMES.get(plain, plain)


def _shown(value: Any, show: Callable[[float], str]) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return listing(value, _SHOWN_REGIONS) if value else "none"
    return str(value) if isinstance(value, str) else show(value) if value else "none"


def _ratio(first: Any, second: Any) -> Line:
    """The second over the first, where both are numbers."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (first, second))
    if not numbers or not first or not second or first == second:
        return ()
    return line(dim(f"{TIMES} {second / first:.2g}"))


_PLACES = {
    "options": good("an option"),
    "also_feasible": good("would do"),
    "rejected": bad("will not do"),
    "not_judged": warn("not judged"),
    "excluded": warn("left out"),
}


def _question(names: tuple[str, str], answers: list[Answer]) -> Table:
    """What both would do, row by row; rows that say nothing of either are left out."""
    columns = (Column(title=""), *(Column(title=name, wraps=True) for name in names))
    rows = []
    for label, show in _SAID.items():
        cells = [show(one["stands_in"], one["detail"]) for one in answers]
        if any(cells):
            rows.append((line(dim(label)), *cells))
    return Table(columns=columns, rows=tuple(rows))


def _performance(detail: Answer, kind: str) -> Answer:
    found: Answer = (detail.get("performance") or {}).get(kind) or {}
    return found


def _latency(detail: Answer, name: str) -> Line:
    p99_s = ((detail.get("latency") or {}).get(name) or {}).get("p99", detail.get(name.replace("_s", "_p99_s")))
    return line(show_seconds(p99_s)) if p99_s is not None else ()


def _laid(detail: Answer) -> Line:
    if "parallelism" not in detail:
        return ()
    precision = detail["precision"]
    weights = precision["weights"] if isinstance(precision, Mapping) else precision
    split, copies = split_text(detail["parallelism"]), detail.get("replicas", 1)
    return line(f"{times(copies, split) if copies > 1 else split} {weights}")


def _price(detail: Answer) -> Line:
    cost = detail.get("cost") or detail
    return usd(cost["usd_per_hour"]) if "usd_per_hour" in cost else ()


def _maybe(figures: Answer | None, show: Callable[[Answer], Line]) -> Line:
    return show(figures) if figures else ()


_SAID: Mapping[str, Callable[[str, Answer], Line]] = {
    "it is": lambda place, _: line(_PLACES[place]),
    "instances": lambda _, detail: line(str(detail["instances"])) if "instances" in detail else (),
    "laid": lambda _, detail: _laid(detail),
    "P99 TTFT": lambda _, detail: _latency(detail, "ttft_s"),
    "P99 TPOT": lambda _, detail: _latency(detail, "tpot_s"),
    "output": lambda _, detail: _maybe(
        _performance(detail, "serving").get("output_tokens_per_s"), lambda one: rate(one, "tok/s")
    ),
    "training": lambda _, detail: (
        _maybe(_performance(detail, "training").get("tokens_per_s"), lambda one: rate(one, "tok/s"))
        or _maybe(_performance(detail, "training").get("samples_per_s"), lambda one: rate(one, "samples/s"))
    ),
    "MFU": lambda _, detail: _maybe(_performance(detail, "training").get("mfu_fraction"), percent),
    "run": lambda _, detail: _maybe((detail.get("run") or {}).get("duration_s"), seconds),
    "an hour": lambda _, detail: _price(detail),
    "a million output tokens": lambda _, detail: _maybe(
        (detail.get("cost") or {}).get("usd_per_million_output_tokens"), usd
    ),
    "the run": lambda _, detail: _maybe((detail.get("cost") or {}).get("usd_per_run"), usd),
    "because": lambda _, detail: line(_because(detail)),
}


def _because(detail: Answer) -> str:
    """Why a size that is no option is none."""
    return str(next((detail[name] for name in ("behind_because", "reason", "lacks", "by") if detail.get(name)), ""))


def _reasons(names: tuple[str, str], answers: list[Answer]) -> Iterator[Block]:
    """Reasons and risks of those that are options."""
    for name, answer in zip(names, answers, strict=True):
        detail = answer["detail"]
        if answer["stands_in"] == "options":
            yield Heading(line=line(accent(name)), level=3)
            yield Bullets(items=tuple(line(text) for text in detail["reasons"]), mark=good("+"), indent=1)
            yield Bullets(items=tuple(line(text) for text in detail["risks"]), mark=warn("!"), indent=1)
