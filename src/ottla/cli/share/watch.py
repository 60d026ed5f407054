"""`ottla share watch`: shows the progress of a share group."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    Target,
    json_option,
    numbers,
    print_heading,
    print_table,
    target_options,
)
from ottla.cli.share.find import Found, Standing, group_windows, share_group
from ottla.cli.watch import Watch, find_and_show, watching_options

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.inflight.window import Window

COLUMNS = (
    *PARTITION_COLUMNS,
    *numbers("START", "END", "LAG", "ACQUIRED", "AVAILABLE", "DONE", "REDELIVERED", "FINISHED/s"),
)


class Seen(NamedTuple):
    """One result, with the rate of each partition."""

    found: Found
    windows: dict[TopicPartition, Window]
    rates: dict[TopicPartition, float]


class Rates:
    """Compares each result with the one before."""

    def __init__(self) -> None:
        self._before: dict[TopicPartition, int] = {}
        self._at_s = 0.0

    def take(self, found: Found, now_s: float) -> dict[TopicPartition, float]:
        """Finished records per second, where there are two results."""
        done = {each.at: count for each in found.standings if (count := _done(each)) is not None}
        passed_s = now_s - self._at_s
        rates = {at: max(0, done[at] - self._before[at]) / passed_s for at in done if at in self._before}
        self._before, self._at_s = done, now_s
        return rates


def _done(each: Standing) -> int | None:
    return None if each.end_offset is None or each.lag is None else each.end_offset - each.lag


@click.command()
@click.argument("name", metavar="GROUP")
@watching_options
@json_option
@target_options
def watch(target: Target, name: str, watch: Watch, as_json: bool) -> None:
    """Show the lag, in-flight records and progress of a share group, and keep refreshing.

    ACQUIRED and AVAILABLE need an ottla broker with --inspect-port; otherwise they are shown as '-'. REDELIVERED counts
    in-flight offsets that were delivered more than once.
    """
    rates = Rates()

    async def find(client: Client) -> Seen:
        found = await share_group(client, name)
        shown = await group_windows(client, found)
        return Seen(found, {each.at: each for each in shown}, rates.take(found, time.monotonic()))

    find_and_show(target, watch, find, _json if as_json else None, _print)


def _print(seen: Seen) -> None:
    group = seen.found.group
    left = "-" if seen.found.lag is None else seen.found.lag
    print_heading(group.group_id, [group.state, f"{len(group.members)} members", f"{left} left"])
    print_table(COLUMNS, [_cells(each, seen) for each in seen.found.standings])


def _cells(each: Standing, seen: Seen) -> tuple[object, ...]:
    rate = seen.rates.get(each.at)
    counts = _counts(seen.windows[each.at])
    shown = None if rate is None else f"{rate:.0f}"
    return (*each.at, each.start_offset, each.end_offset, each.lag, *counts.values(), shown)


def _counts(window: Window) -> dict[str, int | None]:
    from ottla.inflight.window import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, STATES

    done = window.offsets_in(STATES[ACKNOWLEDGED], STATES[ARCHIVING], STATES[ARCHIVED])
    again = sum(each.size for each in window.ranges if (each.delivery_count or 0) > 1)
    return {
        "acquired": window.offsets_in(STATES[ACQUIRED]),
        "available": window.offsets_in(STATES[AVAILABLE]),
        "done": done,
        "redelivered": again,
    }


def _json(seen: Seen) -> dict[str, Any]:
    return {
        "group_id": seen.found.group.group_id,
        "state": seen.found.group.state,
        "members": len(seen.found.group.members),
        "lag": seen.found.lag,
        "rows": [
            {
                "topic": each.at.topic,
                "partition": each.at.partition,
                "start_offset": each.start_offset,
                "end_offset": each.end_offset,
                "lag": each.lag,
                **_counts(seen.windows[each.at]),
                "finished_per_second": seen.rates.get(each.at),
            }
            for each in seen.found.standings
        ],
    }
