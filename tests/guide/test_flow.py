"""The flows: whole, without circles, and the way a question takes through them."""

from __future__ import annotations

import pytest

from chipwise.catalog import Catalog
from chipwise.errors import UnknownNameError
from chipwise.guide import Checks, box, boxes, walk, walk_flow

SECTION_8 = [
    ("inference", 8e9, "latency", "8.6-latency", "g6e.12xlarge g7e.12xlarge"),
    ("inference", 8e9, "quality", "8.6-latency", "g6e.12xlarge g7e.12xlarge"),
    ("inference", 8e9, "cost", "8.6-cost", "g6e.xlarge g6e.2xlarge g6e.4xlarge"),
    ("inference", 32e9, "latency", "8.7-latency", "g7e.48xlarge p5.48xlarge trn2.48xlarge"),
    ("inference", 32e9, "quality", "8.7-quality", "p5.48xlarge trn2.48xlarge"),
    ("inference", 32e9, "concurrency", "8.7-concurrency", "g7e.48xlarge trn2.48xlarge"),
    ("inference", 32e9, "cost", "8.7-cost", "g6e.48xlarge"),
    ("inference", 70e9, "latency", "8.8-latency", "p5e.48xlarge trn2.48xlarge"),
    ("inference", 400e9, "quality", "8.8-quality", "p5e.48xlarge trn2.48xlarge"),
    ("inference", 70e9, "concurrency", "8.8-concurrency", "p5.48xlarge trn2.48xlarge"),
    ("inference", 70e9, "cost", "8.8-cost", "p5.48xlarge trn2.48xlarge"),
    ("pretrain", 100e9, "time-to-train", "8.4-speed", "p5e.48xlarge trn2.48xlarge"),
    ("pretrain", 100e9, "training-cost", "8.4-cost", "p5.48xlarge trn2.48xlarge"),
    ("finetune", 8e9, "time-to-train", "8.5-speed", "p5.48xlarge trn2.48xlarge"),
    ("finetune", 8e9, "training-cost", "8.5-cost", "trn2.48xlarge p5.48xlarge"),
]


@pytest.mark.parametrize(("kind", "params", "goal", "end", "sizes"), SECTION_8)
def test_section_8(kind: str, params: float, goal: str, end: str, sizes: str) -> None:
    found = walk_flow(kind=kind, params=params, goal=goal)
    assert (found.path[-2:], " ".join(found.recommends)) == ((end, "8.9"), sizes)


def test_a_goal_without_a_box_leaves_the_way_open() -> None:
    found = walk_flow(kind="inference", params=8e9, goal="time-to-train")
    assert (found.path, found.recommends) == (("8.1", "8.3", "8.6"), ())


def test_the_checks_are_walked_to_the_end() -> None:
    checks = Checks(exceeds_one_chip=True, several_nodes=False, large_checkpoints=True)
    found = walk_flow(kind="pretrain", params=200e9, goal="time-to-train", checks=checks)
    assert found.path[-6:] == ("8.9", "8.9-nvlink", "8.9-nodes", "8.9-checkpoints", "8.9-gds", "8.9-done")
    assert found.recommends == ("p5e.48xlarge", "trn2.48xlarge")


def test_every_question_has_an_answer_and_every_end_is_reached() -> None:
    every = boxes()
    questions = [one for one in every.values() if one.kind == "question"]
    assert [one.id for one in questions if not one.edges or any(not edge.keys for edge in one.edges)] == []
    targets = {edge.end for one in every.values() for edge in one.edges if edge.end}
    assert targets <= set(every)
    ends = {one.id for one in every.values() if one.kind in {"end", "action"}}
    assert ends <= targets


@pytest.mark.parametrize("name", boxes())
def test_no_flow_runs_in_circles(name: str) -> None:
    seen: set[str] = set()
    waiting = {edge.end for edge in box(name).edges if edge.end}
    while waiting:
        one = waiting.pop()
        assert one != name
        if one not in seen:
            seen.add(one)
            waiting |= {edge.end for edge in box(one).edges if edge.end}


def test_recommended_sizes_exist(catalog: Catalog) -> None:
    named = {size for one in boxes().values() for size in one.recommends}
    assert named <= set(catalog.instances)


def test_trees_run_on_cpus_unless_embeddings_are_large() -> None:
    ends = [walk("2", {"2": "tabular", "2-ml": answer})[-1].id for answer in ("yes", "no")]
    assert ends == ["2-ml-gpu", "2-ml-cpu"]


def test_an_unknown_box_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        box("8.10")
