"""The line that says an answer takes a while: on a terminal only, after a second, gone before the answer is printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

AFTER_S = 1.0
"""Nothing is drawn before: most answers are there by then."""
EVERY_S = 0.2
_TURNING = "|/-\\"
_WIPE = "\r\x1b[K"


class WaitingLine:
    """A line drawn again and again by a thread of its own until it is cleared."""

    def __init__(self, words: str, stream: TextIO, *, after_s: float = AFTER_S) -> None:
        import threading

        self.drawn = threading.Event()
        self._over = threading.Event()
        self._words, self._stream, self._after_s = words, stream, after_s
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def say(self, words: str) -> None:
        """What the line says from its next turn on."""
        self._words = words

    def _draw(self) -> None:
        began_s, turn = time.monotonic(), 0
        wait_s = self._after_s
        while not self._over.wait(wait_s):
            took_s = time.monotonic() - began_s
            self._stream.write(f"{_WIPE}{_TURNING[turn % len(_TURNING)]} {self._words}, {took_s:.0f} s")
            self._stream.flush()
            self.drawn.set()
            turn, wait_s = turn + 1, EVERY_S

    def clear(self) -> None:
        """Stop drawing and leave the terminal as it was; a second call does nothing."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        if self.drawn.is_set():
            self._stream.write(_WIPE)
            self._stream.flush()


class NoLine:
    """Where nothing is drawn: no terminal, or one that cannot wipe a line."""

    def say(self, words: str) -> None:
        """Nobody reads it."""

    def clear(self) -> None:
        """Nothing was drawn."""


@contextmanager
def waiting(words: str, *, silent: bool = False, after_s: float = AFTER_S) -> Iterator[WaitingLine | NoLine]:
    """A line on stderr while the body runs longer than `after_s`; `clear` it before anything is printed."""
    line: WaitingLine | NoLine
    if silent or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        line = NoLine()
    else:
        line = WaitingLine(words, sys.stderr, after_s=after_s)
    try:
        yield line
    finally:
        line.clear()
