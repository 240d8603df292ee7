"""How a server is set up: where it listens, whom it lets in, how much it takes at once."""

from __future__ import annotations

import dataclasses
from ipaddress import ip_address

from chipwise.errors import InputError
from chipwise.interfaces.verbs import Leave

LOOPBACK = "127.0.0.1"
NAMES_OF_LOOPBACK = ("localhost", LOOPBACK, "[::1]")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A server's settings; what is left out is the careful choice.

    `hosts` are the names it answers to beside those of the loopback; `rate_per_minute` bounds the questions of one
    address, `at_once` those that compute together, `waiting` those that wait, `most_bytes` and `body_s` a body,
    `wait_s` an answer, `followed_s` one whose progress is followed, `kept` the cache.
    """

    host: str = LOOPBACK
    port: int = 8321
    hosts: tuple[str, ...] = ()
    token: str | None = None
    leave: Leave = dataclasses.field(default_factory=Leave)
    rate_per_minute: int = 600
    at_once: int = 2
    waiting: int = 64
    most_bytes: int = 1_000_000
    body_s: float = 20.0
    wait_s: float = 30.0
    followed_s: float = 900.0
    kept: int = 256


def checked(settings: Settings) -> Settings:
    """The settings, where they may be served.

    Raises:
        InputError: it listens beyond the loopback without a token.

    >>> checked(Settings(host="0.0.0.0"))
    Traceback (most recent call last):
    ...
    chipwise.errors.InputError: no token, and 0.0.0.0 is reached from elsewhere
    """
    if settings.token is None and not is_loopback(settings.host):
        raise InputError(
            f"no token, and {settings.host} is reached from elsewhere",
            why="whoever reaches the port could use this machine",
            fix="set CHIPWISE_TOKEN, or listen on 127.0.0.1",
        )
    return settings


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address.

    >>> is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
