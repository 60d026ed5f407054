"""Index files: entries of one size in rising order. The three indexes of a segment are such files.

Theory of operation. Apache Kafka maps its indexes into memory at their full size and cuts them when the segment is
closed. Here a file holds exactly its entries. New ones gather in a small buffer first and are written when it is full,
when the segment is rolled or closed, and before a flush; most partitions thus append without an open index. A crash
loses the buffer, and that is all right: recovery builds the indexes of every segment that was not flushed anew from
the log, whether they are there or not.

Looking an entry up takes a few small reads, each halving what is left, and the last of them reads a block; the page
cache does the rest. Nothing is kept in memory but the buffer, which is also where the readers of new data look.

A file that Apache Kafka left at its full size, after a crash or a copy, ends in zeros. No entry behind another is all
zeros, so the first use finds where the entries end and cuts the file there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from ottla.log.files import Directory, LogFile
from ottla.log.names import file_name

__all__ = ["IndexFile"]

# Half a page of entries: small enough to have for each partition, large enough to write seldom.
_BUFFERED_BYTES_MAX: Final = 2048
_BLOCK_BYTES: Final = 4096
_UNKNOWN: Final = -1


class IndexFile:
    """An index: entries in a file, and the newest ones in memory."""

    __slots__ = ("_buffer", "_stored_count", "file")

    ENTRY: struct.Struct
    SUFFIX: str
    PADDING_MIN = 1
    """From how many entries on a last one of zeros is padding."""

    def __init__(self, directory: Directory, base_offset: int, state: str = "", *, is_new: bool = False) -> None:
        self.file = LogFile(directory, file_name(base_offset, self.SUFFIX, state))
        self._stored_count = 0 if is_new else _UNKNOWN
        self._buffer: bytearray | None = None

    def __len__(self) -> int:
        count = self._stored()
        return count if self._buffer is None else count + len(self._buffer) // self.ENTRY.size

    def _stored(self) -> int:
        if self._stored_count == _UNKNOWN:
            self._stored_count = self._count_stored()
        return self._stored_count

    def _count_stored(self) -> int:
        """How many entries the file has, without zeros or a torn entry at its end, which are cut off."""
        if not self.file.exists():
            return 0
        handle = self.file.handle()
        size = handle.size()
        count = size // self.ENTRY.size
        zeros = bytes(self.ENTRY.size)
        if count >= self.PADDING_MIN and handle.read(self.ENTRY.size, (count - 1) * self.ENTRY.size) == zeros:
            low = 0
            while low < count:
                middle = (low + count) // 2
                if handle.read(self.ENTRY.size, middle * self.ENTRY.size) == zeros:
                    count = middle
                else:
                    low = middle + 1
        if count * self.ENTRY.size != size:
            handle.truncate(count * self.ENTRY.size)
        return count

    def append_entry(self, *values: int) -> None:
        if self._buffer is None:
            self._buffer = bytearray()
        self._buffer += self.ENTRY.pack(*values)
        if len(self._buffer) >= _BUFFERED_BYTES_MAX:
            self.write()

    def write(self, *, create: bool = False) -> None:
        """Write the entries in memory. With `create` the file exists afterwards even without entries."""
        if self._buffer:
            stored = self._stored()
            self.file.handle(create=True).write([self._buffer], stored * self.ENTRY.size)
            self._stored_count = stored + len(self._buffer) // self.ENTRY.size
            self._buffer = None
        elif create and not self.file.exists():
            self.file.handle(create=True)
            self._stored_count = 0

    def entry(self, index: int) -> tuple[int, ...]:
        """The values of the entry at `index`, counted from 0."""
        position = (index - self._stored()) * self.ENTRY.size
        if position >= 0:
            assert self._buffer is not None
            return self.ENTRY.unpack_from(self._buffer, position)
        data = self.file.handle().read(self.ENTRY.size, index * self.ENTRY.size)
        return self.ENTRY.unpack(data)

    def entries(self, start: int = 0) -> list[tuple[int, ...]]:
        """All entries from `start` on."""
        stored = self._stored()
        found: list[tuple[int, ...]] = []
        if start < stored:
            size = (stored - start) * self.ENTRY.size
            found += self.ENTRY.iter_unpack(self.file.handle().read(size, start * self.ENTRY.size))
        if self._buffer is not None:
            found += self.ENTRY.iter_unpack(memoryview(self._buffer)[max(start - stored, 0) * self.ENTRY.size :])
        return found

    def count_while(self, holds: Callable[[tuple[int, ...]], bool]) -> int:
        """The number of entries at the beginning for which `holds`, which must not come true again after a false."""
        stored = self._stored()
        if self._buffer and (stored == 0 or holds(self.ENTRY.unpack_from(self._buffer, 0))):
            return stored + self._count_in(self._buffer, holds)
        if not stored:
            return 0
        start, count = self._narrow(stored, holds)
        block = self.file.handle().read(count * self.ENTRY.size, start * self.ENTRY.size)
        return start + self._count_in(block, holds)

    def _narrow(self, count: int, holds: Callable[[tuple[int, ...]], bool]) -> tuple[int, int]:
        """Start and length of a block of the file in which the answer lies."""
        handle = self.file.handle()
        low, high = 0, count
        while (high - low) * self.ENTRY.size > _BLOCK_BYTES:
            middle = (low + high) // 2
            if holds(self.ENTRY.unpack(handle.read(self.ENTRY.size, middle * self.ENTRY.size))):
                low = middle + 1
            else:
                high = middle
        return low, high - low

    def _count_in(self, block: bytes | bytearray, holds: Callable[[tuple[int, ...]], bool]) -> int:
        low, high = 0, len(block) // self.ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if holds(self.ENTRY.unpack_from(block, middle * self.ENTRY.size)):
                low = middle + 1
            else:
                high = middle
        return low

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        stored = self._stored()
        if count < stored:
            self.file.handle().truncate(count * self.ENTRY.size)
            self._stored_count = count
            self._buffer = None
        elif self._buffer is not None:
            del self._buffer[(count - stored) * self.ENTRY.size :]

    def reset(self) -> None:
        """Remove all entries, whatever the file holds."""
        if self.file.exists():
            self.file.handle().truncate(0)
        self._stored_count = 0
        self._buffer = None

    def sync(self) -> None:
        """Sync the file. Entries that are still in memory are not part of that."""
        if self.file.exists():
            self.file.handle().sync()
