"""A load on copies of a model, whatever they are rented as: latency and throughput with their ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.perf.other.seconds import batch_seconds
from chipwise.perf.ranges import range_of
from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.decide.other.stands import Stand
    from chipwise.perf.other.load import Outcome
    from chipwise.perf.other.passes import Passes


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What `outcome` says of so many devices of a stand; every field of the outcome holds one number."""

    stand: Stand
    passes: Passes
    outcome: Outcome
    kind: str
    """Of load."""

    def seconds(self, mid_s: float, load: str) -> Range:
        """A latency with the range that its evidence gives to the time of a first answer."""
        return range_of(mid_s, evidence=self.stand.evidence, metric="ttft", load=load)

    @property
    def isolated_s(self) -> Range:
        """One request alone."""
        alone = float(batch_seconds(self.passes, self.stand.device, requests=1.0)) + self.stand.device.request_s
        return self.seconds(alone, "single")

    @property
    def latency_s(self) -> Range:
        """The mean under the load."""
        return self.seconds(float(self.outcome.latency_mean_s), self.kind)

    @property
    def units_per_s(self) -> Range:
        """Units a second under the load; arrivals bound it from above, and what can be served from below."""
        found = self._rate(float(self.outcome.requests_per_s))
        if self.kind != "rate":
            return found
        return Range(low=min(found.mid, self.capacity_units_per_s.low), mid=found.mid, high=found.mid)

    @property
    def capacity_units_per_s(self) -> Range:
        """Units a second at the most."""
        return self._rate(float(self.outcome.capacity_per_s))

    def _rate(self, requests_per_s: float) -> Range:
        """As uncertain as the time of a batch, the other way round."""
        return self.seconds(1.0, "any").inverse(requests_per_s * self.passes.units)
