"""What only you know: names, images, accounts, regions. Every text is checked before it reaches a file.

A name that Kubernetes or AWS would not take, or that could end a YAML value or a shell word, is refused.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chipwise.errors import InputError

Target = Literal["karpenter", "auto-mode", "eksctl"]
Form = Literal["plain", "kustomize", "helm"]
Scaler = Literal["keda", "hpa", "none"]
Devices = Literal["plugin", "dra"]
Runner = Literal["trainer", "jobset"]
Sharing = Literal["plan", "none", "mig", "time-slicing", "mps"]

TARGETS: tuple[Target, ...] = ("karpenter", "auto-mode", "eksctl")
FORMS: tuple[Form, ...] = ("plain", "kustomize", "helm")
SCALERS: tuple[Scaler, ...] = ("keda", "hpa", "none")
RUNNERS: tuple[Runner, ...] = ("trainer", "jobset")
DEVICES: tuple[Devices, ...] = ("plugin", "dra")
SHARINGS: tuple[Sharing, ...] = ("plan", "none", "mig", "time-slicing", "mps")
PURCHASES = ("on-demand", "spot", "reserved", "capacity-block")

STAND_IN = "CLUSTER"
"""Stands for the name of your cluster until you say it."""

_NAME = r"[a-z]([-a-z0-9]{0,34}[a-z0-9])?"
_HOST = r"[a-zA-Z0-9]([-.a-zA-Z0-9]*[a-zA-Z0-9])?"
_FORMS: Mapping[str, tuple[str, str]] = {
    "name": (_NAME, "a lower-case letter, then letters, digits and hyphens, at most 36: chat-70b"),
    "namespace": (r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "lower-case letters, digits and hyphens, at most 63"),
    "image": (
        r"(?=.{1,512}\Z)[a-z0-9]+([._/:-]+[a-zA-Z0-9_]+)*(@sha256:[0-9a-f]{64})?",
        "an image reference such as vllm/vllm-openai:v0.33.0",
    ),
    "checkpoint": (
        r"(?=.{1,512}\Z)(s3://|/)?[A-Za-z0-9][\w.=-]*(/[A-Za-z0-9][\w.=-]*)*/?",
        "a model id, a path or an s3:// address",
    ),
    "script": (r"/?[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*", "the path of a script in the image"),
    "account": (r"\d{12}", "twelve digits"),
    "region": (r"[a-z]{2}(-[a-z]+)+-\d{1,2}", "an AWS Region such as us-west-2"),
    "zone": (r"[a-z]{2}(-[a-z]+)+-\d{1,2}[a-z]|[a-z]{2}(-[a-z]+)+-\d{1,2}(-[a-z]+)+-\d[a-z]", "a zone: us-west-2a"),
    "cluster": (r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", "letters, digits, hyphens and underscores, at most 100"),
    "role": (r"[\w+=,.@][\w+=,.@-]{0,63}", "the name of an IAM role"),
    "reservation": (r"cr-[0-9a-f]{8,17}", "the id of a Capacity Reservation or Capacity Block: cr-0123456789abcdef0"),
    "placement_group": (r"[\w.:/=+@][\w.:/=+@-]{0,254}", "the name of a placement group"),
    "ami_alias": (r"(al2023|bottlerocket)@(latest|v\d[\d.]*)", "such as al2023@v20260715"),
    "file_system": (r"fs-[0-9a-f]{8,17}", "the id of an FSx for Lustre file system: fs-0123456789abcdef0"),
    "mount_name": (r"[a-zA-Z0-9_]{1,8}", "the mount name of the file system: at most eight letters and digits"),
    "queue": (r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "the name of a Kueue LocalQueue"),
    "secret": (r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", "the name of a Secret"),
    "prometheus": (rf"https?://{_HOST}(:\d{{1,5}})?(/[\w.~/-]*)?", "the address of Prometheus: http://prometheus:9090"),
    "gateway": (r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "the name of a Gateway"),
}
"""Field to what matches it whole, and what that is in words."""
_TAG_KEY = re.compile(r"[\w.:/=+@-][\w.:/=+@ -]{0,126}")
_TAG_VALUE = re.compile(r"[\w.:/=+@ -]{0,256}")
_TAKEN = frozenset({"vllm"})
"""A Service of this name gives every pod of its namespace VLLM_PORT=tcp://…, which vLLM reads as its own setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What the manifests say beside the plan. None: the plan, or a table of the room, decides.

    >>> Parameters(name="x; rm -rf /")
    Traceback (most recent call last):
    ...
    chipwise.errors.InputError: name 'x; rm -rf /' is not a name that manifests may carry
    """

    name: str | None = None
    namespace: str | None = None
    target: Target = "karpenter"
    form: Form = "plain"
    image: str | None = None
    checkpoint: str | None = None
    """What the engine loads; else the model's Hugging Face id."""
    script: str = "train.py"
    runner: Runner = "trainer"
    """What runs a training run: Kubeflow Trainer, or a JobSet alone."""
    account: str | None = None
    region: str | None = None
    zone: str | None = None
    cluster: str = STAND_IN
    role: str | None = None
    subnet_tags: Mapping[str, str] = field(default_factory=dict)
    security_group_tags: Mapping[str, str] = field(default_factory=dict)
    purchase: str | None = None
    reservation: str | None = None
    reservation_tags: Mapping[str, str] = field(default_factory=dict)
    placement_group: str | None = None
    ami_alias: str | None = None
    static: bool = False
    """A pool of fixed size instead of one that follows the pods."""
    devices: Devices = "plugin"
    sharing: Sharing = "plan"
    tenants: int | None = None
    """Pods that share one GPU by turns."""
    scaler: Scaler = "keda"
    max_replicas: int | None = None
    prometheus: str | None = None
    secret: str = "hf-token"  # noqa: S105 - the name of a Secret, no secret
    """The Secret whose key `token` is a Hugging Face token; never the token itself."""
    file_system: str | None = None
    mount_name: str | None = None
    queue: str | None = None
    """Your Kueue LocalQueue, or `none` for no queue; None: one is written where a run spans nodes."""
    gateway: str | None = None
    """Route through this Gateway by the inference extension."""

    def __post_init__(self) -> None:
        """Check every text.

        Raises:
            InputError: a text that Kubernetes or AWS would refuse, or that is none.
        """
        for name, (pattern, form) in _FORMS.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII)):
                raise _refused(name, value, f"it takes {form}")
        if self.name in _TAKEN:
            why = "a Service of that name sets VLLM_PORT in every pod of its namespace, and vLLM reads it"
            raise InputError(f"name {self.name!r} is taken", why=why, fix="choose another: --name chat")
        for name in ("subnet_tags", "security_group_tags", "reservation_tags"):
            _check_tags(name, getattr(self, name))
        _check_choices(self)


def is_checkpoint(name: str) -> bool:
    """Whether an engine may be told to load this: an id, a path or an address, and no flag.

    >>> is_checkpoint("meta-llama/Llama-3.3-70B-Instruct"), is_checkpoint("--trust-remote-code")
    (True, False)
    """
    return re.fullmatch(_FORMS["checkpoint"][0], name, re.ASCII) is not None


def with_changes(parameters: Parameters, changes: Mapping[str, Any]) -> Parameters:
    """The same with some fields changed, checked again."""
    return dataclasses.replace(parameters, **changes)


def _check_tags(name: str, tags: Mapping[str, str]) -> None:
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key) or not _TAG_VALUE.fullmatch(value):
            raise _refused(name, f"{key}={value}", "a tag is KEY=VALUE of letters, digits, spaces and . : / = + @ _ -")


def _check_choices(given: Parameters) -> None:
    choices: Mapping[str, tuple[str, ...]] = {
        "target": TARGETS,
        "form": FORMS,
        "scaler": SCALERS,
        "runner": RUNNERS,
        "devices": DEVICES,
        "sharing": SHARINGS,
        "purchase": PURCHASES,
    }
    for name, allowed in choices.items():
        value = getattr(given, name)
        if value is not None and value not in allowed:
            raise InputError(f"{name} {value!r} is unknown", why="no such choice", fix=f"one of {', '.join(allowed)}")
    for name in ("tenants", "max_replicas"):
        count = getattr(given, name)
        if count is not None and count < 1:
            raise InputError(f"{name} {count}", why="it counts pods", fix="give 1 or more")
    if (given.file_system is None) != (given.mount_name is None):
        raise InputError(
            "a file system needs its mount name, and a mount name its file system",
            why="FSx for Lustre mounts ID.fsx.REGION.amazonaws.com@tcp:/MOUNT_NAME",
            fix="give both: --file-system fs-… --mount-name …",
        )


def _refused(name: str, value: object, why: str) -> InputError:
    shown = value if isinstance(value, str) and len(value) <= 80 else f"{str(value)[:60]}…"
    return InputError(
        f"{name.replace('_', ' ')} {shown!r} is not a name that manifests may carry",
        why=why,
        fix="write it in that form",
    )
