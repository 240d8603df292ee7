"""Host memory on Neuron: a checkpoint passes through it when it is compiled, sharded and loaded."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.decide.serving.seats import at_precision
from chipwise.facts import read_rows
from chipwise.precision import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.decide.question import Question
    from chipwise.decide.serving.deployment import ServingDeployment

DATA = Path(__file__).parents[1] / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@cache
def _system_bytes() -> float:
    rows = {row[0]: float(row[1]) for _, row in read_rows(DATA / "host.csv", COLUMNS)}
    return rows["neuron_system"]


def host_shortfall_bytes(*, weights_bytes: float, ram_bytes: float) -> float:
    """What host memory lacks to hold a checkpoint beside the system; 0 where it holds both.

    lack = max(weights + system - ram, 0)

    >>> host_shortfall_bytes(weights_bytes=16.06e9, ram_bytes=16 * 2**30) / 1e9
    1.380130816
    >>> host_shortfall_bytes(weights_bytes=16.06e9, ram_bytes=32 * 2**30)
    0.0
    """
    return max(weights_bytes + _system_bytes() - ram_bytes, 0.0)


def host_risks(question: Question, deployment: ServingDeployment) -> Iterator[str]:
    """Where a Neuron size cannot compile and shard the model itself: shards come from a larger size."""
    instance = deployment.instance
    if instance.kind != "neuron" or not instance.ram_bytes:
        return
    model = at_precision(question.model, deployment.evaluated.option)
    nodes = deployment.evaluated.packings[deployment.row].instances_per_unit
    weights = float(stored_bytes(model).main_bytes) / nodes
    lack = host_shortfall_bytes(weights_bytes=weights, ram_bytes=float(instance.ram_bytes))
    if lack:
        yield (
            f"{instance.ram_bytes / 2**30:.0f} GiB of host memory lack {lack / 1e9:.1f} GB for a checkpoint of "
            f"{weights / 1e9:.1f} GB beside the system: compile and shard on a larger size, load the shards here"
        )
