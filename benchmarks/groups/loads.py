"""What is measured of groups: commits, heartbeats, rebalances. Each function gives its seconds."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.groups.connections import Connection, frame_of, in_turn, pipelined
from benchmarks.groups.members import (
    LONG_SESSION_MS,
    RETRY,
    SETTLE_S,
    ClassicMember,
    ConsumerMember,
    Crew,
    Member,
    classic_is_done,
    consumer_is_done,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)

CONNECTIONS = 8
DEPTH = 100
COMMIT_VERSION = 9
READY_S = 30.0
_EXISTS = 36
_GROUP = 32
"""The type of a group as something that is configured."""
_SET = 0


class Kind(NamedTuple):
    """A protocol of groups."""

    name: str
    member: Any
    group_prefix: str


class Rebalancing(NamedTuple):
    """A group that is made to rebalance."""

    kind: Kind
    topic: str
    partitions: int
    size: int
    session_ms: int


CLASSIC = Kind("classic", ClassicMember, "classic")
CONSUMER = Kind("consumer", ConsumerMember, "consumer")


def create_topic(port: int, name: str, partitions: int) -> None:
    connection, kind = Connection(port), CreateTopicsRequest
    (result,) = connection.call(kind((kind.CreatableTopic(name, partitions, 1),), 10_000), 7).topics
    assert result.error_code in (ErrorCode.NONE, _EXISTS), result
    connection.close()


def configure_group(port: int, group: str, **settings: object) -> None:
    """Settings by their names, with underscores where Kafka has dots."""
    kind = IncrementalAlterConfigsRequest
    configs = tuple(kind.AlterableConfig(key.replace("_", "."), _SET, str(value)) for key, value in settings.items())
    connection = Connection(port)
    (answer,) = connection.call(kind((kind.AlterConfigsResource(_GROUP, group, configs),)), 1).responses
    connection.close()
    assert answer.error_code == ErrorCode.NONE, answer


def await_coordinator(port: int, topic: str) -> None:
    """The topic of offsets is made with the first request for it, and its coordinators need a moment in Java."""
    connection = Connection(port)
    deadline = time.monotonic() + READY_S
    names = tuple(f"ready-{number}" for number in range(200))
    connection.call(FindCoordinatorRequest(coordinator_keys=names), 6)
    while True:
        codes = {
            connection.call(commit_request(name, topic), COMMIT_VERSION).topics[0].partitions[0].error_code
            for name in names
        }
        if codes == {ErrorCode.NONE}:
            break
        assert time.monotonic() < deadline, codes
    connection.close()


# --- commits


def commit_request(group: str, topic: str) -> OffsetCommitRequest:
    kind = OffsetCommitRequest
    partition = kind.OffsetCommitRequestPartition(0, 1_234_567, 3, "")
    return kind(group, topics=(kind.OffsetCommitRequestTopic(topic, partitions=(partition,)),))


def commits_in_turn(port: int, topic: str, count: int, connection_count: int) -> float:
    connections = [Connection(port) for _ in range(connection_count)]
    frames = [[frame_of(commit_request(f"commits-{each}", topic), COMMIT_VERSION)] for each in range(connection_count)]
    seconds = in_turn(connections, frames, count)
    check_commit(connections[0], topic)
    for connection in connections:
        connection.close()
    return seconds


def commits_pipelined(port: int, topic: str, count: int) -> float:
    connection = Connection(port)
    seconds = pipelined(connection, frame_of(commit_request("commits-0", topic), COMMIT_VERSION), count, DEPTH)
    check_commit(connection, topic)
    connection.close()
    return seconds


def check_commit(connection: Connection, topic: str) -> None:
    answer = connection.call(commit_request("commits-0", topic), COMMIT_VERSION)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer


# --- heartbeats


def heartbeat_frames(kind: Kind, port: int, topic: str, partitions: int, groups: int, size: int) -> list[bytes]:
    """Heartbeats of all members of so many groups, which are joined here and then left to themselves."""
    frames = []
    for number in range(groups):
        crew = new_crew(kind, partitions)
        for _ in range(size):
            member = kind.member(port, f"{kind.name}-{size}-{number:04}", topic, partitions, LONG_SESSION_MS)
            crew.add(member)
        crew.settle()
        frames += [member.frame() for member in crew.members]
        crew.close()
    return frames


def heartbeats_in_turn(port: int, frames: Sequence[bytes], count: int) -> float:
    connections = [Connection(port) for _ in range(CONNECTIONS)]
    own = [frames[number::CONNECTIONS] or frames for number in range(CONNECTIONS)]
    seconds = in_turn(connections, own, count)
    for connection in connections:
        connection.close()
    return seconds


def heartbeats_pipelined(port: int, frames: Sequence[bytes], count: int) -> float:
    connection = Connection(port)
    seconds = pipelined(connection, frames[0], count, DEPTH)
    connection.close()
    return seconds


def other_groups(port: int, topic: str, first: int, last: int) -> None:
    """Groups with one static member each, which need no second thought."""
    connection = Connection(port)
    for number in range(first, last):
        group = f"other-{number}"
        while True:
            answer = connection.call(_static_join(group), 9)
            if answer.error_code not in RETRY:
                break
        assert answer.error_code == ErrorCode.NONE, answer
        connection.call(
            SyncGroupRequest(
                group,
                answer.generation_id,
                answer.member_id,
                "static",
                "consumer",
                "range",
                (SyncGroupRequest.SyncGroupRequestAssignment(answer.member_id, b"\0" * 10),),
            ),
            5,
        )
    connection.close()


def _static_join(group: str) -> JoinGroupRequest:
    protocols = (JoinGroupRequest.JoinGroupRequestProtocol("range", b"\0" * 10),)
    return JoinGroupRequest(group, LONG_SESSION_MS, 60_000, "", "static", "consumer", protocols)


# --- rebalances


def new_crew(kind: Kind, partitions: int) -> Crew:
    return Crew(classic_is_done if kind is CLASSIC else consumer_is_done(partitions))


def rebalances(port: int, shape: Rebalancing, times: int) -> Iterator[tuple[str, float]]:
    """One member more, and one that crashes, over and over. After a crash the session's length does not count."""
    kind, session_s = shape.kind, shape.session_ms / 1000
    crew = new_crew(kind, shape.partitions)
    group = f"rebalanced-{kind.name}"
    if kind is CONSUMER:  # classic members say it themselves
        configure_group(port, group, consumer_session_timeout_ms=shape.session_ms)

    def new_member() -> Member:
        member: Member = kind.member(port, group, shape.topic, shape.partitions, shape.session_ms)
        return member

    for _ in range(shape.size):
        crew.add(new_member())
    crew.settle()
    for _ in range(times):
        crew.run(0.2)
        start = time.perf_counter()
        newcomer = new_member()
        crew.add(newcomer)
        yield "join", crew.settle() - start
        crew.run(0.2)
        heard_at = newcomer.heard_at
        crew.remove(newcomer)
        before = crew_rounds(crew)
        crew.run(heard_at + session_s - time.perf_counter() - 0.05)
        yield "crash", crew_settled_without(crew, before) - heard_at - session_s
    crew.close()


def crew_settled_without(crew: Crew, before: set[int]) -> float:
    """When a crew has settled anew after a crash; `before` are its rounds at that time."""
    deadline = time.perf_counter() + SETTLE_S
    while crew_rounds(crew) & before:
        assert time.perf_counter() < deadline, "the crash is not noticed"
        crew.run(0.001)
    return crew.settle()


def crew_rounds(crew: Crew) -> set[int]:
    """The generations or epochs that the members are in."""
    return {int(getattr(each, "generation", 0) or getattr(each, "epoch", 0)) for each in crew.members}
