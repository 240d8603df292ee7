"""A real server in a thread and a real Chromium: every journey is walked on a desk and on a phone."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.web.pages import create_site

QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SHEETS = {"desk": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="session")
def home() -> Iterator[str]:
    """The address of a server that runs as `chipwise serve` does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = Settings(port=port, rate_per_minute=100_000)
    server = uvicorn.Server(uvicorn.Config(create_site(settings), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Absent: a skip, on CI a failure.

    It is closed with its module: Playwright keeps an event loop running in this thread while it is open, and
    a test elsewhere that starts one of its own fails then.
    """
    path = shutil.which("chromium")
    if path is None:
        reason = "no chromium on this machine: the journeys through the pages are not walked"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture(params=SHEETS)
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A page of its own. Any error that the browser's console shows fails the journey."""
    width, height = SHEETS[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    context.close()
    assert not said, said
