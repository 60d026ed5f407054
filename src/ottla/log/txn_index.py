"""The `.txnindex` of a segment: the aborted transactions whose markers lie in it.

An entry is 34 bytes and speaks of absolute offsets. The file exists only if there was an abort. A reader of committed
data is told the transactions that overlap what it fetched. It can stop searching at an entry whose last stable offset
is past the end of the fetch: whatever was aborted later began later, too.

Of a segment that is still written, it is the only index that each flush includes. What it lacks nothing else tells, and
readers of committed data would be given what was aborted; so it must not have lost anything below the recovery point.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.log.files import Directory
from ottla.log.index_file import IndexFile
from ottla.log.names import TXN_INDEX_SUFFIX

__all__ = ["AbortedTxn", "TxnIndex"]

_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The marker's."""
    last_stable_offset: int
    """Right after this abort."""


class TxnIndex(IndexFile):
    __slots__ = ("is_flushed",)

    ENTRY = struct.Struct(">hqqqq")
    SUFFIX = TXN_INDEX_SUFFIX

    def __init__(self, directory: Directory, base_offset: int, state: str = "", *, is_new: bool = False) -> None:
        super().__init__(directory, base_offset, state, is_new=is_new)
        self.is_flushed = True
        """Whether a flush has included all entries."""

    def append(self, txn: AbortedTxn) -> None:
        self.append_entry(_VERSION, *txn)
        self.is_flushed = False

    def transactions(self, start: int = 0) -> list[AbortedTxn]:
        return [AbortedTxn(*entry[1:]) for entry in self.entries(start)]

    def collect(self, first_offset: int, end_offset: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that overlap a range, and whether later segments cannot hold more of them."""
        found: list[AbortedTxn] = []
        if len(self) == 0:
            return found, False
        for txn in self.transactions(self.count_while(lambda entry: entry[3] < first_offset)):
            if txn.first_offset < end_offset:
                found.append(txn)
            if txn.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose markers lie at or past an offset."""
        self.keep(self.count_while(lambda entry: entry[3] < offset))

    def is_sound(self, base_offset: int) -> bool:
        """Whether each entry is of a known version and can belong to a segment with this base."""
        return all(entry[0] == _VERSION and entry[3] >= base_offset for entry in self.entries())
