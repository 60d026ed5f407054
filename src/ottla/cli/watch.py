"""Finds something in a cluster and shows it: once, or repeatedly with `--watch`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from ottla.cli.cluster import Seconds, Target, on_cluster, print_json, with_options
from ottla.cli.printable import printable
from ottla.cli.refusal import one_line

if TYPE_CHECKING:
    from ottla.client import Client

DEFAULT_INTERVAL_S = 2
T = TypeVar("T")


class Watch(NamedTuple):
    """How often to refresh; `interval_s` is None to show the result once."""

    interval_s: float | None = None
    rounds_max: int | None = None


def watch_options(command: Callable[..., T]) -> Callable[..., T]:
    """The options of every command that can refresh; the command gets them as one `watch`."""

    @wraps(command)
    def gathered(*, watch: float | None, interval: float | None, count: int | None, **others: object) -> T:
        return command(watch=Watch(interval or watch, count) if watch else Watch(), **others)

    return with_options(
        gathered,
        click.option(
            "--watch",
            is_flag=False,
            flag_value=f"{DEFAULT_INTERVAL_S}s",
            type=Seconds(),
            metavar="[TIME]",
            help="Refresh every 2 s, or every TIME, until interrupted.",
        ),
        click.option("--interval", type=Seconds(), metavar="TIME", help="The time between two refreshes of --watch."),
        _count_option("Stop --watch after N refreshes."),
    )


def watching_options(command: Callable[..., T]) -> Callable[..., T]:
    """The same for a command that always refreshes."""

    @wraps(command)
    def gathered(*, interval: float, count: int | None, **others: object) -> T:
        return command(watch=Watch(interval, count), **others)

    return with_options(
        gathered,
        click.option(
            "--interval",
            type=Seconds(),
            default=f"{DEFAULT_INTERVAL_S}s",
            show_default=True,
            metavar="TIME",
            help="The time between two refreshes.",
        ),
        _count_option("Stop after N refreshes; by default, when interrupted."),
    )


def _count_option(text: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    return click.option("--count", type=click.IntRange(1), metavar="N", help=text)


def find_and_show(
    target: Target,
    watch: Watch,
    find: Callable[[Client], Awaitable[T]],
    as_json: Callable[[T], object] | None,
    show: Callable[[T], None],
) -> None:
    """Find a result and print it, once or as often as `watch` says, over one connection.

    A terminal shows only the newest result; elsewhere each result is printed below a line with the time, or with JSON
    as one line. While watching, it waits for a cluster that does not answer.
    """
    if watch.interval_s is None:
        found = on_cluster(target, find)
        if as_json is None:
            show(found)
        else:
            print_json(as_json(found))
        return
    interval_s = watch.interval_s

    async def watching(client: Client) -> None:
        rounds = 0
        while watch.rounds_max is None or rounds < watch.rounds_max:
            if rounds:
                await asyncio.sleep(interval_s)
            rounds += 1
            await _show_once(client, find, as_json, show)

    on_cluster(target, watching)


def find_and_show_each(
    target: Target,
    watch: Watch,
    find: Callable[[Client], Awaitable[list[T]]],
    as_json: Callable[[T], object] | None,
    show: Callable[[T], None],
) -> None:
    """The same for several results, which are separated by empty lines."""

    def show_all(found: list[T]) -> None:
        for number, each in enumerate(found):
            if number:
                click.echo()
            show(each)

    find_and_show(
        target,
        watch,
        find,
        None if as_json is None else rows_of(as_json),
        show_all,
    )


def rows_of(as_json: Callable[[T], object]) -> Callable[[Iterable[T]], dict[str, object]]:
    """The JSON of several results, each of which has a form of its own."""
    return lambda found: {"rows": [as_json(each) for each in found]}


async def _show_once(
    client: Client,
    find: Callable[[Client], Awaitable[T]],
    as_json: Callable[[T], object] | None,
    show: Callable[[T], None],
) -> None:
    from ottla.client import ClientError

    try:
        found = await find(client)
    except ClientError as error:
        click.echo(printable(f"ottla: {one_line(error)}"), err=True)
        return
    if as_json is not None:
        click.echo(json.dumps(as_json(found), ensure_ascii=False))
        return
    if sys.stdout.isatty():
        click.clear()
    click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
    show(found)
