"""No tracked file names a path of somebody's machine, a package registry's host or a download address."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

# Written in pieces, since this file is read by the check as well.
_FOLDERS = "|".join(["wo" + "rk", "ro" + "ot", "t" + "mp", "ho" + r"me/\w+", "Us" + r"ers/\w+"])
_HOSTS = [
    "py" + "pi.org",
    "python" + "hosted",
    "npm" + "js",
    "deb." + "debian",
    "cra" + "tes.io",
    "proxy.gol" + "ang",
]
_MACHINE = re.compile(rf"(?<![\w./~%}}-])/(?:{_FOLDERS})/")
_REGISTRY = re.compile("|".join(map(re.escape, _HOSTS)), re.IGNORECASE)
_DOWNLOAD = re.compile(r"https?://\S+\.(?:whl|tgz|tar\.gz)\b|--(?:extra-)?index" + "-url")


def findings(name: str, text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for rule in (_MACHINE, _REGISTRY, _DOWNLOAD):
            found += [f"{name}:{number} {hit.group()}" for hit in rule.finditer(line)]
    return found


def test_the_tree_is_clean(tracked: Mapping[str, str]) -> None:
    assert [line for name, text in tracked.items() for line in findings(name, text)] == []


@pytest.mark.parametrize(
    "line",
    [
        "see /wo" + "rk/main/x",
        "open('/t" + "mp/x')",
        "path: /ro" + "ot/.cache",
        "from https://py" + "pi.org/simple",
        "pip install --index" + "-url x",
        'url = "https://example.com/a-1.0.tar' + '.gz"',
    ],
)
def test_a_trace_is_seen(line: str) -> None:
    assert len(findings("x.txt", line)) == 1


@pytest.mark.parametrize("line", ["a https://example.com/wo" + "rk/x", "src/t" + "mp/x", "GB/work", "the root/ of"])
def test_other_paths_pass(line: str) -> None:
    assert findings("x.txt", line) == []
