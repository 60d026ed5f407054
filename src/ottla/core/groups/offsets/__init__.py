"""The offsets that groups commit: where each group goes on reading.

`family.OffsetsFamily` is what the group coordinator is given; `requests` are those that are not Kafka's
own. Offsets belong to a group's name, not to its kind, so they are asked for and kept here for all kinds.
"""

from ottla.core.groups.offsets.family import OffsetsFamily
from ottla.core.groups.offsets.requests import FetchOffsets, TransactionalCommit

__all__ = ["FetchOffsets", "OffsetsFamily", "TransactionalCommit"]
