"""The classic group protocol over the wire, and what administrators ask of groups: every version, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.handlers import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    sync_group,
)
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.component.broker.classic_members import Member, protocols
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient, RunningNode, running_node

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
MEMBER_ID = re.compile(r"(.*)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_serial = count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), group_initial_rebalance_delay_ms=0) as running:
        yield running


def versions(module: Any) -> range:
    low, high = module.VERSIONS
    return range(low, high + 1)


def new_group(client: RawClient) -> str:
    """A name nobody has used, at a coordinator that is there: Apache Kafka needs a moment for the first."""
    name = f"raw-classic-{next(_serial)}"
    for _ in range(READY_ATTEMPTS):
        (found,) = client.ask(FindCoordinatorRequest(coordinator_keys=(name,)), 6).coordinators
        if not found.error_code and client.ask(HeartbeatRequest(name, 1, "m"), 4).error_code == UNKNOWN:
            return name
    raise AssertionError(f"{name} has no coordinator")


def refused(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    """Without a protocol; up to version 6 that is an empty one."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None if version >= 7 else "")


def stable(client: RawClient, **fields: Any) -> Member:
    """A group of one member, which is assigned `work`."""
    member = Member(client, new_group(client), **fields)
    if "group_instance_id" not in fields:
        member.join()
    assert member.join().error_code == 0
    assert member.sync(**{member.member_id: b"work"}).assignment == b"work"
    return member


# --- JoinGroup --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(join_group))
def test_first_join(client: RawClient, version: int) -> None:
    member = Member(client, new_group(client), "my-app")
    answer = member.join(version)
    if version >= 4:
        assert answer == refused(ErrorCode.MEMBER_ID_REQUIRED, answer.member_id, version)
        answer = member.join(version)
    named = MEMBER_ID.fullmatch(answer.member_id)
    assert named is not None
    assert named[1] == "my-app"
    kind = JoinGroupResponse.JoinGroupResponseMember
    assert answer == JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer" if version >= 7 else None,
        protocol_name="range",
        leader=answer.member_id,
        member_id=answer.member_id,
        members=(kind(answer.member_id, metadata=b"r"),),
    )
    member.leave()


REFUSED_JOINS: list[tuple[dict[str, Any], ErrorCode, str]] = [
    ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT, ""),
    ({"session_timeout_ms": 1_800_001, "member_id": "m"}, ErrorCode.INVALID_SESSION_TIMEOUT, "m"),
    ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ({"protocols": protocols(other=b"")}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ({"protocol_type": "connect", "member_id": "m"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "m"),
]


@pytest.mark.parametrize("version", [2, 5, 6, 7, 9])
@pytest.mark.parametrize(("fields", "code", "member_id"), REFUSED_JOINS)
def test_refused_joins(
    client: RawClient, version: int, fields: dict[str, Any], code: ErrorCode, member_id: str
) -> None:
    member = stable(client)
    other = Member(client, member.group, **fields)
    assert other.join(version) == refused(code, member_id, version)
    member.leave()


@pytest.mark.parametrize("version", [2, 6, 7, 9])
def test_joins_of_members_that_are_not_known(client: RawClient, version: int) -> None:
    member = stable(client)
    other = Member(client, member.group, member_id="m")
    assert other.join(version) == refused(UNKNOWN, "m", version)
    elsewhere = Member(client, new_group(client), member_id="m")
    assert elsewhere.join(version) == refused(UNKNOWN, "m", version)
    nameless = Member(client, "", member_id="m")
    assert nameless.join(version) == refused(ErrorCode.INVALID_GROUP_ID, "m", version)
    member.leave()


def test_a_follower_that_joins_again_learns_its_generation(client: RawClient) -> None:
    leader, follower = two_members(client)
    assert follower.join() == JoinGroupResponse(
        generation_id=2,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader.member_id,
        member_id=follower.member_id,
    )
    assert leader.heartbeat() == 0
    leader.leave()
    follower.leave()


def two_members(client: RawClient) -> tuple[Member, Member]:
    """A stable group of two in its second generation."""
    leader = stable(client)
    follower = Member(client, leader.group)
    follower.join()
    number = follower.send_join()
    leader.hear_of_rebalance()
    answer = leader.join()
    assert answer.leader == leader.member_id
    assert {each.member_id for each in answer.members} == {leader.member_id, follower.member_id}
    assert follower.receive_join(number).members == ()
    leader.sync(**{leader.member_id: b"one", follower.member_id: b"two"})
    assert follower.sync().assignment == b"two"
    return leader, follower


def test_a_parked_join_holds_up_its_own_connection_only(client: RawClient) -> None:
    leader = stable(client)
    other = Member(client, leader.group)
    other.join()
    join_number, heartbeat_number = other.connection.send_together(
        (other.join_request(), 9), (HeartbeatRequest(leader.group, 2, other.member_id), 4)
    )
    leader.hear_of_rebalance()
    assert other.connection.is_silent(0.05)
    leader.join()
    assert other.receive_join(join_number).generation_id == 2
    assert other.connection.receive(12, 4, heartbeat_number).error_code == 0
    leader.leave()
    other.leave()


# --- SyncGroup --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(sync_group))
def test_sync(client: RawClient, version: int) -> None:
    member = stable(client)
    assert member.sync(version) == SyncGroupResponse(
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignment=b"work",
    )
    member.leave()


def test_a_follower_waits_for_the_leader(client: RawClient) -> None:
    leader, follower = two_members(client)
    number = follower.send_join(protocols=protocols(range=b"c"))
    leader.hear_of_rebalance()
    leader.join()
    follower.receive_join(number)
    number = follower.connection.send(follower.sync_request(), 5)
    assert follower.connection.is_silent(0.05)
    leader.sync(**{follower.member_id: b"all"})
    assert follower.connection.receive(14, 5, number).assignment == b"all"
    assert leader.sync().assignment == b""
    leader.leave()
    follower.leave()


def test_an_assignment_that_is_too_large_to_be_written(client: RawClient) -> None:
    member = stable(client)
    assert member.join().generation_id == 2
    answer = member.sync(**{member.member_id: bytes(2 << 20)})
    assert answer == SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert member.join().generation_id == 3
    assert member.sync(**{member.member_id: b"small"}).assignment == b"small"
    member.leave()


REFUSED_SYNCS: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ({"group_id": "nobody's"}, UNKNOWN),
    ({"member_id": "m"}, UNKNOWN),
    ({"group_instance_id": "i"}, UNKNOWN),
    ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
    ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocol_type": None, "group_id": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ({"protocol_name": None, "member_id": "m"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED_SYNCS)
def test_refused_syncs(client: RawClient, fields: dict[str, Any], code: ErrorCode) -> None:
    member = stable(client)
    given = {
        "group_id": member.group,
        "generation_id": 1,
        "member_id": member.member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    assert client.ask(SyncGroupRequest(**(given | fields)), 5) == SyncGroupResponse(error_code=code)
    member.leave()


# --- Heartbeat --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(heartbeat))
def test_heartbeat(client: RawClient, version: int) -> None:
    member = stable(client)
    for group, generation, member_id, code in (
        (member.group, 1, member.member_id, ErrorCode.NONE),
        (member.group, 0, member.member_id, ErrorCode.ILLEGAL_GENERATION),
        (member.group, 1, "m", UNKNOWN),
        ("nobody's", 1, "m", UNKNOWN),
        ("", 1, "m", ErrorCode.INVALID_GROUP_ID),
    ):
        answer = client.ask(HeartbeatRequest(group, generation, member_id), version)
        assert answer == HeartbeatResponse(error_code=code)
    member.leave()


def test_heartbeat_between_join_and_sync(client: RawClient) -> None:
    member = Member(client, new_group(client))
    member.join()
    member.join()
    assert member.heartbeat() == 0
    member.leave()


# --- LeaveGroup -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(leave_group))
def test_leave(client: RawClient, version: int) -> None:
    member = stable(client)
    kind, result = LeaveGroupRequest.MemberIdentity, LeaveGroupResponse.MemberResponse

    def request(group: str, member_id: str) -> LeaveGroupRequest:
        if version >= 3:
            return LeaveGroupRequest(group, members=(kind(member_id),))
        return LeaveGroupRequest(group, member_id)

    def expected(member_id: str, code: ErrorCode) -> LeaveGroupResponse:
        if version >= 3:
            return LeaveGroupResponse(members=(result(member_id, None, code),))
        return LeaveGroupResponse(error_code=code)

    assert client.ask(request(member.group, "m"), version) == expected("m", UNKNOWN)
    assert client.ask(request("nobody's", "m"), version) == expected("m", UNKNOWN)
    assert client.ask(request("", "m"), version) == LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    assert client.ask(request(member.group, member.member_id), version) == expected(member.member_id, ErrorCode.NONE)
    assert member.heartbeat() == UNKNOWN


def test_leaving_by_instance_id(client: RawClient) -> None:
    member = stable(client, group_instance_id="i1")
    kind, result = LeaveGroupRequest.MemberIdentity, LeaveGroupResponse.MemberResponse
    who = (kind("", "i9"), kind("", None), kind("m", "i1"), kind("", "i1", "the administrator says so"))
    assert client.ask(LeaveGroupRequest(member.group, members=who), 5) == LeaveGroupResponse(
        members=(
            result("", "i9", UNKNOWN),
            result("", None, UNKNOWN),
            result("m", "i1", ErrorCode.FENCED_INSTANCE_ID),
            result("", "i1"),
        )
    )
    assert member.heartbeat() == UNKNOWN


# --- static members ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_leader_comes_back(client: RawClient, version: int) -> None:
    member = stable(client, group_instance_id="i1")
    back = Member(client, member.group, group_instance_id="i1")
    answer = back.join(version)
    kind = JoinGroupResponse.JoinGroupResponseMember
    assert MEMBER_ID.fullmatch(answer.member_id)
    assert answer.member_id != member.member_id
    assert answer == JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer" if version >= 7 else None,
        protocol_name="range",
        leader=answer.member_id if version >= 9 else member.member_id,
        skip_assignment=version >= 9,
        member_id=answer.member_id,
        members=(kind(answer.member_id, "i1", b"r"),) if version >= 9 else (),
    )
    assert back.sync().assignment == b"work"
    fenced = HeartbeatRequest(member.group, 1, member.member_id, "i1")
    assert client.ask(fenced, 4).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert member.join(version) == refused(ErrorCode.FENCED_INSTANCE_ID, member.member_id, version)
    back.leave()


# --- administration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(describe_groups))
def test_describe(client: RawClient, version: int) -> None:
    member = stable(client, group_instance_id="i1", client_id="my-app")
    group, shown_member = DescribeGroupsResponse.DescribedGroup, DescribeGroupsResponse.DescribedGroupMember
    asked = DescribeGroupsRequest((member.group, "nobody's"), include_authorized_operations=version >= 3)
    shown = {each.group_id: each for each in client.ask(asked, version).groups}
    assert shown[member.group] == group(
        group_id=member.group,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=(
            shown_member(member.member_id, "i1" if version >= 4 else None, "my-app", "/127.0.0.1", b"r", b"work"),
        ),
        authorized_operations=3400 if version >= 3 else -(2**31),
    )
    missing = shown["nobody's"]
    assert (missing.group_state, missing.members) == ("Dead", ())
    assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
    assert bool(missing.error_message) == (version >= 6)
    assert missing.authorized_operations == (3400 if 3 <= version <= 5 else -(2**31))
    member.leave()


def test_describe_during_a_rebalance(client: RawClient) -> None:
    """Assignments of the last generation are still shown; metadata and protocol are not."""
    leader, follower = two_members(client)
    number = follower.send_join(protocols=protocols(range=b"c"))
    leader.hear_of_rebalance()
    (shown,) = client.ask(DescribeGroupsRequest((leader.group,)), 6).groups
    assert (shown.group_state, shown.protocol_data) == ("PreparingRebalance", "")
    assert {(each.member_metadata, each.member_assignment) for each in shown.members} == {(b"", b"one"), (b"", b"two")}
    leader.join()
    follower.receive_join(number)
    (shown,) = client.ask(DescribeGroupsRequest((leader.group,)), 6).groups
    assert (shown.group_state, shown.protocol_data) == ("CompletingRebalance", "")
    assert {(each.member_metadata, each.member_assignment) for each in shown.members} == {(b"", b"one"), (b"", b"two")}
    leader.leave()
    follower.leave()


@pytest.mark.parametrize("version", versions(list_groups))
def test_list(client: RawClient, version: int) -> None:
    member = stable(client)
    empty = stable(client)
    empty.leave()
    listed = {each.group_id: each for each in client.ask(ListGroupsRequest(), version).groups}
    kind = ListGroupsResponse.ListedGroup
    for group, state in ((member.group, "Stable"), (empty.group, "Empty")):
        assert listed[group] == kind(
            group, "consumer", state if version >= 4 else "", "classic" if version >= 5 else ""
        )
    member.leave()


def test_list_some(client: RawClient) -> None:
    member = stable(client)

    def listed(**filters: tuple[str, ...]) -> bool:
        return member.group in [each.group_id for each in client.ask(ListGroupsRequest(**filters), 5).groups]

    assert listed(states_filter=("stable",))
    assert not listed(states_filter=("Empty", "Dead"))
    assert listed(types_filter=("CLASSIC",))
    assert not listed(types_filter=("consumer",))
    assert listed(states_filter=("Empty", "Stable"), types_filter=("consumer", "classic"))
    member.leave()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete(client: RawClient, version: int) -> None:
    member, other = stable(client), stable(client)
    other.leave()
    names = (member.group, other.group, "nobody's", other.group)
    results = client.ask(DeleteGroupsRequest(names), version).results
    assert {each.group_id: each.error_code for each in results} == {
        member.group: ErrorCode.NON_EMPTY_GROUP,
        other.group: ErrorCode.NONE,
        "nobody's": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 3
    assert other.group not in [each.group_id for each in client.ask(ListGroupsRequest(), 5).groups]
    member.leave()


def test_nothing_asked_nothing_answered(client: RawClient) -> None:
    assert client.ask(DescribeGroupsRequest(), 6) == DescribeGroupsResponse()
    assert client.ask(DeleteGroupsRequest(), 2) == DeleteGroupsResponse()


# --- at home only -----------------------------------------------------------------------------------------------------


def test_delete_in_its_newest_version(running: RunningNode) -> None:
    kind = DeleteGroupsResponse.DeletableGroupResult
    expected = DeleteGroupsResponse(results=(kind("nobody's", ErrorCode.GROUP_ID_NOT_FOUND),))
    assert running.client.ask(DeleteGroupsRequest(("nobody's",)), 3) == expected


def test_groups_outlive_a_restart(tmp_path: Path) -> None:
    with running_node(tmp_path, group_initial_rebalance_delay_ms=0) as running:
        member = stable(running.client)
    with running_node(tmp_path) as running:
        back = Member(running.client, member.group)
        back.member_id, back.generation = member.member_id, 1
        assert back.heartbeat() == 0
        assert back.sync().assignment == b"work"


def test_sessions_end_to_the_millisecond(tmp_path: Path) -> None:
    from ottla.broker.loop.clock import ManualClock

    with running_node(tmp_path, ManualClock(), group_initial_rebalance_delay_ms=0) as running:
        member = stable(running.client)
        running.advance(29_999)
        assert member.heartbeat() == 0
        running.advance(29_999)
        assert member.heartbeat() == 0
        running.advance(30_000)
        assert member.heartbeat() == UNKNOWN


def test_who_may_do_what(tmp_path: Path) -> None:
    """Each API asks for its own right, and says so in its own way."""
    allowed = {(operation, kind, name) for operation in Operation for kind in ResourceType for name in ("mine",)}

    def authorize(request: Any, operation: Operation, kind: ResourceType, name: str) -> bool:
        return (kind is not ResourceType.GROUP and name != "kafka-cluster") or (operation, kind, name) in allowed

    denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    with running_node(tmp_path, authorizer=authorize, group_initial_rebalance_delay_ms=0) as running:
        client = running.client
        member = Member(client, "mine")
        member.join()
        assert member.join().error_code == 0
        theirs = Member(client, "theirs")
        assert theirs.join(9) == refused(denied, "", 9)
        assert theirs.join(6) == refused(denied, "", 6)
        assert theirs.sync() == SyncGroupResponse(error_code=denied)
        no_protocol = SyncGroupRequest("theirs", 1, "m")
        assert client.ask(no_protocol, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert theirs.heartbeat() == denied
        assert client.ask(LeaveGroupRequest("theirs", "m"), 1) == LeaveGroupResponse(error_code=denied)
        shown = client.ask(DescribeGroupsRequest(("theirs", "mine"), include_authorized_operations=True), 6).groups
        assert [(each.group_id, each.error_code, each.group_state) for each in shown] == [
            ("theirs", denied, ""),
            ("mine", 0, "CompletingRebalance"),
        ]
        deleted = client.ask(DeleteGroupsRequest(("theirs", "mine")), 2).results
        assert [each.error_code for each in deleted] == [denied, ErrorCode.NON_EMPTY_GROUP]
        assert [each.group_id for each in client.ask(ListGroupsRequest(), 5).groups] == ["mine"]
        allowed.clear()
        assert client.ask(ListGroupsRequest(), 5) == ListGroupsResponse()
        allowed.add((Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"))
        assert [each.group_id for each in client.ask(ListGroupsRequest(), 5).groups] == ["mine"]


def test_a_coordinator_that_is_loading() -> None:
    """A heartbeat is taken for good; whoever lists groups must try again."""

    class Asked:
        version = 5
        body = DescribeGroupsRequest(("g",))

    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    asked: Any = Asked()
    assert heartbeat.refuse(asked, loading, None).error_code == 0
    assert heartbeat.refuse(asked, ErrorCode.NOT_COORDINATOR, None).error_code == ErrorCode.NOT_COORDINATOR
    assert list_groups.refuse(asked, loading, None) == ListGroupsResponse(error_code=loading)
    assert describe_groups.refuse(asked, loading, None).groups[0].error_code == loading
    asked.body = DeleteGroupsRequest(("g",))
    assert delete_groups.refuse(asked, loading, None).results[0].error_code == loading


def test_lists_leave_out_coordinators_that_have_just_gone(running: RunningNode) -> None:
    shown = ListGroupsResponse.ListedGroup("g", "consumer", "Stable", "classic")
    node, request = running.node, AnyRequest()
    answers: list[Any] = [ErrorCode.NOT_COORDINATOR, (shown,)]
    assert list_groups._response(node, request, answers) == ListGroupsResponse(groups=(shown,))  # type: ignore[arg-type]
    answers.append(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert list_groups._response(node, request, answers) == ListGroupsResponse(  # type: ignore[arg-type]
        error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )


class AnyRequest:
    principal = "User:ANONYMOUS"
