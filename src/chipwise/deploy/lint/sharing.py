"""Checks of shared GPUs: time-slicing, MPS and MIG, in ConfigMaps, pools and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.catalog import load_catalog
from chipwise.deploy.lint.documents import Document, Path_, as_text, at, fields, items, read_text
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import MIG, Pod
from chipwise.deploy.lint.scene import Scene, found

_TURNS = ("timeSlicing", "mps")
_OUTPUTS = ("nvidia.com/gpu.replicas", "nvidia.com/gpu.count", "nvidia.com/gpu.product", "nvidia.com/gpu.memory")
_SETTINGS = ("nvidia.com/mig.config", "nvidia.com/device-plugin.config")


def sharing_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for document in scene.tree.of_kind("ConfigMap"):
        yield from _config(document)
    yield from _pool_labels(scene)
    for pod in scene.pods:
        yield from _profiles(pod)
        yield from _launched(scene, pod)


def _config(document: Document) -> Iterator[Finding]:
    """The plugin's configuration, which stands as text in a ConfigMap."""
    for key, said in fields(document.data.get("data")).items():
        if not any(word in as_text(said) for word in _TURNS):
            continue
        inner, _ = read_text(document.file, as_text(said))
        for one in inner:
            sharing = fields(one.data.get("sharing"))
            for technique in _TURNS:
                if technique in sharing:
                    start = document.line(("data", key)) + one.line(("sharing", technique))
                    yield from _turns(document, ("data", key), fields(sharing[technique]), technique, start)
            if "mps" in sharing and at(one.data, "flags", "migStrategy") not in {None, "none"}:
                why = "the device plugin refuses MPS on MIG slices"
                fix = "set migStrategy: none, or drop mps"
                yield found(document, ("data", key), "mps-with-mig", why=why, fix=fix)


def _turns(document: Document, path: Path_, said: Mapping[str, Any], technique: str, line: int) -> Iterator[Finding]:
    resources = items(said.get("resources"))
    whole = resources and all(as_text(at(one, "name")) and isinstance(at(one, "replicas"), int) for one in resources)
    if not whole:
        why = f"{technique} without resources[] of name and replicas does nothing: the plugin reads no other form"
        fix = f"write {technique}: {{resources: [{{name: nvidia.com/gpu, replicas: 4}}]}}"
        placed = found(document, path, "time-slicing-without-resources", why=why, fix=fix)
        yield Finding(**{**_fields(placed), "line": line})


def _fields(one: Finding) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Finding.__dataclass_fields__}


def _pool_labels(scene: Scene) -> Iterator[Finding]:
    for pool in scene.pools:
        for label in pool.labels:
            path: Path_ = ("spec", "template", "metadata", "labels", label)
            path = (*pool.path, "labels", label) if pool.provisioner == "eksctl" else path
            if label in _OUTPUTS:
                why = f"{label} is what GPU feature discovery reports; setting it configures nothing"
                fix = "set nvidia.com/device-plugin.config to the key of a plugin configuration"
                yield found(pool.document, path, "label-is-output", why=why, fix=fix)
            if label in _SETTINGS and pool.provisioner == "auto-mode":
                why = f"{label} has no reader on EKS Auto Mode: driver and device plugin are built in"
                fix = "use Karpenter or managed node groups for shared GPUs"
                yield found(pool.document, path, "sharing-on-auto-mode", why=why, fix=fix)


def _profiles(pod: Pod) -> Iterator[Finding]:
    catalog = load_catalog()
    for name in (one for one in pod.requests if one.startswith(MIG)):
        profile = name.removeprefix(MIG).replace(".me", "+me")
        for size in pod.instances:
            instance = catalog.instances.get(size)
            if instance is None or instance.chip is None:
                continue
            known = [one.name for one in catalog.chip(instance.chip).mig_profiles]
            if profile not in known:
                has = f"it has {', '.join(known)}" if known else "it has no MIG"
                why = f"{size} ({instance.chip}) has no MIG profile {profile}"
                yield found(pod.document, pod.path, "mig-profile-unknown", why=why, fix=has)


def _launched(scene: Scene, pod: Pod) -> Iterator[Finding]:
    """Nobody launches a node for slices that appear only after it runs."""
    if not any(name.startswith(MIG) for name in pod.requests):
        return
    pools = scene.taking(pod)
    if pools and all(pool.provisioner == "auto-mode" for pool in pools):
        why = "EKS Auto Mode offers no MIG slices: its device plugin takes no configuration"
        fix = "use Karpenter or managed node groups"
        yield found(pod.document, pod.path, "sharing-on-auto-mode", why=why, fix=fix)
    elif pools and not any(pool.static for pool in pools):
        why = "Karpenter does not know how many slices a node will have, so it never launches one for this pod"
        fix = "use a pool of fixed size (spec.replicas) or a managed node group"
        yield found(pod.document, pod.path, "mig-on-dynamic-pool", why=why, fix=fix)
