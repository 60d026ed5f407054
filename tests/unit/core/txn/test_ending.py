"""EndTxn: both tables of `ottla.core.txn.end_txn`."""

import pytest

from ottla.core.txn.transaction import EPOCH_MAX
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.driver import T0, T1, Driver

LAST = EPOCH_MAX - 1
OK, FENCED, STATE, WAIT = (
    ErrorCode.NONE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
COMMIT, ABORT = True, False


def bring(driver: Driver, state: str, *, version: int) -> tuple[int, int]:
    """Bring the id into a state; gives its present producer id and epoch."""
    producer = driver.begun()
    producer = driver.begun()
    if state == "Empty":
        return producer
    driver.add(producer, T0, client_version=2 if version >= 5 else 0)
    if state != "Ongoing":
        driver.performs = state.startswith("Complete")
        driver.end(producer, state.endswith("Commit"), version=version)
    assert driver.state() == state
    return driver.known().producer_id, driver.known().producer_epoch


@pytest.mark.parametrize(
    ("state", "committed", "code", "then"),
    [
        ("Empty", COMMIT, STATE, "Empty"),
        ("Empty", ABORT, STATE, "Empty"),
        ("Ongoing", COMMIT, OK, "CompleteCommit"),
        ("Ongoing", ABORT, OK, "CompleteAbort"),
        ("PrepareCommit", COMMIT, WAIT, "PrepareCommit"),
        ("PrepareCommit", ABORT, STATE, "PrepareCommit"),
        ("PrepareAbort", ABORT, WAIT, "PrepareAbort"),
        ("PrepareAbort", COMMIT, STATE, "PrepareAbort"),
        ("CompleteCommit", COMMIT, OK, "CompleteCommit"),
        ("CompleteCommit", ABORT, STATE, "CompleteCommit"),
        ("CompleteAbort", ABORT, OK, "CompleteAbort"),
        ("CompleteAbort", COMMIT, STATE, "CompleteAbort"),
    ],
)
def test_version_1(driver_v1: Driver, state: str, committed: bool, code: ErrorCode, then: str) -> None:
    producer = bring(driver_v1, state, version=4)
    assert producer == (1000, 1)
    assert driver_v1.end(producer, committed, version=4) == (code, -1, -1)
    assert driver_v1.state() == then
    assert driver_v1.known().producer_epoch == 1


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_version_1_foreign_producers(driver_v1: Driver, version: int) -> None:
    bring(driver_v1, "Ongoing", version=4)
    fenced = FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert driver_v1.end((1000, 0), COMMIT, version=version) == (fenced, -1, -1)
    assert driver_v1.end((1000, 2), COMMIT, version=version) == (fenced, -1, -1)
    assert driver_v1.end((999, 1), COMMIT, version=version)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver_v1.end((1000, 1), COMMIT, name="b", version=version)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver_v1.end((1000, 1), COMMIT, name="", version=version)[0] is ErrorCode.INVALID_REQUEST
    assert driver_v1.state() == "Ongoing"


PREVIOUS, CURRENT = -1, 0


@pytest.mark.parametrize(
    ("state", "committed", "epoch", "code"),
    [
        ("Empty", ABORT, PREVIOUS, FENCED),
        ("Empty", ABORT, CURRENT, OK),
        ("Empty", COMMIT, PREVIOUS, FENCED),
        ("Empty", COMMIT, CURRENT, STATE),
        ("CompleteAbort", ABORT, CURRENT, OK),
        ("CompleteAbort", COMMIT, PREVIOUS, STATE),
        ("CompleteAbort", COMMIT, CURRENT, STATE),
        ("CompleteCommit", ABORT, PREVIOUS, STATE),
        ("CompleteCommit", ABORT, CURRENT, OK),
        ("CompleteCommit", COMMIT, CURRENT, STATE),
        ("Ongoing", ABORT, PREVIOUS, FENCED),
        ("Ongoing", ABORT, CURRENT, OK),
        ("Ongoing", COMMIT, PREVIOUS, FENCED),
        ("Ongoing", COMMIT, CURRENT, OK),
        ("PrepareCommit", COMMIT, PREVIOUS, WAIT),
        ("PrepareCommit", ABORT, PREVIOUS, STATE),
        ("PrepareCommit", COMMIT, CURRENT, WAIT),
        ("PrepareCommit", ABORT, CURRENT, WAIT),
        ("PrepareAbort", ABORT, PREVIOUS, WAIT),
        ("PrepareAbort", COMMIT, PREVIOUS, STATE),
        ("PrepareAbort", ABORT, CURRENT, WAIT),
    ],
)
def test_version_2(driver: Driver, state: str, committed: bool, epoch: int, code: ErrorCode) -> None:
    producer_id, current = bring(driver, state, version=5)
    answer = driver.end((producer_id, current + epoch), committed)
    if code is OK:
        assert answer == (OK, producer_id, current + 1)
        assert driver.state() == ("CompleteCommit" if committed else "CompleteAbort")
        assert driver.known().producer_epoch == current + 1
    else:
        assert answer == (code, -1, -1)
        assert (driver.state(), driver.known().producer_epoch) == (state, current)


@pytest.mark.parametrize(("state", "committed"), [("CompleteAbort", ABORT), ("CompleteCommit", COMMIT)])
def test_version_2_sent_again(driver: Driver, state: str, committed: bool) -> None:
    producer_id, current = bring(driver, state, version=5)
    count = len(driver.log)
    assert driver.end((producer_id, current - 1), committed) == (OK, producer_id, current)
    assert len(driver.log) == count


@pytest.mark.parametrize("state", ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"])
def test_version_2_foreign_producers(driver: Driver, state: str) -> None:
    producer_id, current = bring(driver, state, version=5)
    assert driver.end((producer_id, current + 1), ABORT)[0] is FENCED
    assert driver.end((producer_id, current - 2), ABORT)[0] is FENCED
    assert driver.end((999, current), ABORT)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.end((producer_id, current), ABORT, name="b")[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.end((producer_id, current), ABORT, name="")[0] is ErrorCode.INVALID_REQUEST
    assert driver.state() == state


def test_the_marker_of_version_2_carries_the_next_epoch(driver: Driver) -> None:
    producer = driver.begun()
    driver.add(producer, T0, T1)
    assert driver.end(producer, COMMIT) == (OK, 1000, 1)
    (markers,) = driver.markers
    assert (markers.producer_epoch, markers.transaction_version, markers.is_commit) == (1, 2, True)
    assert list(markers.partitions) == [T0, T1]


def test_the_marker_of_version_1_carries_the_transaction_s_epoch(driver_v1: Driver) -> None:
    producer = driver_v1.begun()
    driver_v1.add(producer, client_version=0)
    driver_v1.end(producer, ABORT, version=3)
    (markers,) = driver_v1.markers
    assert (markers.producer_epoch, markers.transaction_version, markers.is_commit) == (0, 0, False)
    assert markers.coordinator_epoch == 7


def test_an_abort_of_nothing_needs_no_markers(driver: Driver) -> None:
    producer = driver.begun()
    assert driver.end(producer, ABORT) == (OK, 1000, 1)
    assert not driver.markers
    assert driver.states() == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert driver.known().started_at_ms == driver.known().updated_at_ms


# --- epochs used up ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [COMMIT, ABORT])
def test_the_last_epoch_ends_with_a_new_producer_id(driver: Driver, committed: bool) -> None:
    producer = driver.exhausted()
    driver.add(producer)
    driver.performs = False
    token = driver.end(producer, committed)
    driver.perform()  # the new id
    prepared = driver.known()
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (1000, EPOCH_MAX, 1001)
    assert driver.add((1001, 0)) is WAIT
    assert driver.end((1001, 0), committed)[0] is WAIT
    assert driver.end(producer, committed)[0] is WAIT
    assert driver.end(producer, not committed)[0] is STATE
    driver.perform()  # the markers
    assert driver.markers[0].producer_epoch == EPOCH_MAX
    assert driver.reply(token) == (OK, 1001, 0)
    assert driver.known().previous_producer_id == 1000
    assert driver.end(producer, committed) == (OK, 1001, 0)
    assert driver.end(producer, not committed)[0] is STATE
    assert driver.add((1001, 0)) is OK
    assert driver.end(producer, committed)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_new_producer_id_that_was_put_aside_outlives_a_restart(driver: Driver) -> None:
    producer = driver.exhausted()
    driver.add(producer)
    driver.performs = False
    driver.end(producer, COMMIT)
    driver.perform()
    driver.performs = True
    driver.restart()
    assert (driver.state(), driver.known().producer_id, driver.known().producer_epoch) == ("CompleteCommit", 1001, 0)
    driver.restart()
    assert driver.end(producer, COMMIT) == (OK, 1001, 0)


def test_no_producer_id_to_be_had(driver: Driver) -> None:
    producer = driver.exhausted()
    driver.add(producer)
    driver.performs = False
    token = driver.end(producer, COMMIT)
    driver.perform(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert driver.reply(token) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert driver.state() == "Ongoing"


def test_with_version_1_the_last_epoch_goes_on(driver_v1: Driver) -> None:
    producer = driver_v1.exhausted()
    driver_v1.add(producer, client_version=0)
    assert driver_v1.end(producer, COMMIT, version=4)[0] is OK
    assert (driver_v1.known().producer_id, driver_v1.known().producer_epoch) == (1000, LAST)
