"""Takes a folder of manifests; gives findings that schemas cannot see. Read `findings.py`, then `scene.py`.

`data/rules.csv` lists every rule; the other modules hold the checks, one topic each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from chipwise.deploy.lint.capacity import capacity_findings
from chipwise.deploy.lint.claims import claim_findings
from chipwise.deploy.lint.documents import Tree, read_text, read_tree
from chipwise.deploy.lint.engine import engine_findings
from chipwise.deploy.lint.findings import ERROR, WARNING, Finding, rules
from chipwise.deploy.lint.groups import group_findings
from chipwise.deploy.lint.neuron import neuron_findings
from chipwise.deploy.lint.objects import object_findings
from chipwise.deploy.lint.placement import placement_findings
from chipwise.deploy.lint.queues import queue_findings
from chipwise.deploy.lint.requests import request_findings
from chipwise.deploy.lint.scene import Scene, scene_of
from chipwise.deploy.lint.sharing import sharing_findings
from chipwise.deploy.lint.wiring import wiring_findings

__all__ = ["ERROR", "WARNING", "Finding", "lint", "lint_texts", "rules"]

CHECKS: tuple[Callable[[Scene], Iterator[Finding]], ...] = (
    object_findings,
    wiring_findings,
    capacity_findings,
    placement_findings,
    request_findings,
    engine_findings,
    group_findings,
    neuron_findings,
    claim_findings,
    sharing_findings,
    queue_findings,
)


def lint(folder: Path) -> tuple[Finding, ...]:
    """Every finding of a folder or a file, by file and line.

    Raises:
        InputError: there is no such folder, or too much in it.
    """
    tree, unread = read_tree(folder)
    return _sorted([*unread, *_of_tree(tree)])


def lint_texts(texts: dict[str, str]) -> tuple[Finding, ...]:
    r"""Every finding of files that are not written yet: name to text.

    >>> [one.rule for one in lint_texts({"a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: vllm}"})]
    ['service-named-vllm']
    """
    read = [read_text(name, text) for name, text in texts.items()]
    tree = Tree(documents=tuple(document for documents, _ in read for document in documents))
    return _sorted([*(finding for _, findings in read for finding in findings), *_of_tree(tree)])


def _of_tree(tree: Tree) -> Iterator[Finding]:
    scene = scene_of(tree)
    return (finding for check in CHECKS for finding in check(scene))


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    unique = {(one.file, one.line, one.rule, one.why): one for one in findings}
    return tuple(sorted(unique.values(), key=lambda one: (one.file, one.line, one.rule)))
