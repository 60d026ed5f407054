"""Files of observers (`kind=K/date=D/OBSERVER-SEQ.jsonl.zst`) as events.

An observer writes one file after the other for each kind and date, and appends whole zstd frames to it. So what was
read of a directory is the name of its newest file and how much of that file was read, for each observer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.spark.errors import OttlaSparkError
from ottla.wire.compress import zstd_frames, zstd_whole_bytes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileDecoder", "FilePart", "FilePosition", "ObservationFiles", "read_positions", "require_observations"]

SUFFIX: Final = ".jsonl.zst"
LINES: Final = 20_000
PART: Final = ".part"
"""The suffix of a file that is being written, or whose observer was killed."""
SETTLED_NS: Final = 2_000_000_000
"""A directory may change again within the resolution of its modification time; not after this."""


class FilePart(NamedTuple):
    """The bytes of a file that are read."""

    path: str
    """Without the suffix of an unfinished file."""
    start: int
    until: int


class FilePosition(NamedTuple):
    """The newest file of an observer that was read, and how much of it."""

    name: str
    taken_bytes: int


def require_observations(directory: str, parts: Sequence[FilePart]) -> None:
    """OttlaSparkError if a directory has no observations."""
    if not Path(directory).is_dir():
        raise OttlaSparkError(f"{directory} is not a directory of observations")
    if not any(Path(directory) in Path(each.path).parents for each in parts):
        raise OttlaSparkError(f"{directory} contains no observations (files that end with {SUFFIX})")


def _observer(path: str) -> str:
    """The directory of a file and the observer that wrote it: what has a position of its own."""
    directory, name = os.path.split(path)
    return os.path.join(directory, name.partition("-")[0])


def read_positions(parts: Sequence[FilePart]) -> dict[str, FilePosition]:
    """The positions after these parts, which are in the order of their names."""
    return {_observer(each.path): FilePosition(os.path.basename(each.path), each.until) for each in parts}


class _Listing(NamedTuple):
    modified_ns: int
    directories: tuple[str, ...]
    files: tuple[str, ...]
    """With their paths, in order. An unfinished file has its suffix. If all is settled, those that were read to their
    end are left out."""
    is_settled: bool
    """Whether all files are complete, and none can have come after the listing without changing the time."""


class ObservationFiles:
    """Finds what is new in the files below some directories. Directories that did not change are not listed again."""

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = directories
        self._listings: dict[str, _Listing] = {}

    def parts_after(self, positions: Mapping[str, FilePosition]) -> list[FilePart]:
        """The parts of files after what was read, in the order of their names."""
        return [part for each in self._directories if os.path.isdir(each) for part in self._new_in(each, positions)]

    def _new_in(self, directory: str, positions: Mapping[str, FilePosition]) -> Iterator[FilePart]:
        known = self._listings.get(directory)
        modified_ns = os.stat(directory).st_mtime_ns
        is_same = known is not None and known.is_settled and known.modified_ns == modified_ns
        listing = known if known is not None and is_same else _listed(directory, modified_ns)
        parts = {file: part for file in listing.files if (part := _part_after(file, positions)) is not None}
        # What is found now may not be read: the positions say so the next time.
        self._listings[directory] = listing._replace(files=tuple(parts)) if listing.is_settled else listing
        yield from parts.values()
        for each in listing.directories:
            yield from self._new_in(each, positions)


def _listed(directory: str, modified_ns: int) -> _Listing:
    now_ns = time.time_ns()
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    directories = tuple(entry.path for entry in found if entry.is_dir())
    files = tuple(entry.path for entry in found if entry.name.endswith((SUFFIX, SUFFIX + PART)))
    is_settled = now_ns - modified_ns > SETTLED_NS and not any(each.endswith(PART) for each in files)
    return _Listing(modified_ns, directories, files, is_settled)


def _part_after(file: str, positions: Mapping[str, FilePosition]) -> FilePart | None:
    path = file.removesuffix(PART)
    newest = positions.get(_observer(path), FilePosition("", 0))
    name = os.path.basename(path)
    if name < newest.name:
        return None
    start = newest.taken_bytes if name == newest.name else 0
    until = start + zstd_whole_bytes(_content(path, start)) if file.endswith(PART) else os.path.getsize(file)
    return FilePart(path, start, until) if until > start else None


def _content(path: str, start: int, until: int | None = None) -> bytes:
    """Some bytes of a file, whether it is complete by now or not."""
    try:
        with open(path + PART, "rb") as file:
            file.seek(start)
            return file.read(-1 if until is None else until - start)
    except FileNotFoundError:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(-1 if until is None else until - start)


class FileDecoder:
    """Reads parts of files and decodes their samples, in a worker."""

    def __init__(self, from_ms: int = 0) -> None:
        self._from_ms = from_ms

    def __call__(self, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        from ottla.spark.pipeline.event_decoder import sample_events

        for part in parts:
            lines: list[bytes | None] = [*zstd_frames(_content(*part)).splitlines()]
            for start in range(0, len(lines), LINES):
                events = sample_events(lines[start : start + LINES], {}, self._from_ms)
                if events.num_rows:
                    yield events
