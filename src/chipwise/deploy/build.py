"""From an option and your parameters to the files: the wiring of the room."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy import marks
from chipwise.deploy.bundle import Bundle, File, files_of
from chipwise.deploy.capacity import (
    Capacity,
    disk_gib,
    fallback_shapes,
    most_nodes,
    most_replicas,
    purchase_of,
)
from chipwise.deploy.chosen import Chosen
from chipwise.deploy.facts import text, vendor_text
from chipwise.deploy.kinds.namespace import Namespace
from chipwise.deploy.kinds.pod import Place
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes import node_of
from chipwise.deploy.parameters import STAND_IN, Parameters, with_changes
from chipwise.deploy.plan_file import broken
from chipwise.deploy.queues import queue_objects
from chipwise.deploy.readme import Told, readme
from chipwise.deploy.serving import Serving, serving_objects
from chipwise.deploy.shape import Shape, shape_of, smallest
from chipwise.deploy.storage import claim_name, storage_objects
from chipwise.deploy.targets import TARGETS
from chipwise.deploy.training import Training, settings_object, training_objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the files are made from."""

    chosen: Chosen
    parameters: Parameters
    name: str
    shape: Shape
    fallbacks: tuple[Shape, ...]

    @property
    def space(self) -> str:
        """The namespace."""
        return self.parameters.namespace or "default"

    @property
    def training(self) -> bool:
        """Whether a model is trained, not served."""
        return self.chosen.work == "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What runs on the nodes: its objects, those that must stand before it, and what a reader must be told."""

    folder: str
    setup: list[object]
    objects: list[object]
    remarks: tuple[str, ...]


def deploy(chosen: Chosen, parameters: Parameters) -> Bundle:
    """Every file of the deployment, README.md first.

    Raises:
        InputError: a parameter and the plan contradict.
        InfeasibleError: the option cannot be laid onto nodes.
        KnowledgeError: too little is known of its node, chip or engine.
    """
    parts = _parts(chosen, parameters)
    work = _training(parts) if parts.training else _serving(parts)
    launched, remarks = TARGETS[parts.parameters.target](_capacity(parts), parts.parameters)
    space = Namespace(meta=Meta(name=parts.space))
    setup = [space, *storage_objects(parts.name, parts.parameters), *work.setup]
    files = [*files_of("setup", setup), *files_of("capacity", launched), *files_of(work.folder, work.objects)]
    warnings = (*work.remarks, *remarks, *_stand_ins(parts))
    return Bundle(files=(_page(parts, files, warnings), *files), warnings=warnings)


def _parts(chosen: Chosen, parameters: Parameters) -> Parts:
    name = parameters.name or marks.default_name(chosen)
    region = parameters.region or next(iter(chosen.regions), None)
    space = parameters.namespace or ("training" if chosen.work == "training" else "inference")
    settled = with_changes(parameters, {"name": name, "region": region, "namespace": space})
    nodes = chosen.instances if chosen.work == "training" else None
    shape = shape_of(node_of(chosen.instance), devices=chosen.devices_per_replica, pods=nodes)
    fallbacks = fallback_shapes(chosen, shape, purchase_of(chosen, settled))
    return Parts(chosen=chosen, parameters=settled, name=name, shape=shape, fallbacks=fallbacks)


def _serving(parts: Parts) -> Work:
    cpu_m, memory_bytes = smallest((parts.shape, *parts.fallbacks))
    objects, remarks = serving_objects(
        Serving(
            chosen=parts.chosen,
            parameters=parts.parameters,
            name=parts.name,
            shape=parts.shape,
            place=place_of(parts),
            cpu_m=cpu_m,
            memory_bytes=memory_bytes,
            cache_claim=claim_name(parts.name, parts.parameters),
            most_replicas=most_replicas(parts.chosen, parts.parameters),
        )
    )
    return Work(folder="serving", setup=[], objects=objects, remarks=remarks)


def _training(parts: Parts) -> Work:
    if parts.chosen.run is None:
        raise broken("run", "is missing, and the option trains")
    near = parts.shape.spans and (parts.parameters.target == "eksctl" or parts.parameters.static)
    of = Training(
        chosen=parts.chosen,
        run=parts.chosen.run,
        parameters=parts.parameters,
        name=parts.name,
        shape=parts.shape,
        place=place_of(parts),
        claim=claim_name(parts.name, parts.parameters),
        topology=near,
    )
    objects, remarks = training_objects(of)
    queue = queue_objects(parts.name, parts.parameters, parts.shape, of.place, topology=near)
    return Work(folder="training", setup=[settings_object(of), *queue], objects=objects, remarks=remarks)


def place_of(parts: Parts) -> Place:
    """The sizes its pods may stand on, the taint they bear, and the scheduler that deals parts of a node's chips."""
    vendor = parts.shape.node.vendor
    partial = vendor == "aws" and not parts.shape.whole_node and parts.shape.node.accelerators > 1
    return Place(
        instances=(parts.chosen.instance, *(one.node.instance for one in parts.fallbacks)),
        taint=vendor_text(vendor, "taint"),
        scheduler=text("aws", "scheduler") if partial else None,
    )


def _capacity(parts: Parts) -> Capacity:
    chosen, shape = parts.chosen, parts.shape
    return Capacity(
        name=parts.name,
        node=shape.node,
        nodes=chosen.instances,
        most_nodes=most_nodes(chosen, parts.parameters, shape),
        purchase=purchase_of(chosen, parts.parameters),
        training=parts.training,
        efa=shape.efa > 0,
        disk_gib=disk_gib(chosen, shape),
        fallbacks=tuple(one.node for one in parts.fallbacks),
        static=parts.parameters.static,
    )


def _stand_ins(parts: Parts) -> list[str]:
    given, said = parts.parameters, []
    if given.cluster == STAND_IN:
        said.append(f"{STAND_IN} stands for your cluster's name: --cluster names it")
    if not parts.shape.node.printed:
        said.append(f"what a node of {parts.chosen.instance} can allocate is derived, not printed: check the requests")
    return said


def _page(parts: Parts, files: list[File], warnings: tuple[str, ...]) -> File:
    return readme(
        Told(
            chosen=parts.chosen,
            parameters=parts.parameters,
            name=parts.name,
            node=parts.shape.node,
            files=files,
            components=_components(parts),
            warnings=warnings,
        )
    )


def _components(parts: Parts) -> list[str]:
    found = []
    if parts.shape.efa and parts.parameters.target == "karpenter":
        found.append("efa-plugin")
    if place_of(parts).scheduler:
        found.append("neuron-scheduler")
    if parts.parameters.file_system:
        found.append("fsx-csi")
    if parts.parameters.scaler == "hpa":
        found.append("prometheus-adapter")
    return found
