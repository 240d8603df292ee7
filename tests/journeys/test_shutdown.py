"""A server that is told to stop answers what it has taken."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

QUESTIONS = 2

pytestmark = pytest.mark.slow


def waiting(home: str) -> float:
    """Questions that the server holds; -1 before it listens."""
    try:
        (figure,) = re.findall(r"^chipwise_waiting (\S+)", httpx.get(f"{home}/metrics").text, re.MULTILINE)
    except httpx.TransportError:
        return -1.0
    return float(figure)


def test_nothing_is_lost_on_sigterm() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = f"http://127.0.0.1:{port}"
    words = [sys.executable, "-m", "chipwise", "serve", "--port", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)

    def asked(users: int) -> int:
        body = {"model": "llama-3.3-70b", "for": "chat", "users": users}
        return httpx.post(f"{home}/api/v1/plan", json=body, timeout=120.0).status_code

    try:
        while waiting(home) < 0:
            time.sleep(0.1)
        with ThreadPoolExecutor(QUESTIONS) as pool:
            answers = [pool.submit(asked, 100 + number) for number in range(QUESTIONS)]
            while waiting(home) < QUESTIONS and not any(answer.done() for answer in answers):
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert [answer.result() for answer in answers] == [200] * QUESTIONS
        process.wait()
    finally:
        process.kill()
