"""How nodes are bought and launched, what EKS Auto Mode does not have, how one GPU is shared, and claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from chipwise.deploy.asked.chosen import Chosen, choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.written.bundle import Bundle
from chipwise.errors import InfeasibleError, InputError

Frozen = Callable[[str], dict[str, Any]]
RESERVATION = "cr-0123456789abcdef0"


def made(frozen: Frozen, name: str, rank: int = 1, **parameters: Any) -> Bundle:
    chosen: Chosen = choose(Part(value=frozen(name), where=""), rank)
    return bundle_of(chosen, Parameters(**{"region": "us-west-2", **parameters}))


def document(bundle: Bundle, kind: str) -> dict[str, Any]:
    return dict(yaml.safe_load(next(file.text for file in bundle.files if file.kind == kind)))


def requirements(pool: dict[str, Any]) -> dict[str, list[str]]:
    return {one["key"]: one["values"] for one in pool["spec"]["template"]["spec"]["requirements"]}


@pytest.mark.parametrize(
    ("purchase", "capacity", "reservation"),
    [
        ("on-demand", "on-demand", None),
        ("spot", "spot", None),
        ("reserved", "reserved", "default"),
        ("capacity-block", "reserved", "capacity-block"),
    ],
)
@pytest.mark.parametrize("target", ["karpenter", "auto-mode"])
def test_a_pool_is_bought_one_way(
    frozen: Frozen, target: str, purchase: str, capacity: str, reservation: str | None
) -> None:
    bundle = made(frozen, "chat-8b", target=target, purchase=purchase, reservation=RESERVATION)
    asked = requirements(document(bundle, "NodePool"))
    domain = "karpenter.k8s.aws" if target == "karpenter" else "eks.amazonaws.com"
    assert asked["karpenter.sh/capacity-type"] == [capacity]
    assert asked.get(f"{domain}/capacity-reservation-type") == (None if reservation is None else [reservation])
    node_class = document(bundle, "EC2NodeClass" if target == "karpenter" else "NodeClass")
    terms = node_class["spec"].get("capacityReservationSelectorTerms")
    assert terms == (None if reservation is None else [{"id": RESERVATION}])


def test_the_owner_of_a_reservation_is_called_differently(frozen: Frozen) -> None:
    given: dict[str, Any] = {"purchase": "reserved", "account": "123456789012", "reservation_tags": {"team": "a"}}
    karpenter = document(made(frozen, "chat-8b", **given), "EC2NodeClass")
    auto = document(made(frozen, "chat-8b", target="auto-mode", **given), "NodeClass")
    terms = [one["spec"]["capacityReservationSelectorTerms"][0] for one in (karpenter, auto)]
    assert terms == [
        {"tags": {"team": "a"}, "ownerID": "123456789012"},
        {"tags": {"team": "a"}, "owner": "123456789012"},
    ]


def test_the_plan_says_how_it_is_bought(frozen: Frozen) -> None:
    asked = requirements(document(made(frozen, "chat-spot", 2), "NodePool"))
    assert asked["karpenter.sh/capacity-type"] == ["spot"]
    block = made(frozen, "chat-70b-block", 2)
    assert requirements(document(block, "NodePool"))["karpenter.sh/capacity-type"] == ["reserved"]
    assert any("drains" in warning for warning in block.warnings)


def test_eksctl_buys_a_block_by_its_id(frozen: Frozen) -> None:
    bundle = made(frozen, "chat-70b-block", 2, target="eksctl", reservation=RESERVATION, zone="us-west-2a")
    (group,) = document(bundle, "ClusterConfig")["managedNodeGroups"]
    assert group["capacityReservation"]["capacityReservationTarget"]["capacityReservationID"] == RESERVATION
    assert group["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert group["availabilityZones"] == ["us-west-2a"]
    assert "spot" not in group


def test_a_static_pool_of_nodes_with_efa_spells_its_interfaces(frozen: Frozen) -> None:
    interfaces = document(made(frozen, "chat-deepseek", 2, static=True), "EC2NodeClass")["spec"]["networkInterfaces"]
    assert interfaces[0] == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert [one["networkCardIndex"] for one in interfaces[1:]] == [0, 1, 2, 3]
    assert {one["interfaceType"] for one in interfaces[1:]} == {"efa-only"}
    assert "networkInterfaces" not in document(made(frozen, "chat-deepseek", 2), "EC2NodeClass")["spec"]


@pytest.mark.parametrize(
    "parameters",
    [{"placement_group": "near"}, {"ami_alias": "al2023@v20260715"}, {"static": True}, {"sharing": "mig"}],
)
def test_what_auto_mode_does_not_have_is_refused(frozen: Frozen, parameters: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        made(frozen, "tenants", target="auto-mode", **parameters)


def test_slices_of_the_plan_become_whole_gpus_on_auto_mode(frozen: Frozen) -> None:
    bundle = made(frozen, "tenants", target="auto-mode")
    limits = document(bundle, "Deployment")["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "1"
    assert any("whole GPU" in warning for warning in bundle.warnings)


def test_a_region_that_nobody_named_is_said(frozen: Frozen) -> None:
    plan = frozen("chat-8b")
    first = {**plan["options"][0], "regions": ["ap-northeast-1", "us-east-1"]}
    said = "no Region was named: ap-northeast-1 is the first of 2 that offer"

    def minds(named: list[Any], **given: Any) -> bool:
        option = {**first, "region_advice": named}
        chosen = choose(Part(value={**plan, "options": [option]}, where=""), plan["options"][0]["rank"])
        return any(said in text for text in bundle_of(chosen, Parameters(**given)).warnings)

    assert minds([], target="eksctl")
    assert minds([], file_system="fs-0123456789abcdef0", mount_name="fsx")
    assert not minds([], target="eksctl", region="us-east-1")
    assert not minds([{"region": "ap-northeast-1"}], target="eksctl")
    assert not minds([])  # Karpenter's files name no Region


def test_eksctl_needs_the_region(frozen: Frozen) -> None:
    plan = {**frozen("chat-8b")}
    plan["options"] = [{**plan["options"][0], "regions": []}]
    with pytest.raises(InputError, match="Region is missing"):
        bundle_of(choose(Part(value=plan, where="")), Parameters(target="eksctl"))


def test_slices_stand_on_a_fixed_pool_with_their_label(frozen: Frozen) -> None:
    bundle = made(frozen, "tenants")
    pool = document(bundle, "NodePool")
    config = next(yaml.safe_load(file.text) for file in bundle.files if file.kind == "ConfigMap")
    label = pool["spec"]["template"]["metadata"]["labels"]["nvidia.com/mig.config"]
    assert pool["spec"]["replicas"] == 1
    layouts = yaml.safe_load(config["data"]["config.yaml"])["mig-configs"]
    profile = label.removeprefix("all-")
    limits = document(bundle, "Deployment")["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits[f"nvidia.com/mig-{profile}"] == "1"
    assert profile in layouts[label][0]["mig-devices"]
    assert any("isolation hardware" in warning for warning in bundle.warnings)


def test_turns_divide_the_memory(frozen: Frozen) -> None:
    bundle = made(frozen, "chat-70b-block", 3, sharing="none")
    assert "nvidia.com/gpu.shared" not in "".join(file.text for file in bundle.files)
    with pytest.raises(InputError, match="cannot be had"):
        made(frozen, "chat-70b-block", 3, sharing="time-slicing", tenants=2)
    with pytest.raises(InfeasibleError, match="do not fit"):
        made(frozen, "chat-8b", sharing="time-slicing", tenants=16)
    with pytest.raises(InputError, match="cannot be had"):
        made(frozen, "chat-8b", sharing="time-slicing")
    with pytest.raises(InputError, match="cannot be had"):
        made(frozen, "chat-8b", sharing="mig")


@pytest.mark.parametrize("technique", ["time-slicing", "mps"])
def test_turns_are_set_in_the_one_form_that_works(frozen: Frozen, technique: str) -> None:
    plan = {**frozen("chat-8b")}
    chip = {"capacity_bytes": 47674136986, "free_bytes": 30e9, "reserved_bytes": 3e9, "weights_bytes": 8e9}
    plan["options"] = [{**plan["options"][0], "memory": {"chips": 1, "per_chip": chip}}]
    bundle = bundle_of(
        choose(Part(value=plan, where="")),
        Parameters(region="us-west-2", sharing=technique, tenants=2),  # type: ignore[arg-type] # both are choices
    )
    config = next(yaml.safe_load(file.text) for file in bundle.files if file.kind == "ConfigMap")["data"]
    pool = document(bundle, "NodePool")["spec"]["template"]["metadata"]["labels"]
    key = pool["nvidia.com/device-plugin.config"]
    rules = yaml.safe_load(config[key])["sharing"]["timeSlicing" if technique == "time-slicing" else "mps"]
    assert rules["resources"] == [{"name": "nvidia.com/gpu", "replicas": 2}]
    pod = document(bundle, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert pod["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"
    assert "--gpu-memory-utilization=0.46" in pod["args"]


def test_claims_take_the_place_of_counts(frozen: Frozen) -> None:
    bundle = made(frozen, "chat-deepseek", 2, devices="dra")
    template = document(bundle, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"]
    assert {one["name"]: one["exactly"]["count"] for one in template} == {"gpu": 8, "efa": 4}
    assert {one["exactly"]["allocationMode"] for one in template} == {"ExactCount"}
    spec = document(bundle, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    resources = spec["containers"][0]["resources"]
    assert not [name for name in resources["limits"] if "/" in name]
    assert resources["claims"] == [{"name": "devices"}]
    assert spec["nodeSelector"]["device-manager"] == "dra"
    assert document(bundle, "NodePool")["spec"]["template"]["metadata"]["labels"] == {"device-manager": "dra"}
    assert any("1.15" in warning for warning in bundle.warnings)
    assert any("1.36" in warning for warning in made(frozen, "chat-8b", devices="dra", target="auto-mode").warnings)


def test_neuron_claims_go_where_nodes_stand(frozen: Frozen) -> None:
    for target in ("karpenter", "auto-mode"):
        with pytest.raises(InputError, match="launch no node"):
            made(frozen, "chat-70b", devices="dra", target=target)
    devices = document(made(frozen, "chat-70b", devices="dra", target="eksctl"), "ResourceClaimTemplate")
    config = devices["spec"]["spec"]["devices"]["config"][0]["opaque"]
    assert config["parameters"]["logicalNeuronCore"] == 2
    assert devices["spec"]["spec"]["devices"]["constraints"][0]["matchAttribute"].endswith("devicegroup1_id")


def test_a_run_restarts_as_a_whole_and_knows_its_checkpoint(frozen: Frozen) -> None:
    bundle = made(frozen, "lora-spot", file_system="fs-0123456789abcdef0", mount_name="fsx")
    job = document(bundle, "TrainingRuntime")["spec"]["template"]["spec"]
    assert job["failurePolicy"]["rules"][0]["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    env = {one["name"]: one.get("value") for one in document(bundle, "TrainJob")["spec"]["trainer"]["env"]}
    run, step = frozen("lora-spot")["options"][0]["run"], frozen("lora-spot")["options"][0]["performance"]["training"]
    steps = run["checkpoint_interval_s"] / step["step_s"]["mid"]
    assert int(env["CHECKPOINT_EVERY_STEPS"]) == max(1, round(steps))
    assert env["CHECKPOINT_DIR"].startswith("/shared/")


def test_near_nodes_are_chosen_only_among_those_that_stand(frozen: Frozen) -> None:
    ways: dict[str, dict[str, Any]] = {
        "dynamic": {},
        "static": {"static": True},
        "groups": {"target": "eksctl"},
        "yours": {"queue": "team"},
        "none": {"queue": "none"},
    }
    kinds = {name: {file.kind for file in made(frozen, "pretrain-70b", **given).files} for name, given in ways.items()}
    assert "Topology" not in kinds["dynamic"]
    assert "LocalQueue" in kinds["dynamic"]
    assert "Topology" in kinds["static"] & kinds["groups"]
    assert "LocalQueue" not in kinds["yours"] | kinds["none"]
    labels = document(made(frozen, "pretrain-70b", queue="team"), "TrainJob")["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team"
