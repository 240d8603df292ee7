"""Checks of dynamic resource allocation: claims, their requests, and the drivers that serve them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chipwise.deploy.facts import text
from chipwise.deploy.lint.documents import Document, Path_, as_text, at, fields, items
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import Pod, accelerators
from chipwise.deploy.lint.scene import Scene, found

MODES = ("ExactCount", "All")
_CLAIM_KINDS = frozenset({"ResourceClaim", "ResourceClaimTemplate"})


def claim_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for document in scene.tree.documents:
        if document.kind in _CLAIM_KINDS:
            yield from _modes(document)
            yield from _classes(scene, document)
    for pod in scene.pods:
        yield from _named(pod)
        yield from _both(scene, pod)
        yield from _served(scene, pod)


def requests_of(document: Document) -> Iterator[tuple[Path_, Mapping[str, Any]]]:
    """Every device request of a claim with its place: exact ones and alternatives."""
    spec: Path_ = ("spec", "spec") if document.kind == "ResourceClaimTemplate" else ("spec",)
    for place, one in enumerate(items(at(document.data, *spec, "devices", "requests"))):
        path: Path_ = (*spec, "devices", "requests", place)
        yield (*path, "exactly"), fields(at(one, "exactly"))
        for number, other in enumerate(items(at(one, "firstAvailable"))):
            yield (*path, "firstAvailable", number), fields(other)
        if "deviceClassName" in fields(one) or "allocationMode" in fields(one):
            yield path, fields(one)


def claimed_classes(documents: Iterable[Document], pod: Pod) -> set[str]:
    """The device classes of the claims of a pod, as far as their templates are here."""
    wanted = {as_text(at(one, "resourceClaimTemplateName")) for one in pod.claims}
    return {
        as_text(request.get("deviceClassName"))
        for document in documents
        if document.kind == "ResourceClaimTemplate" and document.name in wanted
        for _, request in requests_of(document)
    }


def claimed_devices(documents: Iterable[Document], pod: Pod) -> int:
    """How many GPUs or Neuron devices the claims of a pod ask for; 0 where it cannot be told."""
    wanted = {as_text(at(one, "resourceClaimTemplateName")) for one in pod.claims}
    classes = {text("nvidia", "device_class"), text("nvidia", "mig_class"), text("aws", "device_class")}
    total = 0
    for document in documents:
        if document.kind == "ResourceClaimTemplate" and document.name in wanted:
            for _, request in requests_of(document):
                own = as_text(request.get("deviceClassName"))
                if own in classes or own.startswith("mig-"):
                    count = request.get("count", 1)
                    total += count if isinstance(count, int) else 0
    return total


def _modes(document: Document) -> Iterator[Finding]:
    for path, request in requests_of(document):
        mode = request.get("allocationMode")
        if mode is not None and mode not in MODES:
            why = f"allocationMode {mode!r} is refused by the API server: it takes {' or '.join(MODES)}, written so"
            near = next((one for one in MODES if one.lower() == str(mode).lower()), MODES[0])
            yield found(document, (*path, "allocationMode"), "allocation-mode-case", why=why, fix=f"write {near}")


def _classes(scene: Scene, document: Document) -> Iterator[Finding]:
    keys = (("nvidia", "device_class"), ("nvidia", "mig_class"), ("aws", "device_class"), ("efa", "device_class"))
    known = {text(*key) for key in keys} | {one.name for one in scene.tree.of_kind("DeviceClass")}
    for path, request in requests_of(document):
        name = as_text(request.get("deviceClassName"))
        if name and name not in known:
            why = f"no known driver and no file here provides the device class {name}"
            fix = f"use one of {', '.join(sorted(known))}"
            yield found(document, (*path, "deviceClassName"), "device-class-unknown", why=why, fix=fix)


def _named(pod: Pod) -> Iterator[Finding]:
    has = {as_text(at(one, "name")) for one in pod.claims}
    for container in pod.containers():
        for place, claim in enumerate(items(at(container.data, "resources", "claims"))):
            name = as_text(at(claim, "name"))
            if name not in has:
                path: Path_ = (*container.path, "resources", "claims", place)
                why = f"the container names the claim {name}, which the pod's resourceClaims do not hold"
                yield found(pod.document, path, "claim-missing", why=why, fix=f"add resourceClaims: [{{name: {name}}}]")


def _both(scene: Scene, pod: Pod) -> Iterator[Finding]:
    asked = accelerators(pod.requests)
    if asked and pod.claims and claimed_devices(scene.tree.documents, pod):
        why = f"the pod claims devices from a driver and asks the plugin for {', '.join(asked)} as well"
        fix = "keep one: driver and plugin must never serve one device, and Karpenter counts both"
        yield found(pod.document, (*pod.path, "resourceClaims"), "claim-and-plugin", why=why, fix=fix)


def _served(scene: Scene, pod: Pod) -> Iterator[Finding]:
    """Neuron's driver is not on EKS Auto Mode, and Karpenter launches no node for its claims."""
    neuron = text("aws", "device_class") in claimed_classes(scene.tree.documents, pod)
    pools = scene.taking(pod)
    if neuron and pools and all(pool.provisioner != "eksctl" and not pool.static for pool in pools):
        why = "no node is launched for Neuron claims: EKS Auto Mode has no Neuron driver, Karpenter does not know it"
        fix = "use managed node groups or a pool of fixed size, or ask the device plugin: aws.amazon.com/neuron"
        yield found(pod.document, (*pod.path, "resourceClaims"), "dra-not-there", why=why, fix=fix)
