"""PersistentVolume and its claim: one FSx for Lustre file system that every pod shares."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreVolume:
    """An existing file system as a volume of the cluster."""

    meta: Meta
    file_system: str
    mount_name: str
    region: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreClaim:
    """The claim on it."""

    meta: Meta
    volume: str
    size: str


@manifest_of.register
def lustre_volume(made: LustreVolume) -> Manifest:
    """Its manifest."""
    address = f"{made.file_system}.fsx.{made.region}.amazonaws.com"
    return Manifest(
        kind="PersistentVolume",
        meta=made.meta,
        body={
            "spec": {
                "capacity": {"storage": made.size},
                "volumeMode": "Filesystem",
                "accessModes": ["ReadWriteMany"],
                "mountOptions": ["flock"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "csi": {
                    "driver": "fsx.csi.aws.com",
                    "volumeHandle": made.file_system,
                    "volumeAttributes": {"dnsname": address, "mountname": made.mount_name},
                },
            }
        },
        about="An existing FSx for Lustre file system; removing this object leaves the data where it is.",
    )


@manifest_of.register
def lustre_claim(made: LustreClaim) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="PersistentVolumeClaim",
        meta=made.meta,
        body={
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": made.volume,
                "resources": {"requests": {"storage": made.size}},
            }
        },
        about="The claim of the pods on that file system.",
    )
