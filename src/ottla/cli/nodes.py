"""`ottla nodes`: the brokers of a cluster, whether they serve, and how full their disks are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ottla.cli.cluster import Column, Target, json_option, numbers, print_table, target_options
from ottla.cli.refusal import one_line
from ottla.cli.topics.find import found_topics
from ottla.cli.watch import Watch, find_and_show, rows_of, watch_options
from ottla.health.phrases import plural, size

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.cluster import BrokerDescription
    from ottla.client.log_dirs import LogDirectory

COLUMNS: Final = (
    *numbers("NODE"),
    Column("ADDRESS"),
    Column("RACK"),
    Column("STATE"),
    Column("DIRECTORY"),
    *numbers("LOGS", "FREE", "DISK"),
    Column("NOTE"),
)
NODE_TIMEOUT_MS: Final = 3_000
SERVES: Final = "serves"
FENCED: Final = "fenced"
SILENT: Final = "unreachable"
ABSENT: Final = "not listed"


class Found(NamedTuple):
    node_id: int
    broker: BrokerDescription | None
    """None for a node that has replicas and is not listed by the cluster."""
    state: str
    directories: list[LogDirectory]
    note: str = ""


@click.command()
@json_option
@watch_options
@target_options
def nodes(target: Target, as_json: bool, watch: Watch) -> None:
    """Show the brokers of a cluster: addresses, states and disk usage.

    LOGS is the size of the logs in a directory, FREE the free space on its disk, and DISK the size of the disk.
    """
    find_and_show(target, watch, _find, rows_of(_node_json) if as_json else None, _print)


async def _find(client: Client) -> list[Found]:
    from ottla.client.cluster import describe

    brokers = (await describe(client, include_fenced=True)).brokers
    found = await client.together(_look(client, each) for each in brokers)
    named = Counter(
        node for topic in await found_topics(client, ()) for each in topic.partitions for node in each.replicas
    )
    for node_id in sorted(set(named) - {each.node_id for each in brokers}):
        note = f"{plural(named[node_id], 'partition')} assigned to it"
        found.append(Found(node_id, None, ABSENT, [], note))
    return sorted(found, key=lambda each: each.node_id)


async def _look(client: Client, broker: BrokerDescription) -> Found:
    from ottla.client import ClientError, ResponseError
    from ottla.client.address import Address, Peer
    from ottla.client.log_dirs import describe_log_dirs_at

    peer = Peer(Address(broker.host, broker.port), broker.node_id)
    state = FENCED if broker.is_fenced else SERVES
    try:
        directories = await describe_log_dirs_at(client, peer, timeout_ms=NODE_TIMEOUT_MS)
    except ResponseError as error:  # it answers, but does not allow it
        return Found(broker.node_id, broker, state, [], one_line(error))
    except ClientError as error:
        return Found(broker.node_id, broker, FENCED if broker.is_fenced else SILENT, [], one_line(error))
    return Found(broker.node_id, broker, state, directories)


def _print(found: list[Found]) -> None:
    print_table(COLUMNS, (row for each in found for row in _rows(each)))


def _rows(found: Found) -> Iterator[tuple[object, ...]]:
    broker = found.broker
    where = (None, None) if broker is None else (f"{broker.host}:{broker.port}", broker.rack)
    first = (found.node_id, *where, found.state)
    if not found.directories:
        yield (*first, None, None, None, None, found.note or None)
    for each in found.directories:
        sizes = (None if each.error else each.size_bytes, each.usable_bytes, each.total_bytes)
        note = f"failed: {_error(each)}" if each.error else None
        yield (*first, each.path, *(None if bytes_ is None else size(bytes_) for bytes_ in sizes), note)


def _error(directory: LogDirectory) -> str | None:
    return None if directory.error is None or directory.error.error is None else directory.error.error.name


def _node_json(found: Found) -> dict[str, Any]:
    broker = found.broker
    return {
        "node_id": found.node_id,
        "host": None if broker is None else broker.host,
        "port": None if broker is None else broker.port,
        "rack": None if broker is None else broker.rack,
        "state": found.state,
        "note": found.note or None,
        "directories": [
            {
                "path": each.path,
                "error": _error(each),
                "size_bytes": each.size_bytes,
                "usable_bytes": each.usable_bytes,
                "total_bytes": each.total_bytes,
            }
            for each in found.directories
        ],
    }
