"""InitProducerId: the table of `ottla.core.txn.initializing`."""

import pytest

from ottla.core.txn.transaction import EPOCH_MAX, NO_TIMEOUT_MS
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.desk import T0, Desk

LAST = EPOCH_MAX - 1


def test_a_new_id_gets_a_producer_id_and_epoch_0(desk: Desk) -> None:
    assert desk.begun() == (1000, 0)
    assert desk.begun("b") == (1001, 0)
    assert desk.states() == ["Empty"]


def test_its_first_record_is_kafkas(desk: Desk) -> None:
    desk.begun(timeout_ms=60_000)
    key, value = desk.log[0]
    assert key.hex() == "0000" + "0001" + b"a".hex()
    # version, producer id, epoch, time-out, state, partitions null, updated, started, two tagged fields
    assert value is not None
    assert value.hex().startswith("0001" + "00000000000003e8" + "0000" + "0000ea60" + "00" + "00")
    assert value.hex().endswith("ffffffffffffffff" + "01" + "0008" + "00000000000003e8")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"name": ""}, ErrorCode.INVALID_REQUEST),
        ({"enable2_pc": True, "version": 6}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True, "version": 6}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_is_wrong_by_itself(desk: Desk, given: dict[str, object], code: ErrorCode) -> None:
    answer = desk.init(**given)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
    assert not desk.log


def test_the_longest_timeout(desk: Desk) -> None:
    desk.begun(timeout_ms=900_000)
    assert desk.known().timeout_ms == 900_000


def test_two_phase_commit_has_no_timeout(desk: Desk) -> None:
    desk.settings["transaction.two.phase.commit.enable"] = True
    producer = desk.begun(version=6, enable2_pc=True, timeout_ms=-5)
    assert desk.known().timeout_ms == NO_TIMEOUT_MS
    desk.add(producer)
    desk.advance(10_000_000)
    assert desk.state() == "Ongoing"


def test_keeping_a_prepared_transaction_is_not_supported_with_the_flag_enabled_either(desk: Desk) -> None:
    desk.settings["transaction.two.phase.commit.enable"] = True
    assert desk.init(version=6, enable2_pc=True, keep_prepared_txn=True).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_newcomer_shuts_out_the_older_producer(desk: Desk) -> None:
    old = desk.begun()
    new = desk.begun(timeout_ms=30_000)
    assert new == (1000, 1)
    assert desk.known().timeout_ms == 30_000
    assert desk.add(old) is ErrorCode.PRODUCER_FENCED
    assert desk.add(new) is ErrorCode.NONE


def test_a_producer_that_names_its_epoch_gets_the_next_and_may_ask_again(desk: Desk) -> None:
    desk.begun()
    assert desk.begun(producer_id=1000, producer_epoch=0) == (1000, 1)
    assert desk.begun(producer_id=1000, producer_epoch=0) == (1000, 1)
    assert desk.begun(producer_id=1000, producer_epoch=1) == (1000, 2)
    assert desk.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED


def test_a_producer_cannot_ask_again_once_another_has_come(desk: Desk) -> None:
    desk.begun()
    desk.begun(producer_id=1000, producer_epoch=0)
    desk.begun()
    assert desk.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED
    assert desk.init(producer_id=1000, producer_epoch=1).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (4, ErrorCode.PRODUCER_FENCED),
        (5, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_older_versions_hear_of_an_invalid_epoch(desk: Desk, version: int, code: ErrorCode) -> None:
    desk.begun()
    assert desk.init(version=version, producer_id=999, producer_epoch=0).error_code == code
    assert desk.init(version=version, producer_id=1000, producer_epoch=5).error_code == code


def test_an_unknown_id_takes_a_producer_that_was_forgotten(desk: Desk) -> None:
    assert desk.begun(producer_id=5, producer_epoch=3) == (1000, 0)


def test_an_open_transaction_is_aborted_first(desk: Desk) -> None:
    old = desk.begun()
    old = desk.begun()
    desk.add(old, T0)
    answer = desk.init()
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    assert desk.states()[-3:] == ["Ongoing", "PrepareAbort", "CompleteAbort"]
    assert (desk.markers[0].producer_epoch, desk.markers[0].transaction_version) == (2, 2)
    assert not desk.markers[0].is_commit
    assert desk.begun() == (1000, 3)
    assert desk.end(old, True)[0] is ErrorCode.PRODUCER_FENCED


def test_with_version_1_the_fencing_epoch_is_the_markers_too(desk_v1: Desk) -> None:
    old = desk_v1.begun()
    desk_v1.add(old, client_version=0)
    desk_v1.init()
    assert desk_v1.markers[0].producer_epoch == 1
    assert desk_v1.markers[0].transaction_version == 0
    assert desk_v1.begun() == (1000, 2)
    assert desk_v1.end(old, True, version=4)[0] is ErrorCode.PRODUCER_FENCED
    assert desk_v1.end(old, True, version=1)[0] is ErrorCode.INVALID_PRODUCER_EPOCH


def test_while_a_transaction_ends_everybody_waits(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer)
    desk.performs = False
    desk.end(producer, True)
    assert desk.state() == "PrepareCommit"
    assert desk.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert desk.init(producer_id=1000, producer_epoch=1).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert desk.init(producer_id=999, producer_epoch=1).error_code == ErrorCode.PRODUCER_FENCED
    desk.perform()
    assert desk.begun() == (1000, 2)


def test_used_up_epochs_bring_a_new_producer_id(desk: Desk) -> None:
    assert desk.exhausted() == (1000, LAST)
    assert desk.begun() == (1001, 0)
    assert desk.known().previous_producer_id == 1000


def test_used_up_epochs_of_a_producer_that_names_itself_and_asks_again(desk: Desk) -> None:
    desk.exhausted()
    assert desk.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    assert desk.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    assert desk.init(producer_id=1000, producer_epoch=5).error_code == ErrorCode.PRODUCER_FENCED


def test_a_foreign_producer_with_the_last_epoch_is_fenced(desk: Desk) -> None:
    desk.exhausted()
    assert desk.init(producer_id=5, producer_epoch=LAST).error_code == ErrorCode.PRODUCER_FENCED
    assert desk.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    desk.begun(producer_id=1001, producer_epoch=0)
    assert desk.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED


def test_a_stale_epoch_does_not_use_up_a_producer_id(desk: Desk) -> None:
    desk.exhausted()
    assert desk.init(producer_id=1000, producer_epoch=5).error_code == ErrorCode.PRODUCER_FENCED
    assert desk.next_producer_id == 1001


def test_the_last_producer_can_be_shut_out(desk: Desk) -> None:
    producer = desk.exhausted()
    desk.add(producer)
    desk.init()
    assert (desk.known().producer_epoch, desk.state()) == (EPOCH_MAX, "CompleteAbort")
    assert desk.begun() == (1001, 0)


def test_no_producer_id_to_be_had(desk: Desk) -> None:
    desk.performs = False
    token = desk.init()
    desk.perform(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert desk.replies[token].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not desk.log


def test_two_that_wait_for_a_producer_id_of_one_transactional_id(desk: Desk) -> None:
    desk.performs = False
    first, second = desk.init(), desk.init()
    desk.perform()
    desk.perform()
    assert (desk.replies[first].producer_id, desk.replies[first].producer_epoch) == (1000, 0)
    assert (desk.replies[second].producer_id, desk.replies[second].producer_epoch) == (1000, 1)


def test_whoever_waits_for_a_producer_id_is_known_when_the_shard_goes(desk: Desk) -> None:
    desk.performs = False
    token = desk.init()
    assert list(desk.core.unloaded()) == [token]


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_version_of_records_follows_the_cluster_s_feature(level: int, version: int) -> None:
    desk = Desk(level)
    desk.begun()
    _, value = desk.log[0]
    assert value is not None
    assert int.from_bytes(value[:2], "big") == version
    desk.check_law()
