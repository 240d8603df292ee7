"""Who does what where: the pools of one model, or the models that share devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.report.document import Block, Column, Line, Pairs, Table, dim, line, strong
from chipwise.report.phrases import TIMES, UNKNOWN, amount, gib, maybe, split_text, times
from chipwise.units import show_seconds

Answer = Mapping[str, Any]


def rented(option: Answer) -> str:
    """What an option rents: two pools may stand on two sizes.

    >>> rented({"instances": 2, "instance": "g6e.xlarge", "pools": None}).partition(" ")[0]
    '2'
    """
    sizes = _own(option)
    if len(sizes) < 2:
        return times(option["instances"], option["instance"])
    return " + ".join(times(pool["instances"], pool["instance"]) for pool in sizes)


def chips(option: Answer) -> str:
    """The chips of what an option rents."""
    sizes = _own(option)
    if len({pool["chip"] for pool in sizes}) < 2:
        return times(option["chips"], option["chip"])
    return " + ".join(times(pool["chips"], pool["chip"]) for pool in sizes)


def _own(option: Answer) -> list[Answer]:
    return [pool for pool in option["pools"] or () if pool["instances"]]


def bars_of(option: Answer, workload: Answer) -> Answer:
    """The workload with the bars of the model whose latency the option shows, where several models share."""
    shown = option["performance"]["config"].get("latency_of")
    if shown is None:
        return workload
    bars = {name: value for name, value in workload["shares"]["value"][shown].items() if name.endswith("_p99_s")}
    return {**workload, **{name: {"value": value, "from": "user"} for name, value in bars.items()}}


def arrangement_blocks(option: Answer) -> Iterator[Block]:
    """The pools, or the tenants with where they live; nothing where one model does both on devices of its own."""
    if option["pools"]:
        yield _pools(option["pools"])
        yield Pairs(rows=(("crossing", _crossing(option["pools"][0]["kv_transfer"])),), indent=1)
    elif option["sharing"] and option["sharing"].get("placement"):
        yield _models(option["sharing"])
        yield _placement(option["sharing"]["placement"])


def _pools(pools: list[Answer]) -> Table:
    columns = (
        Column(title="pool"),
        Column(title="size"),
        Column(title=f"replicas {TIMES} split"),
        Column(title="weights", right=True),
        Column(title="cache", right=True),
    )
    rows = tuple(
        (
            line(strong(pool["role"])),
            line(times(pool["instances"], pool["instance"]) if pool["instances"] else dim("the same instances")),
            line(times(pool["replicas"], split_text(pool["parallelism"]))),
            line(gib(pool["memory"]["per_chip"]["weights_bytes"])),
            line(gib(pool["memory"]["per_chip"]["cache_bytes"])),
        )
        for pool in pools
    )
    return Table(columns=columns, rows=rows, indent=1)


def _crossing(transfer: Answer) -> Line:
    size, took = gib(transfer["bytes_per_request"]), show_seconds(transfer["seconds"])
    busy = dim(f", wires busy {transfer['use_fraction']:.0%} of the time")
    return line(f"{size} of cache a prompt over {transfer['over']} in {took}", busy)


def _models(sharing: Answer) -> Table:
    columns = (
        Column(title="model"),
        Column(title="replicas", right=True),
        Column(title="weights"),
        Column(title="a device", right=True),
        Column(title="TTFT p99", right=True),
        Column(title="TPOT p99", right=True),
        Column(title="tok/s", right=True),
    )
    rows = tuple(
        (
            line(strong(one["model"])),
            line(str(one["replicas"])),
            line(one["precision"]["weights"]),
            line(gib(one["device_bytes"])),
            line(maybe(one["ttft_p99_s"], show_seconds)),
            line(maybe(one["tpot_p99_s"], show_seconds)),
            line(amount(one["output_tokens_per_s"]["mid"])),
        )
        for one in sharing["models"]
    )
    return Table(columns=columns, rows=rows, indent=1)


def _placement(rows: list[Answer]) -> Table:
    """One row a device; models that share it in one."""
    found: dict[tuple[int, int, int], list[str]] = {}
    for row in rows:
        part = f" {row['profile']}" if row["profile"] else f" {row['share']:.0%}" if row["share"] < 1.0 else ""
        found.setdefault((row["instance"], row["device"], row["devices"]), []).append(f"{row['model']}{part}")
    numbered = (Column(title="instance", right=True), Column(title="device", right=True))
    cells = tuple(
        (line(str(instance)), line(_devices(device, devices)), line(" · ".join(who) or UNKNOWN))
        for (instance, device, devices), who in found.items()
    )
    return Table(columns=(*numbered, Column(title="who", wraps=True)), rows=cells, indent=1)


def _devices(first: int, count: int) -> str:
    """Devices by number.

    >>> _devices(0, 1), _devices(4, 2)
    ('0', '4-5')
    """
    return str(first) if count == 1 else f"{first}-{first + count - 1}"
