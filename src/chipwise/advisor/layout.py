"""One layout from flags: chip or instance, split, precision, engine and its settings, checked one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.catalog import load_catalog
from chipwise.decide.failures import Refusal
from chipwise.decide.platforms import Platform, chip_platform, platform_of, sliced
from chipwise.decide.question import Demand, Policy, Question
from chipwise.decide.serving.seats import Layout, Seat, at_precision, seat_of
from chipwise.engines import load_engine
from chipwise.errors import InfeasibleError, InputError, KnowledgeError
from chipwise.model import load_model
from chipwise.parallelism import Split, ep_problem, tp_problem
from chipwise.precision import canonical, kv_format_names, legal_precisions, option_for

if TYPE_CHECKING:
    from chipwise.advisor.request import EngineRequest, SplitRequest
    from chipwise.engines import EngineProfile
    from chipwise.model import ModelSpec

KEPT = 1024
"""Layouts that are remembered: what follows from one is worked out once while only its load changes."""
DEFAULT_ENGINES = {"nvidia": "vllm", "aws": "vllm-neuron"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a model is asked to run: exactly one of chip, instance; `mig` slices the chip."""

    chip: str | None
    instance: str | None
    mig: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A model at its precision on a layout."""

    model: ModelSpec
    layout: Layout


def read_model(reference: str, models: str | None) -> ModelSpec:
    """The model of a request."""
    return load_model(reference, models=Path(models) if models else None)


def platform_for(target: Target, devices: int | None) -> Platform:
    """The platform of a target; a chip alone joins as many devices as asked, a MIG profile alone names its chip.

    Raises:
        InputError: neither or both of chip and instance; a MIG profile the chip has not.
        UnknownNameError, KnowledgeError: from the catalog.
    """
    catalog = load_catalog()
    if target.mig and target.chip is None and target.instance is None:
        target = replace(target, chip=_chip_of(target.mig))
    if (target.chip is None) == (target.instance is None):
        raise InputError(
            "say where: exactly one of --chip and --instance (--on)",
            why="memory and speed depend on the device",
            fix="--instance p5.48xlarge, or --chip h100-sxm",
        )
    if target.instance is not None:
        instance = catalog.instance(target.instance)
        if instance.chip is None or instance.lacks:
            lacks = ", ".join(instance.lacks) or "an accelerator"
            raise KnowledgeError(
                f"{instance.name} cannot be judged", why=f"it lacks {lacks}", fix="choose another size"
            )
        found = platform_of((instance,), catalog.chips[instance.chip])
    else:
        chip = catalog.chip(target.chip or "")
        found = chip_platform(chip, max(devices or 1, chip.cores))
    return _sliced(found, target.mig) if target.mig else found


def _chip_of(profile: str) -> str:
    """The one chip that has a MIG profile of this name.

    Raises:
        InputError: several chips have it, or none.
    """
    chips = [one.id for one in load_catalog().chips.values() if profile in {mig.name for mig in one.mig_profiles}]
    if len(chips) == 1:
        return chips[0]
    raise InputError(
        f"{len(chips) or 'no'} chips have a MIG profile {profile!r}",
        why="a slice is as large and as fast as its chip makes it",
        fix=f"say which: --chip {' or --chip '.join(chips)}"
        if chips
        else "chipwise catalog show h100-sxm lists profiles",
    )


def _sliced(platform: Platform, profile: str) -> Platform:
    known = {one.name: one for one in platform.chip.mig_profiles}
    if profile not in known:
        raise InputError(
            f"{platform.chip.id} has no MIG profile {profile!r}",
            why="the profiles of a GPU are fixed",
            fix=f"choose one of {', '.join(known)}" if known else "it has none: choose a GPU with MIG",
        )
    return sliced(platform, known[profile])


def _check_slices(platform: Platform, split: SplitRequest) -> None:
    """Refuse a replica over several slices.

    Raises:
        InputError: any degree above 1 on a MIG profile.
    """
    if platform.profile is None:
        return
    wide = {name: degree for name in ("tp", "pp", "cp", "dp", "ep") if (degree := getattr(split, name) or 1) > 1}
    if wide:
        name, degree = next(iter(wide.items()))
        raise InputError(
            f"{name}={degree} does not go over slices of {platform.profile.name}",
            why="MIG slices have no link to each other: a replica lives on one",
            fix=f"leave out --{name}, or take a larger profile or the whole {platform.chip.id}",
        )


def split_for(model: ModelSpec, asked: SplitRequest, devices: int) -> Split:
    """The split of a request: what is not said follows; without tp the widest legal tp that the devices hold.

    Raises:
        InputError: a degree that is not legal for the model, or more devices than there are.
    """
    pp, cp, dp = asked.pp or 1, asked.cp or 1, asked.dp or 1
    room = max(devices // (pp * cp * dp), 1)
    tp = asked.tp or max(one for one in (1, 2, 4, 8, 16, 32, 64) if one <= room and tp_problem(model, one) is None)
    split = Split(tp=tp, pp=pp, ep=asked.ep or 1, dp=dp, cp=cp)
    problem = tp_problem(model, tp) or ep_problem(model, split)
    if pp > model.layer_count:
        problem = f"pp={pp} is more than the {model.layer_count} layers"
    if problem is not None:
        raise InputError(
            f"not a legal split: {problem}", why="every device must hold whole pieces", fix="chipwise model"
        )
    return split


def lay(
    model: ModelSpec, platform: Platform, split: SplitRequest, engine: EngineRequest, *, models: str | None = None
) -> Laid:
    """Seat the model on the platform as asked; on a part of a chip it stays on one part unless tp is said.

    Args:
        model: as read.
        platform: where.
        split: what is said of the split.
        engine: what is said of the engine, a draft model among it.
        models: where a draft model is looked up first.

    Raises:
        InputError: an illegal split or precision.
        InfeasibleError: the chip or engine cannot hold or run it.
        KnowledgeError: nobody knows whether it can.
    """
    _check_slices(platform, split)
    draft = read_model(engine.draft, models) if engine.draft else None
    return _laid(model, platform, split, engine, draft)


@lru_cache(maxsize=KEPT)
def _laid(
    model: ModelSpec, platform: Platform, split: SplitRequest, engine: EngineRequest, draft: ModelSpec | None
) -> Laid:
    option = option_for(model, engine.precision) if engine.precision else legal_precisions(model)[0]
    narrowed = at_precision(model, option)
    vendor = platform.chip.vendor
    named = engine.engine or DEFAULT_ENGINES.get(vendor, "vllm")
    question = replace(_question(model, {vendor: load_engine(named, engine.version)}), engine_named=engine.engine)
    seat = seat_of(question, platform, narrowed, option)
    if isinstance(seat, Refusal):
        family = InfeasibleError if seat.known else KnowledgeError
        raise family(f"{model.name} on {platform.chip.id}: {seat.reason}", why=seat.source, fix=seat.change)
    seat = _with_settings(seat, engine, draft)
    devices = 1 if platform.fraction < 1.0 and split.tp is None else platform.devices
    return Laid(model=narrowed, layout=Layout(seat=seat, split=split_for(narrowed, split, devices)))


def _question(model: ModelSpec, engines: dict[str, EngineProfile]) -> Question:
    nothing = Demand(kind="single", isl_tokens=1.0, osl_tokens=1.0, context_tokens=1.0)
    policy = Policy(goals=("cost",), regions=())
    return Question(
        model=model,
        demand=nothing,
        policy=policy,
        catalog=load_catalog(),
        engines=engines,
        workload={},
        purpose="estimate",
    )


def _share(asked: float | None, default: float) -> float:
    if asked is None:
        return default
    if not 0.0 < asked <= 1.0:
        raise InputError(
            f"--utilization {asked:g} is no share of the memory",
            why="the engine takes more than none and at most all of it",
            fix=f"give a number above 0 up to 1, as --utilization {default:g}",
        )
    return asked


def _with_settings(seat: Seat, engine: EngineRequest, draft: ModelSpec | None) -> Seat:
    kv = canonical(engine.kv_precision) if engine.kv_precision else seat.limits.kv_format
    if kv not in kv_format_names():
        raise InputError(
            f"{kv} is no cache format", why="engines hold K and V in few formats", fix=", ".join(kv_format_names())
        )
    limits = replace(
        seat.limits,
        utilization=_share(engine.utilization, seat.limits.utilization),
        max_num_seqs=engine.max_num_seqs or seat.limits.max_num_seqs,
        chunk_tokens=engine.chunk_tokens or seat.limits.chunk_tokens,
        whole_prompts=seat.limits.whole_prompts and engine.chunk_tokens is None,
        kv_format=kv,
        eager=engine.eager,
        lora_adapters=engine.lora_adapters,
        lora_rank=engine.lora_rank,
        draft=draft,
        draft_tokens=engine.draft_tokens or 0,
        acceptance=engine.acceptance or 0.0,
    )
    return replace(seat, limits=limits)
