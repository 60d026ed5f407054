"""InitProducerId: the table of `ottla.core.txn.init_producer_id`."""

import pytest

from ottla.core.txn.transaction import EPOCH_MAX, NO_TIMEOUT_MS
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.driver import T0, Driver

LAST = EPOCH_MAX - 1


def test_a_new_id_gets_a_producer_id_and_epoch_0(driver: Driver) -> None:
    assert driver.begun() == (1000, 0)
    assert driver.begun("b") == (1001, 0)
    assert driver.states() == ["Empty"]


def test_its_first_record_is_kafkas(driver: Driver) -> None:
    driver.begun(timeout_ms=60_000)
    key, value = driver.log[0]
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
def test_what_is_wrong_by_itself(driver: Driver, given: dict[str, object], code: ErrorCode) -> None:
    answer = driver.init(**given)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
    assert not driver.log


def test_the_longest_timeout(driver: Driver) -> None:
    driver.begun(timeout_ms=900_000)
    assert driver.known().timeout_ms == 900_000


def test_two_phase_commit_has_no_timeout(driver: Driver) -> None:
    driver.settings["transaction.two.phase.commit.enable"] = True
    producer = driver.begun(version=6, enable2_pc=True, timeout_ms=-5)
    assert driver.known().timeout_ms == NO_TIMEOUT_MS
    driver.add(producer)
    driver.advance(10_000_000)
    assert driver.state() == "Ongoing"


def test_keeping_a_prepared_transaction_is_not_supported_with_the_flag_enabled_either(driver: Driver) -> None:
    driver.settings["transaction.two.phase.commit.enable"] = True
    assert driver.init(version=6, enable2_pc=True, keep_prepared_txn=True).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_newcomer_shuts_out_the_older_producer(driver: Driver) -> None:
    old = driver.begun()
    new = driver.begun(timeout_ms=30_000)
    assert new == (1000, 1)
    assert driver.known().timeout_ms == 30_000
    assert driver.add(old) is ErrorCode.PRODUCER_FENCED
    assert driver.add(new) is ErrorCode.NONE


def test_a_producer_that_names_its_epoch_gets_the_next_and_may_ask_again(driver: Driver) -> None:
    driver.begun()
    assert driver.begun(producer_id=1000, producer_epoch=0) == (1000, 1)
    assert driver.begun(producer_id=1000, producer_epoch=0) == (1000, 1)
    assert driver.begun(producer_id=1000, producer_epoch=1) == (1000, 2)
    assert driver.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED


def test_a_producer_cannot_ask_again_once_another_has_come(driver: Driver) -> None:
    driver.begun()
    driver.begun(producer_id=1000, producer_epoch=0)
    driver.begun()
    assert driver.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED
    assert driver.init(producer_id=1000, producer_epoch=1).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (4, ErrorCode.PRODUCER_FENCED),
        (5, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_older_versions_hear_of_an_invalid_epoch(driver: Driver, version: int, code: ErrorCode) -> None:
    driver.begun()
    assert driver.init(version=version, producer_id=999, producer_epoch=0).error_code == code
    assert driver.init(version=version, producer_id=1000, producer_epoch=5).error_code == code


def test_an_unknown_id_takes_a_producer_that_was_forgotten(driver: Driver) -> None:
    assert driver.begun(producer_id=5, producer_epoch=3) == (1000, 0)


def test_an_open_transaction_is_aborted_first(driver: Driver) -> None:
    old = driver.begun()
    old = driver.begun()
    driver.add(old, T0)
    answer = driver.init()
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1)
    assert driver.states()[-3:] == ["Ongoing", "PrepareAbort", "CompleteAbort"]
    assert (driver.markers[0].producer_epoch, driver.markers[0].transaction_version) == (2, 2)
    assert not driver.markers[0].is_commit
    assert driver.begun() == (1000, 3)
    assert driver.end(old, True)[0] is ErrorCode.PRODUCER_FENCED


def test_with_version_1_the_fencing_epoch_is_the_markers_too(driver_v1: Driver) -> None:
    old = driver_v1.begun()
    driver_v1.add(old, client_version=0)
    driver_v1.init()
    assert driver_v1.markers[0].producer_epoch == 1
    assert driver_v1.markers[0].transaction_version == 0
    assert driver_v1.begun() == (1000, 2)
    assert driver_v1.end(old, True, version=4)[0] is ErrorCode.PRODUCER_FENCED
    assert driver_v1.end(old, True, version=1)[0] is ErrorCode.INVALID_PRODUCER_EPOCH


def test_while_a_transaction_ends_everybody_waits(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer)
    driver.performs = False
    driver.end(producer, True)
    assert driver.state() == "PrepareCommit"
    assert driver.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.init(producer_id=1000, producer_epoch=1).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.init(producer_id=999, producer_epoch=1).error_code == ErrorCode.PRODUCER_FENCED
    driver.perform()
    assert driver.begun() == (1000, 2)


def test_used_up_epochs_bring_a_new_producer_id(driver: Driver) -> None:
    assert driver.exhausted() == (1000, LAST)
    assert driver.begun() == (1001, 0)
    assert driver.known().previous_producer_id == 1000


def test_used_up_epochs_of_a_producer_that_names_itself_and_asks_again(driver: Driver) -> None:
    driver.exhausted()
    assert driver.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    assert driver.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    assert driver.init(producer_id=1000, producer_epoch=5).error_code == ErrorCode.PRODUCER_FENCED


def test_a_foreign_producer_with_the_last_epoch_is_fenced(driver: Driver) -> None:
    driver.exhausted()
    assert driver.init(producer_id=5, producer_epoch=LAST).error_code == ErrorCode.PRODUCER_FENCED
    assert driver.begun(producer_id=1000, producer_epoch=LAST) == (1001, 0)
    driver.begun(producer_id=1001, producer_epoch=0)
    assert driver.init(producer_id=1000, producer_epoch=0).error_code == ErrorCode.PRODUCER_FENCED


def test_a_stale_epoch_does_not_use_up_a_producer_id(driver: Driver) -> None:
    driver.exhausted()
    assert driver.init(producer_id=1000, producer_epoch=5).error_code == ErrorCode.PRODUCER_FENCED
    assert driver.next_producer_id == 1001


def test_the_last_producer_can_be_shut_out(driver: Driver) -> None:
    producer = driver.exhausted()
    driver.add(producer)
    driver.init()
    assert (driver.known().producer_epoch, driver.state()) == (EPOCH_MAX, "CompleteAbort")
    assert driver.begun() == (1001, 0)


def test_no_producer_id_to_be_had(driver: Driver) -> None:
    driver.performs = False
    token = driver.init()
    driver.perform(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert driver.replies[token].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not driver.log


def test_two_that_wait_for_a_producer_id_of_one_transactional_id(driver: Driver) -> None:
    driver.performs = False
    first, second = driver.init(), driver.init()
    driver.perform()
    driver.perform()
    assert (driver.replies[first].producer_id, driver.replies[first].producer_epoch) == (1000, 0)
    assert (driver.replies[second].producer_id, driver.replies[second].producer_epoch) == (1000, 1)


def test_whoever_waits_for_a_producer_id_is_known_when_the_shard_goes(driver: Driver) -> None:
    driver.performs = False
    token = driver.init()
    assert list(driver.core.unloaded()) == [token]


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_version_of_records_follows_the_cluster_s_feature(level: int, version: int) -> None:
    driver = Driver(level)
    driver.begun()
    _, value = driver.log[0]
    assert value is not None
    assert int.from_bytes(value[:2], "big") == version
    driver.check_law()
