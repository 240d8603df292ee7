"""The server's own figures: requests and seconds by route, and a log line a request without its payload."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from chipwise.interfaces.api.desk import Desk

_LOG = logging.getLogger("chipwise.access")
_FAILED = 500


class Figures:
    """What `/metrics` prints. Routes are those that exist: an address nobody serves counts as `none`."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("chipwise_requests", "Requests answered.", ("route", "status"), registry=self.registry)
        self.seconds = Histogram("chipwise_seconds", "Seconds until answered.", ("route",), registry=self.registry)
        waiting = Gauge("chipwise_waiting", "Questions waiting or computed.", registry=self.registry)
        waiting.set_function(lambda: desk.waiting)


class Meter:
    """The middleware that counts, times and logs."""

    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, then count; what failed unforeseen counts as 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began_s = _FAILED, time.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._count(scope, status, time.monotonic() - began_s)

    def _count(self, scope: Scope, status: int, took_s: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._figures.requests.labels(route, str(status)).inc()
        self._figures.seconds.labels(route).observe(took_s)
        _LOG.info(
            json.dumps({"method": scope["method"], "route": route, "status": status, "seconds": round(took_s, 4)})
        )
