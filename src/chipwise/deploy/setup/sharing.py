"""How one GPU is shared: by MIG slices, by turns (time-slicing) or side by side (MPS); and what that isolates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.catalog import MigProfile, load_catalog
from chipwise.deploy import marks
from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import text
from chipwise.deploy.kinds.config_map import ConfigMap
from chipwise.deploy.nodes.shape import Share
from chipwise.deploy.written.render import document_text
from chipwise.errors import InfeasibleError, InputError
from chipwise.guide import sharing_advice, techniques

_RENTED = "fractional"
"""A part of a GPU that is a size of its own: its node shows one GPU, nothing is to be set."""
_TURNS = {"time-slicing": "timeSlicing", "mps": "mps"}
"""Technique to its key in the device plugin's configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """One way to share, settled."""

    technique: str
    share: Share
    profile: str | None = None
    node_labels: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def memory_fraction(self) -> float:
        """The part of the GPU's memory that an engine may take; a MIG slice shows only its own."""
        return 1.0 if self.profile else 1.0 / self.share.parts


def sharing_of(chosen: Chosen, parameters: Parameters) -> tuple[Sharing | None, tuple[str, ...]]:
    """How the option is shared, if at all, and what a reader must be told where it is not.

    Raises:
        InputError: you ask for a sharing that cannot be had.
        InfeasibleError: no slice holds a replica.
    """
    asked = parameters.sharing
    planned = chosen.sharing.technique if chosen.sharing else None
    if asked == "none" or (asked == "plan" and planned in {None, _RENTED}):
        return None, ()
    technique = planned or asked if asked == "plan" else asked
    refusal = _refusal(chosen, parameters, technique)
    if refusal and asked == "plan":
        return None, (f"the plan shares GPUs by {technique}: {refusal}; each replica gets a whole GPU",)
    if refusal:
        raise InputError(f"{technique} cannot be had here", why=refusal, fix="leave --sharing out, or choose another")
    made = _mig(chosen, parameters) if technique == "mig" else _turns(chosen, parameters, technique)
    return made, made.remarks


def _refusal(chosen: Chosen, parameters: Parameters, technique: str) -> str | None:
    chip = load_catalog().chip(chosen.chip)
    if chip.vendor != "nvidia":
        return f"{chip.id} is no NVIDIA GPU"
    if chosen.devices_per_replica > 1 or chosen.work == "training":
        return "a replica takes more than one GPU"
    if parameters.target == "auto-mode":
        return "the device plugin of EKS Auto Mode takes no configuration"
    if technique == "mig" and not chip.mig_profiles:
        return f"{chip.id} has no MIG"
    if technique in _TURNS and not parameters.tenants:
        return "--tenants says how many pods share one GPU"
    return None if technique == "mig" or technique in _TURNS else "no manifest is known for it"


def _mig(chosen: Chosen, parameters: Parameters) -> Sharing:
    profile = _profile(chosen)
    slices = profile.count or 1
    name = f"all-{profile.name}"
    note = f"{slices} slices of {profile.name} a GPU; the MIG manager cuts them when a node appears"
    return Sharing(
        technique="mig",
        share=Share(resource=text("nvidia", "mig_prefix") + profile.name.replace("+", "."), parts=slices),
        profile=profile.name,
        node_labels={text("nvidia", "mig_label"): name},
        remarks=(note, *_isolation("mig"), *_fixed(parameters)),
    )


def _profile(chosen: Chosen) -> MigProfile:
    """The plan's profile; else the smallest that holds a replica."""
    profiles = load_catalog().chip(chosen.chip).mig_profiles
    wanted = chosen.sharing.profile if chosen.sharing else None
    if wanted is None:
        wanted = sharing_advice(isolation="hardware", memory_bytes=chosen.device_bytes, profiles=profiles).profile
    found = next((one for one in profiles if one.name == wanted), None)
    if found is None:
        raise InfeasibleError(
            f"no MIG profile of {chosen.chip} holds a replica",
            why=f"it needs {chosen.device_bytes / 1e9:.1f} GB",
            fix="serve it on a whole GPU: --sharing none",
        )
    return found


def _turns(chosen: Chosen, parameters: Parameters, technique: str) -> Sharing:
    tenants = parameters.tenants or 1
    room = chosen.device_capacity_bytes / tenants
    if chosen.device_bytes > room:
        raise InfeasibleError(
            f"{tenants} replicas do not fit one {chosen.chip}",
            why=f"each needs {chosen.device_bytes / 1e9:.1f} GB and would get {room / 1e9:.1f} GB",
            fix=f"at most {math.floor(chosen.device_capacity_bytes / max(chosen.device_bytes, 1.0))} fit",
        )
    note = f"each of the {tenants} pods of a GPU takes 1/{tenants} of its memory by the engine's own setting"
    return Sharing(
        technique=technique,
        share=Share(resource=text("nvidia", "shared_resource"), parts=tenants),
        node_labels={text("nvidia", "plugin_label"): configuration_key(technique, tenants)},
        remarks=(note, *_isolation(technique), *_fixed(parameters)),
    )


def _isolation(technique: str) -> tuple[str, ...]:
    row = next((one for one in techniques() if one.technique == technique), None)
    return (f"{technique}: isolation {row.isolation}; {row.caution} ({row.source})",) if row else ()


def _fixed(parameters: Parameters) -> tuple[str, ...]:
    if parameters.target != "karpenter":
        return ()
    return ("Karpenter does not know shared GPUs before a node runs, so the pool is of fixed size",)


def configuration_key(technique: str, tenants: int) -> str:
    """The key of the device plugin's configuration, which a node's label names.

    >>> configuration_key("time-slicing", 4)
    'time-slicing-4'
    """
    return f"{technique}-{tenants}"


def sharing_objects(name: str, sharing: Sharing) -> list[object]:
    """The configuration that the nodes' label names."""
    if sharing.profile:
        return [_slices(name, sharing)]
    tenants = sharing.share.parts
    resources = [{"name": text("nvidia", "resource"), "replicas": tenants}]
    rules = {"renameByDefault": True, "resources": resources}
    if sharing.technique == "time-slicing":
        rules = {"renameByDefault": True, "failRequestsGreaterThanOne": True, "resources": resources}
    plugin = {"version": "v1", "flags": {"migStrategy": "none"}, "sharing": {_TURNS[sharing.technique]: rules}}
    default = {"version": "v1", "flags": {"migStrategy": "none"}}
    files = {"default": default, configuration_key(sharing.technique, tenants): plugin}
    return [
        ConfigMap(
            meta=marks.own_meta(name, text("nvidia", "plugin_namespace"), called=f"{name}-plugin"),
            files={key: document_text(value) for key, value in files.items()},
            about="Configurations of the NVIDIA device plugin (chart value config.name); a node's label picks one.",
        )
    ]


def _slices(name: str, sharing: Sharing) -> ConfigMap:
    devices = {str(sharing.profile): sharing.share.parts}
    layout = [{"devices": "all", "mig-enabled": True, "mig-devices": devices}]
    off = [{"devices": "all", "mig-enabled": False}]
    configs = {"all-disabled": off, f"all-{sharing.profile}": layout}
    return ConfigMap(
        meta=marks.own_meta(name, text("nvidia", "mig_namespace"), called=f"{name}-mig"),
        files={"config.yaml": document_text({"version": "v1", "mig-configs": configs})},
        about="Layouts of the MIG manager (chart value migManager.config.name); a node's label picks one.",
    )
