"""Which batches a consumer sees."""

from ottla.client.committed import visible
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.batch import Record, build_batch, build_end_txn_marker, split_batches

TIME_MS = 1_700_000_000_000


def data(offset: int, producer_id: int = -1, transactional: bool = True, count: int = 1) -> bytes:
    records = [Record(offset + delta, TIME_MS, None, b"v") for delta in range(count)]
    if producer_id < 0:
        return build_batch(records)
    return build_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=transactional
    )


def marker(offset: int, producer_id: int, committed: bool) -> bytes:
    return build_end_txn_marker(
        committed=committed,
        base_offset=offset,
        timestamp=TIME_MS,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
    )


def seen(*batches: bytes, aborted: tuple[AbortedTransaction, ...] = ()) -> list[int]:
    return [batch.base_offset for batch in visible(split_batches(b"".join(batches)), aborted)]


def test_markers_are_not_for_the_user():
    assert seen(data(0, 7), marker(1, 7, committed=True), data(2)) == [0, 2]


def test_what_was_aborted_is_hidden_until_the_marker():
    batches = (data(0, 7), data(1, 8), data(2, 7), marker(3, 7, committed=False), data(4, 7), marker(5, 8, True))
    assert seen(*batches, aborted=(AbortedTransaction(0, 7),)) == [1, 4]
    assert seen(*batches) == [0, 1, 2, 4]


def test_a_transaction_that_began_before_the_answer_is_hidden_too():
    assert seen(data(10, 7), marker(11, 7, False), data(12, 7), aborted=(AbortedTransaction(3, 7),)) == [12]


def test_two_aborted_transactions_of_one_producer():
    batches = (data(0, 7), marker(1, 7, False), data(2, 7), marker(3, 7, True), data(4, 7), marker(5, 7, False))
    assert seen(*batches, aborted=(AbortedTransaction(4, 7), AbortedTransaction(0, 7))) == [2]


def test_what_was_not_part_of_the_transaction_is_seen():
    batches = (data(0, 7, transactional=False), data(1, 7), marker(2, 7, False))
    assert seen(*batches, aborted=(AbortedTransaction(1, 7),)) == [0]


def test_a_list_beyond_the_answer_hides_nothing():
    assert seen(data(0, 7, count=3), aborted=(AbortedTransaction(3, 7),)) == [0]
    assert seen(data(0, 7, count=3), aborted=(AbortedTransaction(2, 7),)) == []
