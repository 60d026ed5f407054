"""What is asked of the offsets family that is not a request of Kafka's."""

from __future__ import annotations

from typing import NamedTuple

from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestGroup
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest

__all__ = ["FetchOffsets", "TransactionalCommit"]


class FetchOffsets(NamedTuple):
    """One group of an OffsetFetch, since each group may have another coordinator. The answer is an
    OffsetFetchResponseGroup."""

    group: OffsetFetchRequestOffsetFetchRequestGroup
    require_stable: bool
    """Whether offsets that an open transaction is about to change are refused."""


class TransactionalCommit(NamedTuple):
    """A TxnOffsetCommit whose transaction is known to be open, with the proof of it; see `contract.Producer`."""

    request: TxnOffsetCommitRequest
    guard: int | None = None
