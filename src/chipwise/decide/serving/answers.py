"""One layout's speed in full: the object that `estimate` prints and that every option carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.serving.evaluate import load_of
from chipwise.decide.serving.holding import shards_of
from chipwise.decide.serving.laid import IDLE
from chipwise.engines import spare_layers
from chipwise.perf.costs import BOUNDS
from chipwise.perf.load import ServingInput, ServingPrediction, with_machine
from chipwise.perf.ranges import range_of
from chipwise.perf.serving import bound_by
from chipwise.precision import bytes_per_param, kv_bytes_per_element
from chipwise.units import finite

if TYPE_CHECKING:
    from typing import Any

    from chipwise.decide.question import Demand
    from chipwise.decide.serving.holding import Held
    from chipwise.decide.serving.seats import Layout
    from chipwise.model import ModelSpec
    from chipwise.perf.ranges import Metric
    from chipwise.perf.serving import ServingTerm
    from chipwise.units import Range


def question_of(model: ModelSpec, layout: Layout, held: Held, demand: Demand, replicas: float) -> ServingInput:
    """What perf is asked about one layout of a model that is already at its precision."""
    on_chip = min(layout.seat.platform.chip.cores, layout.devices)
    idle = _idle(model, layout)
    return replace(
        idle,
        kv_pool_bytes=float(held.answer.usable_pool_bytes) / on_chip,
        max_num_seqs=min(idle.max_num_seqs, max(float(held.answer.state_limit), 1.0)),
        load=load_of(demand),
        replicas=replicas,
    )


@lru_cache(maxsize=1024)
def _idle(model: ModelSpec, layout: Layout) -> ServingInput:
    """The part of the question that no load changes."""
    seat = layout.seat
    idle = ServingInput(
        shards=shards_of(model, replace(layout.split, spare_layers=spare_layers(seat.engine))),
        hardware=seat.hardware,
        parameters=seat.parameters,
        weight_bytes={name: bytes_per_param(name) for name in seat.hardware.gemm_flops_per_s},
        kv_element_bytes=kv_bytes_per_element(seat.limits.kv_format),
        kv_pool_bytes=0.0,
        max_num_seqs=seat.limits.max_num_seqs,
        chunk_tokens=seat.limits.chunk_tokens,
        load=IDLE,
        eager=float(seat.limits.eager),
        draft_tokens=seat.limits.draft_tokens,
        acceptance=seat.limits.acceptance,
    )
    return with_machine(idle)


def serving_object(
    layout: Layout, asked: ServingInput, demand: Demand, explained: tuple[ServingPrediction, list[ServingTerm]]
) -> dict[str, Any]:
    """CONTRACT's `serving` object, with `pools`-free throughput of all replicas.

    Args:
        layout: what is asked about, for its evidence.
        asked: the question to perf.
        demand: the load, for the kind of range.
        explained: `explain_serving` of `asked`.
    """
    prediction, terms = explained
    spans = _Spans(layout=layout, kind=demand.kind, prediction=prediction)
    chips = layout.seat.platform.chips_of(layout.devices * float(asked.replicas))
    throughput = spans.of("output_tokens_per_s", "throughput")
    saturated = bool(prediction.saturated)
    return {
        "ttft_s": None if saturated else spans.of("ttft_s", "ttft"),
        "tpot_s": spans.of("tpot_s", "tpot"),
        "e2e_s": None if saturated else spans.of("e2e_s", "tpot"),
        "isolated": {"ttft_s": spans.of("isolated_ttft_s", "ttft"), "tpot_s": spans.of("isolated_tpot_s", "tpot")},
        "output_tokens_per_s": throughput,
        "output_tokens_per_s_per_chip": throughput.scaled(1.0 / chips),
        "total_tokens_per_s": spans.of("total_tokens_per_s", "throughput"),
        "batch": spans.of("running", "throughput"),
        "saturated": saturated,
        "saturation_rate": spans.of("saturation_rate_per_s", "throughput"),
        "bound_by": bound_by(asked, prediction, terms)[0],
        "terms": [
            {
                "op": term.operation,
                "prefill_s": finite(term.prefill_s),
                "decode_s": finite(term.decode_s),
                "bound_by": BOUNDS[int(np.asarray(term.bound))],
                "prefill_bound_by": BOUNDS[int(np.asarray(term.prefill_bound))],
            }
            for term in terms
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spans:
    """Turns medians into ranges by the layout's evidence."""

    layout: Layout
    kind: str
    prediction: ServingPrediction

    def of(self, name: str, metric: Metric) -> Range:
        mid = float(getattr(self.prediction, name))
        return range_of(mid, evidence=self.layout.seat.evidence, metric=metric, load=self.kind)
