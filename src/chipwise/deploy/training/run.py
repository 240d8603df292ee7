"""From an option that trains to its objects: the run, how its pods look, its settings, its queue."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen, Run
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, text, trainer_of
from chipwise.deploy.kinds.config_map import ConfigMap
from chipwise.deploy.kinds.job_set import JobSet
from chipwise.deploy.kinds.pod import Container, Place, Pod, Volume, secret_variable, variable
from chipwise.deploy.kinds.replicated_job import JOB, ReplicatedJob
from chipwise.deploy.kinds.train_job import TrainJob
from chipwise.deploy.kinds.training_runtime import TrainingRuntime
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes.shape import Shape, cpu_text
from chipwise.deploy.pods import limits_of, network_environment, shared_memory, why_requests
from chipwise.deploy.serving.launch import IMAGE
from chipwise.deploy.setup.queues import QUEUE_LABEL, queue_name
from chipwise.deploy.training.settings import settings_files
from chipwise.units import show_seconds

SHARED = "/shared"
SETTINGS = "/etc/training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What the parts of a run share."""

    chosen: Chosen
    run: Run
    parameters: Parameters
    name: str
    shape: Shape
    place: Place
    claim: str | None
    topology: bool
    """Whether its nodes stand ready, so that the queue may choose near ones."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Claim to its template, where drivers hand out the devices."""

    @property
    def meta(self) -> Meta:
        """The metadata that its objects share."""
        return marks.own_meta(self.name, self.parameters.namespace)

    @property
    def settings(self) -> str:
        """The name of the ConfigMap with its settings."""
        return f"{self.name}-settings"

    @property
    def nodes(self) -> int:
        """How many nodes it takes."""
        return self.shape.pods_per_replica


def settings_object(of: Training) -> ConfigMap:
    """The settings of the plan, in the trainer's words and in ours."""
    trainer = trainer_of(of.chosen.engine, of.shape.node.vendor)
    return ConfigMap(
        meta=marks.own_meta(of.name, of.parameters.namespace, called=of.settings),
        files=settings_files(of.chosen, trainer.engine),
        about=f"The split and the batch of the plan, mounted at {SETTINGS}: the training script reads them there.",
    )


def training_objects(of: Training) -> tuple[list[object], tuple[str, ...]]:
    """The run and how its pods look, and what a reader must be told."""
    if of.parameters.runner == "jobset":
        return [JobSet(meta=_queued(of), job=_job(of, _torchrun(of)), about=_about(of))], tuple(_remarks(of))
    shell = dataclasses.replace(
        _container(of), command=(), args=(), env=(), cpu=None, limits={}, claims=(), why_resources=""
    )
    runtime = TrainingRuntime(meta=of.meta, nodes=of.nodes, job=_job(of, shell))
    job = TrainJob(
        meta=_queued(of),
        runtime=of.name,
        nodes=of.nodes,
        processes=of.shape.devices_per_pod,
        container=_container(of),
        about=_about(of),
    )
    return [runtime, job], tuple(_remarks(of))


def _queued(of: Training) -> Meta:
    queue = queue_name(of.name, of.parameters, spans=of.shape.spans)
    labels = {**of.meta.labels, **({QUEUE_LABEL: queue} if queue else {})}
    return dataclasses.replace(of.meta, labels=labels)


def _about(of: Training) -> str:
    chosen, run = of.chosen, of.run
    split = ", ".join(f"{axis}={getattr(chosen.split, axis)}" for axis in ("tp", "pp", "ep", "dp", "cp"))
    return (
        f"{run.method} of {chosen.model.name} with {chosen.engine} on {marks.several(of.nodes, 'node')} of "
        f"{chosen.instance}, {marks.several(of.shape.devices_per_pod, 'rank')} each ({split}); "
        f"about {show_seconds(run.duration_s)}."
    )


def _job(of: Training, container: Container) -> ReplicatedJob:
    kubeflow = of.parameters.runner == "trainer"
    near = {"kueue.x-k8s.io/podset-preferred-topology": text("kueue", "layer")} if of.topology else {}
    return ReplicatedJob(
        pod=Pod(
            container=container,
            place=of.place,
            grace_s=int(number("pod", "grace")),
            restart="Never",
            claims=of.claims,
        ),
        nodes=None if kubeflow else of.nodes,
        restarts=int(number("training", "restarts")),
        labels=of.meta.labels,
        annotations={**marks.plan_annotations(of.chosen), "karpenter.sh/do-not-disrupt": "true", **near},
        job_labels={text("trainer", "step_label"): "trainer"} if kubeflow else {},
    )


def _container(of: Training) -> Container:
    trainer = trainer_of(of.chosen.engine, of.shape.node.vendor)
    return Container(
        name=text("trainer", "container"),
        image=of.parameters.image or trainer.image or IMAGE,
        command=("torchrun",),
        args=(of.parameters.script,),
        env=_environment(of),
        cpu=cpu_text(of.shape.cpu_m),
        limits=limits_of(of.shape, memory_bytes=of.shape.memory_bytes),
        claims=tuple(of.claims),
        lock_memory=of.shape.efa > 0,
        volumes=_volumes(of),
        why_resources=why_requests(of.shape),
    )


def _torchrun(of: Training) -> Container:
    """The container of a JobSet: nobody sets torchrun's variables, so its flags say where the first node is."""
    flags = (
        f"--nnodes={of.nodes}",
        f"--nproc-per-node={of.shape.devices_per_pod}",
        "--node-rank=$(JOB_COMPLETION_INDEX)",
        f"--master-addr={of.name}-{JOB}-0-0.{of.name}",
        f"--master-port={int(number('training', 'port'))}",
    )
    return dataclasses.replace(_container(of), args=(*flags, of.parameters.script))


def _environment(of: Training) -> tuple[Mapping[str, Any], ...]:
    made = [
        variable("HF_HOME", f"{SHARED}/hub"),
        secret_variable("HF_TOKEN", of.parameters.secret, "token"),
        variable("SETTINGS_DIR", SETTINGS),
        variable(
            "CHECKPOINT_DIR", f"{SHARED}/checkpoints/{of.name}", "the run goes on from the newest one it finds here"
        ),
        *_checkpoints(of.run),
        *_neuron(of),
        *network_environment(of.shape),
    ]
    return tuple(made)


def _checkpoints(run: Run) -> list[Mapping[str, Any]]:
    if run.checkpoint_interval_s is None or not run.step_s:
        return []
    steps = max(1, round(run.checkpoint_interval_s / run.step_s))
    why = (
        f"every {show_seconds(run.checkpoint_interval_s)}: writing {run.checkpoint_bytes / 1e9:.1f} GB then costs as "
        "much as it is expected to save"
    )
    return [variable("CHECKPOINT_EVERY_STEPS", str(steps), why)]


def _neuron(of: Training) -> list[Mapping[str, Any]]:
    if of.shape.node.vendor != "aws":
        return []
    flags = f"--model-type=transformer --cache_dir={SHARED}/neuron-cache"
    return [
        variable("NEURON_CC_FLAGS", flags, "what is compiled once is found again after a restart"),
        variable("NEURON_LOGICAL_NC_CONFIG", str(of.shape.node.lnc or 1), "build and run with the same value"),
        *([variable("FI_EFA_USE_DEVICE_RDMA", "1"), variable("FI_EFA_FORK_SAFE", "1")] if of.shape.efa else []),
    ]


def _volumes(of: Training) -> tuple[Volume, ...]:
    data = Volume(name="shared", mount=SHARED, claim=of.claim, why="" if of.claim else "lost with its node")
    return (
        shared_memory(of.shape, of.shape.memory_bytes),
        data,
        Volume(name="settings", mount=SETTINGS, config=of.settings),
    )


def _remarks(of: Training) -> list[str]:
    said = [f"{of.parameters.script} is yours: --image and --script name it; it reads {SETTINGS} and CHECKPOINT_DIR"]
    if not of.parameters.image and not trainer_of(of.chosen.engine, of.shape.node.vendor).image:
        said.append(f"{IMAGE} stands for an image with {of.chosen.engine} and your script: --image names it")
    if of.claim is None:
        said.append(
            "checkpoints lie on the nodes' own disks and are lost with them: --file-system and --mount-name name an "
            "FSx for Lustre file system"
        )
    return said
