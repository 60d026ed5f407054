"""The `.timeindex` of a segment: how far the log was when its timestamps reached a value.

An entry is 12 bytes: the largest timestamp of the segment so far, and the last offset of the batch that had it,
relative to the segment's base. Timestamps rise strictly; a batch that is not newer than all before it adds nothing.
The last entry of a closed segment is its largest timestamp, by which retention judges it; one slot of the allowed size
is kept for it.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.log.index_file import IndexFile
from ottla.log.names import TIME_INDEX_SUFFIX

__all__ = ["NO_TIMESTAMP", "TIME_ENTRY_BYTES", "TimeIndex"]

TIME_ENTRY_BYTES: Final = 12
NO_TIMESTAMP: Final = -1


class TimeIndex(IndexFile):
    __slots__ = ()

    ENTRY = struct.Struct(">qi")
    SUFFIX = TIME_INDEX_SUFFIX
    PADDING_MIN = 2
    """One alone is that of a first record with timestamp 0."""

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry if its timestamp is newer than the last one's."""
        if timestamp > self.last_entry()[0]:
            self.append_entry(timestamp, relative_offset)

    def last_entry(self) -> tuple[int, int]:
        """Timestamp and relative offset; (-1, 0) if there is none."""
        count = len(self)
        if count == 0:
            return NO_TIMESTAMP, 0
        timestamp, relative = self.entry(count - 1)
        return timestamp, relative

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The newest entry that is not newer than a timestamp; (-1, 0) if there is none."""
        count = self.count_while(lambda entry: entry[0] <= timestamp)
        if count == 0:
            return NO_TIMESTAMP, 0
        found, relative = self.entry(count - 1)
        return found, relative

    def truncate_to(self, relative_offset: int) -> None:
        """Drop the entries at or past an offset."""
        self.keep(self.count_while(lambda entry: entry[1] < relative_offset))
