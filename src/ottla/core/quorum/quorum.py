"""The state machine of a voter; so far of the only one.

============  =================  =========================================  ============
state         event              what is to be done                         next state
============  =================  =========================================  ============
UNATTACHED    Start              store: leader of the next epoch            ELECTED
ELECTED       StateStored        append: LeaderChange, perhaps voters       LEADER
ELECTED       StateNotStored                                                UNATTACHED
LEADER        Appended           the high watermark rises to the log's end  LEADER
LEADER        AppendFailed       write nothing more in this epoch           RESIGNED
any           Stop                                                          RESIGNED
============  =================  =========================================  ============

A sole voter needs nobody's vote: it leads the epoch after the highest that its disk has seen. The state is stored
before the first record of the epoch is appended. What it has appended is committed, so whoever wants an acknowledgement
to outlive the machine syncs the log before reporting Appended.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from ottla.core.quorum.stored import NOBODY, StoredState, write_stored
from ottla.core.quorum.voters import (
    BOOTSTRAP_OFFSET,
    KRAFT_VERSIONS,
    NO_DIRECTORY,
    ControlHistory,
    Voter,
    voters_record,
)
from ottla.wire import uuid_text
from ottla.wire.batch import ControlRecordType, build_control_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.types.control_records import KRaftVersionRecord, LeaderChangeMessage
from ottla.wire.types.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponseNode,
    DescribeQuorumResponseReplicaState,
)

METADATA_TOPIC: Final = "__cluster_metadata"
UNKNOWN_OFFSET: Final = -1
_DIRECTORIES_FROM_VERSION: Final = 2  # and nodes, and messages with errors


class QuorumError(ValueError):
    """A quorum that this node cannot take part in, with the reason."""


class State(Enum):
    """Where the node stands."""

    UNATTACHED = "knows no leader"
    ELECTED = "has won an epoch and waits until that is stored"
    LEADER = "leads"
    RESIGNED = "has led, and writes no more in this epoch"


# --- events


class Start(msgspec.Struct, frozen=True):
    """The log is recovered and read; the node may stand for election."""


class StateStored(msgspec.Struct, frozen=True):
    """The state of the last StoreState is on disk."""


class StateNotStored(msgspec.Struct, frozen=True):
    """It is not, and the old one may be."""


class Appended(msgspec.Struct, frozen=True):
    """The log ends at `end_offset`, exclusive, and is as safe as it is going to be."""

    end_offset: int


class AppendFailed(msgspec.Struct, frozen=True):
    """An append did not work; what of it is on disk is not known."""


class Stop(msgspec.Struct, frozen=True):
    """The node goes down in order."""


Event = Start | StateStored | StateNotStored | Appended | AppendFailed | Stop


# --- actions


class StoreState(msgspec.Struct, frozen=True):
    """Replace quorum-state by this content, sync it, and report StateStored or StateNotStored."""

    content: bytes


class AppendControl(msgspec.Struct, frozen=True):
    """Append this control batch to the log, and report Appended or AppendFailed."""

    batch: bytes
    end_offset: int


class Actions(msgspec.Struct, frozen=True):
    """What a step asks for. `high_watermark` is given when it has risen."""

    writes: tuple[StoreState | AppendControl, ...] = ()
    high_watermark: int | None = None


_NOTHING: Final = Actions()


class Quorum:
    """One voter of the metadata quorum."""

    __slots__ = (
        "_epoch_start_offset",
        "control",
        "epoch",
        "high_watermark",
        "log_end_offset",
        "node",
        "state",
    )

    def __init__(
        self,
        node: Voter,
        control: ControlHistory,
        *,
        stored: StoredState | None,
        log_end_offset: int,
        log_epoch: int,
    ) -> None:
        """`node` is this one with its present listeners; `log_epoch` that of the last record or snapshot, else 0."""
        self.node = node
        self.control = control
        self.log_end_offset = log_end_offset
        self.epoch = max(log_epoch, stored.epoch if stored is not None else 0)
        self.state = State.UNATTACHED
        self.high_watermark = UNKNOWN_OFFSET
        self._epoch_start_offset = UNKNOWN_OFFSET

    @property
    def is_leader(self) -> bool:
        return self.state is State.LEADER

    @property
    def leader_id(self) -> int:
        return self.node.voter_id if self.is_leader else NOBODY

    def step(self, event: Event, now_ms: int) -> Actions:
        """Take an event in, and say what is to be done."""
        if isinstance(event, Start):
            return self._start()
        if isinstance(event, StateStored) and self.state is State.ELECTED:
            return self._lead(now_ms)
        if isinstance(event, StateNotStored) and self.state is State.ELECTED:
            self.state = State.UNATTACHED
            self.epoch -= 1
        elif isinstance(event, Appended) and self.is_leader:
            return self._advance(event.end_offset)
        elif isinstance(event, Stop) or (isinstance(event, AppendFailed) and self.is_leader):
            self.state = State.RESIGNED
        return _NOTHING

    def _start(self) -> Actions:
        if self.state is not State.UNATTACHED:
            return _NOTHING
        self._check_voters()
        self.epoch += 1
        self.state = State.ELECTED
        stored = StoredState(self.epoch, leader_id=self.node.voter_id)
        content = write_stored(stored, kraft_version=self.control.kraft_version, voter_ids=self.control.voters.ids)
        return Actions((StoreState(content),))

    def _check_voters(self) -> None:
        voters = self.control.voters
        low, high = KRAFT_VERSIONS
        if not low <= self.control.kraft_version <= high:
            raise QuorumError(f"kraft.version is {self.control.kraft_version}; this software runs with {low} to {high}")
        if not voters:
            raise QuorumError("the quorum has no voters: neither the metadata log nor controller.quorum.voters has any")
        if voters.find(self.node.voter_id, self.node.directory_id) is None:
            raise QuorumError(
                f"node {self.node.voter_id} with directory {uuid_text(self.node.directory_id)} is not among the "
                f"voters of this quorum, which are {_shown(voters.voters)}"
            )
        if len(voters) > 1:
            raise QuorumError(
                f"this quorum has {len(voters)} voters ({_shown(voters.voters)}); ottla can lead quorums of one so far"
            )

    def _lead(self, now_ms: int) -> Actions:
        self.state = State.LEADER
        self._epoch_start_offset = self.log_end_offset
        messages = self._first_records()
        batch = build_control_batch(
            messages, base_offset=self.log_end_offset, timestamp=now_ms, partition_leader_epoch=self.epoch
        )
        for offset, (_, message) in enumerate(messages, self.log_end_offset):
            self.control.replay(message, offset)
        return Actions((AppendControl(batch, self.log_end_offset + len(messages)),))

    def _first_records(self) -> list[tuple[ControlRecordType, object]]:
        """What an epoch begins with: its leader, and the voters if the log has none or this one has moved."""
        control = self.control
        voters = tuple(LeaderChangeMessage.Voter(voter_id) for voter_id in control.voters.ids)
        leader = LeaderChangeMessage(
            leader_id=self.node.voter_id,
            voters=voters,
            granting_voters=(LeaderChangeMessage.Voter(self.node.voter_id),),
        )
        messages: list[tuple[ControlRecordType, object]] = [(ControlRecordType.LEADER_CHANGE, leader)]
        has_moved = control.voters.find(self.node.voter_id, self.node.directory_id) != self.node
        if control.kraft_version >= 1 and (control.voters_offset == BOOTSTRAP_OFFSET or has_moved):
            version = KRaftVersionRecord(k_raft_version=control.kraft_version)
            updated = voters_record(control.voters.with_voter(self.node))
            messages += [(ControlRecordType.KRAFT_VERSION, version), (ControlRecordType.KRAFT_VOTERS, updated)]
        return messages

    def _advance(self, end_offset: int) -> Actions:
        self.log_end_offset = max(end_offset, self.log_end_offset)
        # Records of former leaders are committed by one of this epoch being so.
        if self.log_end_offset <= max(self.high_watermark, self._epoch_start_offset):
            return _NOTHING
        self.high_watermark = self.log_end_offset
        return Actions(high_watermark=self.high_watermark)

    # --- DescribeQuorum

    def describe(self, request: DescribeQuorumRequest, api_version: int, now_ms: int) -> DescribeQuorumResponse:
        """The answer to DescribeQuorum, from this node's point of view."""
        asked = [
            (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
        ]
        if asked != [(METADATA_TOPIC, 0)]:
            return _described_error(request, api_version, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not self.is_leader:
            return _described_error(request, api_version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        kind = DescribeQuorumResponse
        partition = kind.PartitionData(
            leader_id=self.node.voter_id,
            leader_epoch=self.epoch,
            high_watermark=self.high_watermark,
            current_voters=(self._own_row(api_version, now_ms),),
        )
        nodes = (self._own_node(),) if api_version >= _DIRECTORIES_FROM_VERSION else ()
        return kind(topics=(kind.TopicData(METADATA_TOPIC, (partition,)),), nodes=nodes)

    def _own_row(self, api_version: int, now_ms: int) -> DescribeQuorumResponseReplicaState:
        has_directory = self.control.kraft_version >= 1 and api_version >= _DIRECTORIES_FROM_VERSION
        directory_id = self.node.directory_id if has_directory else NO_DIRECTORY
        return DescribeQuorumResponse.ReplicaState(
            self.node.voter_id, directory_id, self.log_end_offset, now_ms, now_ms
        )

    def _own_node(self) -> DescribeQuorumResponseNode:
        kind = DescribeQuorumResponse
        listeners = tuple(kind.Listener(each.name, each.host, each.port) for each in self.node.listeners)
        return kind.Node(self.node.voter_id, listeners)


def _described_error(request: DescribeQuorumRequest, api_version: int, code: ErrorCode) -> DescribeQuorumResponse:
    """Every partition that was asked for, with one error."""
    kind = DescribeQuorumResponse
    message = None if api_version >= _DIRECTORIES_FROM_VERSION else ""
    return kind(
        topics=tuple(
            kind.TopicData(
                topic.topic_name,
                tuple(kind.PartitionData(each.partition_index, code, message) for each in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _shown(voters: tuple[Voter, ...]) -> str:
    return ", ".join(f"{voter.voter_id} with directory {uuid_text(voter.directory_id)}" for voter in voters)
