"""Which batches committed readers see: the same as batch by batch, in whatever pieces they come."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.committed import visible
from ottla.spark.committed import AbortedFilter
from ottla.wire.batch import split_batches
from ottla.wire.columns import decode_columns
from tests.unit.spark.histories import history


def committed_offsets(steps: list[tuple[int, str]]) -> list[int]:
    """The offsets of records that no abort takes back."""
    kept: set[int] = set()
    open_offsets: dict[int, set[int]] = {}
    for offset, (producer_id, what) in enumerate(steps):
        if what in ("record", "transactional"):
            kept.add(offset)
        if what == "transactional":
            open_offsets.setdefault(producer_id, set()).add(offset)
        elif what in ("commit", "abort"):
            ended = open_offsets.pop(producer_id, set())
            kept -= ended if what == "abort" else set()
    return sorted(kept)


steps = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["record", "transactional", "commit", "abort"])), max_size=20
)


@given(steps, st.integers(1, 5))
def test_pieces_are_judged_as_single_batches_are(history_steps: list[tuple[int, str]], piece: int):
    batches, aborted = history(history_steps)
    expected = committed_offsets(history_steps)
    assert [each.base_offset for each in visible(split_batches(b"".join(batches)), aborted)] == expected
    judge = AbortedFilter(aborted)
    found: list[int] = []
    for start in range(0, len(batches), piece):
        columns = decode_columns(b"".join(batches[start : start + piece]), keep_batches=judge.keep, engine="pure")
        judge.advance()
        found += columns.offset.tolist()
    assert found == expected


def test_nothing_aborted_hides_nothing():
    batches, _ = history([(1, "transactional"), (1, "commit"), (2, "transactional")])
    assert decode_columns(b"".join(batches), keep_batches=AbortedFilter([]).keep).offset.tolist() == [0, 2]


def test_a_piece_may_be_judged_twice():
    batches, aborted = history([(1, "transactional"), (1, "abort"), (1, "transactional"), (1, "commit")])
    judge = AbortedFilter(aborted)
    for _ in range(2):
        columns = decode_columns(b"".join(batches), keep_batches=judge.keep)
        assert columns.offset.tolist() == [2]
