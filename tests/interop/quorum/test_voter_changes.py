"""Controllers come and go, by kafka-metadata-quorum: a whole quorum changes hands, and what cannot be is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ottla.wire import uuid_bytes
from ottla.wire.errors import ErrorCode
from ottla.wire.types import AddRaftVoterRequest
from tests.component.broker.raw_client import key_of
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import CLUSTER_ID, Quorum, until

FIRST, SECOND, THIRD = 1, 2, 3


@pytest.mark.parametrize(("old", "new"), [(APACHE, OTTLA), (OTTLA, APACHE)])
def test_a_controller_of_the_other_kind_takes_over(old: str, new: str, tmp_path: Path) -> None:
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": 1000}
    with Quorum(tmp_path, voters={FIRST: old}, spares={SECOND: new}, **snapshots) as quorum:
        quorum.create_topic("before", at=FIRST)
        until(lambda: quorum.snapshots(FIRST), "a snapshot")
        quorum.start(SECOND)
        quorum.wait_for_lag_0(SECOND)
        ids = {number: quorum.directory_id(number) for number in (FIRST, SECOND)}

        said = quorum.tool("add-controller", at=FIRST, config_of=SECOND)
        assert f"Added controller {SECOND} with directory id {ids[SECOND]}" in said
        assert f"CONTROLLER://{quorum.nodes[SECOND].controller_servers}" in said
        quorum.wait_for(lambda view: view.voter_ids == {FIRST, SECOND} and not view.has_lag(), "both to vote")
        quorum.create_topic("by-both", at=FIRST)

        leaving = ("--controller-id", str(FIRST), "--controller-directory-id", ids[FIRST])
        said = quorum.tool("remove-controller", *leaving, at=SECOND)
        assert " ".join(said.split()) == f"Removed KRaft controller {FIRST} with directory id {ids[FIRST]}"
        view = quorum.wait_for(lambda view: view.leader_id == SECOND and view.high_watermark > 0, "the new leader")
        assert view.voter_ids == {SECOND}
        quorum.create_topic("after", at=FIRST)
        quorum.wait_for_topics({"before", "by-both", "after"}, at=FIRST)
        quorum.wait_for_lag_0(FIRST)
        assert quorum.metadata_log(SECOND).items() <= quorum.metadata_log(FIRST).items()
        quorum.check_health()


def add_request(quorum: Quorum, number: int) -> AddRaftVoterRequest:
    kind = AddRaftVoterRequest
    host, _, port = quorum.nodes[number].controller_servers.rpartition(":")
    listeners = (kind.Listener("CONTROLLER", host, int(port)),)
    return kind(CLUSTER_ID, 60_000, number, uuid_bytes(quorum.directory_id(number)), listeners)


def test_controllers_that_cannot_be_added(kind: str, tmp_path: Path) -> None:
    """The leader answers each of them with a code of its own; what the tool prints tells of it."""
    with Quorum(tmp_path, voters={FIRST: kind}, spares={SECOND: kind}) as quorum:
        quorum.start(SECOND)
        quorum.wait_for_lag_0(SECOND)

        assert quorum.ask_controller(FIRST, add_request(quorum, FIRST), 1).error_code == ErrorCode.DUPLICATE_VOTER
        said = quorum.tool("add-controller", at=FIRST, config_of=FIRST, check=False)
        assert "DuplicateVoterException" in said

        quorum.pause(SECOND)
        with closing(quorum.connect_to_controller(FIRST)) as pending:
            request = add_request(quorum, SECOND)
            sent = pending.send(request, 1)
            refused = quorum.ask_controller(FIRST, request, 1)
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert pending.is_silent(0.1), "the first one still waits for the controller to answer"
            assert pending.receive(key_of(request), 1, sent).error_code == ErrorCode.REQUEST_TIMED_OUT
        quorum.resume(SECOND)

        quorum.nodes[SECOND].kill()
        answer = quorum.ask_controller(FIRST, add_request(quorum, SECOND), 1)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        hasty = {"default.api.timeout.ms": "8000", "request.timeout.ms": "8000"}
        said = quorum.tool("add-controller", at=FIRST, config_of=SECOND, more=hasty, check=False)
        assert "TimeoutException" in said

        quorum.start(SECOND)
        quorum.wait_for_lag_0(SECOND)
        said = quorum.tool("add-controller", at=FIRST, config_of=SECOND)
        assert f"Added controller {SECOND} with directory id {quorum.directory_id(SECOND)}" in said
        quorum.wait_for(lambda view: view.voter_ids == {FIRST, SECOND} and not view.has_lag(), "both to vote")
        quorum.check_health()


def test_the_tool_cannot_add_a_controller_while_another_is_being_added(kind: str, tmp_path: Path) -> None:
    """The leader waits for the first one, whose process stands still, as long as a request may take."""
    patient = {"controller.quorum.request.timeout.ms": 120_000}
    with Quorum(tmp_path, voters={FIRST: kind}, spares=dict.fromkeys((SECOND, THIRD), kind), **patient) as quorum:
        quorum.start(SECOND, THIRD)
        quorum.wait_for_lag_0(SECOND, THIRD)
        quorum.pause(SECOND)
        try:
            with closing(quorum.connect_to_controller(FIRST)) as pending:
                sent = pending.send(add_request(quorum, SECOND), 1)
                said = quorum.tool("add-controller", at=FIRST, config_of=THIRD, check=False)
                assert "TimeoutException" in said
                assert pending.is_silent(0.1), "the first one is still being added"
                quorum.resume(SECOND)
                assert pending.receive(key_of(add_request(quorum, SECOND)), 1, sent).error_code == ErrorCode.NONE
        finally:
            quorum.resume(SECOND)
        said = quorum.tool("add-controller", at=FIRST, config_of=THIRD)
        assert f"Added controller {THIRD} with directory id {quorum.directory_id(THIRD)}" in said
        quorum.wait_for(lambda view: view.voter_ids == {FIRST, SECOND, THIRD} and not view.has_lag(), "all to vote")
        quorum.check_health()
