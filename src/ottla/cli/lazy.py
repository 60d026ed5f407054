"""A click group that imports a command's module only when that command runs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla import __version__
from ottla.cli import colour
from ottla.cli.failure import unknown_command
from ottla.cli.verbosity import add_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """One command: its location, as "module:attribute", its line in the list of commands, and the heading above it."""

    target: str
    summary: str
    section: str


class LazyGroup(click.Group):
    """Commands with name and summary; the rest is loaded from their modules when it is needed."""

    def __init__(self, name: str, entries: Mapping[str, Entry], *, help: str) -> None:
        super().__init__(name, help=help, invoke_without_command=True, no_args_is_help=False, callback=_help_alone)
        self.params += [_version_option(), colour.option()]
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        return load(entry) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.entries:
            if ctx.resilient_parsing:  # shell completion
                return args[0], None, args[1:]
            raise unknown_command(ctx, args[0], self.entries)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completions, without loading a command."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.entries[name].summary) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.entries))
        for section in dict.fromkeys(entry.section for entry in self.entries.values()):
            with formatter.section(section):
                rows = [(name, entry.summary) for name, entry in self.entries.items() if entry.section == section]
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in rows])


def load(entry: Entry) -> click.Command:
    """Import the module of a command and return the command."""
    module, _, attribute = entry.target.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command), f"{entry.target} is not a command"
    add_options(command)
    return command


@click.pass_context
def _help_alone(context: click.Context) -> None:
    """`ottla` without a command shows its help."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _version_option() -> click.Option:
    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            click.echo(f"ottla {__version__}")
            context.exit()

    return click.Option(
        ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show, help="Show the version and exit."
    )
