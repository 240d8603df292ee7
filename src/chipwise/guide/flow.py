"""The guide's decision flows as boxes and edges, and the way a question takes through them.

One representation serves all: the drawings of `guide show`, the questions of `guide ask`, and `guide.path` of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.errors import UnknownNameError
from chipwise.guide.tables import cite, limit, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The way from a box to the next; `keys` are the answers that take it, empty for the only way on.

    `explains` says what the answer means; `sets` is the flag of `chipwise plan` it gives, `name=value`.
    """

    start: str
    end: str
    keys: tuple[str, ...]
    label: str
    explains: str
    sets: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One box: a question, an action, a note, or an end; `recommends` names sizes, `note` says what is amiss."""

    id: str
    flow: str
    kind: str
    text: str
    recommends: tuple[str, ...]
    precision: tuple[str, ...]
    note: str
    where: str
    topic: str
    edges: tuple[Edge, ...]

    def answer(self, key: str) -> Edge | None:
        """The edge that an answer takes; None where it fits none."""
        return next((edge for edge in self.edges if key in edge.keys), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEnd:
    """Where a flow ends: the boxes passed, the sizes recommended there, at which precision, by which line."""

    path: tuple[str, ...]
    recommends: tuple[str, ...]
    precision: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What section 8.9 asks of a concrete layout."""

    exceeds_one_chip: bool
    several_nodes: bool
    large_checkpoints: bool


@cache
def boxes() -> Mapping[str, Box]:
    """Every box of every flow by id, in the guide's order."""
    edges: dict[str, list[Edge]] = {}
    for row in table("flow_edges"):
        edges.setdefault(row["from"], []).append(_edge(row))
    found = {row["box"]: _box(row, tuple(edges.get(row["box"], ()))) for row in table("flow_boxes")}
    return MappingProxyType(found)


def _edge(row: Mapping[str, str]) -> Edge:
    return Edge(
        start=row["from"],
        end=row["to"],
        keys=() if row["key"] == "next" else tuple(row["key"].split()),
        label=row["label"],
        explains=row["explains"],
        sets=row["sets"],
        where=row["where"],
    )


def _box(row: Mapping[str, str], edges: tuple[Edge, ...]) -> Box:
    return Box(
        id=row["box"],
        flow=row["flow"],
        kind=row["kind"],
        text=row["text"],
        recommends=tuple(row["recommends"].split()),
        precision=tuple(row["precision"].split()),
        note=row["note"],
        where=row["where"],
        topic=row["topic"],
        edges=edges,
    )


def box(name: str) -> Box:
    """The box of that id.

    Raises:
        UnknownNameError: no such box; proposes near ones.

    >>> box("8.8-latency").recommends
    ('p5e.48xlarge', 'trn2.48xlarge')
    """
    found = boxes().get(name)
    if found is None:
        raise UnknownNameError("box", name, boxes(), listing="see chipwise guide show 8")
    return found


def walk(start: str, answers: Mapping[str, str]) -> tuple[Box, ...]:
    """The boxes passed from `start`, answering each question by its id, until an end or a question left open.

    >>> [one.id for one in walk("2", {"2": "llm", "2-llm": "moe"})]
    ['2', '2-llm', '2-moe']
    """
    return tuple(_steps(box(start), answers))


def _steps(here: Box | None, answers: Mapping[str, str]) -> Iterator[Box]:
    while here is not None:
        yield here
        edge = here.answer(answers.get(here.id, "")) or next((edge for edge in here.edges if not edge.keys), None)
        here = boxes().get(edge.end) if edge else None


def model_scale(params: float) -> str:
    """The guide's scale of a model: small below 13B, mid up to 70B, large from 70B on.

    >>> model_scale(8e9), model_scale(32e9), model_scale(70.6e9)
    ('small', 'mid', 'large')
    """
    if params < limit("small_below_params"):
        return "small"
    return "mid" if params < limit("large_from_params") else "large"


def walk_flow(*, kind: str, params: float, goal: str, checks: Checks | None = None) -> FlowEnd:
    """Walk section 8 for a kind of work, a model's size and the first goal.

    Args:
        kind: inference, finetune or pretrain.
        params: the model's parameters.
        goal: the first goal; one the guide does not offer there leaves the way open.
        checks: the answers to section 8.9; without them the path stops at its first box.

    Returns:
        The sizes that the box of the goal recommends; none where the goal has no box.

    >>> walk_flow(kind="inference", params=70.6e9, goal="latency").recommends
    ('p5e.48xlarge', 'trn2.48xlarge')
    >>> walk_flow(kind="inference", params=70.6e9, goal="latency").path
    ('8.1', '8.3', '8.8', '8.8-latency', '8.9')
    """
    answers = {"8.1": "inference" if kind == "inference" else "training", "8.2": kind, "8.3": model_scale(params)}
    answers |= {name: goal for name, one in boxes().items() if one.answer(goal) and one.flow.startswith("8.")}
    answers |= _checks(checks) if checks else {}
    passed = walk("8.1", answers)
    end = next((one for one in passed if one.kind == "end"), passed[-1])
    return FlowEnd(
        path=tuple(one.id for one in passed),
        recommends=end.recommends,
        precision=end.precision,
        source=cite(end.where),
    )


def _checks(checks: Checks) -> dict[str, str]:
    said = {
        "8.9": checks.exceeds_one_chip,
        "8.9-nodes": checks.several_nodes,
        "8.9-checkpoints": checks.large_checkpoints,
    }
    return {name: "yes" if value else "no" for name, value in said.items()}
