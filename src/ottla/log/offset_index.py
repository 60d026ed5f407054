"""The `.index` of a segment: where in the log an offset lies, roughly.

An entry is 8 bytes: the last offset of a batch, relative to the segment's base, and the position at which that batch
begins. Not each batch has one; a reader goes to the greatest entry that is not past its offset and scans from there.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.log.index_file import IndexFile
from ottla.log.names import INDEX_SUFFIX

__all__ = ["OFFSET_ENTRY_BYTES", "OffsetIndex"]

OFFSET_ENTRY_BYTES: Final = 8


class OffsetIndex(IndexFile):
    __slots__ = ()

    ENTRY = struct.Struct(">ii")
    SUFFIX = INDEX_SUFFIX

    def append(self, relative_offset: int, position: int) -> None:
        self.append_entry(relative_offset, position)

    def lookup(self, relative_offset: int) -> tuple[int, int]:
        """Relative offset and position of the greatest entry at or below an offset; (0, 0) if there is none."""
        count = self.count_while(lambda entry: entry[0] <= relative_offset)
        if count == 0:
            return 0, 0
        relative, position = self.entry(count - 1)
        return relative, position

    def first_past(self, position: int) -> int | None:
        """The relative offset of the first entry whose batch begins past a position."""
        count = self.count_while(lambda entry: entry[1] <= position)
        return None if count == len(self) else self.entry(count)[0]

    def last_entry(self) -> tuple[int, int]:
        """(0, 0) if there is none."""
        count = len(self)
        if count == 0:
            return 0, 0
        relative, position = self.entry(count - 1)
        return relative, position

    def truncate_to(self, relative_offset: int) -> None:
        """Drop the entries at or past an offset."""
        self.keep(self.count_while(lambda entry: entry[0] < relative_offset))
