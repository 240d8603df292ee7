"""The labels and annotations that every object carries: by what it is selected, and from which plan it came."""

from __future__ import annotations

import re

from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.manifest import Meta

APP = "app.kubernetes.io/name"
OWN = "chipwise/"
"""The prefix of what the plan says; read back by the room's own tests and by people."""
_LONGEST = 36


def default_name(chosen: Chosen) -> str:
    """A name for the deployment: the model's, as Kubernetes takes names.

    >>> slug("meta-llama/Llama-3.3-70B-Instruct")
    'llama-3-3-70b-instruct'
    """
    made = slug(chosen.model.name)
    if not made or made == "vllm":
        return "model"
    return made if made[0].isalpha() else f"model-{made}"[:_LONGEST].strip("-")


def slug(name: str) -> str:
    """The last part of a name in lower-case letters, digits and hyphens."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:_LONGEST].strip("-")


def several(count: int, noun: str) -> str:
    """A count with its noun.

    >>> several(1, "node"), several(12, "node")
    ('1 node', '12 nodes')
    """
    return f"{count} {noun}" + ("" if count == 1 else "s")


def own_labels(name: str) -> dict[str, str]:
    """The labels of every object of a deployment."""
    return {APP: name, "app.kubernetes.io/managed-by": "chipwise"}


def own_meta(name: str, namespace: str | None = None, *, called: str = "") -> Meta:
    """The metadata of an object of a deployment, which may be called otherwise."""
    return Meta(name=called or name, namespace=namespace, labels=own_labels(name))


def selector(name: str) -> dict[str, str]:
    """What selects its pods."""
    return {APP: name}


def plan_annotations(chosen: Chosen) -> dict[str, str]:
    """What the flags cannot say: the option, and the precision it was sized for."""
    return {
        f"{OWN}option": f"{chosen.rank} of a plan with facts of {chosen.facts_as_of}",
        f"{OWN}weights": chosen.precision.weights,
        f"{OWN}cache": chosen.precision.kv,
        f"{OWN}compute": chosen.precision.compute,
    }
