"""Predicts runs in few calls: runs of one model, precision and kind of load are one array each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from chipwise.audit.items import CHIP_UNKNOWN, MODEL_UNREADABLE, SkipError
from chipwise.audit.runs import Place, Run
from chipwise.audit.settings import generic_engine
from chipwise.catalog import Chip, Instance, Link, load_catalog
from chipwise.errors import ChipwiseError
from chipwise.memory import ServingMemoryInput, size_serving, visible_bytes
from chipwise.model import ModelSpec
from chipwise.parallelism import LayerShards, Split, shard
from chipwise.perf.hardware import Hardware, hardware_of, stack
from chipwise.perf.load import ServingInput, ServingLoad, ServingPrediction
from chipwise.perf.parameters import parameters_for, runtime_of, stack_parameters
from chipwise.perf.serving import ServingTerm, predict_serving, serving_terms
from chipwise.perf.spread import Spread, tpot_spread, ttft_spread
from chipwise.precision import bytes_per_param, capability, kv_bytes_per_element

LEAST_POOL_FRACTION = 0.01
"""Of a device's memory: a run that was measured had some room for its cache, whatever the budget says."""
HOST_CHIPS = 8
"""Chips of one host at most, where a link does not say how many it joins."""
HALF, WHOLE = " x8", " x16"
"""How a PCIe link names its lanes."""
DEFECTS = (ChipwiseError, ArithmeticError, LookupError, ValueError)
"""What a room may raise for a model or a layout it cannot compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The prediction of one run: its place in the arrays of its group."""

    run: Run
    model: ModelSpec
    asked: ServingInput
    prediction: ServingPrediction
    terms: Sequence[ServingTerm]
    ttft: Spread
    tpot: Spread
    place: int

    def figure(self, name: str) -> float:
        """One field of the prediction."""
        return self.at(getattr(self.prediction, name))

    def at(self, values: Any) -> float:
        """This run's element of an array of the group."""
        array = np.asarray(values, dtype=float)
        return float(array if array.ndim == 0 else array[self.place if array.size > 1 else 0])


def replay(runs: Iterable[Run]) -> dict[Run, Replayed | SkipError]:
    """Every distinct run with its prediction, or with why there is none."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in dict.fromkeys(runs):
        groups.setdefault((run.model, run.load.kind), []).append(run)
    found: dict[Run, Replayed | SkipError] = {}
    for group in groups.values():
        found.update(_group(group))
    return found


def _group(runs: list[Run]) -> dict[Run, Replayed | SkipError]:
    """One call for all; where it fails, run by run, so that a bad one spoils no other."""
    try:
        return _predicted(runs)
    except SkipError as skipped:
        return {runs[0]: skipped} if len(runs) == 1 else _one_by_one(runs)
    except DEFECTS:
        return {runs[0]: SkipError(MODEL_UNREADABLE)} if len(runs) == 1 else _one_by_one(runs)


def _predicted(runs: list[Run]) -> dict[Run, Replayed | SkipError]:
    asked, model = asked_of(runs), runs[0].model.model
    with np.errstate(all="ignore"):  # a saturated load has no TTFT: infinite, and its parts are no numbers
        prediction, terms = predict_serving(asked), serving_terms(asked)
        ttft, tpot = ttft_spread(prediction), tpot_spread(prediction, steps=np.maximum(asked.load.osl - 1.0, 1.0))
    return {
        run: Replayed(
            run=run,
            model=model,
            asked=asked,
            prediction=prediction,
            terms=terms,
            ttft=ttft,
            tpot=tpot,
            place=place,
        )
        for place, run in enumerate(runs)
    }


def _one_by_one(runs: list[Run]) -> dict[Run, Replayed | SkipError]:
    found: dict[Run, Replayed | SkipError] = {}
    for run in runs:
        found.update(_group([run]))
    return found


def asked_of(runs: list[Run]) -> ServingInput:
    """The question of a group to perf.

    Raises:
        SkipError: a chip lacks the facts of its rates.
    """
    model = runs[0].model.model
    formats = tuple(sorted({weight.format for weight, _ in model.all_weights()}))
    shards = shard(model, _split(runs))
    pools, sequences = _seats(model, runs)
    return ServingInput(
        shards=shards,
        hardware=stack([_hardware_of(run, formats) for run in runs]),
        parameters=stack_parameters([_parameters(run) for run in runs]),
        weight_bytes={name: bytes_per_param(name) for name in formats},
        kv_element_bytes=np.array([kv_bytes_per_element(run.kv_format) for run in runs]),
        kv_pool_bytes=pools,
        max_num_seqs=sequences,
        chunk_tokens=np.array([_chunk(run) for run in runs]),
        load=_load(runs),
        replicas=np.array([run.place.replicas for run in runs]),
        eager=np.array([float(run.eager) for run in runs]),
        host_sampling=np.array([float(run.host_sampling) for run in runs]),
        compiled_sequences=np.array([run.limits.compiled_sequences for run in runs]),
        compiled_tokens=np.array([run.limits.compiled_tokens for run in runs]),
    )


def _chunk(run: Run) -> float:
    """Prefill tokens of a step: where prompts are not cut, at least a whole one."""
    whole = run.load.isl + run.load.osl if run.limits.whole_prompts else 0.0
    return max(run.limits.chunk_tokens, whole)


def _load(runs: list[Run]) -> ServingLoad:
    names = ("isl", "osl", "concurrency", "rate_per_s", "requests", "osl_cv", "osl_most")
    columns = {name: np.array([getattr(run.load, name) for run in runs], dtype=float) for name in names}
    return ServingLoad(kind=runs[0].load.kind, batch=columns["concurrency"], **columns)


def _split(runs: Sequence[Run]) -> Split:
    names = ("tp", "pp", "ep", "dp")
    degrees: dict[str, Any] = {
        name: np.array([getattr(run.place, name) for run in runs], dtype=float) for name in names
    }
    return Split(**degrees)


def _parameters(run: Run) -> Any:
    link = run.chip.link.kind if run.chip.link else "none"
    runtime = runtime_of(run.engine.name, run.engine.version)
    return parameters_for(chip=run.chip_id, generation=run.chip.architecture, engine=runtime, fabric=link)


def _nodes(place: Place, chip: Chip) -> bool:
    """Whether a replica spans more devices than one scale-up domain, or one host where the link sets none, joins."""
    domain = (chip.link.domain_chips or HOST_CHIPS) if chip.link else HOST_CHIPS
    return place.devices > domain * chip.cores


def _hardware_of(run: Run, formats: tuple[str, ...]) -> Hardware:
    """The device of a run with its links; without a known network the replica is taken to be one domain."""
    found = _hardware(run.chip_id, formats, spans=_nodes(run.place, run.chip), rented=run.rented)
    alone = found.network_bytes_per_s == 0 and found.node_devices < run.place.devices
    return replace(found, node_devices=run.place.devices) if alone else found


@cache
def _hardware(chip_id: str, formats: tuple[str, ...], *, spans: bool, rented: bool) -> Hardware:
    """The device under the model's formats. What ran did run: a format without a rate goes at 16 bits, widened.

    The catalog's PCIe links are those of rented instances; a card elsewhere has its sixteen lanes.

    Raises:
        SkipError: bandwidth or every dense rate is unknown.
    """
    chip = load_catalog().chips[chip_id]
    rated = [name for name in formats if capability(chip, name).flops_per_s is not None]
    try:
        link = None if rented or chip.link is None else own_link(chip.link)
        base = hardware_of(chip, formats=rated, instance=widest(chip) if spans else None, link=link)
    except ChipwiseError as error:
        raise SkipError(CHIP_UNKNOWN) from error
    lacking = [name for name in formats if name not in rated]
    return replace(
        base,
        gemm_flops_per_s=dict(base.gemm_flops_per_s) | dict.fromkeys(lacking, base.attention_flops_per_s),
        widened=dict(base.widened) | dict.fromkeys(lacking, 1.0),
    )


def own_link(link: Link) -> Link | None:
    """A PCIe link with the sixteen lanes that an accelerator card is made with; None where that is no other link."""
    if link.kind != "pcie" or not link.name.endswith(HALF) or link.bytes_per_s_one_way is None:
        return None
    return replace(link, name=link.name.removesuffix(HALF) + WHOLE, bytes_per_s_one_way=2.0 * link.bytes_per_s_one_way)


def widest(chip: Chip) -> Instance | None:
    """The size of the chip with the most network: what a replica over several nodes is assumed to run on."""
    sizes = [one for one in load_catalog().instances.values() if one.chip == chip.id and one.link is not None]
    return max(sizes, key=lambda one: one.efa_bytes_per_s or one.network_bytes_per_s or 0.0, default=None)


def _seats(model: ModelSpec, runs: list[Run]) -> tuple[Any, Any]:
    """Bytes per device that each run's requests fill of its cache, and how many run at once.

    Engines that divide alike are sized at once.
    """
    pools, sequences = np.zeros(len(runs)), np.array([run.limits.sequences for run in runs])
    alike: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        alike.setdefault((run.engine, run.kv_format, run.chip.cores, run.eager), []).append(place)
    for places in alike.values():
        chosen = [runs[place] for place in places]
        pools[places], states = _pool(shard(model, _split(chosen)), chosen)
        sequences[places] = np.minimum(sequences[places], states)
    return pools, sequences


def _pool(shards: LayerShards, runs: list[Run]) -> tuple[Any, Any]:
    first = runs[0]
    engine = first.engine if first.engine.profile else generic_engine()
    capacity = np.array([visible_bytes(run.chip_id, run.chip.memory_bytes or 0.0) for run in runs], dtype=float)
    answer = size_serving(
        ServingMemoryInput(
            shards=shards,
            capacity_bytes=capacity,
            utilization=np.array([run.limits.utilization for run in runs]),
            context_tokens=np.array([run.load.isl + run.load.osl for run in runs]),
            concurrency=1.0,
            chunk_tokens=np.array([min(_chunk(run), _MOST_PROFILED_TOKENS) for run in runs]),
            max_num_seqs=np.array([min(run.limits.sequences, _MOST_PROFILED_SEQUENCES) for run in runs]),
            kv_format=first.kv_format,
            engine=engine.name,
            engine_version=engine.version,
            eager=first.eager,
            nvlink=np.array([run.chip.link is not None and run.chip.link.kind != "pcie" for run in runs]),
            devices_per_chip=first.chip.cores,
        )
    )
    on_chip = np.minimum(first.chip.cores, [run.place.devices for run in runs])
    least = LEAST_POOL_FRACTION * capacity / first.chip.cores
    return np.maximum(answer.usable_pool_bytes / on_chip, least), np.maximum(answer.state_limit, 1.0)


_MOST_PROFILED_TOKENS = 8192.0
_MOST_PROFILED_SEQUENCES = 4096.0
"""An engine without a limit does not size its buffers by infinity."""
