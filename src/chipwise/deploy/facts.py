"""The room's tables: versions, images, labels and assumptions, each with its source; kinds and their API versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.errors import KnowledgeError
from chipwise.facts import FactTable, read_facts, read_rows, read_sources, values_of

DATA = Path(__file__).parent / "data"
KIND_COLUMNS = ("kind", "api_version", "component", "namespaced", "apply_order", "source", "where", "read_on")
TRAINER_COLUMNS = ("trainer", "vendor", "engine", "image", "source", "where", "read_on")
IMAGE_COLUMNS = ("engine", "version", "vendor", "image", "efa", "source", "where", "read_on")
_ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object: what the API server calls it, what must be installed for it, and when it is applied."""

    name: str
    api_version: str
    component: str
    namespaced: bool
    apply_order: int
    """Lower first; two digits in front of a file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """What the plan calls a trainer: the engine whose settings it takes, and its published image, if any."""

    engine: str
    image: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A container image; `efa` says whether it carries the libraries that EFA needs."""

    name: str
    efa: bool


@cache
def _facts() -> FactTable:
    return read_facts(DATA / "facts.csv", read_sources(DATA / "sources.csv"))


def text(subject: str, key: str) -> str:
    """A fact that is text.

    >>> text("nvidia", "resource")
    'nvidia.com/gpu'
    """
    return str(values_of(_facts(), subject)[key])


def number(subject: str, key: str) -> float:
    """A fact that is a number, in base units: bytes, seconds.

    >>> number("pod", "hugepages") == 5120 * 2**20
    True
    """
    return float(values_of(_facts(), subject)[key])


def told(subject: str, key: str) -> str | None:
    """A fact that may be missing."""
    value = values_of(_facts(), subject).get(key)
    return None if value is None else str(value)


@cache
def kinds() -> dict[str, Kind]:
    """Every kind this room writes.

    >>> kinds()["NodePool"].api_version
    'karpenter.sh/v1'
    """
    found = {}
    for _, row in read_rows(DATA / "kinds.csv", KIND_COLUMNS):
        name, api_version, component, namespaced, order, *_ = row
        found[name] = Kind(
            name=name,
            api_version=api_version,
            component=component,
            namespaced=namespaced == "true",
            apply_order=int(order),
        )
    return found


def image_of(engine: str, version: str, vendor: str) -> Image | None:
    """The published image of an engine at a version on a vendor's chips; None where no table names one.

    >>> image_of("vllm", "0.33.0", "nvidia").name
    'vllm/vllm-openai:v0.33.0'
    """
    for _, (name, of_version, of_vendor, image, efa, *_) in read_rows(DATA / "images.csv", IMAGE_COLUMNS):
        if (name, of_vendor) == (engine, vendor) and of_version in {version, _ANY}:
            return Image(name=image.format(version=version), efa=efa == "yes")
    return None


def trainer_of(name: str, vendor: str) -> Trainer:
    """The trainer of that name on a vendor's chips; one that no table names is its own engine.

    >>> trainer_of("hf", "nvidia").engine
    'fsdp'
    """
    for _, (trainer, of_vendor, engine, image, *_) in read_rows(DATA / "trainers.csv", TRAINER_COLUMNS):
        if (trainer, of_vendor) == (name, vendor):
            return Trainer(engine=engine, image=image or None)
    return Trainer(engine=name, image=None)


def vendor_text(vendor: str, key: str) -> str:
    """What Kubernetes calls something of a chip's vendor: its resource, taint, device plugin or driver.

    Raises:
        KnowledgeError: no manifests are known for chips of this vendor.
    """
    known = values_of(_facts(), vendor)
    if key not in known:
        raise KnowledgeError(
            f"no manifests are known for chips of {vendor}",
            why="no source for their device plugin is in the room's tables",
            fix="choose an option with NVIDIA or AWS chips",
        )
    return str(known[key])
