"""Members of streams groups over raw frames: as much of a stream thread as is needed to settle in a group."""

import time
from typing import Any

from benchmarks.groups.connections import Connection, frame_of
from ottla.wire.errors import ErrorCode
from ottla.wire.types import StreamsGroupHeartbeatRequest

VERSION = 0
SETTLE_S = 120.0
_Request = StreamsGroupHeartbeatRequest
_NOTHING: dict[str, Any] = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}


class StreamsMember:
    def __init__(self, connection: Connection, group: str, topic: str, number: int) -> None:
        self._connection, self._group = connection, group
        self._topology = _Request.Topology(0, (_Request.Subtopology("0", (topic,)),))
        self.member_id = f"{group}-{number:04}"  # all of one length, so that answers are
        self.epoch = 0
        self._endpoints = -1
        self._is_waiting = True
        self._owned: Any = None
        """Tasks that were given and not told of yet."""

    def join(self) -> None:
        request = _Request(
            self._group,
            self.member_id,
            0,
            -1,
            rebalance_timeout_ms=60_000,
            topology=self._topology,
            process_id=self.member_id,
            **_NOTHING,
        )
        self._take(self._connection.call(request, VERSION))

    def beat(self) -> bool:
        """Whether nothing was new."""
        before, owned = self.epoch, self._owned
        lists = _NOTHING if owned is None else {**_NOTHING, "active_tasks": owned}
        fields: Any = {} if owned is None else lists
        self._owned = None
        request = _Request(self._group, self.member_id, self.epoch, self._endpoints, **fields)
        self._take(self._connection.call(request, VERSION))
        return self.epoch == before and self._owned is None and not self._is_waiting

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        self.epoch, self._endpoints = answer.member_epoch, answer.endpoint_information_epoch
        self._is_waiting = bool(answer.status)
        if answer.active_tasks is not None:
            self._owned = tuple(_Request.TaskIds(each.subtopology_id, each.partitions) for each in answer.active_tasks)

    def frame(self) -> bytes:
        """A heartbeat that says nothing new."""
        return frame_of(_Request(self._group, self.member_id, self.epoch, self._endpoints), VERSION)


def settled_members(connection: Connection, topic: str, groups: int, size: int) -> list[StreamsMember]:
    """Groups in which everybody has what he should have."""
    members = [
        StreamsMember(connection, f"bench-{group:02}-app", topic, number)
        for group in range(groups)
        for number in range(size)
    ]
    for member in members:
        member.join()
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        if all([member.beat() for member in members]):  # everybody beats, also after one that is not done
            return members
    raise AssertionError("the groups do not settle")
