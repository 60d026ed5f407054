"""A controller's directory as a life of it could have left it, with the epochs and the state that a test needs.

    Seed(voters=(1, 2, 3), stored=StoredState(7, voted_id=2)).write(directory, ports)

The log has records of the epochs 1, 2 and 4. With a snapshot the records of epochs 1 and 2 are in it, and the log
begins behind them. Which voters there are is in the log, or with kraft.version 0 in the configuration.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.format import METADATA_DIR, format_files
from ottla.core.metadata.records import build_data_batch
from ottla.core.metadata.snapshot import SnapshotId, write_snapshot
from ottla.core.quorum.stored import StoredState, write_stored
from ottla.core.quorum.voters import Listener, Voter, VoterSet, voters_record
from ottla.wire.batch import ControlRecordType, build_control_batch
from ottla.wire.keyed import Versioned, encode_framed
from ottla.wire.properties import MetaProperties
from ottla.wire.types.cluster_metadata import NoOpRecord
from ottla.wire.types.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from tests.interop.apache import CLUSTER_ID

NODE_ID = 1
LISTENER = "CONTROLLER"
NOW_MS = 1_790_000_000_000
NO_OPS = 3


def directory_id(node_id: int) -> bytes:
    return bytes(8) + bytes([0x10 + node_id] * 8)


class Layout(msgspec.Struct, frozen=True):
    """Where the epochs of a seeded log end, which the frames speak of."""

    first_end: int
    second_end: int
    end: int


class Seed(msgspec.Struct, frozen=True):
    voters: tuple[int, ...] = (1,)
    kraft_version: int = 1
    stored: StoredState | None = None
    has_snapshot: bool = False

    def voter_set(self, ports: dict[int, int]) -> VoterSet:
        return VoterSet(
            tuple(
                Voter(each, directory_id(each), (Listener(LISTENER, "127.0.0.1", ports[each]),)) for each in self.voters
            )
        )

    @property
    def layout(self) -> Layout:
        head = 3 if self.kraft_version else 1
        first_end = head + len(bootstrap_records(self._levels))
        return Layout(first_end, first_end + 1 + NO_OPS, first_end + 2 * (1 + NO_OPS))

    @property
    def _levels(self) -> features.Levels:
        return features.levels_for_format(is_dynamic_quorum=self.kraft_version > 0)

    def write(self, directory: Path, ports: dict[int, int]) -> None:
        """`ports` are those of the voters."""
        voters = voters_record(self.voter_set(ports)) if self.kraft_version else None
        meta = MetaProperties(CLUSTER_ID, NODE_ID, directory_id(NODE_ID))
        for name, content in format_files(meta, self._levels, NOW_MS, voters=voters).items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        metadata, layout, first = directory / METADATA_DIR, self.layout, 0
        metadata.mkdir(exist_ok=True)
        batches = self._first_epoch(voters) + _epoch(2, layout.first_end)
        if self.has_snapshot:
            first, batches = layout.second_end, b""
            content = write_snapshot(
                bootstrap_records(self._levels),
                epoch=2,
                timestamp_ms=NOW_MS,
                last_contained_log_timestamp=NOW_MS,
                kraft_version=self.kraft_version,
                voters=voters,
            )
            (metadata / SnapshotId(first, 2).file_name).write_bytes(b"".join(content))
        (metadata / f"{first:020}.log").write_bytes(batches + _epoch(4, layout.second_end))
        if self.stored is not None:
            content_of = write_stored(self.stored, kraft_version=self.kraft_version, voter_ids=self.voters)
            (metadata / "quorum-state").write_bytes(content_of)

    def _first_epoch(self, voters: VotersRecord | None) -> bytes:
        control: list[tuple[ControlRecordType, object]] = [(ControlRecordType.LEADER_CHANGE, _leader_change())]
        if voters is not None:
            control.append((ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=1)))
            control.append((ControlRecordType.KRAFT_VOTERS, voters))
        head = build_control_batch(control, base_offset=0, timestamp=NOW_MS, partition_leader_epoch=1)
        values = [encode_framed(*each) for each in bootstrap_records(self._levels)]
        return head + build_data_batch(values, len(control), 1, NOW_MS)


def _leader_change() -> LeaderChangeMessage:
    return LeaderChangeMessage(leader_id=NODE_ID)


def _epoch(epoch: int, offset: int) -> bytes:
    control = [(ControlRecordType.LEADER_CHANGE, _leader_change())]
    head = build_control_batch(control, base_offset=offset, timestamp=NOW_MS, partition_leader_epoch=epoch)
    values = [encode_framed(*Versioned(NoOpRecord(), 0))] * NO_OPS
    return head + build_data_batch(values, offset + 1, epoch, NOW_MS)
