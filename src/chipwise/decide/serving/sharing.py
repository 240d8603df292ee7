"""Who shares a GPU with a deployment: slices of it, fractions rented as sizes, turns, or nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.guide import fraction_advice, sharing_advice, slice_advice

if TYPE_CHECKING:
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.guide import SharingAdvice

HARDWARE = "hardware"
"""What slices isolate by where the question asks for slices only."""


def sharing_object(question: Question, deployment: ServingDeployment) -> dict[str, Any] | None:
    """How tenants share the chip, where the devices are slices or isolation was asked for; None otherwise.

    Args:
        question: its isolation.
        deployment: whose devices are shared.
    """
    platform, asked = deployment.layout.seat.platform, question.policy.isolation
    if platform.profile is None and (asked is None or deployment.layout.devices > platform.chip.cores):
        return None
    advice = _advice(platform, asked or HARDWARE)
    answer = {
        "technique": advice.technique,
        "profile": advice.profile,
        "tenants": advice.tenants,
        "isolation": advice.isolation,
        "why": advice.why,
        "config": advice.config,
        "source": advice.source,
    }
    if platform.profile is None:
        return answer
    return {**answer, "slices": deployment.instances * platform.devices, "slices_used": deployment.replicas}


def _advice(platform: Platform, asked: str) -> SharingAdvice:
    profile, chip = platform.profile, platform.chip
    if profile is not None:
        held = f"{profile.name}: {platform.device_memory_bytes / 1e9:.1f} GB and {profile.compute_fraction:.0%} of the"
        return slice_advice(isolation=asked, profile=profile, why=f"{held} compute, {profile.count} on a {chip.id}")
    if platform.fraction < 1.0:
        return fraction_advice(isolation=asked)
    if asked == "none" or not chip.mig_profiles:
        return sharing_advice(isolation=asked, memory_bytes=platform.device_memory_bytes, profiles=())
    why = f"no MIG slice of a {chip.id} holds this precision and meets the bars: a whole GPU for each tenant"
    return slice_advice(isolation=asked, profile=None, why=why)
