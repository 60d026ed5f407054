"""Snapshots of the metadata log: `.checkpoint` files, which replace the log up to the offset in their name.

If the beginning of the log was deleted, the oldest snapshot that reaches up to the rest replaces it. Its records have
no offsets of the log; they get the offset of the last record that the snapshot replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.storage import absolute, storage_of
from ottla.wire.columns import decode_columns
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from ottla.spark.filters import Bounds
    from ottla.spark.log.directory import PartitionFiles
    from ottla.wire.columns import Columns

__all__ = ["MetadataSnapshot", "named_snapshot", "named_snapshots", "read_snapshot", "snapshot_before"]

BOOTSTRAP: Final = "bootstrap.checkpoint"
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class MetadataSnapshot(NamedTuple):
    uri: str
    end_offset: int
    """The first offset that it does not replace."""

    def is_in(self, bounds: Bounds) -> bool:
        """Whether filters may accept its records, which have the last offset that it replaces."""
        start, until = bounds.clip(self.end_offset - 1, self.end_offset)
        return start < until


def named_snapshot(uri: str) -> MetadataSnapshot | None:
    """The snapshot that a path names; None if it names none."""
    name = uri.rpartition("/")[2]
    found = _NAME.fullmatch(name)
    if found is None:
        return MetadataSnapshot(uri, 0) if name == BOOTSTRAP else None
    return MetadataSnapshot(uri, int(found[1]))


def named_snapshots(paths: Iterable[str]) -> list[MetadataSnapshot]:
    """The snapshots that paths name. Raises OttlaSparkError for a path that names none."""
    found = {path: named_snapshot(absolute(path)) for path in paths}
    for path, snapshot in found.items():
        if snapshot is None:
            text = f"option path: {path} is not a snapshot; snapshots have names such as {0:020d}-{0:010d}.checkpoint"
            raise OttlaSparkError(text)
    return [each for each in found.values() if each is not None]


def snapshot_before(files: PartitionFiles) -> MetadataSnapshot | None:
    """The snapshot that must be read before the log, so that nothing is missing."""
    named = (named_snapshot(f"{files.uri}/{name}") for name in files.metadata_snapshots)
    ends = {each.end_offset: each for each in named if each is not None}
    if files.log_start_offset == 0:
        return ends.get(0)  # written by `format`; the log has everything after it
    reaching = [end for end in ends if end >= files.log_start_offset]
    return ends[min(reaching)] if reaching else None


def read_snapshot(snapshot: MetadataSnapshot) -> Iterator[Columns]:
    """The records of a snapshot, control records included."""
    storage, path = storage_of(snapshot.uri)
    try:
        file = storage.open(path)
    except FileNotFoundError:
        raise OttlaSparkError(f"{snapshot.uri} does not exist") from None
    try:
        data = file.read(file.size(), 0)
    finally:
        file.close()
    try:
        columns = decode_columns(data, include_control=True)
    except WireError as error:
        raise OttlaSparkError(f"corrupt snapshot {snapshot.uri}: {error}") from None
    if columns.end_position != len(data):
        raise OttlaSparkError(f"corrupt snapshot {snapshot.uri}: it is truncated at byte {len(data)}")
    yield replace(columns, offset=np.full(len(columns), snapshot.end_offset - 1, np.int64))
