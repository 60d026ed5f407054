"""What is asked of the offsets family that is not a request of Kafka's."""

from __future__ import annotations

from typing import NamedTuple

from ottla.wire.types.offset_fetch import OffsetFetchRequestOffsetFetchRequestGroup

__all__ = ["FetchOffsets"]


class FetchOffsets(NamedTuple):
    """One group of an OffsetFetch, since each group may have another coordinator. The answer is an
    OffsetFetchResponseGroup."""

    group: OffsetFetchRequestOffsetFetchRequestGroup
    require_stable: bool
    """Whether offsets that an open transaction is about to change are refused."""
