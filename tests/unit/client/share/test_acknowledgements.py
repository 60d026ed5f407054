"""Acknowledgements as batches of a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.share.acknowledgements import RUN_MAX, AcknowledgementBatch, PendingAcknowledgements


def batches(*runs: tuple[int, int, int], **singles: int) -> tuple[AcknowledgementBatch, ...]:
    acknowledgements = PendingAcknowledgements()
    for each in runs:
        acknowledgements.add_range(*each)
    for name, verdict in singles.items():
        acknowledgements.add(int(name[1:]), verdict)
    return acknowledgements.take()


def test_nothing():
    assert not PendingAcknowledgements()
    assert batches() == ()


def test_neighbours_of_one_type_are_one():
    assert batches((0, 4, 1), (5, 9, 1), o10=1) == (AcknowledgementBatch(0, 10, (1,)),)


def test_short_runs_of_several_types_share_a_batch():
    assert batches(o0=1, o1=2, o2=2, o3=3) == (AcknowledgementBatch(0, 3, (1, 2, 2, 3)),)


def test_long_runs_have_their_own():
    found = batches((0, RUN_MAX, 1), (RUN_MAX + 1, RUN_MAX + 1, 2))
    assert found == (AcknowledgementBatch(0, RUN_MAX, (1,)), AcknowledgementBatch(RUN_MAX + 1, RUN_MAX + 1, (2,)))


def test_holes_end_a_batch():
    assert batches(o0=1, o2=1, o3=2) == (AcknowledgementBatch(0, 0, (1,)), AcknowledgementBatch(2, 3, (1, 2)))


def test_the_last_word_about_an_offset_counts():
    assert batches((0, 9, 1), (3, 4, 2), (9, 9, 1)) == (AcknowledgementBatch(0, 9, (1, 1, 1, 2, 2, 1, 1, 1, 1, 1)),)
    assert batches((0, 20, 2), (0, 20, 1)) == (AcknowledgementBatch(0, 20, (1,)),)


def test_order_does_not_matter():
    assert batches((5, 6, 1), (0, 1, 2)) == (AcknowledgementBatch(0, 1, (2,)), AcknowledgementBatch(5, 6, (1,)))


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 3), max_size=60))
def test_what_goes_in_comes_out_in_order(said: dict[int, int]):
    acknowledgements = PendingAcknowledgements()
    for offset, verdict in said.items():
        acknowledgements.add(offset, verdict)
    taken = acknowledgements.take()
    told: dict[int, int] = {}
    end = -1
    for first, last, types in taken:
        assert first > end
        assert len(types) in (1, last - first + 1)
        told |= dict(zip(range(first, last + 1), types * (last - first + 1) if len(types) == 1 else types, strict=True))
        end = last
    assert told == said
    acknowledgements.add_batches(taken)
    assert acknowledgements.take() == taken
    assert not acknowledgements
