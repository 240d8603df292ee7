"""Pictures of the main views, taken from a real server with Debian's Chromium: `make screens` writes docs/screens/."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.web.pages import create_site

FOLDER = Path(__file__).resolve().parent / "screens"
CHAT = "model=llama-3.3-70b&for=chat&users=64&context=8k&ttft-p99=1s&tpot-p99=40ms&region=us"
VIEWS = {
    "start": ("/", 1280, 800),
    "answer": (f"/?{CHAT}", 1280, 1500),
    "turn": (f"/why?{CHAT}&instance=g6e.12xlarge", 1280, 620),
    "phone": (f"/?{CHAT}", 390, 844),
    "walk": ("/walk?model=llama-3.3-70b&8.1=serving&ask-serving=chat", 1280, 860),
    "versus": (f"/versus?a={CHAT.replace('&', '%26')}&b={CHAT.replace('&', '%26')}%26vendor=neuron", 1280, 900),
}
"""Name to address and size of the sheet."""


def main() -> None:
    """Take every picture."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_site(Settings(port=port)), port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in VIEWS:
            _take(browser, f"http://127.0.0.1:{port}", name)
    server.should_exit = True


def _take(browser: Browser, home: str, name: str) -> None:
    address, width, height = VIEWS[name]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(f"{home}{address}")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png")
    page.close()


if __name__ == "__main__":
    main()
