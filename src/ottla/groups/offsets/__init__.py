"""The offsets that groups commit: where each group goes on reading.

`family.OffsetsFamily` is what the group coordinator is given; `requests.FetchOffsets` is the one request that is not
Kafka's own. Offsets belong to a group's name, not to its kind, so they are asked for and kept here for all kinds.
"""

from ottla.groups.offsets.family import OffsetsFamily
from ottla.groups.offsets.requests import FetchOffsets

__all__ = ["FetchOffsets", "OffsetsFamily"]
