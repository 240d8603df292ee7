"""Devices by dynamic resource allocation: the claim of a pod, and where and from which version on it is had."""

from __future__ import annotations

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import text, vendor_text
from chipwise.deploy.kinds.resource_claim_template import DeviceRequest, ResourceClaimTemplate
from chipwise.deploy.nodes.shape import Shape
from chipwise.deploy.setup.sharing import Sharing
from chipwise.errors import InputError

CLAIM = "devices"


def claim_template(name: str, parameters: Parameters, shape: Shape, sharing: Sharing | None) -> ResourceClaimTemplate:
    """The claim of every pod.

    Raises:
        InputError: the driver hands out no such set of devices.
    """
    meta = marks.own_meta(name, parameters.namespace, called=f"{name}-{CLAIM}")
    if shape.node.vendor == "aws":
        return _neuron(meta.name, name, parameters, shape)
    if sharing is not None and not sharing.profile:
        raise InputError(
            f"{sharing.technique} does not go with --devices dra",
            why="sharing by turns is alpha in the NVIDIA driver and off by default",
            fix="use --devices plugin",
        )
    gpus = next(iter(shape.resources.values()))
    requests = [_gpu(gpus, sharing)]
    if shape.efa:
        requests.append(DeviceRequest(name="efa", device_class=text("efa", "device_class"), count=shape.efa))
    return ResourceClaimTemplate(
        meta=meta, requests=requests, about="What each pod claims from the drivers; the device plugins stay out of it."
    )


def _gpu(count: int, sharing: Sharing | None) -> DeviceRequest:
    if sharing is None:
        return DeviceRequest(name="gpu", device_class=text("nvidia", "device_class"), count=count)
    profile = f"device.attributes['{text('nvidia', 'device_class')}'].profile == '{sharing.profile}'"
    return DeviceRequest(name="gpu", device_class=text("nvidia", "mig_class"), count=1, expression=profile)


def _neuron(called: str, name: str, parameters: Parameters, shape: Shape) -> ResourceClaimTemplate:
    count = shape.resources.get(text("aws", "resource"), 0)
    sizes = [int(size) for size in text("aws", "group_sizes").split()]
    if count not in sizes or shape.efa:
        why = f"its driver hands out {', '.join(map(str, sizes))} connected devices, and no EFA with them here"
        raise InputError(
            f"{count or 'parts of'} Neuron devices cannot be claimed so", why=why, fix="use --devices plugin"
        )
    driver = text("aws", "device_class")
    size = f"device.attributes['{driver}'].instanceType == '{shape.node.instance}'"
    parameters_ = {
        "apiVersion": text("aws", "claim_parameters"),
        "kind": "NeuronConfig",
        "logicalNeuronCore": shape.node.lnc or 1,
    }
    return ResourceClaimTemplate(
        meta=marks.own_meta(name, parameters.namespace, called=called),
        requests=[DeviceRequest(name="neuron", device_class=driver, count=count, expression=size)],
        together=text("aws", "group_attribute").format(count=count),
        driver=driver,
        parameters=parameters_,
        about="What each pod claims from the Neuron driver: devices that are joined to one another.",
    )


def claim_remarks(parameters: Parameters, shape: Shape) -> tuple[str, ...]:
    """From which versions on claims work there; and what must not be installed beside the driver.

    Raises:
        InputError: no node would ever be launched for them.
    """
    neuron = shape.node.vendor == "aws"
    if neuron and (parameters.target == "auto-mode" or (parameters.target == "karpenter" and not parameters.static)):
        raise InputError(
            "Neuron claims launch no node here",
            why="EKS Auto Mode has no Neuron driver, and Karpenter does not know Neuron claims",
            fix="use --target eksctl, --static, or --devices plugin",
        )
    said = [f"claims need Kubernetes {text('kubernetes', 'dra_since')} or newer"]
    if parameters.target == "auto-mode":
        said = [f"claims on EKS Auto Mode need Kubernetes {text('auto-mode', 'dra_since')} or newer"]
    if parameters.target == "karpenter" and not neuron:
        said.append(f"claims need Karpenter {text('karpenter', 'dra_since')} with {text('dra', 'gate')}")
    plugin = vendor_text(shape.node.vendor, "resource")
    label = f"{text('dra', 'label')}: dra"
    said.append(f"driver and plugin must never serve one device: keep the plugin for {plugin} off nodes with {label}")
    return tuple(said)
