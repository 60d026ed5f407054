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
    print_table,
    target_options,
)
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
SECOND_MS = 1000
MINUTE_S = 60
HEALTHY_MS = 5_000
"""A voter that has not fetched for longer is not healthy."""


@click.command()
@json_option
@target_options
def describe(target: Target, as_json: bool) -> None:
    """Show the leader, the voters and the observers of the metadata log, and their lag."""

    cluster_id, found = on_cluster(target, _find)
    if as_json:
        print_json(_quorum_json(cluster_id, found))
        return
    click.echo(
        f"cluster {cluster_id or 'without id'}: node {found.leader_id} leads in epoch {found.leader_epoch}, "
        f"high watermark {found.high_watermark}"
    )
    print_table(COLUMNS, _rows(found, time.time_ns() // 1_000_000))


@click.command()
@json_option
@target_options
def voters(target: Target, as_json: bool) -> None:
    """Show only the voters."""
    cluster_id, found = on_cluster(target, _find)
    found = found._replace(observers=())
    if as_json:
        print_json(_quorum_json(cluster_id, found)["replicas"])
        return
    print_table(COLUMNS, _rows(found, time.time_ns() // 1_000_000))


@click.command()
@json_option
@watch_options
@target_options
def status(target: Target, watch: Watch, as_json: bool) -> None:
    """Show in one line the leader, how many voters are healthy, and how many more may fail."""
    find_and_show(
        target, watch, _find, _status_json if as_json else None, lambda found: click.echo(_status_line(found[1]))
    )


async def _find(client: Client) -> tuple[str | None, QuorumDescription]:
    from ottla.client.cluster import describe_quorum

    return client.metadata.cluster_id, await describe_quorum(client)


# --- in a line --------------------------------------------------------------------------------------------------------


def _status_line(found: QuorumDescription) -> str:
    healthy, majority = len(_healthy(found)), _majority(found)
    leader = f"leader {found.leader_id}" if found.leader_id >= 0 else "no leader"
    parts = [
        f"{leader}  epoch {found.leader_epoch}  high watermark {found.high_watermark:,}",
        f"voters {healthy}/{len(found.voters)} healthy (majority {majority}, margin {healthy - majority})",
        *(_behind(found, each) for each in found.voters if each not in _healthy(found) or _lag(found, each)),
    ]
    return "   ".join(parts)


def _behind(found: QuorumDescription, each: Replica) -> str:
    lag = _lag(found, each)
    behind = "behind" if lag is None else f"behind {lag:,} record{'' if lag == 1 else 's'}"
    if each.last_caught_up_ms is None:
        return f"node {each.node_id} {behind}"
    return f"node {each.node_id} {behind}, {max(_now_ms(found) - each.last_caught_up_ms, 0) // SECOND_MS} s"


def _majority(found: QuorumDescription) -> int:
    return len(found.voters) // 2 + 1


def _now_ms(found: QuorumDescription) -> int:
    """The leader's own time: the leader is always caught up with itself, and no fetch is later."""
    times = [each for one in found.voters for each in (one.last_fetch_ms, one.last_caught_up_ms) if each is not None]
    return max(times, default=0)


def _healthy(found: QuorumDescription) -> list[Replica]:
    """The leader, and the voters that have fetched from it recently."""
    now_ms = _now_ms(found)
    return [
        each
        for each in found.voters
        if each.node_id == found.leader_id
        or (each.last_fetch_ms is not None and now_ms - each.last_fetch_ms <= HEALTHY_MS)
    ]


def _status_json(found: tuple[str | None, QuorumDescription]) -> dict[str, Any]:
    cluster_id, quorum = found
    healthy, majority = _healthy(quorum), _majority(quorum)
    return {
        **_quorum_json(cluster_id, quorum),
        "healthyVoters": [each.node_id for each in healthy],
        "majority": majority,
        "margin": len(healthy) - majority,
    }


# --- as a table -------------------------------------------------------------------------------------------------------


def _rows(found: QuorumDescription, now_ms: int) -> Iterator[tuple[object, ...]]:
    for role, each in _replicas(found):
        yield (
            each.node_id,
            role,
            None if each.log_end_offset < 0 else each.log_end_offset,
            _lag(found, each),
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


def _lag(found: QuorumDescription, each: Replica) -> int | None:
    return None if each.log_end_offset < 0 or found.leader_end_offset < 0 else found.lag(each)


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
        "clusterId": cluster_id,
        "leaderId": found.leader_id,
        "leaderEpoch": found.leader_epoch,
        "highWatermark": found.high_watermark,
        "replicas": [_replica_json(found, role, each) for role, each in _replicas(found)],
    }


def _replica_json(found: QuorumDescription, role: str, each: Replica) -> dict[str, Any]:
    return {
        "nodeId": each.node_id,
        "role": role,
        "directoryId": None if each.directory_id is None else uuid_text(each.directory_id),
        "logEndOffset": each.log_end_offset,
        "lag": _lag(found, each),
        "lastFetchTimestamp": each.last_fetch_ms,
        "lastCaughtUpTimestamp": each.last_caught_up_ms,
        "endpoints": [{"listener": name, "host": host, "port": port} for name, host, port in each.endpoints],
    }
