"""`chipwise deploy`: manifests for an option of a plan; `chipwise deploy lint` checks anybody's."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import InputError
from chipwise.interfaces.cli import completion
from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.groups import DefaultGroup
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.shared_flags import COUNT

if TYPE_CHECKING:
    from chipwise.deploy.asked.parameters import Parameters


def _pairs(given: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE texts as a mapping.

    Raises:
        InputError: a text without `=`.
    """
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text!r} is no tag", why="a tag is KEY=VALUE", fix="write --subnet-tag KEY=VALUE")
        found[key] = value
    return found


def _text(name: str, metavar: str, about: str) -> Flag:
    field = name.lstrip("-").replace("-", "_")
    return Flag(name=name, fields=(field,), parse=str, metavar=metavar, help=about)


def _tags(name: str, field: str, about: str) -> Flag:
    return Flag(name=name, fields=(field,), parse=str, many=_pairs, metavar="KEY=VALUE", help=about)


GROUPS = {
    "What is written": (
        Flag(
            name="--output", short="-o", fields=("folder",), parse=str, metavar="DIR", help="The folder to write into."
        ),
        Flag(name="--option", fields=("option",), parse=COUNT, metavar="N", help="Which option of the plan."),
        _text("--target", "karpenter|auto-mode|eksctl", "What launches the nodes."),
        _text("--form", "plain|kustomize|helm", "Plain YAML, Kustomize, or values of the vLLM production stack."),
        Flag(name="--dry-run", fields=("dry_run",), help="Say what would be written, and write nothing."),
        Flag(name="--force", fields=("force",), help="Write over files that chipwise did not write."),
    ),
    "The workload": (
        _text("--name", "NAME", "Name of the deployment; else the model's."),
        _text("--namespace", "NAME", "Namespace it lives in."),
        _text("--image", "IMAGE", "Container image; else the engine's published one."),
        _text("--checkpoint", "ID|PATH", "What the engine loads; else the model's Hugging Face id."),
        _text("--runner", "trainer|jobset", "What runs a training run: Kubeflow Trainer, or a JobSet alone."),
        _text("--script", "PATH", "Training script in the image."),
        _text("--secret", "NAME", "The Secret that holds a Hugging Face token under the key token."),
        _text("--file-system", "fs-ID", "FSx for Lustre file system that all pods share."),
        _text("--mount-name", "NAME", "Its mount name."),
        _text("--scaler", "keda|hpa|none", "What adds replicas."),
        Flag(name="--max-replicas", fields=("max_replicas",), parse=COUNT, metavar="N", help="Most replicas."),
        _text("--prometheus", "URL", "Where the autoscaler asks."),
        _text("--queue", "NAME", "Kueue LocalQueue of a training run that you have; none for no queue."),
        _text("--gateway", "NAME", "Gateway to route through, by the inference extension."),
        _text("--devices", "plugin|dra", "Who hands out devices: the device plugin, or claims."),
        _text("--sharing", "plan|none|mig|time-slicing|mps", "How one GPU is shared."),
        Flag(name="--tenants", fields=("tenants",), parse=COUNT, metavar="N", help="Pods that share one GPU."),
    ),
    "The nodes": (
        _text("--cluster", "NAME", "Name of the EKS cluster."),
        Flag(
            name="--region",
            fields=("region",),
            parse=str,
            metavar="REGION",
            names=completion.regions,
            help="Its Region.",
        ),
        _text("--zone", "ZONE", "The one zone of the nodes."),
        _text("--account", "ID", "Account that owns the reservation, where it is not yours."),
        _text("--role", "NAME", "IAM role of the nodes."),
        _tags("--subnet-tag", "subnet_tags", "Tags of the subnets; repeatable."),
        _tags("--security-group-tag", "security_group_tags", "Tags of the security groups; repeatable."),
        _text("--purchase", "on-demand|spot|reserved|capacity-block", "How the nodes are bought; else as planned."),
        _text("--reservation", "cr-ID", "Capacity Reservation or Capacity Block."),
        _tags("--reservation-tag", "reservation_tags", "Tags of the reservation, instead of its id; repeatable."),
        _text("--placement-group", "NAME", "Placement group of the nodes."),
        _text("--ami-alias", "ALIAS", "AMI release, such as al2023@v20260715."),
        Flag(name="--static", fields=("static",), help="A pool of fixed size, as planned."),
    ),
}


def run(fields: dict[str, Any], output: Output) -> int:
    """Write the files, or say which they would be."""
    from chipwise.deploy.asked.chosen import choose
    from chipwise.deploy.asked.plan_file import read_plan

    fields = dict(fields)
    plan, option = fields.pop("plan"), fields.pop("option", 1)
    answer = written(choose(read_plan(plan), option), fields)
    output.emit(answer, "deploy")
    return 0


def written(chosen: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What `deploy` answers, the files written unless it is a dry run.

    Raises:
        InputError: no folder is named, or a file stands in the way.
    """
    from chipwise.deploy.build import bundle_of
    from chipwise.deploy.written.answer import answer_of
    from chipwise.deploy.written.folder import write

    folder, dry_run = fields.get("folder"), bool(fields.get("dry_run"))
    if folder is None and not dry_run:
        raise InputError("no folder is named", why="the manifests are files", fix="name one: -o DIR, or try --dry-run")
    bundle = bundle_of(chosen, _parameters(fields))
    if not dry_run:
        write(bundle, Path(folder or ""), force=bool(fields.get("force")))
    return answer_of(bundle, folder, dry_run=dry_run)


def _parameters(fields: Mapping[str, Any]) -> Parameters:
    from chipwise.deploy.asked.parameters import Parameters

    names = {field.name for field in dataclasses.fields(Parameters)}
    return Parameters(**{name: value for name, value in fields.items() if name in names})


def run_lint(fields: dict[str, Any], output: Output) -> int:
    """Check the manifests of a folder or file."""
    from chipwise.deploy.lint import ERROR, lint

    findings = lint(Path(fields["folder"]))
    output.emit({"findings": findings}, "deploy_lint")
    return 1 if any(one.severity == ERROR for one in findings) else 0


command = DefaultGroup(
    "deploy",
    help="EKS manifests for an option of a plan.",
    no_args_is_help=False,
    commands={
        "": make(
            "deploy",
            run,
            argument=Argument(field="plan", files=True),
            groups=GROUPS,
            about="EKS manifests for an option of PLAN, which plan --json printed; - reads stdin.\n\n"
            "Nothing is applied. "
            "chipwise deploy lint DIR checks anybody's manifests.",
            short="",
        ),
        "lint": make(
            "lint",
            run_lint,
            argument=Argument(field="folder", files=True),
            groups={},
            about="Faults of the manifests in FOLDER (or one file) that no schema sees. Exit status 1 on an error.",
        ),
    },
)
