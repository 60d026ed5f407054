"""Samples in files: `DIR/kind=<kind>/date=<YYYY-MM-DD>/<observer>-<seq>.jsonl.zst`, one JSON object to a line.

A file is complete after a minute, or when it is large; until then its name ends in `.part`. Each write appends a whole
zstd frame, so the file of an observer that was killed can be read, too.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

import cramjam
import msgspec

from ottla.health.samples import Sample, decode, encode
from ottla.observe.sinks import UnwrittenError
from ottla.wire.compress import zstd_frames

__all__ = ["FileSink", "read_files"]

SUFFIX: Final = ".jsonl.zst"
PART: Final = ".part"
FILE_MAX_BYTES: Final = 16 * 1024 * 1024
FILE_MAX_MS: Final = 60_000
NAME_DIGITS: Final = 12


class _Open:
    """A file that is being written."""

    def __init__(self, path: Path, first_ms: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.first_ms = first_ms
        self._file: IO[bytes] = path.with_name(path.name + PART).open("ab")

    def write(self, samples: Iterable[Sample]) -> None:
        lines = b"".join(encode(each) + b"\n" for each in samples)
        self._file.write(bytes(cramjam.zstd.compress(lines)))
        self._file.flush()

    def is_full(self, now_ms: int) -> bool:
        return self._file.tell() >= FILE_MAX_BYTES or now_ms - self.first_ms >= FILE_MAX_MS

    def finish(self) -> None:
        self._file.close()
        with suppress(FileNotFoundError):  # somebody has deleted it
            os.replace(self.path.with_name(self.path.name + PART), self.path)


class FileSink:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: dict[tuple[str, str], _Open] = {}

    async def write(self, samples: Sequence[Sample]) -> None:
        by_file: dict[tuple[str, str], list[Sample]] = {}
        for each in samples:
            by_file.setdefault((each.kind, _date(each.ts)), []).append(each)
        while by_file:
            key, some = next(iter(by_file.items()))
            try:
                self._file(key, some[0]).write(some)
            except OSError as error:
                raise UnwrittenError(sorted(_all(by_file.values()), key=lambda each: each.seq), error) from error
            del by_file[key]
        self._finish(samples[-1].ts if samples else 0)

    def _file(self, key: tuple[str, str], first: Sample) -> _Open:
        if key not in self._open:
            kind, date = key
            name = f"{first.observer[:8]}-{first.seq:0{NAME_DIGITS}d}{SUFFIX}"
            self._open[key] = _Open(self._directory / f"kind={kind}" / f"date={date}" / name, first.ts)
        return self._open[key]

    def _finish(self, now_ms: int) -> None:
        for key, each in list(self._open.items()):
            if each.is_full(now_ms) or key[1] < _date(now_ms):
                each.finish()
                del self._open[key]

    async def close(self) -> None:
        for each in self._open.values():
            each.finish()
        self._open.clear()


def _all(lists: Iterable[list[Sample]]) -> Iterator[Sample]:
    for each in lists:
        yield from each


def _date(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


# --- reading ----------------------------------------------------------------------------------------------------------


def read_files(directory: Path) -> Iterator[Sample]:
    """All samples below a directory, ordered by time except where one file ends and the next begins. Lines that hold no
    sample are skipped."""
    rows: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(directory.glob("kind=*/date=*/*")):
        if _is_ours(path):
            kind, observer = path.parent.parent.name, path.name.partition("-")[0]
            rows.setdefault((kind, observer), []).append(path)
    return heapq.merge(*map(_one_by_one, rows.values()), key=_when)


def _one_by_one(paths: list[Path]) -> Iterator[Sample]:
    """The samples of one observer and one kind. Only one file is in memory at a time."""
    for path in paths:
        yield from sorted(read_file(path), key=_when)


def _when(sample: Sample) -> tuple[int, str, int]:
    return sample.ts, sample.observer, sample.seq


def _is_ours(path: Path) -> bool:
    return path.name.endswith((SUFFIX, SUFFIX + PART))


def read_file(path: Path) -> Iterator[Sample]:
    for line in zstd_frames(_bytes(path)).splitlines():
        with suppress(msgspec.MsgspecError):
            yield decode(line)


def _bytes(path: Path) -> bytes:
    """A file may have been completed or deleted since it was listed."""
    for each in (path, path.with_name(path.name.removesuffix(PART))):
        with suppress(FileNotFoundError):
            return each.read_bytes()
    return b""
