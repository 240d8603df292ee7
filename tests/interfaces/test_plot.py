"""`chipwise plot`: files of both kinds, the figures behind them, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chipwise.interfaces.cli import cli
from chipwise.interfaces.cli.commands.plot import KINDS

ASKED = ("llama-3.1-8b", "--users", "8", "--only", "g6e.xlarge,g6.2xlarge")


def plot(*words: str) -> Result:
    return CliRunner().invoke(cli, ["plot", *words], prog_name="chipwise")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    assert plot(kind, *ASKED, "-o", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_a_png_is_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    assert plot("latency", *ASKED, "-o", str(path)).exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_a_file_the_figures_are_printed() -> None:
    found = json.loads(plot("latency", *ASKED, "--json").stdout)
    speeds = [row["output_tokens_per_s"]["mid"] for row in found["load"]]
    assert speeds == sorted(speeds)
    held = [row["max_concurrency"] for row in found["context"]]
    assert held == sorted(held, reverse=True)
    costs = [row["usd_per_million_output_tokens"]["mid"] for row in found["use"]]
    assert costs[9] == pytest.approx(2 * costs[-1])  # half used costs twice
    assert {row["instance"] for row in found["candidates"]} <= {"g6e.xlarge", "g6.2xlarge"}


def test_pools_apart_have_no_curve_by_load_and_the_others_are_drawn() -> None:
    asked = ("llama-3.3-70b", "--users", "64", "--tpot-p99", "8.5ms", "--json")
    planned = json.loads(CliRunner().invoke(cli, ["plan", *asked], prog_name="chipwise").stdout)["options"][0]
    found = json.loads(plot("context", *asked).stdout)
    assert {pool["role"] for pool in planned["pools"]} == {"prefill", "decode"}
    assert found["load"] == []
    assert found["context"]
    assert found["memory"] == planned["memory"]["per_chip"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing", *ASKED), "unknown kind"),
        (("latency", *ASKED, "-o", "x.pdf"), "neither SVG nor PNG"),
        (("latency", *ASKED, "-o", "no/such/folder/x.svg"), "cannot be written"),
        (("latency", *ASKED, "--option", "9"), "no option 9"),
        (("latency", "llama-3.1-8b", "--users", "8", "--only", "g6e.xlarge", "--tpot-p99", "1us"), "nothing to draw"),
        (("latency", "resnet-50", "--batch", "8"), "--batch"),
        (
            ("context", "llama-3.1-8b", "--for", "lora", "--tokens", "10M", "--only", "p5.48xlarge"),
            "no context to draw",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    more = () if "-o" in words else ("-o", str(tmp_path / "x.svg"))
    result = plot(*words, *more)
    assert result.exit_code != 0
    assert said in result.stderr
