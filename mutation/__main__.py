"""`python -m mutation [ROOM ...]`: plant a seeded sample of faults in rooms, one at a time, and see which tests notice.

Each fault goes into a copy of the package, on which the module's doctests and the tests of the rooms run. Prints the
share that was noticed, and where it was not; exits with 1 below the bar.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutation.faults import Fault, faults, planted

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("memory", "parallelism")
"""The arithmetic rooms whose score is kept, with the tests of both."""
BAR, LIMIT_S = 0.80, 120
DOCTEST = "import doctest, importlib, sys; sys.exit(doctest.testmod(importlib.import_module(sys.argv[1])).failed > 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fault and the module it is in."""

    file: Path
    fault: Fault

    @property
    def module(self) -> str:
        """The module's dotted name."""
        return ".".join(self.file.relative_to(ROOT / "src").with_suffix("").parts)


def say(text: str) -> None:
    """One message, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def sample(rooms: list[str], size: int, seed: int) -> list[Planted]:
    """A seeded sample of the faults of all modules of the rooms; all of them where there are no more."""
    every = [
        Planted(file=file, fault=fault)
        for room in rooms
        for file in sorted((ROOT / "src" / "chipwise" / room).rglob("*.py"))
        if file.name != "__init__.py"
        for fault in faults(file.read_text(encoding="utf-8"))
    ]
    say(f"{len(every)} faults in {', '.join(rooms)}")
    return random.Random(seed).sample(every, min(size, len(every)))  # noqa: S311  # a sample, no secret


def noticed(one: Planted, source: Path, rooms: list[str]) -> bool:
    """Whether a doctest or a test fails with the fault in the copy at `source`."""
    copied = source / one.file.relative_to(ROOT / "src")
    text = copied.read_text(encoding="utf-8")
    copied.write_text(planted(one.file.read_text(encoding="utf-8"), one.fault), encoding="utf-8")
    tests = [str(ROOT / "tests" / room) for room in rooms]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--hypothesis-seed=0"]
    commands = ([sys.executable, "-c", DOCTEST, one.module], [sys.executable, "-m", "pytest", *options, *tests])
    try:
        return any(_fails(command, source) for command in commands)
    finally:
        copied.write_text(text, encoding="utf-8")


def _fails(command: list[str], source: Path) -> bool:
    """Whether a command on the copy fails or does not end; a run without any test is a mistake of ours."""
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def main(words: list[str]) -> int:
    """Plant, test, tell."""
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("rooms", nargs="*", default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(words)
    chosen = sample(asked.rooms, asked.sample, asked.seed)
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if any(
            _fails([sys.executable, "-m", "pytest", "-q", str(ROOT / "tests" / room)], source) for room in asked.rooms
        ):
            say("the tests fail without any fault: mend them first")
            return 2
        for one in chosen:
            if not noticed(one, source, list(ROOMS)):
                survivors.append(one)
                say(f"not noticed: {one.file.relative_to(ROOT)}:{one.fault.line}: {one.fault.what}")
    share = 1.0 - len(survivors) / max(len(chosen), 1)
    say(f"noticed {len(chosen) - len(survivors)} of {len(chosen)} faults: {share:.1%} (seed {asked.seed})")
    return 0 if share >= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
