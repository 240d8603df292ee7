"""The pinned packages that meet what strangers send: none at a version with a published flaw that we know of.

CI reaches no database of vulnerabilities, so this list is kept by hand: the first release that mends each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

MENDED = {
    "fastapi": ("0.109.1", "CVE-2024-24762: a form's content type that takes seconds to read"),
    "h11": ("0.16.0", "CVE-2025-43859: chunked bodies read in two ways"),
    "jinja2": ("3.1.6", "CVE-2025-27516: the sandbox left by |attr"),
    "pyyaml": ("5.4", "CVE-2020-14343: code run by a full load"),
    "starlette": (
        "1.3.1",
        "CVE-2026-48710: the Host header in an address taken as it comes; CVE-2025-62727: slow Range headers",
    ),
    "uvicorn": ("0.11.7", "CVE-2020-7695: headers split by what stands in an address"),
}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@pytest.mark.parametrize("name", MENDED)
def test_the_pinned_version_is_mended(repo: Path, name: str) -> None:
    lines = (repo / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    assert numbers(pinned[name]) >= numbers(MENDED[name][0]), MENDED[name][1]
