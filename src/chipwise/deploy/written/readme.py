"""README.md beside the manifests: what each file is, what to install first, how to apply, check and remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, told
from chipwise.deploy.written.bundle import File

FOLDERS = {
    "setup": "namespace, storage, queues and device settings",
    "capacity": "the nodes",
    "serving": "the service",
    "training": "the run",
}
"""In the order in which they are applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the page is made from."""

    chosen: Chosen
    parameters: Parameters
    name: str
    files: Sequence[File]
    components: Sequence[str]
    """What must be installed first."""
    warnings: Sequence[str]


def readme(of: Told) -> File:
    """The page."""
    blocks = [*_head(of), *_install(of), *_files(of), *_apply(of), *_check(of), *_remove(of), *_warnings(of)]
    text = "\n".join(blocks).rstrip() + "\n"
    return File(path="README.md", text=text, kind=None, api_version=None, about="This page.")


def _head(of: Told) -> Iterator[str]:
    chosen = of.chosen
    split = " ".join(f"{axis}={getattr(chosen.split, axis)}" for axis in ("tp", "pp", "ep", "dp", "cp"))
    yield f"# {of.name}: {chosen.model.name} on {chosen.instances} x {chosen.instance}"
    yield ""
    yield f"Option {chosen.rank} of a plan with facts of {chosen.facts_as_of}, by chipwise deploy. Nothing was applied."
    yield ""
    devices = marks.several(chosen.devices_per_replica, "device")
    yield f"- {marks.several(chosen.replicas, 'replica')} of {devices}: {split}"
    yield f"- weights {chosen.precision.weights}, cache {chosen.precision.kv}, computed in {chosen.precision.compute}"
    yield f"- engine {' '.join(filter(None, [chosen.engine, chosen.engine_version]))}"
    yield ""


def _install(of: Told) -> Iterator[str]:
    yield "## Install first"
    yield ""
    newest = told("kubernetes", "version")
    yield f"Kubernetes {newest} or the newest that EKS offers; a cluster named {of.parameters.cluster}."
    yield ""
    for component in of.components:
        title, version = told(component, "title") or component, told(component, "version")
        yield f"- {title}{f' {version}' if version else ''}"
        command = _command(of, component)
        if command:
            yield f"  `{command}`"
    yield ""


def _command(of: Told, component: str) -> str:
    """What installs a component; a device plugin that the files configure is told of its configuration."""
    command = told(component, "install") or ""
    configured = any(f"name: {of.name}-plugin" in file.text for file in of.files)
    more = told(component, "config") if configured else None
    words = " ".join(filter(None, [command, more]))
    return words.replace("{cluster}", of.parameters.cluster).replace("{name}", of.name)


def _files(of: Told) -> Iterator[str]:
    yield "## Files"
    yield ""
    for file in of.files:
        yield f"- `{file.path}`: {f'{file.kind}. ' if file.kind else ''}{file.about}".rstrip()
    yield ""


def _apply(of: Told) -> Iterator[str]:
    yield "## Apply"
    yield ""
    yield "```sh"
    yield from apply_commands(of)
    yield "```"
    yield ""


def apply_commands(of: Told) -> Iterator[str]:
    """The commands, in order."""
    if of.parameters.form == "kustomize":
        yield from _nodegroups(of, "create")
        if secret := list(_secret(of)):
            yield from (f"kubectl create namespace {of.parameters.namespace}", *secret)
        trial = any("overlays/trial" in file.path for file in of.files)
        yield "kubectl apply -k overlays/production" + ("   # or overlays/trial: one replica" if trial else "")
        return
    for folder in _folders(of.files):
        if folder == "capacity" and of.parameters.target == "eksctl":
            yield from _nodegroups(of, "create")
        else:
            yield from _compiled(of, folder)
            yield f"kubectl apply -f {folder}/"
        if folder == "setup":
            yield from _secret(of)
    if of.parameters.form == "helm":
        chart, repository = told("production-stack", "chart") or "", told("production-stack", "repository")
        yield f"helm repo add {chart.partition('/')[0]} {repository}"
        yield f"helm upgrade --install {of.name} {chart} --namespace {of.parameters.namespace} -f values.yaml"


def _compiled(of: Told, folder: str) -> Iterator[str]:
    """The Job that must be over before what stands beside it is applied."""
    for file in of.files:
        if file.kind == "Job" and file.path.startswith(f"{folder}/"):
            longest = f"{int(number('startup', 'compile_floor') * number('startup', 'margin'))}s"
            yield f"kubectl apply -f {file.path}"
            yield (
                f"kubectl -n {of.parameters.namespace} wait --for=condition=complete --timeout={longest} "
                f"job/{of.name}-compile"
            )


def _secret(of: Told) -> Iterator[str]:
    """The Secret that pods read a token from, where any does."""
    if any("secretKeyRef:" in file.text or "hf_token:" in file.text for file in of.files):
        yield (
            f"kubectl -n {of.parameters.namespace} create secret generic {of.parameters.secret} "
            "--from-literal=token=YOUR_TOKEN   # for a gated or private model"
        )


def _nodegroups(of: Told, verb: str) -> Iterator[str]:
    if of.parameters.target == "eksctl":
        more = " --approve" if verb == "delete" else f" {told('eksctl', 'create_flags')}"
        paths = [file.path for file in of.files if file.kind == "ClusterConfig"]
        yield from (f"eksctl {verb} nodegroup -f {path}{more}" for path in paths)


def _folders(files: Iterable[File]) -> list[str]:
    present = {file.path.partition("/")[0] for file in files if file.kind}
    return [folder for folder in FOLDERS if folder in present]


def _check(of: Told) -> Iterator[str]:
    space, port = of.parameters.namespace, int(number("serve", "port"))
    yield "## Check"
    yield ""
    yield "```sh"
    if of.parameters.target != "eksctl":
        yield "kubectl get nodepools,nodeclaims"
    if of.chosen.work == "training":
        yield f"kubectl -n {space} get trainjobs,jobsets,pods"
        yield f"kubectl -n {space} logs -l jobset.sigs.k8s.io/jobset-name={of.name} -f"
    else:
        yield f"kubectl -n {space} get pods -o wide"
        yield f"kubectl -n {space} port-forward svc/{of.name} {port} &"
        yield f"curl -s localhost:{port}/v1/models"
    yield "```"
    yield ""


def _remove(of: Told) -> Iterator[str]:
    yield "## Remove"
    yield ""
    yield "```sh"
    if of.parameters.form == "helm":
        yield f"helm uninstall {of.name} --namespace {of.parameters.namespace}"
    if of.parameters.form == "kustomize":
        yield "kubectl delete -k overlays/production"
        yield from _nodegroups(of, "delete")
    else:
        for folder in reversed(_folders(of.files)):
            if folder == "capacity" and of.parameters.target == "eksctl":
                yield from _nodegroups(of, "delete")
            else:
                yield f"kubectl delete -f {folder}/"
    yield "```"
    yield ""


def _warnings(of: Told) -> Iterator[str]:
    if of.warnings:
        yield "## Mind"
        yield ""
        yield from (f"- {warning}" for warning in of.warnings)
