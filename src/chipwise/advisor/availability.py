"""What `--availability` and `--ha` add to a plan: headroom, the zones to spread over, and what stays unproven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.capacity import redundancy_for
from chipwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.advisor.request import Request
    from chipwise.catalog import Catalog
    from chipwise.decide import Advice, Option


def check_availability(request: Request, *, training: bool) -> None:
    """Refuse headroom for a run that serves nobody.

    Raises:
        InputError: `--availability` or `--ha` with a training preset.
    """
    said = [flag for flag, value in (("--availability", request.availability), ("--ha", request.ha_factor)) if value]
    if training and said:
        raise InputError(
            f"{said[0]} does not go with a training run",
            why="a run serves nobody: a failure costs the steps since the last checkpoint",
            fix=f"leave out {said[0]}",
        )


def headroom(request: Request) -> float:
    """What the instances that carry the load are multiplied by: `--ha`, else what the availability target asks."""
    if request.ha_factor is not None:
        return request.ha_factor
    return 1.0 if request.availability is None else redundancy_for(request.availability).ha_factor


def workload_entries(request: Request) -> dict[str, dict[str, Any]]:
    """The target and the headroom as the answer's `workload` prints them; nothing where neither was asked."""
    entries: dict[str, dict[str, Any]] = {}
    if request.availability is not None:
        entries["availability"] = {"value": round(request.availability, 9), "from": "user"}
    if request.availability is not None or request.ha_factor is not None:
        origin = "preset" if request.ha_factor is None else "user"
        entries["ha_factor"] = {"value": headroom(request), "from": origin}
    return entries


def availability_warnings(request: Request, advice: Advice, catalog: Catalog) -> Iterator[str]:
    """How the target was met, that it is not proven, and options that one zone alone offers."""
    if request.availability is None:
        return
    asked = redundancy_for(request.availability)
    share = f"{request.availability:.6g}"
    if headroom(request) < asked.ha_factor:
        yield (
            f"availability {share}: --ha {headroom(request):g} is less than the {asked.ha_factor:g} times of "
            f"{asked.source}: one failure may take the service below its target"
        )
    else:
        yield (
            f"availability {share}: {headroom(request):g} times the instances that carry the load ({asked.source}); "
            f"spread them over {asked.zones} Availability Zones; no source gives the availability of one instance, so "
            "the target itself is not proven"
        )
    for option in advice.options:
        if most_zones(option, catalog) < asked.zones:
            yield f"availability: no Region asked for offers {option.instance} in {asked.zones} zones"


def most_zones(option: Option, catalog: Catalog) -> int:
    """The most zones in which one of the option's Regions offers its size."""
    offered = catalog.offerings(option.instance)
    return max((len(one.zones) for one in offered if one.region in option.regions), default=0)
