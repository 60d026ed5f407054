"""Which replica a consumer reads from (KIP-392): its leader, or with racks one that is near."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["RACK_AWARE", "SELECTORS", "ReadableReplica", "replica_in_rack"]

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SELECTORS: Final = ("org.apache.kafka.common.replica.LeaderSelector", RACK_AWARE)
"""What `replica.selector.class` may name; without it leaders are read from."""


class ReadableReplica(NamedTuple):
    """A replica that has what the consumer wants to read next."""

    broker_id: int
    rack: str | None
    end_offset: int
    last_caught_up_ms: int


def replica_in_rack(rack: str, leader: ReadableReplica, followers: Iterable[ReadableReplica]) -> int:
    """In the consumer's rack: the leader, else the follower that has most; without one there, the leader."""
    if not rack or leader.rack == rack:
        return leader.broker_id
    near = [each for each in followers if each.rack == rack]
    best = max(near, key=lambda each: (each.end_offset, each.last_caught_up_ms, -each.broker_id), default=leader)
    return best.broker_id
