"""A group of commands that proposes near names for a mistyped one."""

from __future__ import annotations

import click

from chipwise.errors import UnknownNameError


class NearGroup(click.Group):
    """A group whose unknown commands are answered with what, why, fix."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command, or an error that proposes near names."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise UnknownNameError("command", args[0], known, listing=f"the commands are {', '.join(known)}")
        return super().resolve_command(ctx, args)


class DefaultGroup(NearGroup):
    """A group one of whose commands, named by the empty text, takes every line that names no other."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The rest of the line, for the command that takes it."""
        named = bool(args) and bool(args[0]) and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["", *args])
