"""`chipwise plan`: which instances, how many, split how, bought how, and why not the others."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from chipwise.errors import InputError
from chipwise.interfaces.cli import completion
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag, build
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.parsers import at_least_one, choice, fraction, number, positive, price, weeks
from chipwise.interfaces.cli.question_file import read_question
from chipwise.interfaces.cli.shared_flags import CONTEXT, COUNT, ENGINES, LENGTHS, MEDIA, MODEL, prefix_hit
from chipwise.units import parse_count, parse_rate, parse_seconds, parse_usd

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.decide import Advice

_SECONDS = positive(parse_seconds)
_NAMES = tuple[str, ...]
_FEATURES = (
    *("fp8", "fp4", "int8", "stochastic-rounding", "sparsity", "mig", "nvlink"),
    *("efa", "gds", "gpudirect", "ultracluster", "fp32", "tf32", "fp16", "bf16", "mxfp8", "int4"),
)

_WANT = (
    Flag(
        name="--for",
        fields=("purpose",),
        parse=str,
        metavar="PRESET",
        names=completion.presets,
        help="What it is for: chat, rag, code, lora, …",
    ),
    Flag(
        name="--goal",
        fields=("goal",),
        parse=str,
        metavar="GOAL[,SECOND]",
        help="latency, quality, concurrency, cost, time-to-train or training-cost; a second one orders.",
    ),
    Flag(
        name="--ttft-p99",
        fields=("ttft_p99_s",),
        parse=_SECONDS,
        metavar="TIME",
        help="P99 time to first token.",
    ),
    Flag(
        name="--tpot-p99",
        fields=("tpot_p99_s",),
        parse=_SECONDS,
        metavar="TIME",
        help="P99 time per output token.",
    ),
    Flag(name="--users", fields=("users",), parse=COUNT, metavar="N", help="Requests in flight at peak."),
    Flag(
        name="--think",
        fields=("think_s",),
        parse=_SECONDS,
        metavar="TIME",
        help="Pause of a person between requests.",
    ),
    Flag(
        name="--rate",
        fields=("rate_per_s",),
        parse=positive(parse_rate),
        metavar="R",
        help="Requests a second at peak.",
    ),
    Flag(
        name="--throughput",
        fields=("throughput_tokens_per_s",),
        parse=positive(parse_rate),
        metavar="R",
        help="Output tokens a second; images, seconds of audio or rows where the model answers whole.",
    ),
    *LENGTHS,
    CONTEXT,
    prefix_hit("prefix_hit_fraction"),
)

_RUN = (
    Flag(
        name="--tokens",
        fields=("tokens",),
        parse=positive(parse_count),
        metavar="N",
        help="Training tokens of one epoch; images, clips or rows of a model that reads no tokens.",
    ),
    Flag(
        name="--epochs",
        fields=("epochs",),
        parse=positive(number),
        metavar="N",
        help="How often they are seen.",
    ),
    Flag(
        name="--global-batch",
        fields=("global_batch",),
        parse=COUNT,
        metavar="N",
        help="Sequences of one optimizer step; samples of a model that reads no tokens.",
    ),
    Flag(
        name="--deadline",
        fields=("deadline_s",),
        parse=_SECONDS,
        metavar="TIME",
        help="The run must end within.",
    ),
    Flag(
        name="--budget",
        fields=("budget_usd",),
        parse=positive(parse_usd),
        metavar="USD",
        help="The run must not cost more.",
    ),
)

_BUY = (
    Flag(
        name="--region",
        fields=("regions",),
        parse=str,
        many=_NAMES,
        listed=True,
        metavar="REGION",
        names=completion.regions,
        help="Repeatable.",
    ),
    Flag(
        name="--purchase",
        fields=("purchase",),
        parse=choice("any", "on-demand", "spot", "savings-plan", "capacity-block", "reserved"),
        metavar="HOW",
        help="any, on-demand, spot, savings-plan, capacity-block or reserved.",
    ),
    Flag(
        name="--price",
        fields=("prices_usd_per_hour",),
        parse=price,
        many=dict,
        metavar="TYPE=USD",
        help="Your own price of a size, per hour; repeatable.",
    ),
    Flag(
        name="--vendor",
        fields=("vendor",),
        parse=choice("any", "nvidia", "neuron"),
        metavar="any|nvidia|neuron",
        help="Whose chips.",
    ),
    Flag(
        name="--only",
        fields=("only",),
        parse=str,
        many=_NAMES,
        listed=True,
        metavar="TYPE",
        names=completion.sizes,
        help="Only these sizes.",
    ),
    Flag(
        name="--exclude",
        fields=("exclude",),
        parse=str,
        many=_NAMES,
        listed=True,
        metavar="TYPE",
        names=completion.sizes,
        help="Not these sizes.",
    ),
)

_NEED = (
    Flag(
        name="--needs",
        fields=("needs",),
        parse=choice(*_FEATURES),
        many=_NAMES,
        listed=True,
        metavar="FEATURE",
        names=lambda: _FEATURES,
        help="Features it must have: fp8, fp4, int8, mig, nvlink, efa, …; repeatable.",
    ),
    Flag(
        name="--min-precision",
        fields=("min_precision",),
        parse=str,
        metavar="FORMAT",
        help="Weights not below this format.",
    ),
    Flag(
        name="--isolation",
        fields=("isolation",),
        parse=choice("none", "memory", "hardware"),
        metavar="none|memory|hardware",
        help="Between tenants of one GPU.",
    ),
    Flag(
        name="--team",
        fields=("team",),
        parse=choice("cuda", "neuron", "none"),
        metavar="cuda|neuron|none",
        help="What the team knows.",
    ),
    Flag(
        name="--timeline",
        fields=("timeline_weeks",),
        parse=positive(weeks),
        metavar="WEEKS",
        help="Weeks until production.",
    ),
    Flag(
        name="--stability",
        fields=("stability",),
        parse=choice("exploring", "steady"),
        metavar="exploring|steady",
        help="Whether models still change, or one stays under a steady load.",
    ),
    Flag(name="--custom-kernels", fields=("custom_kernels",), help="The model needs kernels of its own."),
    Flag(
        name="--ha",
        fields=("ha_factor",),
        parse=at_least_one,
        metavar="FACTOR",
        help="Headroom for failures.",
    ),
    Flag(name="--availability", fields=("availability",), parse=fraction, metavar="F", help="Such as 99.9%."),
    Flag(
        name="--engine",
        fields=("engine",),
        parse=choice(*ENGINES),
        metavar="|".join(ENGINES),
        help="Only this serving engine; neuron: whichever part of the Neuron SDK runs the model.",
    ),
    Flag(name="--strict-guide", fields=("strict_guide",), help="Apply the guide's rules to the letter."),
    Flag(name="--simulate", fields=("simulate",), help="Percentiles by simulation."),
)

WORKLOAD = Flag(
    name="--workload",
    fields=("workload",),
    parse=str,
    metavar="FILE.yaml",
    help="Flags from a file, a line each (for: lora, tokens: 50M, deadline: 3d); those given here win.",
)

OF_MODEL = Flag(name="--model", fields=("model",), parse=str, help="What a file of flags may name besides them.")

GROUPS = {
    "Workload": _WANT,
    "Images, video, audio": MEDIA,
    "Training run": _RUN,
    "What may be bought": _BUY,
    "What it must have": _NEED,
}
OPTIONAL_MODEL = dataclasses.replace(MODEL, required=False)
"""MODEL, which the file of flags may name instead."""
QUESTION = tuple(flag for flags in GROUPS.values() for flag in flags)
ALL = {**GROUPS, "A question in a file": (WORKLOAD,)}
"""What `plan` takes, and every command that puts the same question."""

DEPLOY = Flag(
    name="--deploy",
    fields=("deploy",),
    parse=str,
    metavar="DIR",
    help="Also write the manifests of option 1 into DIR, as chipwise deploy does.",
)


def asked(fields: dict[str, Any]) -> Request:
    """The question of the flags; where a file holds one too, its MODEL perhaps among it, the flags win.

    Raises:
        InputError: the file cannot be read or holds what is no flag; no MODEL is named.
    """
    from chipwise.advisor.request import Request

    flags = {name: value for name, value in fields.items() if name != "workload"}
    path = fields.get("workload")
    said = flags if path is None else {**read_question(path, (*QUESTION, OF_MODEL)), **flags}
    if "model" not in said:
        raise InputError("MODEL is missing", why="there is nothing to plan for", fix="name it, or write model: in FILE")
    return build(Request, said)


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `advise`."""
    from chipwise.advisor.plans import advise

    folder = fields.get("deploy")
    request = asked({name: value for name, value in fields.items() if name != "deploy"})
    advice = advise(request, lambda words: output.say(f"plan, {words}"))
    if folder is not None and advice.options:
        _deploy(advice, folder)
    output.emit(advice, "plan")
    return 0 if advice.options else 1


def _deploy(advice: Advice, folder: str) -> None:
    """Write the manifests of the first option; what is said of them goes to stderr."""
    from chipwise.deploy.asked.chosen import choose
    from chipwise.deploy.asked.plan_file import Part
    from chipwise.interfaces.cli.commands.deploy import written
    from chipwise.report.json import as_json

    answer = written(choose(Part(value=as_json(advice), where="")), {"folder": folder})
    for line in (f"{len(answer['files'])} files written into {folder}", *answer["warnings"]):
        click.echo(line, err=True)


command = make(
    "plan",
    run,
    argument=OPTIONAL_MODEL,
    groups={**ALL, "Manifests": (DEPLOY,)},
    about="Which instances for MODEL, how many, split how, at which precision; and why not the others.",
)
