"""From an option and your parameters to the files: the wiring of the room."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen, Pool
from chipwise.deploy.asked.parameters import STAND_IN, Parameters, with_changes
from chipwise.deploy.asked.plan_file import broken
from chipwise.deploy.facts import text
from chipwise.deploy.kinds.namespace import Namespace
from chipwise.deploy.kinds.pod import Place
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes.capacity import (
    Capacity,
    disk_gib,
    fallback_shapes,
    most_nodes,
    most_replicas,
    purchase_of,
    taint_of,
)
from chipwise.deploy.nodes.node import CPU, node_of
from chipwise.deploy.nodes.shape import Shape, shape_of, smallest
from chipwise.deploy.nodes.targets import LAUNCHERS, merged
from chipwise.deploy.serving.around import device_monitor
from chipwise.deploy.serving.disaggregated import disaggregated_objects, of_pool
from chipwise.deploy.serving.replica import Serving
from chipwise.deploy.serving.workload import serving_objects
from chipwise.deploy.setup.claims import CLAIM, claim_remarks, claim_template
from chipwise.deploy.setup.queues import queue_objects
from chipwise.deploy.setup.sharing import Sharing, sharing_objects, sharing_of
from chipwise.deploy.setup.storage import claim_name, storage_objects
from chipwise.deploy.training.run import Training, settings_object, training_objects
from chipwise.deploy.written.bundle import Bundle, File, files_of
from chipwise.deploy.written.components import components_of
from chipwise.deploy.written.forms import kustomized, production_stack
from chipwise.deploy.written.readme import Told, readme


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the files are made from, settled."""

    chosen: Chosen
    parameters: Parameters
    name: str
    space: str
    shape: Shape
    fallbacks: tuple[Shape, ...]
    sharing: Sharing | None
    remarks: tuple[str, ...]

    @property
    def training(self) -> bool:
        """Whether a model is trained, not served."""
        return self.chosen.work == "training"

    @property
    def claims(self) -> Mapping[str, str]:
        """Claim to its template; empty where the device plugin serves."""
        return {CLAIM: f"{self.name}-{CLAIM}"} if self.shape.claims else {}

    @property
    def node_labels(self) -> Mapping[str, str]:
        """Labels of the nodes by which drivers and plugins are steered."""
        shared = self.sharing.node_labels if self.sharing else {}
        return {**shared, **_claiming(self.shape)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What runs on the nodes: its objects, those that must stand before it, and what a reader must be told."""

    folder: str
    setup: list[object]
    objects: list[object]
    remarks: tuple[str, ...]


def bundle_of(chosen: Chosen, parameters: Parameters) -> Bundle:
    """Every file of the deployment, README.md first.

    Raises:
        InputError: a parameter and the plan contradict.
        InfeasibleError: the option cannot be laid onto nodes.
        KnowledgeError: too little is known of its node, chip or engine.
    """
    parts = _settled(chosen, parameters)
    work = _work(parts)
    launched, remarks = _launched(parts)
    before = [*files_of("setup", [*_setup(parts), *work.setup]), *files_of("capacity", launched)]
    files = _in_form(parts, before, work)
    warnings = tuple(dict.fromkeys([*work.remarks, *parts.remarks, *remarks, *_stand_ins(parts)]))
    return Bundle(files=(_page(parts, files, warnings), *files), warnings=warnings)


def _work(parts: Parts) -> Work:
    if parts.training:
        return _training(parts)
    if parts.chosen.pools:
        of_pools = [(pool, _served(_pool_parts(parts, pool))) for pool in parts.chosen.pools]
        objects, remarks = disaggregated_objects(of_pools)
    else:
        objects, remarks = serving_objects(_served(parts))
    return Work(folder="serving", setup=[], objects=objects, remarks=remarks)


def _launched(parts: Parts) -> tuple[list[object], tuple[str, ...]]:
    """The nodes of the option, or of each of its pools."""
    launch = LAUNCHERS[parts.parameters.target]
    if not parts.chosen.pools:
        return launch(_capacity(parts, parts.name), parts.parameters)
    made = [
        launch(_capacity(_pool_parts(parts, pool), f"{parts.name}-{pool.role}"), parts.parameters)
        for pool in parts.chosen.pools
    ]
    return merged([one for objects, _ in made for one in objects]), tuple(
        said for _, remarks in made for said in remarks
    )


def _pool_parts(parts: Parts, pool: Pool) -> Parts:
    """The same deployment as one of its pools has it; whole nodes speak EFA, since caches travel between them."""
    chosen = of_pool(parts.chosen, pool)
    shape = _shape(chosen, parts.parameters, None)
    if shape.whole_node:
        shape = dataclasses.replace(shape, efa=shape.node.efa)
    return dataclasses.replace(parts, chosen=chosen, shape=shape, fallbacks=())


def _settled(chosen: Chosen, parameters: Parameters) -> Parts:
    name = parameters.name or marks.default_name(chosen)
    space = parameters.namespace or ("training" if chosen.work == "training" else "inference")
    sharing, remarks = sharing_of(chosen, parameters)
    fixed = parameters.static or (sharing is not None and parameters.target == "karpenter")
    settled = with_changes(
        parameters,
        {
            "name": name,
            "namespace": space,
            "region": parameters.region or next(iter(chosen.regions), None),
            "static": fixed,
        },
    )
    shape = _shape(chosen, settled, sharing)
    claimed = claim_remarks(settled, shape) if shape.claims else ()
    return Parts(
        chosen=chosen,
        parameters=settled,
        name=name,
        space=space,
        shape=shape,
        fallbacks=() if sharing or fixed else fallback_shapes(chosen, shape, purchase_of(chosen, settled)),
        sharing=sharing,
        remarks=(*remarks, *claimed, *_region_taken(chosen, parameters)),
    )


def _region_taken(chosen: Chosen, parameters: Parameters) -> tuple[str, ...]:
    """That the Region written into files is nobody's choice, where neither plan nor parameters name one."""
    written = parameters.target == "eksctl" or parameters.file_system
    if not written or parameters.region or chosen.regions_named or not chosen.regions:
        return ()
    others = f"the first of {len(chosen.regions)} that offer" if len(chosen.regions) > 1 else "one that offers"
    return (f"no Region was named: {chosen.regions[0]} is {others} {chosen.instance}; --region names yours",)


def _shape(chosen: Chosen, parameters: Parameters, sharing: Sharing | None) -> Shape:
    nodes = chosen.instances if chosen.work == "training" else None
    share = sharing.share if sharing else None
    shape = shape_of(node_of(chosen.instance), devices=chosen.devices_per_replica, pods=nodes, share=share)
    return dataclasses.replace(
        shape,
        claims=parameters.devices == "dra" and shape.node.vendor != CPU,
        huge_pages=parameters.static or parameters.target == "eksctl",
    )


def _setup(parts: Parts) -> list[object]:
    """What must stand before nodes and pods: the namespace, storage, device settings."""
    made: list[object] = [Namespace(meta=Meta(name=parts.space)), *storage_objects(parts.name, parts.parameters)]
    if parts.shape.claims:
        made.append(claim_template(parts.name, parts.parameters, parts.shape, parts.sharing))
    if parts.sharing:
        made += sharing_objects(parts.name, parts.sharing)
    devices = marks.own_meta(parts.name, parts.space, called=f"{parts.name}-devices")
    vendor = parts.shape.node.vendor
    return made if vendor == CPU else [*made, device_monitor(devices, vendor, operated=_sliced(parts.sharing))]


def _sliced(sharing: Sharing | None) -> bool:
    """Whether GPUs are cut into slices, which the operator of the vendor does."""
    return sharing is not None and sharing.profile is not None


def _served(parts: Parts) -> Serving:
    cpu_m, memory_bytes = smallest((parts.shape, *parts.fallbacks))
    return Serving(
        chosen=parts.chosen,
        parameters=parts.parameters,
        name=parts.name,
        shape=parts.shape,
        place=_place(parts),
        cpu_m=cpu_m,
        memory_bytes=memory_bytes,
        cache_claim=claim_name(parts.name, parts.parameters),
        most_replicas=most_replicas(parts.chosen, parts.parameters),
        memory_fraction=parts.sharing.memory_fraction if parts.sharing else 1.0,
        claims=parts.claims,
    )


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
        place=_place(parts),
        claim=claim_name(parts.name, parts.parameters),
        topology=near,
        claims=parts.claims,
    )
    objects, remarks = training_objects(of)
    queue = queue_objects(parts.name, parts.parameters, parts.shape, of.place, topology=near)
    return Work(folder="training", setup=[settings_object(of), *queue], objects=objects, remarks=remarks)


def _place(parts: Parts) -> Place:
    """The sizes its pods may stand on, the taint they bear, and the scheduler that deals parts of a node's chips."""
    vendor = parts.shape.node.vendor
    partial = vendor == "aws" and not parts.shape.whole_node and parts.shape.node.accelerators > 1
    return Place(
        instances=(parts.chosen.instance, *(one.node.instance for one in parts.fallbacks)),
        taint=taint_of(parts.shape.node),
        labels=_claiming(parts.shape),
        scheduler=text("aws", "scheduler") if partial and not parts.shape.claims else None,
    )


def _claiming(shape: Shape) -> Mapping[str, str]:
    """The label of nodes whose devices a driver hands out, and no plugin."""
    return {text("dra", "label"): "dra"} if shape.claims else {}


def _capacity(parts: Parts, name: str) -> Capacity:
    chosen, shape = parts.chosen, parts.shape
    return Capacity(
        name=name,
        node=shape.node,
        nodes=chosen.instances,
        most_nodes=most_nodes(chosen, parts.parameters, shape),
        purchase=purchase_of(chosen, parts.parameters),
        training=parts.training,
        efa=shape.efa > 0,
        disk_gib=disk_gib(chosen, shape),
        fallbacks=tuple(one.node for one in parts.fallbacks),
        labels=parts.node_labels,
        static=parts.parameters.static and parts.parameters.target != "eksctl",
    )


def _in_form(parts: Parts, before: list[File], work: Work) -> list[File]:
    if parts.parameters.form == "helm":
        return [*before, production_stack(work.objects)]
    files = [*before, *files_of(work.folder, work.objects)]
    return kustomized(files, parts.name) if parts.parameters.form == "kustomize" else files


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
            files=files,
            components=components_of(
                files, parts.parameters, parts.shape, sharing=parts.sharing, scheduler=_place(parts).scheduler
            ),
            warnings=warnings,
        )
    )
