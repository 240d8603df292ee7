"""What must be installed in the cluster before the files are applied, each thing once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import kinds, vendor_text
from chipwise.deploy.nodes.node import CPU
from chipwise.deploy.nodes.shape import Shape
from chipwise.deploy.setup.sharing import Sharing
from chipwise.deploy.written.bundle import File

_IN_KUBERNETES = "kubernetes"


def components_of(
    files: Sequence[File], parameters: Parameters, shape: Shape, *, sharing: Sharing | None, scheduler: str | None
) -> list[str]:
    """Names of the table's components: what the kinds of the files need, then what nodes and pods need."""
    of_kinds = [kinds()[file.kind].component for file in files if file.kind]
    found = [*of_kinds, *_on_nodes(parameters, shape, sharing), *_beside(parameters, scheduler)]
    return [one for one in dict.fromkeys(found) if one != _IN_KUBERNETES]


def _on_nodes(parameters: Parameters, shape: Shape, sharing: Sharing | None) -> Iterator[str]:
    """What hands out devices; on EKS Auto Mode it is there already."""
    if shape.node.vendor == CPU:
        return
    if parameters.target == "auto-mode":
        yield vendor_text(shape.node.vendor, "monitor")
        return
    sliced = sharing is not None and sharing.profile is not None
    if sliced:
        yield "gpu-operator"  # which brings the plugin and the monitor
    if shape.claims:
        yield vendor_text(shape.node.vendor, "driver")
    elif not sliced:
        yield vendor_text(shape.node.vendor, "plugin")
    if not sliced:
        yield vendor_text(shape.node.vendor, "monitor")
    if shape.efa and parameters.target == "karpenter":
        yield "efa-dra" if shape.claims else "efa-plugin"


def _beside(parameters: Parameters, scheduler: str | None) -> Iterator[str]:
    if scheduler:
        yield scheduler
    if parameters.file_system:
        yield "fsx-csi"
    if parameters.form == "helm":
        yield "production-stack"
    if parameters.scaler == "hpa":
        yield "prometheus-adapter"
