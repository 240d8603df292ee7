"""What every check looks at: the objects of a folder, the pods they describe, the pools they launch."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.lint.documents import Document, Path_, Tree
from chipwise.deploy.lint.findings import Finding, found_at
from chipwise.deploy.lint.pods import Pod, pods_of
from chipwise.deploy.lint.pools import Pool, pools_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A folder, read."""

    tree: Tree
    pods: tuple[Pod, ...]
    pools: tuple[Pool, ...]

    def taking(self, pod: Pod) -> tuple[Pool, ...]:
        """The pools whose labels the pod asks for."""
        return tuple(pool for pool in self.pools if not pool.selects(pod))


def scene_of(tree: Tree) -> Scene:
    """The scene of a tree."""
    return Scene(tree=tree, pods=tuple(pods_of(tree)), pools=tuple(pools_of(tree)))


def found(document: Document, path: Path_, rule: str, *, why: str, fix: str) -> Finding:
    """A finding at a field of a document."""
    return found_at(document.file, document.line(path), rule, why=why, fix=fix)
