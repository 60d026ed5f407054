"""The files of a formatted log directory, as kafka-storage makes them.

===============================================================  ================================================
file                                                             in
===============================================================  ================================================
meta.properties                                                  every log directory
bootstrap.checkpoint                                             every log directory: the first records
__cluster_metadata-0/00000000000000000000-0000000000.checkpoint  the metadata directory of a quorum whose voters
                                                                 are kept in the log: the first voters
===============================================================  ================================================

Nothing is written here; the functions give names and contents. The snapshot of the voters must be there before
meta.properties, which makes the directory count as formatted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records, finalized_levels
from ottla.core.metadata.snapshot import BOOTSTRAP_ID, Snapshot, read_snapshot, write_snapshot
from ottla.core.metadata.topic_names import METADATA_TOPIC
from ottla.wire.keyed import Versioned
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties
from ottla.wire.types.control_records import VotersRecord

METADATA_DIR: Final = f"{METADATA_TOPIC}-0"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
VOTERS_CHECKPOINT: Final = f"{METADATA_DIR}/{BOOTSTRAP_ID.file_name}"


def format_files(
    meta: MetaProperties,
    levels: features.Levels,
    now_ms: int,
    *,
    voters: VotersRecord | None = None,
    credentials: Sequence[Versioned] = (),
) -> dict[str, bytes]:
    """File name -> content for one log directory, in the order in which the files are to be written.

    `levels` come from `features.levels_for_format`. `voters` are given for the metadata directory of a quorum whose
    voters are kept in the log, and there only. `credentials` are records of users who can log in from the start.
    """
    files = {BOOTSTRAP_CHECKPOINT: write_bootstrap([*bootstrap_records(levels), *credentials], now_ms)}
    if voters is not None:
        files[VOTERS_CHECKPOINT] = _voters_checkpoint(voters, levels[features.KRAFT_VERSION], now_ms)
    files[META_PROPERTIES_FILE] = write_meta_properties(meta, now_ms)
    return files


def write_bootstrap(records: list[Versioned], now_ms: int) -> bytes:
    """bootstrap.checkpoint: a snapshot in form, though of no log."""
    return b"".join(
        write_snapshot(
            records,
            epoch=0,
            timestamp_ms=now_ms,
            last_contained_log_timestamp=0,
            kraft_version=0,
            voters=None,
        )
    )


def read_bootstrap(data: bytes) -> tuple[Versioned, ...]:
    """The records of a bootstrap.checkpoint. MetadataFault if they do not say the metadata.version."""
    snapshot: Snapshot = read_snapshot(data)
    finalized_levels(snapshot.records)
    return snapshot.records


def _voters_checkpoint(voters: VotersRecord, kraft_version: int, now_ms: int) -> bytes:
    return b"".join(
        write_snapshot(
            (),
            epoch=BOOTSTRAP_ID.epoch,
            timestamp_ms=now_ms,
            last_contained_log_timestamp=now_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
    )
