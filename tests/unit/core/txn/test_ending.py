"""EndTxn: both tables of `ottla.core.txn.ending`."""

import pytest

from ottla.core.txn.transaction import EPOCH_MAX
from ottla.wire.errors import ErrorCode
from tests.unit.core.txn.desk import T0, T1, Desk

LAST = EPOCH_MAX - 1
OK, FENCED, STATE, WAIT = (
    ErrorCode.NONE,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
COMMIT, ABORT = True, False


def bring(desk: Desk, state: str, *, version: int) -> tuple[int, int]:
    """Bring the id into a state; gives its present producer id and epoch."""
    producer = desk.begun()
    producer = desk.begun()
    if state == "Empty":
        return producer
    desk.add(producer, T0, client_version=2 if version >= 5 else 0)
    if state != "Ongoing":
        desk.performs = state.startswith("Complete")
        desk.end(producer, state.endswith("Commit"), version=version)
    assert desk.state() == state
    return desk.known().producer_id, desk.known().producer_epoch


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
def test_version_1(desk_v1: Desk, state: str, committed: bool, code: ErrorCode, then: str) -> None:
    producer = bring(desk_v1, state, version=4)
    assert producer == (1000, 1)
    assert desk_v1.end(producer, committed, version=4) == (code, -1, -1)
    assert desk_v1.state() == then
    assert desk_v1.known().producer_epoch == 1


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_version_1_foreign_producers(desk_v1: Desk, version: int) -> None:
    bring(desk_v1, "Ongoing", version=4)
    fenced = FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert desk_v1.end((1000, 0), COMMIT, version=version) == (fenced, -1, -1)
    assert desk_v1.end((1000, 2), COMMIT, version=version) == (fenced, -1, -1)
    assert desk_v1.end((999, 1), COMMIT, version=version)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk_v1.end((1000, 1), COMMIT, name="b", version=version)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk_v1.end((1000, 1), COMMIT, name="", version=version)[0] is ErrorCode.INVALID_REQUEST
    assert desk_v1.state() == "Ongoing"


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
def test_version_2(desk: Desk, state: str, committed: bool, epoch: int, code: ErrorCode) -> None:
    producer_id, current = bring(desk, state, version=5)
    answer = desk.end((producer_id, current + epoch), committed)
    if code is OK:
        assert answer == (OK, producer_id, current + 1)
        assert desk.state() == ("CompleteCommit" if committed else "CompleteAbort")
        assert desk.known().producer_epoch == current + 1
    else:
        assert answer == (code, -1, -1)
        assert (desk.state(), desk.known().producer_epoch) == (state, current)


@pytest.mark.parametrize(("state", "committed"), [("CompleteAbort", ABORT), ("CompleteCommit", COMMIT)])
def test_version_2_sent_again(desk: Desk, state: str, committed: bool) -> None:
    producer_id, current = bring(desk, state, version=5)
    count = len(desk.log)
    assert desk.end((producer_id, current - 1), committed) == (OK, producer_id, current)
    assert len(desk.log) == count


@pytest.mark.parametrize("state", ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"])
def test_version_2_foreign_producers(desk: Desk, state: str) -> None:
    producer_id, current = bring(desk, state, version=5)
    assert desk.end((producer_id, current + 1), ABORT)[0] is FENCED
    assert desk.end((producer_id, current - 2), ABORT)[0] is FENCED
    assert desk.end((999, current), ABORT)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.end((producer_id, current), ABORT, name="b")[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.end((producer_id, current), ABORT, name="")[0] is ErrorCode.INVALID_REQUEST
    assert desk.state() == state


def test_the_marker_of_version_2_carries_the_next_epoch(desk: Desk) -> None:
    producer = desk.begun()
    desk.add(producer, T0, T1)
    assert desk.end(producer, COMMIT) == (OK, 1000, 1)
    (markers,) = desk.markers
    assert (markers.producer_epoch, markers.transaction_version, markers.is_commit) == (1, 2, True)
    assert list(markers.partitions) == [T0, T1]


def test_the_marker_of_version_1_carries_the_transaction_s_epoch(desk_v1: Desk) -> None:
    producer = desk_v1.begun()
    desk_v1.add(producer, client_version=0)
    desk_v1.end(producer, ABORT, version=3)
    (markers,) = desk_v1.markers
    assert (markers.producer_epoch, markers.transaction_version, markers.is_commit) == (0, 0, False)
    assert markers.coordinator_epoch == 7


def test_an_abort_of_nothing_needs_no_markers(desk: Desk) -> None:
    producer = desk.begun()
    assert desk.end(producer, ABORT) == (OK, 1000, 1)
    assert not desk.markers
    assert desk.states() == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert desk.known().started_at_ms == desk.known().updated_at_ms


# --- epochs used up ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [COMMIT, ABORT])
def test_the_last_epoch_ends_with_a_new_producer_id(desk: Desk, committed: bool) -> None:
    producer = desk.exhausted()
    desk.add(producer)
    desk.performs = False
    token = desk.end(producer, committed)
    desk.perform()  # the new id
    prepared = desk.known()
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (1000, EPOCH_MAX, 1001)
    assert desk.add((1001, 0)) is WAIT
    assert desk.end((1001, 0), committed)[0] is WAIT
    assert desk.end(producer, committed)[0] is WAIT
    assert desk.end(producer, not committed)[0] is STATE
    desk.perform()  # the markers
    assert desk.markers[0].producer_epoch == EPOCH_MAX
    assert desk.reply(token) == (OK, 1001, 0)
    assert desk.known().previous_producer_id == 1000
    assert desk.end(producer, committed) == (OK, 1001, 0)
    assert desk.end(producer, not committed)[0] is STATE
    assert desk.add((1001, 0)) is OK
    assert desk.end(producer, committed)[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_new_producer_id_that_was_put_aside_outlives_a_restart(desk: Desk) -> None:
    producer = desk.exhausted()
    desk.add(producer)
    desk.performs = False
    desk.end(producer, COMMIT)
    desk.perform()
    desk.performs = True
    desk.restart()
    assert (desk.state(), desk.known().producer_id, desk.known().producer_epoch) == ("CompleteCommit", 1001, 0)
    desk.restart()
    assert desk.end(producer, COMMIT) == (OK, 1001, 0)


def test_no_producer_id_to_be_had(desk: Desk) -> None:
    producer = desk.exhausted()
    desk.add(producer)
    desk.performs = False
    token = desk.end(producer, COMMIT)
    desk.perform(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert desk.reply(token) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert desk.state() == "Ongoing"


def test_with_version_1_the_last_epoch_goes_on(desk_v1: Desk) -> None:
    producer = desk_v1.exhausted()
    desk_v1.add(producer, client_version=0)
    assert desk_v1.end(producer, COMMIT, version=4)[0] is OK
    assert (desk_v1.known().producer_id, desk_v1.known().producer_epoch) == (1000, LAST)
