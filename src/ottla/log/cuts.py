"""Cut files: what recovery has cut off a damaged log, kept beside it.

Recovery ends a log where damage begins. What follows is cut off, and a single node has no replica to fetch it from. So
if sound batches are among it, all of it is kept beside the log, byte for byte, in a file of its own: the
rest of a segment under the offset at which the log ends now, a whole segment under its own offset. The names end in
`.log.cut` (`.log.cut2` and so on if there is another one), which neither ottla nor Apache Kafka takes for a part of the
log. `ottla dump` shows what is in them. A torn end with nothing sound behind it is cut without a trace, as ever.

A cut goes with the partition's directory, and when the log has moved on: when its start passes the offset at which it
was cut, as the records would have gone. The cuts of a partition take no more than `KEPT_BYTES_MAX` together; older ones
make room for newer ones, and those of one recovery are kept whatever their size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Generator, Iterable
from itertools import count
from typing import Final, NamedTuple

import msgspec

from ottla.log.disk import Disk, DiskEntry, ReadableFile
from ottla.log.names import CUT_SUFFIX, LOG_SUFFIX, file_name, parse_file_name
from ottla.log.scan import find_sound_batches
from ottla.log.steps import finish
from ottla.wire.batch import BatchView

__all__ = [
    "KEPT_BYTES_MAX",
    "CutFile",
    "SoundBatches",
    "choose_name",
    "copy_files",
    "copy_part",
    "cut_offset",
    "find_sound",
    "is_draft",
    "sound_behind",
    "surplus",
]

KEPT_BYTES_MAX: Final = 1 << 30
_DRAFT_SUFFIX: Final = ".tmp"
_PIECE_BYTES: Final = 1 << 20


class SoundBatches(msgspec.Struct):
    """How many sound batches there are among damaged bytes, and their offsets."""

    batch_count: int = 0
    record_count: int = 0
    size_bytes: int = 0
    first_offset: int = -1
    last_offset: int = -1
    is_all: bool = True
    """Whether all was looked at."""

    @property
    def is_worth_keeping(self) -> bool:
        return self.batch_count > 0 or not self.is_all

    def __str__(self) -> str:
        least = "" if self.is_all else "at least "
        return (
            f"{least}{self.batch_count} sound batches ({self.record_count} records, offsets {self.first_offset} to "
            f"{self.last_offset}, {self.size_bytes} bytes)"
        )


class CutFile(NamedTuple):
    """A file with bytes that recovery cut off."""

    path: str
    size_bytes: int
    sound: SoundBatches


def find_sound(
    file: ReadableFile, position: int, end: int, log_start_offset: int = 0
) -> Generator[None, None, SoundBatches]:
    """Count the sound batches in a part of a file, without those below the start of the log, in small steps."""
    sound = SoundBatches()
    steps = find_sound_batches(file, position, end)
    while True:
        try:
            item = next(steps)
        except StopIteration as stop:
            sound.is_all = stop.value
            return sound
        if item is None:
            yield
            continue
        batch = item[1]
        if isinstance(batch, str) or batch.last_offset < log_start_offset:
            continue
        first_offset = batch.base_offset if isinstance(batch, BatchView) else batch.last_offset
        sound.first_offset = first_offset if not sound.batch_count else min(sound.first_offset, first_offset)
        sound.last_offset = max(sound.last_offset, batch.last_offset)
        sound.batch_count += 1
        sound.record_count += batch.record_count if isinstance(batch, BatchView) else 1
        sound.size_bytes += batch.size_bytes


def sound_behind(disk: Disk, path: str, position: int) -> SoundBatches:
    """The sound batches of a file from a position on."""
    file = disk.open(path)
    try:
        return finish(find_sound(file, position, file.size()))
    finally:
        file.close()


# --- names ------------------------------------------------------------------------------------------------------------


def cut_offset(name: str) -> int | None:
    """The offset in the name of a cut; None for any other file."""
    parsed = parse_file_name(name)
    if parsed is None or parsed.kind != LOG_SUFFIX or not parsed.state.startswith(CUT_SUFFIX):
        return None
    number = parsed.state.removeprefix(CUT_SUFFIX)
    return parsed.offset if not number or number.isdecimal() else None


def is_draft(name: str) -> bool:
    """Whether a file is a cut that was being written when the node ended."""
    return name.endswith(_DRAFT_SUFFIX) and cut_offset(name.removesuffix(_DRAFT_SUFFIX)) is not None


def choose_name(disk: Disk, folder: str, offset: int, file: ReadableFile, position: int, size_bytes: int) -> str:
    """A new name for a cut, or that of a cut with the same content, which a crash may have left."""
    for number in count(1):
        name = file_name(offset, LOG_SUFFIX, CUT_SUFFIX if number == 1 else f"{CUT_SUFFIX}{number}")
        path = f"{folder}/{name}"
        if not disk.exists(path):
            return name
        known = disk.open(path)
        try:
            if known.size() == size_bytes and _is_same(known, file, position, size_bytes):
                return name
        finally:
            known.close()
    raise AssertionError("numbers do not end")


def _is_same(known: ReadableFile, file: ReadableFile, position: int, size_bytes: int) -> bool:
    return all(
        known.read(_PIECE_BYTES, start) == file.read(min(_PIECE_BYTES, size_bytes - start), position + start)
        for start in range(0, size_bytes, _PIECE_BYTES)
    )


# --- keeping ----------------------------------------------------------------------------------------------------------


def copy_part(disk: Disk, path: str, file: ReadableFile, position: int, size_bytes: int) -> Generator[None, None, None]:
    """Copy a part of a file, in small steps, to one that is there only when it is whole and will last."""
    draft = path + _DRAFT_SUFFIX
    try:
        target = disk.open(draft, create=True)
        try:
            target.truncate(0)
            for start in range(0, size_bytes, _PIECE_BYTES):
                target.write([file.read(min(_PIECE_BYTES, size_bytes - start), position + start)], start)
                yield
            target.sync()
        finally:
            target.close()
        disk.rename(draft, path)
        disk.sync_directory(path.rpartition("/")[0])
    except OSError:
        with contextlib.suppress(OSError):
            disk.unlink(draft)  # the disk may be full
        raise


def copy_files(disk: Disk, source: str, target: str, names: Iterable[str]) -> None:
    """Copy cuts from one partition's directory to another."""
    for name in names:
        try:
            file = disk.open(f"{source}/{name}")
        except FileNotFoundError:
            continue  # retention was faster
        try:
            finish(copy_part(disk, f"{target}/{name}", file, 0, file.size()))
        finally:
            file.close()


def surplus(cuts: Iterable[DiskEntry], new: Container[str]) -> list[DiskEntry]:
    """The oldest cuts, which must be removed to make room; never new ones."""
    oldest_first = sorted(cuts, key=lambda entry: (entry.modified_ms, entry.name))
    total = sum(entry.size_bytes for entry in oldest_first)
    going: list[DiskEntry] = []
    for entry in oldest_first:
        if total > KEPT_BYTES_MAX and entry.name not in new:
            going.append(entry)
            total -= entry.size_bytes
    return going
