"""A deployment in full: the objects that `memory` and `estimate` print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.other.search import largest_batch
from chipwise.perf.other.load import METHOD
from chipwise.perf.other.seconds import terms_of
from chipwise.units import finite, show_bytes, show_seconds

if TYPE_CHECKING:
    from chipwise.decide.other.served import Served
    from chipwise.decide.other.stands import Stand
    from chipwise.perf.other.passes import Passes

_ZERO = (
    "reserved_bytes", "graphs_bytes", "adapters_bytes", "draft_bytes", "gradients_bytes",
    "optimizer_bytes",
)  # fmt: skip


def memory_object(stand: Stand, passes: Passes, requests: float) -> dict[str, Any]:
    """CONTRACT's memory object for one chip whose every device holds a copy and `requests` requests.

    Activations are those of the widest operation, the cache that of a decoder; nothing is reserved.
    """
    capacity = round(stand.memory_bytes * stand.cores)
    terms = {
        "weights_bytes": round(stand.weights_bytes * stand.cores),
        "cache_bytes": round(requests * passes.cache_bytes * stand.cores),
        "activations_bytes": round(requests * passes.peak_bytes * stand.cores),
        "overhead_bytes": round(stand.overhead_bytes * stand.cores),
        **dict.fromkeys(_ZERO, 0),
    }
    left = capacity - sum(terms.values())
    short = max(-left, 0)
    return {
        "fits": not short,
        "chip": stand.name,
        "chips": 1,
        "lnc": stand.lnc,
        "device": "instance" if stand.chip is None else "chip",
        "per_chip": {"capacity_bytes": capacity, "free_bytes": max(left, 0), **terms},
        "shortfall_bytes": short,
        "kv_pool_bytes": None,
        "kv_cache_tokens": None,
        "max_concurrency_at_context": finite(largest_batch(stand, passes)) if not short else 0.0,
        "longest_context": None,
        "min_chips": None if short else 1,
        "to_make_it_fit": _changes(stand, passes) if short else [],
        "range": None,
        "evidence": "physics",
        "warnings": ["activations are those of the widest operation alone", *stand.notes],
    }


def _changes(stand: Stand, passes: Passes) -> list[dict[str, Any]]:
    """What makes it fit: fewer requests where one fits, a larger device where not even one does."""
    if largest_batch(stand, passes) >= 1.0:
        return [{"change": "fewer requests at once", "frees_bytes": None, "costs": "throughput"}]
    least = stand.weights_bytes + stand.overhead_bytes + passes.peak_bytes + passes.cache_bytes
    return [{"change": f"a device of {show_bytes(least)} or more", "frees_bytes": None, "costs": "a larger size"}]


def other_object(served: Served, chips: int) -> dict[str, Any]:
    """CONTRACT's `other` object; `terms` are the parts of one batch on one device.

    The real-time factor is seconds of work a second of audio: below 1 it keeps up.

    Args:
        served: the load on the devices that carry it.
        chips: that those devices are.
    """
    found, passes, rate, latency = served.outcome, served.passes, served.units_per_s, served.latency_s
    heard = passes.unit == "audio-second"
    return {
        "unit": passes.unit,
        "units_per_s": rate,
        "units_per_s_per_chip": rate.scaled(1.0 / chips),
        "latency_s": latency,
        "real_time_factor": latency.scaled(1.0 / passes.units) if heard else None,
        "latency_p99_s": served.seconds(float(found.latency_p99_s), served.kind),
        "isolated_latency_s": served.isolated_s,
        "capacity_units_per_s": served.capacity_units_per_s,
        "units_per_request": passes.units,
        "batch": float(found.batch),
        "utilisation_fraction": float(found.utilisation),
        "flops_per_request": passes.flops,
        "terms": terms_of(passes, served.stand.device, requests=float(found.batch)),
        "method": METHOD,
    }


def performance_object(served: Served, chips: int, config: dict[str, Any]) -> dict[str, Any]:
    """CONTRACT's estimate object."""
    memory = memory_object(served.stand, served.passes, float(served.outcome.batch))
    return {
        "feasible": bool(memory["fits"]),
        "config": config,
        "serving": None,
        "training": None,
        "other": other_object(served, chips),
        "memory": memory,
        "watts": None,
        "evidence": served.stand.evidence,
        "warnings": [*served.passes.notes, *served.stand.notes, *_handling(served)],
    }


def _handling(served: Served) -> list[str]:
    """What a request takes beside the model, which no term of a batch holds."""
    seconds = served.stand.device.request_s
    said = f"the latency holds {show_seconds(seconds)} of handling a request, as servers of language models take"
    return [said] if seconds > 0 else []
