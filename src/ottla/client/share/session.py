"""A share session: what one leader knows of a member, and what it has to be told next.

Theory of operation. A leader keeps one session for each member: the partitions that it fetches, and the epoch of the
next request. Fetches and acknowledgements count the same epochs, so there is one request at a time. Epoch 0 opens a
session, and may carry no acknowledgements; a request with an epoch that the leader does not expect, or one that got no
answer, ends it for us, and the next request opens another. -1 closes it, which releases whatever the member holds.

Only differences are sent: partitions that are new to the session, those that leave it, and those that have
acknowledgements. (A partition that is named only to acknowledge joins the session as well; so it counts as known here,
and is forgotten in the next request if it is not wanted.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from ottla.client.share.acknowledgements import AcknowledgementBatch, PendingAcknowledgements
from ottla.wire.types.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeRequestAcknowledgementBatch,
    ShareAcknowledgeRequestAcknowledgePartition,
    ShareAcknowledgeRequestAcknowledgeTopic,
)
from ottla.wire.types.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
    ShareFetchRequestForgottenTopic,
)

__all__ = ["NOTHING", "Limits", "Sent", "ShareSession", "TopicIdPartition"]

OPENING_EPOCH: Final = 0
CLOSING_EPOCH: Final = -1
EPOCH_MAX: Final = (1 << 31) - 1

T = TypeVar("T")


class TopicIdPartition(NamedTuple):
    """A partition, as share sessions know it."""

    topic_id: bytes
    partition: int


class Limits(NamedTuple):
    """How much one fetch may bring, and how long it may take."""

    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 0
    max_records: int = 0
    batch_size: int = 0
    acquire_mode: int = 0


NOTHING: Final = Limits()
"""For a fetch that only tells what has changed."""

Sent = dict[TopicIdPartition, tuple[AcknowledgementBatch, ...]]
"""The acknowledgements in a request."""


class ShareSession:
    """The session of one member with one leader."""

    def __init__(self, node_id: int, group_id: str, member_id: str) -> None:
        self.node_id = node_id
        self.turn = asyncio.Lock()
        """Held by whoever has a request under way."""
        self._group_id = group_id
        self._member_id = member_id
        self._epoch = OPENING_EPOCH
        self._known: dict[TopicIdPartition, None] = {}
        self._pending: dict[TopicIdPartition, PendingAcknowledgements] = {}

    @property
    def is_open(self) -> bool:
        return self._epoch != OPENING_EPOCH

    @property
    def has_acknowledgements(self) -> bool:
        return any(self._pending.values())

    def differs(self, wanted: Iterable[TopicIdPartition]) -> bool:
        """Whether the leader does not know yet what is to be fetched."""
        return self._known.keys() != set(wanted)

    def acknowledgements(self, tp: TopicIdPartition) -> PendingAcknowledgements:
        """Where acknowledgements for a partition go."""
        found = self._pending.get(tp)
        if found is None:
            found = self._pending[tp] = PendingAcknowledgements()
        return found

    def take_acknowledgements(self) -> Sent:
        """What is to be acknowledged now; nothing while there is no session."""
        return self.take_waiting() if self.is_open else {}

    def take_waiting(self) -> Sent:
        """All acknowledgements that are not sent yet, whether or not there is a session."""
        waiting = {tp: acknowledgements.take() for tp, acknowledgements in self._pending.items() if acknowledgements}
        self._pending = {}
        return waiting

    # --- requests -----------------------------------------------------------------------------------------------------

    def fetch_request(self, wanted: Iterable[TopicIdPartition], limits: Limits, sent: Sent) -> ShareFetchRequest:
        places = list(wanted)
        gone = [tp for tp in self._known if tp not in set(places)]
        named = dict.fromkeys([tp for tp in places if tp not in self._known])
        self._known = dict.fromkeys([*places, *(tp for tp in sent if tp not in gone)])
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_records=limits.max_records,
            batch_size=limits.batch_size,
            share_acquire_mode=limits.acquire_mode,
            topics=_by_topic(named | dict.fromkeys(sent), lambda topic_id, each: _fetch_topic(topic_id, each, sent)),
            forgotten_topics_data=_by_topic(gone, ShareFetchRequestForgottenTopic),
        )

    def acknowledge_request(self, sent: Sent, *, is_renewal: bool = False) -> ShareAcknowledgeRequest:
        return self._acknowledging(self._epoch, sent, is_renewal)

    def closing_request(self, sent: Sent) -> ShareAcknowledgeRequest:
        return self._acknowledging(CLOSING_EPOCH, sent, is_renewal=False)

    def _acknowledging(self, epoch: int, sent: Sent, is_renewal: bool) -> ShareAcknowledgeRequest:
        return ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=is_renewal,
            topics=_by_topic(sent, lambda topic_id, each: _acknowledge_topic(topic_id, each, sent)),
        )

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self) -> None:
        """The leader has taken the request: the next one has the next epoch."""
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def end(self) -> None:
        """There is no session any more, or nobody knows; the next fetch opens one."""
        self._epoch = OPENING_EPOCH
        self._known = {}

    def take_back(self, unsent: Mapping[TopicIdPartition, tuple[AcknowledgementBatch, ...]]) -> None:
        """Acknowledge these with a later request."""
        for tp, batches in unsent.items():
            self.acknowledgements(tp).add_batches(batches)


def _by_topic(places: Iterable[TopicIdPartition], make: Callable[[bytes, tuple[int, ...]], T]) -> tuple[T, ...]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        topics.setdefault(topic_id, []).append(partition)
    return tuple(make(topic_id, tuple(each)) for topic_id, each in topics.items())


def _fetch_topic(topic_id: bytes, partitions: tuple[int, ...], sent: Sent) -> ShareFetchRequestFetchTopic:
    return ShareFetchRequestFetchTopic(
        topic_id,
        tuple(
            ShareFetchRequestFetchPartition(
                index,
                acknowledgement_batches=tuple(
                    ShareFetchRequestAcknowledgementBatch(*batch)
                    for batch in sent.get(TopicIdPartition(topic_id, index), ())
                ),
            )
            for index in partitions
        ),
    )


def _acknowledge_topic(
    topic_id: bytes, partitions: tuple[int, ...], sent: Sent
) -> ShareAcknowledgeRequestAcknowledgeTopic:
    return ShareAcknowledgeRequestAcknowledgeTopic(
        topic_id,
        tuple(
            ShareAcknowledgeRequestAcknowledgePartition(
                index,
                tuple(
                    ShareAcknowledgeRequestAcknowledgementBatch(*batch)
                    for batch in sent[TopicIdPartition(topic_id, index)]
                ),
            )
            for index in partitions
        ),
    )
