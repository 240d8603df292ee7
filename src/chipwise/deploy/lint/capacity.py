"""Checks of node pools and node classes: what launches no node, the wrong one, or one that changes underfoot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chipwise.catalog import load_catalog
from chipwise.deploy.lint.documents import Document, Path_, as_text, at, fields, items
from chipwise.deploy.lint.findings import Finding
from chipwise.deploy.lint.pods import EFA, INSTANCE_TYPE
from chipwise.deploy.lint.pools import Pool, limit_of, node_known
from chipwise.deploy.lint.scene import Scene, found
from chipwise.errors import near_names

_GPU_MAKERS = frozenset({"nvidia", "amd"})
_ACCELERATOR_LABELS = ("instance-accelerator-manufacturer", "instance-accelerator-name")
_DOMAIN_OF = {"karpenter": "eks.amazonaws.com/", "auto-mode": "karpenter.k8s.aws/"}
"""The domain that a pool of this provisioner must not use."""
_OWN_LABEL = "karpenter.sh/nodepool"
_CAPACITY_TYPE, _RESERVATION_TYPE = "karpenter.sh/capacity-type", "/capacity-reservation-type"
_COUNTS = {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron"}


def capacity_findings(scene: Scene) -> Iterator[Finding]:
    """Every such fault."""
    for pool in scene.pools:
        yield from _labels(pool)
        yield from _limits(pool)
        yield from _sizes(pool)
        if pool.provisioner != "eksctl":
            yield from _class_of(scene, pool)
            yield from _reserved_pool(scene, pool)
    for document in scene.tree.of_kind("EC2NodeClass"):
        yield from _node_class(scene, document)
    for document in scene.tree.of_kind("ClusterConfig"):
        yield from _groups(document)
    for pod in scene.pods:
        for label, values in fields(pod.spec.get("nodeSelector")).items():
            yield from _maker(pod.document, (*pod.path, "nodeSelector", label), str(label), (str(values),))


def _requirements(pool: Pool) -> Iterator[tuple[Path_, str, tuple[str, ...]]]:
    for place, one in enumerate(items(at(pool.document.data, *pool.path, "requirements"))):
        values = tuple(str(value) for value in items(at(one, "values")))
        yield (*pool.path, "requirements", place, "key"), as_text(at(one, "key")), values


def _labels(pool: Pool) -> Iterator[Finding]:
    own: Path_ = ("spec", "template", "metadata", "labels")
    said = [((*own, key), key, (value,)) for key, value in pool.labels.items()] if pool.provisioner != "eksctl" else []
    for path, key, values in [*_requirements(pool), *said]:
        yield from _maker(pool.document, path, key, values)
        if key == _OWN_LABEL:
            why = "Karpenter sets this label itself and refuses a pool that does"
            yield found(pool.document, path, "nodepool-label", why=why, fix="use a label of your own")
        other = _DOMAIN_OF.get(pool.provisioner)
        if other and key.startswith(other):
            right = _DOMAIN_OF["auto-mode" if pool.provisioner == "karpenter" else "karpenter"]
            why = f"a pool of {pool.provisioner} knows no label of {other.rstrip('/')}: no size fulfils it"
            fix = f"write {right}{key.removeprefix(other)}"
            yield found(pool.document, path, "label-domain", why=why, fix=fix)


def _maker(document: Document, path: Path_, key: str, values: tuple[str, ...]) -> Iterator[Finding]:
    if key.endswith(_ACCELERATOR_LABELS[0]) and _GPU_MAKERS & set(values):
        why = f"{key} stands on Neuron and Gaudi nodes only: no GPU node has {', '.join(values)} there"
        fix = f"write {key.replace('accelerator', 'gpu')}"
        yield found(document, path, "gpu-by-accelerator-label", why=why, fix=fix)


def _limits(pool: Pool) -> Iterator[Finding]:
    for size in pool.requirements.get(INSTANCE_TYPE, ()):
        node = node_known(size)
        resource = _COUNTS.get(node.vendor) if node else None
        most = limit_of(pool, resource) if resource else None
        if node and resource and most is not None and most < node.accelerators:
            why = (
                f"the limit {resource}: {most:g} is below the {node.accelerators} of one {size}: none is ever launched"
            )
            path: Path_ = ("spec", "limits", resource)
            yield found(
                pool.document, path, "pool-never-launches", why=why, fix=f"set it to {node.accelerators} or more"
            )
    if pool.requirements and not pool.sizes and pool.provisioner != "eksctl" and _names_accelerators(pool):
        why = "no size fulfils all its requirements together"
        path = (*pool.path, "requirements")
        yield found(pool.document, path, "pool-never-launches", why=why, fix="drop the one that contradicts the others")


def _names_accelerators(pool: Pool) -> bool:
    """Whether it asks for accelerators of sizes that are known here."""
    sizes = pool.requirements.get(INSTANCE_TYPE, ())
    named = any("-gpu-" in key or "-accelerator-" in key for key in pool.requirements)
    return named and all(node_known(size) for size in sizes)


def _sizes(pool: Pool) -> Iterator[Finding]:
    known = load_catalog().instances
    for size in pool.requirements.get(INSTANCE_TYPE, ()):
        if size and size not in known:
            near = near_names(size, known)
            fix = f"did you mean {' or '.join(near)}?" if near else "check its name"
            path: Path_ = pool.path if pool.provisioner == "eksctl" else (*pool.path, "requirements")
            yield found(pool.document, path, "instance-unknown", why=f"no size is called {size}", fix=fix)


def _class_of(scene: Scene, pool: Pool) -> Iterator[Finding]:
    kind, name = _class_named(pool)
    there = {one.name: one for one in scene.tree.of_kind(kind)} if kind else {}
    path: Path_ = (*pool.path, "nodeClassRef", "name")
    if there and name not in there:
        why = f"no file defines {kind} {name}, though others are here"
        yield found(pool.document, path, "node-class-missing", why=why, fix=f"name one of {', '.join(sorted(there))}")
    reserved = pool.requirements.get(_CAPACITY_TYPE) == ("reserved",)
    if reserved and name in there and not at(there[name].data, "spec", "capacityReservationSelectorTerms"):
        why = f"the pool takes reserved capacity alone, and {kind} {name} selects no reservation: no node is launched"
        fix = "add capacityReservationSelectorTerms with the id or the tags of the reservation"
        yield found(there[name], ("spec",), "reserved-without-selector", why=why, fix=fix)


def _reserved_pool(scene: Scene, pool: Pool) -> Iterator[Finding]:
    """A pool of reservations, by its own requirement or by its node class, that takes no reserved capacity."""
    types = pool.requirements.get(_CAPACITY_TYPE)
    if types is None or "reserved" in types:
        return
    wanted = any(key.endswith(_RESERVATION_TYPE) for key in pool.requirements)
    if wanted or _reservation_unused(scene, pool):
        path = next((path for path, key, _ in _requirements(pool) if key == _CAPACITY_TYPE), pool.path)
        said = "no node is launched" if wanted else "the reservation that its node class selects is never used"
        why = f"reservations and Capacity Blocks are launched as reserved, the pool takes {', '.join(types)}: {said}"
        yield found(pool.document, path, "reservation-not-reserved", why=why, fix=f"set {_CAPACITY_TYPE} to reserved")


def _reservation_unused(scene: Scene, pool: Pool) -> bool:
    """Whether its node class selects reservations and no pool of that class takes reserved capacity."""
    kind, name = own = _class_named(pool)
    classes = [one for one in scene.tree.of_kind(kind) if one.name == name]
    types = [one.requirements.get(_CAPACITY_TYPE) for one in scene.pools if _class_named(one) == own]
    selects = any(at(one.data, "spec", "capacityReservationSelectorTerms") for one in classes)
    return selects and all(one is not None and "reserved" not in one for one in types)


def _class_named(pool: Pool) -> tuple[str, str]:
    """Kind and name of its node class."""
    reference = fields(at(pool.document.data, *pool.path, "nodeClassRef"))
    return as_text(reference.get("kind")), as_text(reference.get("name"))


def _node_class(scene: Scene, document: Document) -> Iterator[Finding]:
    spec = fields(document.data.get("spec"))
    for place, term in enumerate(items(spec.get("amiSelectorTerms"))):
        if as_text(at(term, "alias")).endswith("@latest"):
            why = "nodes are replaced whenever a new image appears, in the middle of the day as well"
            path: Path_ = ("spec", "amiSelectorTerms", place, "alias")
            yield found(document, path, "ami-unpinned", why=why, fix="pin a release, such as al2023@v20260715")
    interfaces = bool(items(spec.get("networkInterfaces")))
    efa = interfaces or any(EFA in pod.requests for pod in scene.pods)
    if spec.get("associatePublicIPAddress") is True and efa:
        why = "EC2 gives no public address to a launch with several interfaces: the launch fails"
        path = ("spec", "associatePublicIPAddress")
        yield found(document, path, "public-address-with-efa", why=why, fix="leave it out; use private subnets")
    if interfaces and spec.get("capacityReservationSelectorTerms"):
        why = "with EFA interfaces here, Karpenter 1.11 to 1.14 never found such a reservation, and said nothing"
        fix = "let pods ask for EFA instead of listing the interfaces, or check that a node appears"
        yield found(document, ("spec", "networkInterfaces"), "reserved-with-interfaces", why=why, fix=fix)


def _groups(document: Document) -> Iterator[Finding]:
    for place, group in enumerate(items(document.data.get("managedNodeGroups"))):
        path: Path_ = ("managedNodeGroups", place)
        block = at(group, "instanceMarketOptions", "marketType") == "capacity-block"
        yield from _reserved_group(document, path, fields(group), block=block)
        zones = items(at(group, "availabilityZones"))
        if (block or at(group, "efaEnabled")) and len(zones) > 1:
            why = "EFA does not cross zones, and a Capacity Block stands in one"
            fix = "name the one zone"
            yield found(document, (*path, "availabilityZones"), "efa-zones", why=why, fix=fix)


def _reserved_group(document: Document, path: Path_, group: Mapping[str, object], *, block: bool) -> Iterator[Finding]:
    target = fields(at(group, "capacityReservation", "capacityReservationTarget"))
    if block and not target:
        why = "a Capacity Block is used only by its id or its resource group"
        fix = "add capacityReservation.capacityReservationTarget.capacityReservationID"
        yield found(document, path, "capacity-block-without-reservation", why=why, fix=fix)
