"""The shared file system of a deployment, where one is named."""

from __future__ import annotations

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import text
from chipwise.deploy.kinds.persistent_volume import LustreClaim, LustreVolume
from chipwise.errors import InputError


def claim_name(name: str, parameters: Parameters) -> str | None:
    """The claim that pods mount; None where no file system is named."""
    return f"{name}-shared" if parameters.file_system else None


def storage_objects(name: str, parameters: Parameters) -> list[object]:
    """The volume and its claim.

    Raises:
        InputError: the region of the file system is not known.
    """
    if parameters.file_system is None or parameters.mount_name is None:
        return []
    if parameters.region is None:
        why = "the file system's address holds its Region, and the plan names none"
        raise InputError("the Region is missing", why=why, fix="name it: --region us-west-2")
    claim = f"{name}-shared"
    volume = f"{parameters.namespace}-{claim}"
    size = text("storage", "least_size")
    return [
        LustreVolume(
            meta=marks.own_meta(name, called=volume),
            file_system=parameters.file_system,
            mount_name=parameters.mount_name,
            region=parameters.region,
            size=size,
        ),
        LustreClaim(meta=marks.own_meta(name, parameters.namespace, called=claim), volume=volume, size=size),
    ]
