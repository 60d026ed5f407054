"""The state machine of one replica: events in, actions out.

A step takes an event, then `polls`: it looks what the present state has to send, and whether a deadline has passed. If
the epoch, the leader or the vote have changed, they are to be stored: until that is done the messages of the step are
held back, and later events wait. So a message never speaks of a state that is not on disk, and every event meets a
state that is.

The states and their transitions are in `states`; each message has its module, with a table of what it meets in which
state. The only voter of a quorum needs nobody's vote: it leads the epoch after the highest that its disk has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ottla.core.quorum.describe_quorum import describe
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    NOTHING,
    Actions,
    Answered,
    AppendControl,
    Appended,
    AppendFailed,
    AppendRecords,
    Destination,
    Event,
    InstallSnapshot,
    LeaderChanged,
    NotAnswered,
    PeerGone,
    QuorumSettings,
    Received,
    ReplicatedLog,
    Reply,
    Send,
    SnapshotId,
    SnapshotInstalled,
    Start,
    StateNotStored,
    StateStored,
    StoodStill,
    Stop,
    StoreState,
    Synced,
    Tick,
    TruncateLog,
    UpgradeKRaftVersion,
    Write,
)
from ottla.core.quorum.fetch import ParkedFetch, refuse_parked, take_fetch
from ottla.core.quorum.fetch_snapshot import answer_fetch_snapshot
from ottla.core.quorum.follower import poll_bootstrap, poll_follower, take_fetched, take_fetched_snapshot
from ottla.core.quorum.leader import first_records, poll_leader, replica_fetched, voter_heard
from ottla.core.quorum.quorum_epoch import answer_begin, answer_end, poll_end, take_begun, take_ended
from ottla.core.quorum.replica_progress import ReplicaProgress
from ottla.core.quorum.requests import Requests
from ottla.core.quorum.states import (
    KINDS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    QuorumState,
    Resigned,
    State,
    Unattached,
    Votes,
)
from ottla.core.quorum.stored import NOBODY, StoredState, write_stored
from ottla.core.quorum.vote import answer_vote, poll_votes, take_vote
from ottla.core.quorum.voter_changes import (
    refuse_change,
    take_add_voter,
    take_api_versions,
    take_remove_voter,
    take_update_voter,
    take_updated,
    upgrade_kraft_version,
)
from ottla.core.quorum.voters import (
    KRAFT_VERSIONS,
    NO_DIRECTORY,
    ControlHistory,
    Listener,
    ReplicaKey,
    Voter,
)
from ottla.wire import uuid_text
from ottla.wire.batch import ControlRecordType, build_control_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.api_versions import ApiVersionsRequest
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.types.vote import VoteRequest

UNKNOWN_OFFSET: Final = -1
_DEFAULTS: Final = QuorumSettings()


class Quorum:
    """One replica of the metadata log: a voter or an observer."""

    def __init__(
        self,
        node: Voter,
        control: ControlHistory,
        log: ReplicatedLog,
        *,
        stored: StoredState | None,
        cluster_id: str,
        random: Callable[[int], int],
        settings: QuorumSettings = _DEFAULTS,
        bootstrap: Sequence[Destination] = (),
    ) -> None:
        """`node` is this one with its present listeners; `random(n)` gives a number from 0 up to n, exclusive."""
        self.node = node
        self.control = control
        self.log = log
        self.cluster_id = cluster_id
        self.random = random
        self.settings = settings
        own = {(each.host, each.port) for each in node.listeners}
        self.bootstrap = tuple(each for each in bootstrap if (each.host, each.port) not in own)
        self.bootstrap_at_ms = 0
        """When the next bootstrap server may be asked."""
        self.now_ms = 0
        self.wall_ms = 0
        self.high_watermark = UNKNOWN_OFFSET if log.latest_snapshot is None else log.latest_snapshot.end_offset
        """How far the log is known to be committed."""
        self.synced_end_offset = log.end_offset
        """How far the log is on disk."""
        self.parked: list[ParkedFetch] = []
        self._stored = stored or StoredState()
        self._storing: StoredState | None = None
        self._waiting: deque[Event] = deque()
        self._has_started = False
        self._is_halted = False
        self._is_stopping = False
        self._is_log_settled = True
        self._written_end_offset: int | None = None
        self._requests = Requests(settings)
        self._deadline_ms: int | None = None
        self._clear_actions()
        self._held: list[Send | Reply] = []
        self.epoch_state: QuorumState = Unattached(max(self._stored.epoch, log.last_epoch), 0)
        self._told_leader = LeaderChanged(NOBODY, self.epoch)

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return KINDS[type(self.epoch_state)]

    @property
    def epoch(self) -> int:
        return self.epoch_state.epoch

    @property
    def key(self) -> ReplicaKey:
        return self.node.key

    @property
    def is_leader(self) -> bool:
        return isinstance(self.epoch_state, Leader)

    @property
    def leading_or_none(self) -> Leader | None:
        return self.epoch_state if isinstance(self.epoch_state, Leader) else None

    @property
    def leading(self) -> Leader:
        assert isinstance(self.epoch_state, Leader)
        return self.epoch_state

    @property
    def leader_id(self) -> int:
        """The leader of the epoch; NOBODY if it is not known, or has resigned."""
        state = self.epoch_state
        if isinstance(state, Leader):
            return self.node.voter_id
        return state.leader_id if isinstance(state, Unattached | Prospective | Follower) else NOBODY

    @property
    def leader_listeners(self) -> tuple[Listener, ...]:
        state = self.epoch_state
        if isinstance(state, Leader):
            return self.node.listeners
        return state.leader_listeners if isinstance(state, Prospective | Follower) else ()

    @property
    def told_high_watermark(self) -> int:
        """The high watermark of this leader's epoch."""
        known = self.epoch_state.high_watermark if isinstance(self.epoch_state, Leader) else None
        return UNKNOWN_OFFSET if known is None else known

    @property
    def is_voter(self) -> bool:
        return self.control.voters.find(*self.key) is not None

    @property
    def may_lead(self) -> bool:
        """Whether it may stand for election.

        A node that the newest voters leave out may, too, until it knows them to be committed: it may be the only one
        that has them. It does not count itself, and resigns when they are committed.
        """
        control = self.control
        was_voter = control.voters_before.find(*self.key) is not None
        return self.is_voter or (was_voter and control.voters_offset >= max(self.high_watermark, 0))

    @property
    def has_failed(self) -> bool:
        """Whether the disk did not obey: then nothing more comes of this node, until it is started again."""
        return self._is_halted

    @property
    def has_stopped(self) -> bool:
        """Whether nothing is left to say after Stop."""
        state = self.epoch_state
        return self._is_stopping and not (isinstance(state, Resigned) and state.unacknowledged)

    @property
    def default_listener(self) -> str:
        return self.node.listeners[0].name if self.node.listeners else ""

    @property
    def servers(self) -> tuple[Destination, ...]:
        """Whom to ask for the leader: bootstrap servers and other voters, without those that have just failed.

        The voters may be all that is left of the quorum that the bootstrap servers were in.
        """
        others = [each for each in self.control.voters.voters if each.voter_id != self.node.voter_id and each.listeners]
        known = dict.fromkeys(self.bootstrap)
        known |= dict.fromkeys(self.destination(NOBODY, each.listeners) for each in others)
        lately_ms = self.now_ms - 2 * self.settings.request_timeout_ms
        return tuple(each for each in known if not self._requests.has_failed_since(each, lately_ms)) or tuple(known)

    def is_self(self, voter: Voter) -> bool:
        return voter.is_node(*self.key)

    def describe(
        self, request: DescribeQuorumRequest, api_version: int, now_ms: int, wall_ms: int
    ) -> DescribeQuorumResponse:
        """The answer to DescribeQuorum, from this node's point of view."""
        return describe(self, request, api_version, now_ms, wall_ms)

    def check_leader(self, epoch: int) -> ErrorCode:
        """The error for a request to the leader of an epoch."""
        if epoch != self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.BROKER_NOT_AVAILABLE if self._is_stopping else ErrorCode.NONE

    def check_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Raise QuorumError if a snapshot must not have this id.

        It contains whole batches that are committed, and names the epoch of the last one.
        """
        log, end_offset = self.log, snapshot_id.end_offset
        if end_offset < log.start_offset:
            raise QuorumError(f"no snapshot at {end_offset}: the log starts at {log.start_offset}")
        if end_offset > self.high_watermark:
            raise QuorumError(f"no snapshot at {end_offset}: committed is {self.high_watermark}")
        end = log.end_offset_for_epoch(snapshot_id.epoch)
        begins_at = log.end_offset_for_epoch(snapshot_id.epoch - 1).end_offset
        if end.epoch != snapshot_id.epoch or not begins_at < end_offset <= end.end_offset:
            raise QuorumError(f"no snapshot at {end_offset}: epoch {snapshot_id.epoch} is not there")
        if not log.is_batch_boundary(end_offset):
            raise QuorumError(f"no snapshot at {end_offset}: it is inside of a batch")

    # --- a step -------------------------------------------------------------------------------------------------------

    def step(self, event: Event, now_ms: int, wall_ms: int) -> Actions:
        """Take an event in, and say what is to be done. `now_ms` never goes back; `wall_ms` stamps records."""
        self.now_ms, self.wall_ms = now_ms, wall_ms
        self._clear_actions()
        if isinstance(event, Start):
            self._start()
        elif self._is_halted or not self._has_started:
            return NOTHING
        elif isinstance(event, AppendFailed | StateNotStored):
            self._halt(event)
        elif isinstance(event, StateStored):
            self._state_stored()
        elif self._storing is not None:
            self._waiting.append(event)
        else:
            self._take(event)
        return self._actions()

    def _clear_actions(self) -> None:
        self._writes: list[Write] = []
        self._messages: list[Send | Reply] = []
        self._risen_high_watermark: int | None = None
        self._written_end_offset = None

    def _actions(self) -> Actions:
        is_storing, told = self._storing is not None, self._told_leader
        if not is_storing:
            self._told_leader = LeaderChanged(self.leader_id, self.epoch)
        elif told.leader_id == self.node.voter_id and not self.is_leader:
            # It must not append anything more, whatever the disk takes its time for.
            self._told_leader = LeaderChanged(NOBODY, self.epoch)
        return Actions(
            tuple(self._writes),
            tuple(self._messages),
            self._risen_high_watermark,
            self._told_leader if self._told_leader != told else None,
            None if is_storing else self._deadline_ms,
        )

    def _take(self, event: Event) -> None:
        if isinstance(event, Received):
            self._receive(event)
        elif isinstance(event, Answered | NotAnswered):
            self._answered(event)
        elif isinstance(event, Synced):
            self.synced_end_offset = max(event.end_offset, self.synced_end_offset)
            self._is_log_settled = self._is_log_settled or event.end_offset >= self.log.end_offset
        elif isinstance(event, SnapshotInstalled):
            self._snapshot_installed(event)
        elif isinstance(event, PeerGone):
            self._peer_gone(event.node_id)
        elif isinstance(event, StoodStill):
            self._stood_still(self.now_ms + event.grace_ms)
        elif isinstance(event, UpgradeKRaftVersion):
            try:
                upgrade_kraft_version(self, event)
            except Reject as reject:
                self.reply(event, reject)
        elif isinstance(event, Stop):
            self._stop()
        else:
            assert isinstance(event, Tick | Appended)
        self._settle()

    def _settle(self) -> None:
        """Poll until the state stays; then store what is new, or let the messages go."""
        while True:
            self._deadline_ms = None
            polled = self.epoch_state
            self._poll()
            if self.epoch_state is polled:
                break
        durable = self._durable()
        if durable != self._stored:
            self._storing = durable
            control = self.control
            content = write_stored(durable, kraft_version=control.kraft_version, voter_ids=control.voters.ids)
            self._writes.append(StoreState(content))
            return
        self._release()

    def _release(self) -> None:
        self._messages += self._held
        self._held = []

    def _state_stored(self) -> None:
        if self._storing is None:
            return
        self._stored, self._storing = self._storing, None
        self._release()
        self._settle()
        while self._waiting and self._storing is None:
            self._take(self._waiting.popleft())

    def _durable(self) -> StoredState:
        """What must be on disk before this state is acted on. A leader has no vote."""
        state = self.epoch_state
        if isinstance(state, Leader | Resigned) or (isinstance(state, Candidate) and state.has_won):
            return StoredState(state.epoch, self.node.voter_id)
        if isinstance(state, Candidate):
            return StoredState(state.epoch, NOBODY, *self._stored_key(self.key))
        voted = (NOBODY, NO_DIRECTORY) if state.voted is None else self._stored_key(state.voted)
        return StoredState(state.epoch, state.leader_id, *voted)

    def _stored_key(self, key: ReplicaKey) -> ReplicaKey:
        return key if self.control.kraft_version >= 1 else ReplicaKey(key.node_id, NO_DIRECTORY)

    def _halt(self, event: AppendFailed | StateNotStored) -> None:
        """The disk does not obey: nothing more leaves this node. A state that was not stored is not acted on."""
        is_append = isinstance(event, AppendFailed)
        if not is_append and self._storing is None:
            return
        if is_append and isinstance(self.epoch_state, Leader):
            self.epoch_state = Resigned(self.epoch, self.now_ms, set())
        elif not is_append:
            self.epoch_state = Unattached(max(self._stored.epoch, self.log.last_epoch), self.now_ms)
        self._is_halted = True
        self._has_started = is_append
        self._storing, self._deadline_ms = None, None
        self._waiting.clear()
        self._held, self.parked = [], []

    # --- start and stop -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._has_started:
            return
        self._check_voters()
        self._has_started, self._is_halted = True, False
        self.epoch_state = self._first_state()
        if self.is_voter and len(self.control.voters) == 1:
            self.become_prospective()
        self._settle()

    def _check_voters(self) -> None:
        low, high = KRAFT_VERSIONS
        if not low <= self.control.kraft_version <= high:
            raise QuorumError(f"kraft.version is {self.control.kraft_version}; this software runs with {low} to {high}")
        if not self.control.voters and not self.bootstrap:
            raise QuorumError("the quorum has no voters: neither the metadata log nor controller.quorum.voters has any")
        if not self.servers:
            self.check_is_voter()

    def check_is_voter(self) -> None:
        """Raise QuorumError unless this node is a voter."""
        if not self.is_voter:
            raise QuorumError(
                f"node {self.node.voter_id} with directory {uuid_text(self.node.directory_id)} is not among the "
                f"voters of this quorum, which are {_shown(self.control.voters.voters)}"
            )

    def _first_state(self) -> QuorumState:
        """The state that a start begins in. If no leader is found at once, it soon asks for pre-votes.

        A node that was leader never writes or votes in that epoch again: its last records may be lost. Nobody else
        can lead that epoch either, so it disturbs no leader by going on to the next one.
        """
        stored, log_epoch = self._stored, self.log.last_epoch
        at_ms = self.now_ms + self.settings.rank_ms + self._wait_for_turn(stored.leader_id)
        if stored.epoch < log_epoch:
            return Unattached(log_epoch, at_ms)
        voted = None if stored.voted_id == NOBODY else ReplicaKey(stored.voted_id, stored.voted_directory_id)
        if stored.leader_id == self.node.voter_id:
            others = {voter.voter_id for voter in self.control.voters.voters if not self.is_self(voter)}
            return Resigned(stored.epoch, at_ms, others)
        if voted is not None and self.node.is_node(*voted) and self.is_voter:
            return Candidate(stored.epoch, self.now_ms + self.election_timeout(), self._own_vote())
        leader = self.control.voters.by_id(stored.leader_id)
        if leader is not None and leader.listeners:
            return Follower(stored.epoch, stored.leader_id, leader.listeners, self._fetch_by_ms(), voted)
        return Unattached(stored.epoch, at_ms, stored.leader_id, voted)

    def _stop(self) -> None:
        self._is_stopping = True
        if self.is_leader:
            self.resign()

    # --- polling ------------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Send what the state has to send, leave it if its time is over, and say when to look again."""
        self._expire_requests()
        state = self.epoch_state
        if isinstance(state, Resigned):
            poll_end(self, state)
        if self._is_stopping:
            return
        if isinstance(state, Leader):
            poll_leader(self, state)
        elif isinstance(state, Follower):
            poll_follower(self, state)
        elif isinstance(state, Candidate) and state.has_won:
            if self._durable() == self._stored:
                self._become_leader(state)
        else:
            self._poll_election(state)

    def _poll_election(self, state: Unattached | Prospective | Candidate | Resigned) -> None:
        if isinstance(state, Unattached) and not self.may_lead:
            poll_bootstrap(self)
        elif self.now_ms >= state.election_at_ms:
            self._election_timed_out(state)
        else:
            self.wake_at(state.election_at_ms)
            if isinstance(state, Unattached):
                poll_bootstrap(self)
            elif not isinstance(state, Resigned):
                poll_votes(self, state)

    def _election_timed_out(self, state: QuorumState) -> None:
        if isinstance(state, Resigned):
            self.become_unattached(state.epoch + 1)
        elif isinstance(state, Prospective):
            self.give_up_election()
        else:
            self.become_prospective()

    def wake_at(self, at_ms: int) -> None:
        self._deadline_ms = at_ms if self._deadline_ms is None else min(at_ms, self._deadline_ms)

    def election_timeout(self) -> int:
        return self.settings.election_timeout_ms + self.random(self.settings.election_timeout_ms)

    def _fetch_by_ms(self) -> int:
        return self.now_ms + self.settings.fetch_timeout_ms

    # --- transitions --------------------------------------------------------------------------------------------------

    def _become(self, state: QuorumState) -> None:
        """Enter a state; answers to requests of the old one are no longer waited for."""
        left = self.epoch_state
        self.epoch_state = state
        self._requests.clear()
        if isinstance(left, Leader):
            refuse_parked(self)
            refuse_change(self, left, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def become_unattached(self, epoch: int, leader_id: int = NOBODY, voted: ReplicaKey | None = None) -> None:
        """Know of an epoch, and of no leader that could be reached. Whoever waits for an election goes on waiting."""
        state = self.epoch_state
        fresh_ms = self.now_ms + self.election_timeout()
        at_ms = fresh_ms if isinstance(state, Leader | Follower) else state.election_at_ms
        self._become(Unattached(epoch, at_ms, leader_id, voted))

    def become_follower(self, epoch: int, leader_id: int, listeners: tuple[Listener, ...]) -> None:
        voted = self._vote_in(epoch)
        self._become(Follower(epoch, leader_id, listeners, self._fetch_by_ms(), voted))

    def become_prospective(self) -> None:
        """Ask the other voters whether they would elect this one, before the epoch is raised for it."""
        at_ms, voted = self.now_ms + self.election_timeout(), self._vote_in(self.epoch)
        prospective = Prospective(self.epoch, at_ms, self._own_vote(), self.leader_id, self.leader_listeners, voted)
        self._become(prospective)
        self.count_votes()

    def become_candidate(self) -> None:
        self._become(Candidate(self.epoch + 1, self.now_ms + self.election_timeout(), self._own_vote()))
        self.count_votes()

    def count_votes(self) -> None:
        """Go on if a majority of the voters has granted its vote, or back if one has refused its pre-vote."""
        state, voters = self.epoch_state, self.control.voters
        assert isinstance(state, Prospective | Candidate)
        has_won = len(state.votes.granted.intersection(voters.ids)) >= voters.majority
        if isinstance(state, Candidate):
            state.has_won = state.has_won or has_won
        elif has_won:
            self.become_candidate()
        elif len(state.votes.refused.intersection(voters.ids)) > len(voters) - voters.majority:
            self.give_up_election()

    def give_up_election(self) -> None:
        """Go back to where a Prospective came from, with the same epoch and vote."""
        state = self.epoch_state
        assert isinstance(state, Prospective)
        if state.leader_id != NOBODY and state.leader_listeners:
            self.become_follower(state.epoch, state.leader_id, state.leader_listeners)
        else:
            at_ms = self.now_ms + self.election_timeout()
            self._become(Unattached(state.epoch, at_ms, state.leader_id, state.voted))

    def _become_leader(self, state: Candidate) -> None:
        progress = ReplicaProgress(self.now_ms + self.settings.check_quorum_ms)
        granting = tuple(sorted(state.votes.granted))
        leader = Leader(state.epoch, self.log.end_offset, granting, progress)
        self._become(leader)
        self.append_control(first_records(self, leader))

    def resign(self) -> None:
        """Lead no more: tell the voters who should follow, and write nothing more in this epoch."""
        leader = self.leading
        voters = [voter for voter in self.control.voters.voters if not self.is_self(voter)]
        ends = {voter.key: leader.progress.of(voter.key).end_offset for voter in voters}
        candidates = tuple(sorted(ends, key=lambda key: -ends[key]))
        at_ms = self.now_ms + self.election_timeout()
        self._become(Resigned(leader.epoch, at_ms, {voter.voter_id for voter in voters}, candidates))

    def _vote_in(self, epoch: int) -> ReplicaKey | None:
        state = self.epoch_state
        if epoch != state.epoch or isinstance(state, Leader | Resigned):
            return None
        return self.key if isinstance(state, Candidate) else state.voted

    def _own_vote(self) -> Votes:
        return Votes({self.node.voter_id} if self.is_voter else set(), set())

    # --- hearing of epochs --------------------------------------------------------------------------------------------

    def hear_of(self, epoch: int, leader_id: int, listeners: tuple[Listener, ...] = ()) -> bool:
        """Another node names the leader of an epoch, or NOBODY. Returns whether that changes the state."""
        if leader_id == self.node.voter_id:
            leader_id = NOBODY  # this node knows it, or it was so with a disk that is gone
        if not listeners and (voter := self.control.voters.by_id(leader_id)) is not None:
            listeners = voter.listeners
        if epoch < self.epoch or (epoch == self.epoch and not self._is_news(leader_id, listeners)):
            return False
        if leader_id != NOBODY and listeners:
            self.become_follower(epoch, leader_id, listeners)
        else:
            self.become_unattached(epoch, leader_id, self._vote_in(epoch))
        return True

    def _is_news(self, leader_id: int, listeners: tuple[Listener, ...]) -> bool:
        """Whether this leader of the present epoch was not known, or where it is."""
        known, is_own = self.leader_id, isinstance(self.epoch_state, Leader | Resigned)
        if leader_id == NOBODY:
            return False
        if is_own or known not in (NOBODY, leader_id):
            raise QuorumError(
                f"epoch {self.epoch} has two leaders, {self.node.voter_id if is_own else known} and {leader_id}"
            )
        return known == NOBODY or len(listeners) > len(self.leader_listeners)

    def hear_of_answer(self, epoch: int, leader_id: int, endpoints: Iterable[Any]) -> bool:
        """The same, from a response; the leader's endpoint there is one for the listener that was asked."""
        at = [Listener(self.default_listener, each.host, each.port) for each in endpoints if each.node_id == leader_id]
        return self.hear_of(epoch, leader_id, tuple(at[:1]))

    def _peer_gone(self, node_id: int) -> None:
        """A follower whose leader is dead waits for its turn only, and grants pre-votes to the others."""
        state = self.epoch_state
        if isinstance(state, Follower) and state.leader_id == node_id:
            state.has_fetched = False
            state.fetch_by_ms = min(state.fetch_by_ms, self.now_ms + self._wait_for_turn(node_id))

    def _stood_still(self, until_ms: int) -> None:
        """This process did not run: nobody is given up before a time."""
        state = self.epoch_state
        if isinstance(state, Follower):
            state.fetch_by_ms = max(state.fetch_by_ms, until_ms)
        elif isinstance(state, Leader):
            state.progress.majority_by_ms = max(state.progress.majority_by_ms, until_ms)
        else:
            state.election_at_ms = max(state.election_at_ms, until_ms)
        self._requests.wait_until(until_ms)

    def _wait_for_turn(self, leader_id: int) -> int:
        """How long to leave other voters alone, so that two do not split the votes. The former leader comes last."""
        others = [voter_id for voter_id in self.control.voters.ids if voter_id != leader_id]
        rank = others.index(self.node.voter_id) if self.node.voter_id in others else len(others)
        return rank * self.settings.rank_ms + self.random(self.settings.rank_ms)

    # --- requests and answers -----------------------------------------------------------------------------------------

    def _receive(self, received: Received) -> None:
        """A request may be anybody's, so none can break the quorum: one that contradicts what is known is rejected."""
        request = received.request
        answer = _ANSWERS.get(type(request))
        try:
            if answer is not None:
                self.reply(received, answer(self, received))
            else:
                _TAKERS[type(request)](self, received)
        except Reject as reject:
            self.reply(received, reject)
        except QuorumError as error:
            self.reply(received, Reject(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))

    def reply(self, to: Received | UpgradeKRaftVersion, response: Any) -> None:  # noqa: ANN401
        self._held.append(Reply(to.token, response))

    def replica_fetched(self, state: Leader, key: ReplicaKey, offset: int) -> None:
        replica_fetched(self, state, key, offset)

    def voter_heard(self, state: Leader, key: ReplicaKey) -> None:
        voter_heard(self, state, key)

    def send(self, to: Destination, request: Any) -> None:  # noqa: ANN401
        sent = self._requests.begin(to, request, self.now_ms)
        self._held.append(Send(sent.request_id, to, request))
        self.wake_at(sent.until_ms)

    def destination(self, node_id: int, listeners: tuple[Listener, ...]) -> Destination:
        own = [each for each in listeners if each.name == self.default_listener]
        listener = (own or list(listeners))[0]
        return Destination(node_id, listener.host, listener.port)

    def ready_voter(self, voter: Voter) -> Destination | None:
        """Where to send a request to a voter now; None if one is on its way, or the voter is this node."""
        if self.is_self(voter) or not voter.listeners:
            return None
        to = self.destination(voter.voter_id, voter.listeners)
        return to if self.is_ready(to) else None

    def is_ready(self, to: Destination) -> bool:
        return not self.is_backing_off(to) and all(each.to != to for each in self._requests)

    def is_backing_off(self, to: Destination) -> bool:
        until_ms = self._requests.paused_until(to)
        if until_ms <= self.now_ms:
            return False
        self.wake_at(until_ms)
        return True

    @property
    def is_fetching(self) -> bool:
        return any(isinstance(each.request, FetchRequest | FetchSnapshotRequest) for each in self._requests)

    def _expire_requests(self) -> None:
        """Give up answers that take too long."""
        for each in list(self._requests):
            if each.until_ms <= self.now_ms:
                self._answered(NotAnswered(each.request_id))
            else:
                self.wake_at(each.until_ms)

    def _answered(self, event: Answered | NotAnswered) -> None:
        sent = self._requests.end(event.request_id)
        if sent is None:
            return
        response = event.response if isinstance(event, Answered) else None
        self._requests.note_answer(sent.to, self.now_ms, is_answered=response is not None)
        is_good = self._take_answer(sent.to, sent.request, response)
        if not is_good and sent.to.node_id == NOBODY:
            self.bootstrap_at_ms = self.now_ms + self.settings.bootstrap_backoff_ms
        elif is_good:
            self._requests.succeeded(sent.to)
        else:
            is_silent = response is None and self.now_ms >= sent.until_ms
            # An observer has time to ask the others whether there is another leader, before it waits so long again.
            at_least_ms = self.settings.request_timeout_ms if is_silent and not self.may_lead else 0
            self._requests.failed(sent.to, self.now_ms, at_least_ms)

    def _take_answer(self, to: Destination, request: Any, response: Any) -> bool:  # noqa: ANN401
        """Returns False if the peer is to be left alone for a moment."""
        if isinstance(request, ApiVersionsRequest):
            return take_api_versions(self, to, response)
        if response is None:
            return False
        if isinstance(request, VoteRequest):
            return take_vote(self, request, response)
        if isinstance(request, FetchRequest):
            return take_fetched(self, request, response)
        if isinstance(request, FetchSnapshotRequest):
            return take_fetched_snapshot(self, request, response)
        if isinstance(request, BeginQuorumEpochRequest):
            return take_begun(self, request, response)
        if isinstance(request, EndQuorumEpochRequest):
            return take_ended(self, to.node_id, response)
        return not isinstance(self.epoch_state, Follower) or take_updated(self, self.epoch_state, request, response)

    # --- the log ------------------------------------------------------------------------------------------------------

    @property
    def is_log_settled(self) -> bool:
        """Whether everything that the log has is on disk, and no write of it is under way."""
        return self._is_log_settled and self.synced_end_offset >= self.log.end_offset

    def write(self, write: Write) -> None:
        self._writes.append(write)

    def write_log(self, write: AppendRecords | TruncateLog | InstallSnapshot, end_offset: int) -> None:
        """Change a follower's log. Nothing is fetched until it is on disk."""
        self._is_log_settled = False
        self.synced_end_offset = min(self.synced_end_offset, end_offset)
        self.write(write)

    def append_control(self, messages: list[tuple[ControlRecordType, object]]) -> int:
        """Append control records as leader; they count at once. Returns the new end of the log."""
        base_offset = self.log.end_offset if self._written_end_offset is None else self._written_end_offset
        batch = build_control_batch(
            messages, base_offset=base_offset, timestamp=self.wall_ms, partition_leader_epoch=self.epoch
        )
        for offset, (_, message) in enumerate(messages, base_offset):
            self.control.replay(message, offset)
        self._written_end_offset = base_offset + len(messages)
        self.write(AppendControl(batch, self._written_end_offset))
        return self._written_end_offset

    def raise_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = self._risen_high_watermark = offset

    def _snapshot_installed(self, event: SnapshotInstalled) -> None:
        end_offset = event.snapshot_id.end_offset
        self.control.replace(event.control, end_offset - 1)
        self.synced_end_offset = end_offset
        self._is_log_settled = True
        self.raise_high_watermark(end_offset)
        if isinstance(self.epoch_state, Follower):
            self.epoch_state.download = None


_ANSWERS: Final[dict[type, Callable[[Quorum, Received], Any]]] = {
    VoteRequest: answer_vote,
    BeginQuorumEpochRequest: answer_begin,
    EndQuorumEpochRequest: answer_end,
    FetchSnapshotRequest: answer_fetch_snapshot,
}
"""Requests that are answered at once."""
_TAKERS: Final[dict[type, Callable[[Quorum, Received], None]]] = {
    FetchRequest: take_fetch,
    AddRaftVoterRequest: take_add_voter,
    RemoveRaftVoterRequest: take_remove_voter,
    UpdateRaftVoterRequest: take_update_voter,
}
"""Requests whose answers may come later."""


def _shown(voters: tuple[Voter, ...]) -> str:
    return ", ".join(f"{voter.voter_id} with directory {uuid_text(voter.directory_id)}" for voter in voters)
