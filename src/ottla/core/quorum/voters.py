"""The voters of a quorum, and what the log's control records say of them.

From kraft.version 1 on the voters are in the log: the newest VotersRecord counts, committed or not. Formatting puts
the first one into a snapshot of nothing, before there is a log. With kraft.version 0 they come from the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ottla.wire.types.control_records import KRaftVersionRecord, VotersRecord

KRAFT_VERSIONS: Final = (0, 1)
"""The levels of kraft.version that this software can run with, both included."""
NO_DIRECTORY: Final = bytes(16)
BOOTSTRAP_OFFSET: Final = -1
"""Where voters lie that only formatting has set."""


class ReplicaKey(NamedTuple):
    """A replica of the log: a node with a directory."""

    node_id: int
    directory_id: bytes


class Listener(msgspec.Struct, frozen=True):
    """Where a voter is reached."""

    name: str
    host: str
    port: int


class Voter(msgspec.Struct, frozen=True):
    """A voter is a node with a directory; with another directory it would be another voter.

    Configured voters, with kraft.version 0, have no directory.
    """

    voter_id: int
    directory_id: bytes = NO_DIRECTORY
    listeners: tuple[Listener, ...] = ()
    kraft_versions: tuple[int, int] = KRAFT_VERSIONS

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.voter_id, self.directory_id)

    def is_node(self, node_id: int, directory_id: bytes) -> bool:
        return self.voter_id == node_id and self.directory_id in (NO_DIRECTORY, directory_id)


class VoterSet(msgspec.Struct, frozen=True):
    """All voters, by id."""

    voters: tuple[Voter, ...] = ()

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.voter_id for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def by_id(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.voter_id == node_id), None)

    def find(self, node_id: int, directory_id: bytes) -> Voter | None:
        return next((voter for voter in self.voters if voter.is_node(node_id, directory_id)), None)

    def with_voter(self, voter: Voter) -> VoterSet:
        """The set with this entry in the place of the one with the same id."""
        others = [each for each in self.voters if each.voter_id != voter.voter_id]
        return VoterSet(tuple(sorted((*others, voter), key=lambda each: each.voter_id)))

    def without(self, key: ReplicaKey) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if voter.key != key))


def voters_from_record(record: VotersRecord) -> VoterSet:
    voters = (
        Voter(
            each.voter_id,
            each.voter_directory_id,
            tuple(Listener(endpoint.name, endpoint.host, endpoint.port) for endpoint in each.endpoints),
            (
                each.k_raft_version_feature.min_supported_version,
                each.k_raft_version_feature.max_supported_version,
            ),
        )
        for each in record.voters
    )
    return VoterSet(tuple(sorted(voters, key=lambda voter: voter.voter_id)))


def voters_record(voters: VoterSet) -> VotersRecord:
    kind = VotersRecord
    return kind(
        voters=tuple(
            kind.Voter(
                voter.voter_id,
                voter.directory_id,
                tuple(kind.Endpoint(listener.name, listener.host, listener.port) for listener in voter.listeners),
                kind.KRaftVersionFeature(*voter.kraft_versions),
            )
            for voter in voters.voters
        )
    )


class ControlHistory:
    """kraft.version and voters as the log has had them, so that cutting its tail gives back what was before."""

    __slots__ = ("_has_configured", "_versions", "_voters")

    def __init__(self, configured: VoterSet | None = None) -> None:
        self._versions: list[tuple[int, int]] = []
        self._voters: list[tuple[int, VoterSet]] = []
        self._has_configured = configured is not None
        if configured is not None:
            self._voters.append((BOOTSTRAP_OFFSET, configured))

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1] if self._versions else 0

    @property
    def voters(self) -> VoterSet:
        return self._voters[-1][1] if self._voters else VoterSet()

    @property
    def voters_offset(self) -> int:
        """Where the newest voters lie; BOOTSTRAP_OFFSET if they are not in the log."""
        return self._voters[-1][0] if self._voters else BOOTSTRAP_OFFSET

    @property
    def voters_before(self) -> VoterSet:
        """The voters before the newest."""
        return self._voters[-2][1] if len(self._voters) > 1 else VoterSet()

    def at(self, end_offset: int) -> tuple[int, VoterSet]:
        """kraft.version and voters as a snapshot that ends at an offset has them."""
        versions = [level for offset, level in self._versions if offset < end_offset]
        voters = [each for offset, each in self._voters if offset < end_offset]
        return (versions[-1] if versions else 0), (voters[-1] if voters else VoterSet())

    def uncommitted_voters(self, high_watermark: int) -> list[VoterSet]:
        """The newest committed voters, and those behind the high watermark."""
        committed = [each for offset, each in self._voters if offset < max(high_watermark, 0)]
        return committed[-1:] + [each for offset, each in self._voters if offset >= max(high_watermark, 0)]

    def replay(self, message: object, offset: int) -> None:
        """Take in a control record of the log, or of a snapshot that ends at `offset` + 1. Others are overlooked."""
        if isinstance(message, KRaftVersionRecord):
            self._versions.append((offset, message.k_raft_version))
        elif isinstance(message, VotersRecord):
            self._voters.append((offset, voters_from_record(message)))

    def truncate(self, end_offset: int) -> None:
        """Forget what was at `end_offset` and behind it."""
        self._versions = [entry for entry in self._versions if entry[0] < end_offset]
        self._voters = [entry for entry in self._voters if entry[0] < end_offset]

    def replace(self, messages: Iterable[object], offset: int) -> None:
        """Forget everything but the configuration: a snapshot that ends at `offset` + 1 has replaced the log."""
        configured = self._voters[:1] if self._has_configured else []
        self._versions, self._voters = [], configured
        for message in messages:
            self.replay(message, offset)
