"""A metric as a table spells it (`ttft_ms_p99`, `output_tok_s_per_gpu`) as a figure of a prediction."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from chipwise.audit.items import METRIC_NOT_COVERED, SATURATED, SkipError
from chipwise.audit.replay import Replayed
from chipwise.perf.ranges import Metric
from chipwise.perf.spread import NORMAL_QUANTILES, gap_s

Quantity = Literal["ttft", "tpot", "itl", "e2e", "throughput"]
_LATENCIES: dict[str, Quantity] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e", "latency": "e2e"}
_RANGED: dict[Quantity, Metric] = {"ttft": "ttft", "throughput": "throughput"}
_LATENCY = re.compile(r"(ttft|tpot|itl|e2e|latency)_(ms|s|us)(?:_(mean|avg|median|unspec|p\d\d))?")
_RATE = re.compile(r"(output_tok|total_tok|prefill_tok|input_tok|req)(?:ens)?_s(?:_(total|per_\w+))?")
_SCALE = {"s": 1.0, "ms": 1e3, "us": 1e6}
_MEANS = frozenset({"", "mean", "avg", "unspec"})
_TERMS_OF = {"ttft": "prefill_s", "tpot": "decode_s", "itl": "decode_s", "e2e": "decode_s", "throughput": "decode_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a metric's name asks for: a statistic of a latency, or a rate of the whole or of a part."""

    quantity: Quantity
    statistic: str
    scale: float = 1.0
    """Table units in one base unit: 1,000 where latencies are printed in ms."""
    of: str = ""

    @property
    def ranged(self) -> Metric:
        """Under which metric its range is kept."""
        return _RANGED.get(self.quantity, "tpot")


def wanted(metric: str) -> Wanted:
    """Read a metric's name.

    Raises:
        SkipError: no figure of a prediction is that.

    >>> wanted("ttft_ms_p99").statistic, wanted("output_tok_s_per_gpu").of
    ('p99', 'output_tok')
    """
    latency = _LATENCY.fullmatch(metric)
    if latency is not None:
        name, unit, statistic = latency.groups()
        shown = "p50" if statistic == "median" else statistic or ""
        if shown not in _MEANS and _quantile(shown) is None:
            raise SkipError(METRIC_NOT_COVERED)
        return Wanted(quantity=_LATENCIES[name], statistic="mean" if shown in _MEANS else shown, scale=_SCALE[unit])
    rate = _RATE.fullmatch(metric)
    if rate is None:
        raise SkipError(METRIC_NOT_COVERED)
    return Wanted(quantity="throughput", statistic=rate.group(2) or "total", of=rate.group(1))


def _quantile(statistic: str) -> float | None:
    share = float(statistic[1:]) / 100.0
    return share if share in NORMAL_QUANTILES else None


def figure_of(asked: Wanted, found: Replayed) -> float:
    """The predicted figure in the table's unit.

    Raises:
        SkipError: the load is above capacity, so that the latency is the length of the run.
    """
    value = _rate(asked, found) if asked.quantity == "throughput" else _latency(asked, found) * asked.scale
    if not math.isfinite(value):
        raise SkipError(SATURATED)
    return value


def _latency(asked: Wanted, found: Replayed) -> float:
    if asked.quantity in {"ttft", "e2e"} and (found.run.load.kind == "offline" or found.figure("saturated") > 0):
        raise SkipError(SATURATED)
    if asked.quantity == "itl" and asked.statistic != "mean":
        return found.at(gap_s(found.prediction, quantile=float(asked.statistic[1:]) / 100.0))
    if asked.quantity in {"tpot", "itl"}:
        return found.at(getattr(found.tpot, asked.statistic))
    if asked.quantity == "ttft":
        return found.at(getattr(found.ttft, asked.statistic))
    if asked.statistic == "mean":
        return found.figure("e2e_s")
    first, later = (found.at(getattr(one, asked.statistic)) for one in (found.ttft, found.tpot))
    return first + later * (found.run.load.osl - 1.0)


def _rate(asked: Wanted, found: Replayed) -> float:
    output, whole = found.figure("output_tokens_per_s"), found.figure("total_tokens_per_s")
    value = {"output_tok": output, "total_tok": whole, "req": found.figure("requests_per_s")}.get(
        asked.of, whole - output
    )
    if asked.statistic == "total":
        return value
    if asked.statistic == "per_user":
        return 1.0 / found.figure("tpot_s")
    if asked.statistic in {"per_gpu", "per_device", "per_chip"}:
        return value / found.run.place.chips
    raise SkipError(METRIC_NOT_COVERED)


def terms_of(asked: Wanted, found: Replayed) -> dict[str, float]:
    """Seconds by operation of the prompt (TTFT) or of a token (everything else), and the batch behind them."""
    name = _TERMS_OF[asked.quantity]
    terms = {term.operation: found.at(getattr(term, name)) for term in found.terms}
    kept = {key: value for key, value in terms.items() if value and math.isfinite(value)}
    return kept | {"running": found.figure("running")}
