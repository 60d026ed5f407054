"""The common parts of commands that talk to a cluster: options, errors and tables."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from ottla.cli import colour
from ottla.cli.failure import Failure, unknown_command
from ottla.cli.printable import printable
from ottla.cli.profiles import PROFILE_VARIABLE, profile_named
from ottla.cli.refusal import failure_of
from ottla.cli.times import parse_duration_ms

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.settings import Changes

DEFAULT_SERVER = "127.0.0.1:9092"
SERVER_VARIABLE = "OTTLA_BOOTSTRAP"
DEFAULT_TIMEOUT = "10s"
TIMEOUT_MOST_DAYS = 24
"""Requests have their time-out in milliseconds, in 32 bits."""
DAY_SECONDS = 24 * 60 * 60
WIDTH_OF_FILES = 10_000
"""Output to a file or another program is neither cut nor wrapped."""
COLUMN_GAP = 2
FOLDED_WIDTH_MIN = 20
"""How narrow the last column of a table may become."""
NO_VALUE = "-"

T = TypeVar("T")


class Seconds(click.ParamType[float]):
    """A time above 0, in seconds: `10s`, `500ms`, `1m30s`, or a number alone."""

    name = "time"

    def __init__(self, most_days: float = inf) -> None:
        self._most_days = most_days

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        try:
            seconds = parse_duration_ms(text if text[-1:].isalpha() else f"{text}s") / 1000
        except Failure:
            seconds = 0.0
        if not seconds:
            self.fail(f"{text!r} is not a time above 0, such as 10s, 500ms or 2m", param, ctx)
        if seconds > self._most_days * DAY_SECONDS:
            self.fail(f"{text!r} is longer than {self._most_days} days", param, ctx)
        return seconds


class Target(NamedTuple):
    """The cluster, and how to connect to it."""

    bootstrap_server: str
    command_config: Path | None
    timeout_s: float
    profile: str | None = None
    """The profile that the address comes from."""

    @property
    def options(self) -> str:
        """The options with which another command reaches the same cluster; empty if it does without."""
        from shlex import quote

        if self.profile is not None:
            return f"--profile {quote(self.profile)}"
        words = [] if self.bootstrap_server == DEFAULT_SERVER else [f"--bootstrap {quote(self.bootstrap_server)}"]
        if self.command_config is not None:
            words.append(f"--command-config {quote(str(self.command_config))}")
        return " ".join(words)


def target_options(command: Callable[..., T]) -> Callable[..., T]:
    """The options of every command that talks to a cluster; the command gets them as one `target`."""

    @wraps(command)
    def gathered(
        *, bootstrap_server: str, command_config: Path | None, profile: str | None, timeout: float, **others: object
    ) -> T:
        return command(target=chosen_target(bootstrap_server, command_config, profile, timeout), **others)

    return with_options(gathered, *_TARGET_OPTIONS)


def with_options(
    command: Callable[..., T], *options: Callable[[Callable[..., T]], Callable[..., T]]
) -> Callable[..., T]:
    """A command with options, in the order in which its help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


def chosen_target(bootstrap_server: str, command_config: Path | None, profile: str | None, timeout_s: float) -> Target:
    """The cluster of a profile or of an address. The command line comes before the environment, and OTTLA_PROFILE
    before OTTLA_BOOTSTRAP."""
    if is_given("bootstrap_server") and is_given("profile"):
        raise Failure("--bootstrap and --profile exclude each other")
    if not profile or is_given("bootstrap_server"):
        return Target(bootstrap_server, command_config, timeout_s)
    return target_of_profile(profile, command_config, timeout_s)


def target_of_profile(name: str, command_config: Path | None, timeout_s: float) -> Target:
    """The cluster of a profile; `command_config` comes before the file of the profile."""
    found = profile_named(name)
    return Target(found.bootstrap_server, command_config or found.command_config, timeout_s, name)


def is_given(parameter: str) -> bool:
    """Whether the command line has this parameter; the environment does not count."""
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


profile_option = click.option(
    "--profile",
    metavar="NAME",
    envvar=PROFILE_VARIABLE,
    show_envvar=True,
    help="A cluster that 'ottla profile add' has named.",
)
_TARGET_OPTIONS = (
    click.option(
        "--bootstrap",
        "--bootstrap-server",
        "bootstrap_server",
        metavar="HOST:PORT",
        default=DEFAULT_SERVER,
        show_default=True,
        envvar=SERVER_VARIABLE,
        show_envvar=True,
        help="A broker of the cluster; separate several with commas.",
    ),
    click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Properties file of a Kafka client: security.protocol, sasl.*, ssl.* and so on.",
    ),
    profile_option,
    click.option(
        "--timeout",
        type=Seconds(TIMEOUT_MOST_DAYS),
        default=DEFAULT_TIMEOUT,
        show_default=True,
        metavar="TIME",
        help="How long to keep trying: 10s, 500ms, 2m; a bare number is in seconds.",
    ),
)
compression_option = click.option(
    "--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]), default="none", show_default=True
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


class ClusterGroup(click.Group):
    """A group of commands that suggests the nearest name for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            raise unknown_command(ctx, args[0], self.commands)
        return super().resolve_command(ctx, args)


def help_alone(context: click.Context) -> None:
    """A group that is called without a command shows its help."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# --- talking ----------------------------------------------------------------------------------------------------------


def on_cluster(target: Target, work: Callable[[Client], Awaitable[T]], changes: Changes | None = None) -> T:
    """Connect, do the work, and close; a client error becomes a Failure of one line.

    `changes` are settings of the client, which the command line and its file override.
    """
    from ottla.client import ClientError

    async def run() -> T:
        async with client_of(target, changes) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except ClientError as error:
        raise failure_of(error) from None
    except KeyboardInterrupt:
        raise click.Abort from None


def client_of(target: Target, changes: Changes | None = None) -> Client:
    """A client that connects when it is entered."""
    from ottla.client import Client

    timeout_ms = max(1, round(target.timeout_s * 1000))
    settings: Changes = {**(changes or {}), **client_settings(target)}
    settings["default_api_timeout_ms"] = timeout_ms
    settings["request_timeout_ms"] = min(settings.get("request_timeout_ms", timeout_ms), timeout_ms)
    settings["connect_timeout_ms"] = min(settings.get("connect_timeout_ms", timeout_ms), timeout_ms)
    return Client(target.bootstrap_server, **settings)


def client_settings(target: Target) -> Changes:
    """What the file of --command-config says."""
    from ottla.client.properties import settings_of
    from ottla.client.settings import Changes

    return Changes() if target.command_config is None else settings_of(properties_in(target.command_config))


def properties_in(command_config: Path) -> Mapping[str, str]:
    from ottla.wire.properties import read_properties

    try:
        return read_properties(command_config.read_text(errors="replace"))
    except OSError as error:  # the file of a profile
        raise Failure(f"{command_config} cannot be read: {error.strerror}") from None


# --- printing ---------------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    heading: str
    is_number: bool = False


def numbers(*headings: str) -> tuple[Column, ...]:
    """Numeric columns."""
    return tuple(Column(each, is_number=True) for each in headings)


PARTITION_COLUMNS = (Column("TOPIC"), *numbers("PARTITION"))
"""The columns of a `TopicPartition`."""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below their headings, in colour and as wide as the terminal; in a file plain and as wide as needed.

    Where a terminal is too narrow for a table, each row is a paragraph of its own.
    """
    from rich.table import Table
    from rich.text import Text

    console = colour.console()
    cells = [[_cell(value) for value in row] for row in rows]
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES
    elif not _fits(columns, cells, console.width):
        for row in cells:
            first, *rest = paragraph(columns, row, console.width)
            console.print(Text("\n").join([Text(first, "bold"), *map(Text, rest)]))
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.heading, justify="right" if column.is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def print_line(text: str) -> None:
    """Print a line above a table; on a narrow terminal it is wrapped between words."""
    from textwrap import wrap

    console = colour.console()
    if not console.is_terminal or len(click.unstyle(text)) <= console.width:
        click.echo(text)
        return
    indent = " " * COLUMN_GAP
    for line in wrap(text, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
        click.echo(line)


def print_heading(name: str, facts: Iterable[str]) -> None:
    """Print what the lines below are about, and what there is to say of it; facts that are empty are left out."""
    print_line("  ".join([click.style(printable(name), bold=True), *map(printable, filter(None, facts))]))


def _fits(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a table is readable in this width: only its last column may fold, and only if that is text."""
    widths = [
        max(len(column.heading), *(len(row[index]) for row in cells)) if cells else len(column.heading)
        for index, column in enumerate(columns)
    ]
    last = widths[-1] if columns[-1].is_number else min(widths[-1], FOLDED_WIDTH_MIN)
    return sum(widths[:-1]) + last + COLUMN_GAP * (len(columns) - 1) <= width


def paragraph(columns: Sequence[Column], row: Sequence[str], width: int) -> list[str]:
    """A row as lines: its first cell, then the others with their headings, as many to a line as there is room for."""
    lines = [row[0]]
    for column, cell in zip(columns[1:], row[1:], strict=True):
        if cell == NO_VALUE:
            continue
        pair = f"{column.heading} {cell}"
        if len(lines) > 1 and len(lines[-1]) + COLUMN_GAP + len(pair) <= width:
            lines[-1] += " " * COLUMN_GAP + pair
        else:
            lines.append(" " * COLUMN_GAP + pair)
    return lines


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        value = ",".join(map(str, value)) or None
    return NO_VALUE if value is None else printable(str(value))


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


# --- reading ----------------------------------------------------------------------------------------------------------


def key_and_value(text: str, option: str) -> tuple[str, str]:
    """KEY=VALUE; the value may be empty."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Failure(f"{option} {text!r} is not KEY=VALUE", f"for example {option} retention.ms=60000")
    return key.strip(), value
