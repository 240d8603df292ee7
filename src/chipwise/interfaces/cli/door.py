"""The command `chipwise`: which commands there are, and how an answer or an error becomes an exit status.

0 answered; 1 answered, and the answer is no; 2 your input is wrong; 3 we lack the knowledge. Anything else is
a bug and keeps its traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, Never

import click

from chipwise.errors import ChipwiseError
from chipwise.interfaces.cli import failures
from chipwise.interfaces.cli.groups import NearGroup

_COMMANDS = {
    "plan": "Which instances, how many, split how, bought how, and why not the others.",
    "model": "What a model is: parameters, layers, attention, cache, precisions.",
    "memory": "Whether a model fits on a chip, term by term, and what would make it fit.",
    "estimate": "How fast a model runs on given chips, with a range and its terms.",
    "why": "Where one size stands for a question, and what would turn it.",
    "compare": "Two sizes side by side, and what each does for a model.",
    "plot": "Drawings for slides and reports: all sizes, latency, context, cost, memory.",
    "serve": "The web page and the REST interface on one port.",
    "deploy": "EKS manifests for an option of a plan; deploy lint checks anybody's.",
    "validate": "Replay published measurements, and say how far off chipwise is.",
    "catalog": "The chips, instances, prices and regions known, each fact with its source.",
    "guide": "The guide's flows and tables, where it is wrong, and its questionnaire.",
    "explain": "What a term means, what decides it, its grades, how to improve it.",
    "schema": "The JSON Schema of what a command prints with --json.",
}

_EPILOG = """\b
MODEL is a built-in name, a Hugging Face id, a folder, a config.json, .gguf or
.safetensors file, or params:70b. Sizes take units: 8k, 500ms, 40GB, 5000tok/s, 3d, $50k.
\b
Exit status: 0 answered; 1 the answer is no; 2 your input is wrong; 3 we lack the knowledge.
\b
Completion of commands, flags, models, sizes, chips and Regions; put into your shell's start file:
  bash  eval "$(_CHIPWISE_COMPLETE=bash_source chipwise)"
  zsh   eval "$(_CHIPWISE_COMPLETE=zsh_source chipwise)"
  fish  _CHIPWISE_COMPLETE=fish_source chipwise | source
"""


class LazyGroup(NearGroup):
    """A group that imports the module of a command only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table, not of the alphabet."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"chipwise.interfaces.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of `--help`, from the table, so that no module is imported for it."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Never:
        """Run, print an error the way CONTRACT says, and exit with its status."""
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        sys.exit(self._status(words, *rest, **{**extra, "standalone_mode": False}))

    def _status(self, words: list[str], *rest: Any, **extra: Any) -> int:
        try:
            status = super().main(words, *rest, **extra)
        except click.Abort:
            return 130
        except click.ClickException as error:
            return _failed(failures.from_click(error), words)
        except ChipwiseError as error:
            return _failed(error, words)
        return status if isinstance(status, int) else 0


def _failed(error: ChipwiseError, words: Sequence[str]) -> int:
    failures.show(error, as_json=failures.asks_json(words))
    return error.exit_status


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="chipwise", message="%(prog)s %(version)s")
def cli() -> None:
    """Which AWS accelerators for this model and this workload, and why not the others."""


def main() -> None:
    """The entry point of the installed command."""
    cli.main(prog_name="chipwise")
