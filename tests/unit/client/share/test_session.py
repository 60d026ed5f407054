"""Share sessions: epochs, and telling only what has changed."""

from __future__ import annotations

from ottla.client.share.acknowledgements import AcknowledgementBatch
from ottla.client.share.session import EPOCH_MAX, NOTHING, Limits, ShareSession, TopicIdPartition

A0, A1, B0 = TopicIdPartition(b"a" * 16, 0), TopicIdPartition(b"a" * 16, 1), TopicIdPartition(b"b" * 16, 0)
FULL = Limits(500, 1, 1000, 10, 10, 1)


def opened(*places: TopicIdPartition) -> ShareSession:
    session = ShareSession(1, "g", "m")
    session.fetch_request(places, FULL, {})
    session.answered()
    return session


def named(topics: object) -> list[TopicIdPartition]:
    return [TopicIdPartition(topic.topic_id, each.partition_index) for topic in topics for each in topic.partitions]  # type: ignore[attr-defined]


def test_the_first_fetch_opens_it():
    session = ShareSession(1, "g", "m")
    request = session.fetch_request([A0, B0, A1], FULL, {})
    assert (request.group_id, request.member_id, request.share_session_epoch) == ("g", "m", 0)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 1000)
    assert (request.max_records, request.batch_size, request.share_acquire_mode) == (10, 10, 1)
    assert sorted(named(request.topics)) == [A0, A1, B0]
    assert not session.is_open
    session.answered()
    assert session.is_open


def test_later_ones_tell_what_changed():
    session = opened(A0, A1)
    request = session.fetch_request([A1, B0], FULL, {})
    assert request.share_session_epoch == 1
    assert named(request.topics) == [B0]
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(A0.topic_id, (0,))]
    session.answered()
    request = session.fetch_request([A1, B0], FULL, {})
    assert (request.share_session_epoch, request.topics, request.forgotten_topics_data) == (2, (), ())


def test_acknowledging_a_partition_makes_it_known():
    session = opened(A0)
    session.acknowledgements(B0).add(5, 1)
    request = session.fetch_request([A0], NOTHING, session.take_acknowledgements())
    assert named(request.topics) == [B0]
    (batch,) = request.topics[0].partitions[0].acknowledgement_batches
    assert (batch.first_offset, batch.last_offset, batch.acknowledge_types) == (5, 5, (1,))
    session.answered()
    assert session.differs([A0])
    assert [each.topic_id for each in session.fetch_request([A0], NOTHING, {}).forgotten_topics_data] == [B0.topic_id]


def test_nothing_is_acknowledged_without_a_session():
    session = ShareSession(1, "g", "m")
    session.acknowledgements(A0).add(5, 1)
    assert session.take_acknowledgements() == {}
    assert session.has_acknowledgements
    session.fetch_request([A0], FULL, {})
    session.answered()
    assert session.take_acknowledgements() == {A0: (AcknowledgementBatch(5, 5, (1,)),)}
    assert not session.has_acknowledgements


def test_epochs_are_counted_by_both_kinds_of_requests():
    session = opened(A0)
    sent = {A0: (AcknowledgementBatch(0, 3, (1,)),)}
    request = session.acknowledge_request(sent, is_renewal=True)
    assert (request.share_session_epoch, request.is_renew_ack) == (1, True)
    session.answered()
    assert session.fetch_request([A0], FULL, {}).share_session_epoch == 2
    assert session.closing_request({}).share_session_epoch == -1


def test_epochs_start_anew():
    session = opened(A0)
    session._epoch = EPOCH_MAX
    session.answered()
    assert session.fetch_request([A0], FULL, {}).share_session_epoch == 1


def test_the_end():
    session = opened(A0)
    session.acknowledgements(A0).add(1, 2)
    session.end()
    assert not session.is_open
    assert session.has_acknowledgements
    assert named(session.fetch_request([A0], FULL, {}).topics) == [A0]


def test_what_was_not_taken_goes_again():
    session = opened(A0)
    session.take_back({A0: (AcknowledgementBatch(0, 1, (1, 2)), AcknowledgementBatch(5, 9, (3,)))})
    assert session.take_acknowledgements() == {
        A0: (AcknowledgementBatch(0, 1, (1, 2)), AcknowledgementBatch(5, 9, (3,)))
    }
