"""How much the server carries: questions a second and P99 with 1, 16 and 64 clients, and memory over many requests.

Every plan is another question, so that none is answered from what is kept; the kept ones are measured beside them.
Prints, for every line, questions a second, P99 seconds, and the ratio to one client of the same run. Then the memory
of the server while it answers SERVED questions (50,000 unless set), no two alike, of several models about few sizes:
what is remembered of questions must be bounded.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Answers a second, their P99, and how many were refused because too many waited."""

    per_s: float
    p99_s: float
    refused: int


CLIENTS = (1, 16, 64)
PLANS = 96
SERVED = int(os.environ.get("SERVED", "50000"))
Ask = Callable[[int], dict[str, Any]]


@contextmanager
def server() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server as users start it, with the rate limit out of the way."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "chipwise", "serve", "--port", str(port), "--rate-limit", "100000000"]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL)
    home = f"http://127.0.0.1:{port}"
    try:
        while not _lives(home):
            time.sleep(0.1)
        yield home, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _lives(home: str) -> bool:
    try:
        return httpx.get(f"{home}/healthz").status_code == 200
    except httpx.TransportError:
        return False


MARKS = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the questions after which memory is read."""
MODELS = ("llama-3.1-8b", "qwen3-8b", "qwen2.5-7b", "gemma-3-12b", "gpt-oss-20b", "qwen3-30b-a3b", "qwen2.5-14b")


def plan(number: int) -> dict[str, Any]:
    """Another question each time, about the whole catalog."""
    users, isl = 8 + number % 200, 500 + number
    return {"model": "llama-3.3-70b", "for": "chat", "users": users, "isl": isl, "region": ["us"]}


def small_plan(number: int) -> dict[str, Any]:
    """Another question each time, about few sizes."""
    model, users, isl = MODELS[number % len(MODELS)], 1 + number % 97, 200 + number % 20_011
    return {"model": model, "for": "chat", "users": users, "isl": isl, "context": 32_768, "only": ["g6e"]}


async def load(home: str, clients: int, count: int, question: Ask) -> Carried:
    """What `clients` that ask at once get, `count` questions in all."""
    numbers = iter(range(count))
    took: list[float] = []

    async def one(client: httpx.AsyncClient) -> None:
        for number in numbers:
            began_s = time.perf_counter()
            response = await client.post(f"{home}/api/v1/plan", json=question(number), timeout=120.0)
            if response.status_code == 200:
                took.append(time.perf_counter() - began_s)

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=clients)) as client:
        began_s = time.perf_counter()
        await asyncio.gather(*(one(client) for _ in range(clients)))
        whole_s = time.perf_counter() - began_s
    return Carried(
        per_s=len(took) / whole_s, p99_s=sorted(took)[int(0.99 * (len(took) - 1))], refused=count - len(took)
    )


def resident_bytes(process: subprocess.Popen[bytes]) -> int:
    """Memory of the server."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def compare(home: str) -> None:
    """A line for each kind of question and number of clients."""
    starts = itertools.count(10, PLANS)
    for name in ("each another", "the same"):
        alone = 0.0
        for clients in CLIENTS:
            start = next(starts)
            ask = partial(_shifted, start) if name == "each another" else _same
            found = asyncio.run(load(home, clients, PLANS, ask))
            alone = alone or found.per_s
            ratio = found.per_s / alone
            print(
                f"plan, {name:<12} {clients:>3} clients  {found.per_s:8.1f}/s  p99 {found.p99_s:6.3f} s  "
                f"x{ratio:.2f}  refused {found.refused}"
            )


def _shifted(start: int, number: int) -> dict[str, Any]:
    return plan(start + number)


def _same(number: int) -> dict[str, Any]:
    del number
    return plan(0)


def served(home: str, process: subprocess.Popen[bytes]) -> None:
    """Memory after shares of the questions."""
    print(f"memory before {resident_bytes(process) / 2**20:.0f} MiB")
    done = 0
    for share in MARKS:
        count = round(share * SERVED) - done
        found = asyncio.run(load(home, 4, count, partial(_small_from, done)))
        done += count
        print(
            f"memory after {done:>6,} {resident_bytes(process) / 2**20:.0f} MiB  {found.per_s:6.1f}/s  "
            f"not answered {found.refused}",
            flush=True,
        )


def _small_from(start: int, number: int) -> dict[str, Any]:
    return small_plan(start + number)


def main() -> None:
    """Print every line."""
    with server() as (home, process):
        asyncio.run(load(home, 1, 4, plan))
        compare(home)
        served(home, process)
    print(f"exit status on SIGTERM: {process.returncode}")


if __name__ == "__main__":
    main()
