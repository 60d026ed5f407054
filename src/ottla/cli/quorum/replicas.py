"""`ottla quorum describe|status|voters`: shows the replicas of the metadata log and their lag."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    Column,
    Target,
    json_option,
    on_cluster,
    print_json,
    print_line,
    print_table,
    target_options,
)
from ottla.cli.quorum.status import SECOND_MS, Elections, lag, status_json, status_line
from ottla.cli.watch import Watch, find_and_show, watch_options
from ottla.wire import uuid_text

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.cluster import QuorumDescription, Replica

COLUMNS = (
    Column("NODE", is_number=True),
    Column("ROLE"),
    Column("LOG END", is_number=True),
    Column("LAG", is_number=True),
    Column("FETCHED", is_number=True),
    Column("CAUGHT UP", is_number=True),
    Column("DIRECTORY"),
    Column("ENDPOINTS"),
)
MINUTE_S = 60


@click.command()
@json_option
@target_options
def describe(target: Target, as_json: bool) -> None:
    """Show the leader, the voters and the observers of the metadata log, and their lag."""

    cluster_id, found = on_cluster(target, find)
    if as_json:
        print_json(_quorum_json(cluster_id, found))
        return
    print_line(
        f"cluster {cluster_id or 'without id'}: node {found.leader_id} leads in epoch {found.leader_epoch}, "
        f"high watermark {found.high_watermark}"
    )
    print_table(COLUMNS, _rows(found, time.time_ns() // 1_000_000))


@click.command()
@json_option
@watch_options
@target_options
def voters(target: Target, watch: Watch, as_json: bool) -> None:
    """Show only the voters; with --watch, also the output of `status`."""
    elections = Elections()

    def show(found: tuple[str | None, QuorumDescription]) -> None:
        quorum = found[1]._replace(observers=())
        if watch.interval_s is not None:
            print_line(status_line(quorum, elections.seen(quorum)))
        print_table(COLUMNS, _rows(quorum, time.time_ns() // 1_000_000))

    find_and_show(target, watch, find, _voters_json if as_json else None, show)


@click.command()
@json_option
@watch_options
@target_options
def status(target: Target, watch: Watch, as_json: bool) -> None:
    """Show the leader, the healthy voters, and how many more may fail, in one line.

    Lists voters that lag, and those that hold back the high watermark. With --watch, elections are counted.
    """
    elections = Elections()

    def as_json_with_elections(found: tuple[str | None, QuorumDescription]) -> dict[str, Any]:
        seen = elections.seen(found[1])
        extra = {} if watch.interval_s is None else {"elections_seen": seen.elections}
        return {**_quorum_json(*found), **status_json(found[1]), **extra}

    def show(found: tuple[str | None, QuorumDescription]) -> None:
        seen = elections.seen(found[1])
        print_line(status_line(found[1], None if watch.interval_s is None else seen))

    find_and_show(target, watch, find, as_json_with_elections if as_json else None, show)


async def find(client: Client) -> tuple[str | None, QuorumDescription]:
    from ottla.client.cluster import describe_quorum

    return client.metadata.cluster_id, await describe_quorum(client)


# --- as a table -------------------------------------------------------------------------------------------------------


def _rows(found: QuorumDescription, now_ms: int) -> Iterator[tuple[object, ...]]:
    for role, each in _replicas(found):
        yield (
            each.node_id,
            role,
            None if each.log_end_offset < 0 else each.log_end_offset,
            lag(found, each),
            _ago(each.last_fetch_ms, now_ms),
            _ago(each.last_caught_up_ms, now_ms),
            None if each.directory_id is None else uuid_text(each.directory_id),
            tuple(f"{name}://{host}:{port}" for name, host, port in each.endpoints),
        )


def _replicas(found: QuorumDescription) -> Iterator[tuple[str, Replica]]:
    for each in sorted(found.voters, key=lambda each: each.node_id):
        yield "leader" if each.node_id == found.leader_id else "voter", each
    for each in sorted(found.observers, key=lambda each: each.node_id):
        yield "observer", each


def _ago(then_ms: int | None, now_ms: int) -> str | None:
    """How long ago, as text; the clocks of two machines may differ a little."""
    if then_ms is None:
        return None
    ago_ms = max(0, now_ms - then_ms)
    if ago_ms < MINUTE_S * SECOND_MS:
        return f"{ago_ms / SECOND_MS:.1f} s ago"
    return f"{ago_ms // (MINUTE_S * SECOND_MS)} min ago"


def _quorum_json(cluster_id: str | None, found: QuorumDescription) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "leader_id": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "rows": [_replica_json(found, role, each) for role, each in _replicas(found)],
    }


def _replica_json(found: QuorumDescription, role: str, each: Replica) -> dict[str, Any]:
    return {
        "node_id": each.node_id,
        "role": role,
        "directory_id": None if each.directory_id is None else uuid_text(each.directory_id),
        "log_end_offset": each.log_end_offset,
        "lag": lag(found, each),
        "last_fetch_ms": each.last_fetch_ms,
        "last_caught_up_ms": each.last_caught_up_ms,
        "endpoints": [{"listener": name, "host": host, "port": port} for name, host, port in each.endpoints],
    }


def _voters_json(found: tuple[str | None, QuorumDescription]) -> dict[str, Any]:
    return _quorum_json(found[0], found[1]._replace(observers=()))
