"""`chipwise estimate`: how fast a model runs, laid out so, under this load."""

from __future__ import annotations

from typing import Any

from chipwise.interfaces.cli import completion
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag, build
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.parsers import fraction, positive
from chipwise.interfaces.cli.shared_flags import (
    CONTEXT,
    COUNT,
    DRAFT_TOKENS,
    LENGTHS,
    LORA_RANK,
    MEDIA,
    MODEL,
    SERVING,
    SPLIT,
    TRAINING,
    prefix_hit,
)
from chipwise.units import parse_rate

_PLACE = (
    Flag(
        name="--on", fields=("instance",), parse=str, metavar="INSTANCE", names=completion.sizes, help="Instance size."
    ),
    Flag(
        name="--chip",
        fields=("chip",),
        parse=str,
        metavar="CHIP",
        names=completion.chips,
        help="Chip, instead of an instance.",
    ),
    Flag(name="--instances", fields=("instances",), parse=COUNT, metavar="N", help="How many instances."),
    Flag(name="--replicas", fields=("replicas",), parse=COUNT, metavar="N", help="Independent copies."),
)

_SPECULATION = (
    DRAFT_TOKENS,
    Flag(
        name="--acceptance",
        fields=("engine.acceptance",),
        parse=fraction,
        metavar="F",
        help="Share of drafted tokens accepted.",
    ),
    prefix_hit("engine.prefix_hit_fraction"),
)

_LOAD = (
    Flag(
        name="--concurrency",
        fields=("concurrency",),
        parse=COUNT,
        metavar="N",
        help="Requests in flight, all replicas.",
    ),
    Flag(
        name="--rate",
        fields=("rate_per_s",),
        parse=positive(parse_rate),
        metavar="R",
        help="Requests a second, all replicas.",
    ),
    Flag(name="--batch", fields=("batch",), parse=COUNT, metavar="N", help="A fixed batch."),
    Flag(name="--offline", fields=("offline",), help="All requests at once: the most throughput."),
)

_TRAINING = (
    Flag(
        name="--global-batch",
        fields=("training.global_batch",),
        parse=COUNT,
        metavar="N",
        help="Sequences of one optimizer step.",
    ),
    Flag(name=LORA_RANK, fields=("training.lora_rank",), parse=COUNT, metavar="R", help="Rank of the adapters."),
)

GROUPS = {
    "Where": _PLACE,
    "Split": SPLIT,
    "Load": (*LENGTHS, CONTEXT, *_LOAD),
    "Engine": (*SERVING, *_SPECULATION),
    "Training instead of serving": (*TRAINING, *_TRAINING),
    "Images, video, audio": MEDIA,
}


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `estimate`."""
    from chipwise.advisor.estimates import estimate
    from chipwise.advisor.request import EstimateRequest

    answer = estimate(build(EstimateRequest, fields))

    output.emit(answer, "estimate")
    return 0 if answer["feasible"] else 1


command = make(
    "estimate",
    run,
    argument=MODEL,
    groups=GROUPS,
    about="How fast MODEL runs on given chips under a given load: latency, throughput, and what bounds them.",
)
