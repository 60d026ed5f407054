"""A world of quorum nodes: the clock, the network between them, and the invariants after every step.

A request and its response are messages of their own, each of which may be lost, late or doubled. A link is one way: the
one from a to b may be cut while the one from b to a works. Requests go through the codec, in the newest version.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from ottla import wire
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    Actions,
    Answered,
    Destination,
    Event,
    NotAnswered,
    PeerGone,
    Received,
    Reply,
    Send,
    SnapshotId,
    SnapshotInstalled,
    TruncateLog,
)
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.states import Leader, State
from ottla.core.quorum.voters import Listener, Voter, VoterSet
from ottla.testing.trace import Trace, Violation
from ottla.wire.batch import Record, build_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.types.vote import VoteRequest, VoteResponse
from simulation.quorum.conversation import show_message
from simulation.quorum.invariants import Invariants
from simulation.quorum.node import LISTENER, QuorumNode

__all__ = ["Links", "QuorumWorld", "StateChange"]

_STEPS_MAX: Final = 400_000
_VERSIONS: Final = {
    "VoteRequest": 2,
    "BeginQuorumEpochRequest": 1,
    "EndQuorumEpochRequest": 1,
    "FetchRequest": 18,
    "FetchSnapshotRequest": 1,
    "AddRaftVoterRequest": 1,
    "RemoveRaftVoterRequest": 0,
    "UpdateRaftVoterRequest": 0,
    "ApiVersionsRequest": 4,
}


class Links(msgspec.Struct):
    """How the network behaves."""

    delay_ms: tuple[int, int] = (1, 1)
    lost: float = 0.0
    doubled: float = 0.0
    cut: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Links from one node to another that carry nothing."""
    slow: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)
    """Links that take this much longer."""


class StateChange(NamedTuple):
    """What a node has become at a time."""

    at_ms: int
    node_id: int
    state: str
    epoch: int
    end_offset: int
    high_watermark: int


class _Token(msgspec.Struct, frozen=True):
    """Whom an answer goes to."""

    sender: int
    life: int
    request_id: int
    request: Any


class QuorumWorld:
    def __init__(
        self,
        seed: int,
        *,
        voters: int = 3,
        observers: int = 0,
        kraft_version: int = 1,
        make_quorum: Callable[..., Quorum] = Quorum,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.trace = Trace()
        self.links = Links()
        self.invariants = Invariants()
        self.counts: Counter[str] = Counter()
        self.nodes: dict[int, QuorumNode] = {}
        self.disk_delays_ms: dict[int, tuple[int, int]] = {}
        self.is_quiet = False
        """Whether fetches without news are left out of the trace."""
        self.refusals_are_told = False
        """Whether a node that is refused a connection takes the other process to be dead, without being told."""
        self._now_ms = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = count()
        self._proposals = 0
        self._admin = 0
        self._shown: dict[int, tuple[Any, ...]] = {}
        self.history: list[StateChange] = []
        """For pictures."""
        self._make_nodes(voters, observers, kraft_version, make_quorum)

    def _make_nodes(self, voters: int, observers: int, kraft_version: int, make_quorum: Callable[..., Quorum]) -> None:
        ids = range(1, voters + 1)
        listeners = {each: (Listener(LISTENER, f"n{each}", 9000 + each),) for each in ids}
        dynamic = VoterSet(tuple(Voter(each, bytes([each]) * 16, listeners[each]) for each in ids))
        static = VoterSet(tuple(Voter(each, listeners=listeners[each]) for each in ids))
        for node_id in range(1, voters + observers + 1):
            formatted = dynamic if kraft_version and node_id <= voters else None
            configured = None if kraft_version else static
            node = QuorumNode(self, node_id, formatted=formatted, configured=configured, make_quorum=make_quorum)
            node.bootstrap = tuple(Destination(-1, f"n{each}", 9000 + each) for each in ids)
            self.nodes[node_id] = node

    # --- time ---------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return self._now_ms

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self._now_ms + delay_ms, next(self._serial), action))

    def run_until(self, end_ms: int, done: Callable[[], bool] = lambda: False) -> bool:
        """Run until a time, or until `done`; returns whether it was `done`."""
        for _ in range(_STEPS_MAX):
            if not self._heap or self._heap[0][0] > end_ms:
                self._now_ms = end_ms
                return done()
            at_ms, _, action = heapq.heappop(self._heap)
            self._now_ms = max(at_ms, self._now_ms)
            action()
            if done():
                return True
        raise Violation("converges", f"{_STEPS_MAX} steps have led to no end")

    # --- what nodes need ----------------------------------------------------------------------------------------------

    def note(self, line: str) -> None:
        self.trace.add(self._now_ms, line)

    def note_fault(self, kind: str, detail: str = "") -> None:
        self.trace.fault(self._now_ms, kind, detail)

    def store_delay_ms(self, node: QuorumNode) -> int:
        return self.random.randint(*self.disk_delays_ms.get(node.node_id, (0, 0)))

    sync_delay_ms = store_delay_ms

    def broken(self, node: QuorumNode, error: Exception) -> None:
        if isinstance(error, Violation):
            raise error
        raise Violation("works", f"{node.name}: {error!r}") from error

    def stepped(self, node: QuorumNode, event: Event, actions: Actions) -> None:
        quorum = node.quorum
        assert quorum is not None
        self._tell(node, quorum, actions)
        self.invariants.stepped(node, actions)
        if actions.high_watermark is not None:
            self.invariants.check_majority(node, self.nodes)
        if isinstance(event, SnapshotInstalled):
            self.counts["snapshot fetches"] += 1
            self.invariants.check_snapshot(node, event.snapshot_id)
        self.counts["truncations"] += sum(1 for each in actions.writes if isinstance(each, TruncateLog))

    def _tell(self, node: QuorumNode, quorum: Quorum, actions: Actions) -> None:
        now = (quorum.state, quorum.epoch, quorum.leader_id, quorum.control.voters.ids)
        before = self._shown.get(node.node_id)
        if now != before:
            self._shown[node.node_id] = now
            leader = f" of n{quorum.leader_id}" if quorum.state is State.FOLLOWER else ""
            if before is None or now[:3] != before[:3]:
                self.note(f"{node.name} is {quorum.state.name}{leader} in epoch {quorum.epoch}")
            if before is not None and now[3] != before[3]:
                self.note(f"{node.name} has the voters {', '.join(f'n{each}' for each in now[3])}")
            if quorum.state is State.LEADER and (before is None or before[0] is not State.LEADER):
                self.counts["elections"] += 1
        if actions.high_watermark is not None:
            self.note(f"{node.name} commits up to {actions.high_watermark}")
        if now != before or actions.writes or actions.high_watermark is not None:
            end_offset = node.log.end_offset
            self.history.append(
                StateChange(
                    self._now_ms, node.node_id, quorum.state.name, quorum.epoch, end_offset, quorum.high_watermark
                )
            )

    def went_down(self, node: QuorumNode) -> None:
        self._shown.pop(node.node_id, None)
        self.history.append(StateChange(self._now_ms, node.node_id, "DOWN", 0, node.log.end_offset, -1))

    # --- the network --------------------------------------------------------------------------------------------------

    def send(self, node: QuorumNode, message: Send) -> None:
        self.invariants.sent(node, message)
        target = next((each for each in self.nodes.values() if each.name == message.to.host), None)
        name = type(message.request).__name__
        version = _VERSIONS[name]
        request = wire.decode(name, version, wire.encode(message.request, version))
        if not self._is_boring(message.request):
            where = message.to.host if message.to.node_id >= 0 else f"{message.to.host} (bootstrap)"
            self.note(f"{node.name} -> {where} {show_message(request)}")
        token = _Token(node.node_id, node.life, message.request_id, request)
        if target is None or target.port != message.to.port or not target.is_up:
            self._carry(node.node_id, target.node_id if target else 0, lambda: self._refuse(token, target))
            return
        received = Received(request, token, version, LISTENER)
        self._carry(node.node_id, target.node_id, lambda: self._deliver(target, received))

    def _is_boring(self, message: Any) -> bool:  # noqa: ANN401
        return self.is_quiet and isinstance(message, FetchRequest)

    def _carry(self, sender: int, target: int, arrive: Callable[[], None]) -> None:
        links, link = self.links, (sender, target)
        if link in links.cut or self.random.random() < links.lost:
            return
        times = 2 if links.doubled and self.random.random() < links.doubled else 1
        for _ in range(times):
            self.after(self.random.randint(*links.delay_ms) + links.slow.get(link, 0), arrive)

    def _deliver(self, target: QuorumNode, received: Received) -> None:
        token: _Token = received.token
        if not target.is_up:
            self._refuse(token, target)
        elif isinstance(received.request, ApiVersionsRequest):
            kind = ApiVersionsResponse
            features = (kind.SupportedFeatureKey("kraft.version", 0, 1),)
            self._answer(target, token, kind(supported_features=features))
        else:
            target.step(received)

    def _refuse(self, token: _Token, target: QuorumNode | None) -> None:
        """Nobody listens there."""
        node = self.nodes[token.sender]
        if target is not None and (target.node_id, token.sender) in self.links.cut:
            return
        if node.life != token.life:
            return
        if self.refusals_are_told and target is not None and not target.is_up:
            node.step(PeerGone(target.node_id))
        if node.life == token.life:
            node.step(NotAnswered(token.request_id))

    def gone(self, node: QuorumNode) -> None:
        """The others see that a process has died."""
        for other in self.nodes.values():
            link = (node.node_id, other.node_id)
            if other is not node and other.is_up and link not in self.links.cut and not node.is_up:
                other.step(PeerGone(node.node_id))

    def reply(self, node: QuorumNode, message: Reply) -> None:
        self.invariants.sent(node, message)
        token: _Token = message.token
        if token.sender == 0:
            self.note(f"{node.name} answers {show_message(message.response)}")
            is_done = message.response is None or not getattr(message.response, "error_code", 1)
            self.counts["voter changes"] += is_done
            return
        if isinstance(message.response, Reject) and message.response.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self.broken(node, message.response)  # two nodes contradict each other
        response = _response(token.request, message.response)
        if isinstance(token.request, VoteRequest):
            assert isinstance(response, VoteResponse)
            self.invariants.granted(node, token.request, response)
        self._answer(node, token, response)

    def _answer(self, node: QuorumNode, token: _Token, response: Any) -> None:  # noqa: ANN401
        name = type(response).__name__
        version = _VERSIONS[type(token.request).__name__]
        response = wire.decode(name, version, wire.encode(response, version))
        has_news = not isinstance(token.request, FetchRequest) or _has_news(response)
        if has_news or not self.is_quiet:
            self.note(f"{node.name} => n{token.sender} {show_message(response)}")

        def arrive() -> None:
            asker = self.nodes[token.sender]
            if asker.life == token.life:
                asker.step(Answered(token.request_id, response))

        self._carry(node.node_id, token.sender, arrive)

    # --- what clients and people do -----------------------------------------------------------------------------------

    def leader(self) -> QuorumNode | None:
        """The leader of the highest epoch, among the nodes that are up."""
        leading = [each for each in self.nodes.values() if each.quorum is not None and each.quorum.is_leader]
        return max(leading, key=lambda each: each.quorum.epoch if each.quorum else 0, default=None)

    def propose(self, node: QuorumNode, records: int = 1) -> None:
        """The active controller of a node writes records, in the epoch that the quorum is in."""
        quorum = node.quorum
        if quorum is None or not node.is_active or node.paused_until_ms > self._now_ms:
            return
        self._proposals += 1
        value = b"%d of %s" % (self._proposals, node.name.encode())
        offsets = range(node.log.end_offset, node.log.end_offset + records)
        batch = build_batch([Record(each, 0, None, value) for each in offsets], partition_leader_epoch=quorum.epoch)
        node.propose(batch)

    def ask(self, node: QuorumNode, request: Any) -> None:  # noqa: ANN401
        """An administrator asks a node."""
        self._admin += 1
        version = _VERSIONS.get(type(request).__name__, 0)
        token = _Token(0, 0, self._admin, request)
        self.note(f"admin -> {node.name} {show_message(request)}")
        node.step(Received(request, token, version, LISTENER))

    def token(self) -> Any:  # noqa: ANN401
        """For an event of an administrator that is no request."""
        self._admin += 1
        return _Token(0, 0, self._admin, None)

    def add_request(self, node: QuorumNode) -> AddRaftVoterRequest:
        kind = AddRaftVoterRequest
        listeners = (kind.Listener(LISTENER, node.name, node.port),)
        return kind("c", 1000, node.node_id, node.directory_id, listeners)

    def snapshot(self, node: QuorumNode, end_offset: int | None = None, padding: int = 0) -> bool:
        """Let a node make a snapshot; returns whether it could."""
        quorum, log = node.quorum, node.log
        if quorum is None:
            return False
        end_offset = quorum.high_watermark if end_offset is None else end_offset
        epoch = log.epoch_at(end_offset - 1)
        if epoch is None:
            return False
        try:
            quorum.check_snapshot(SnapshotId(end_offset, epoch))
        except QuorumError as error:
            self.note(f"{node.name} refuses: {error}")
            return False
        snapshot_id = node.make_snapshot(end_offset, self.invariants.digest(end_offset), padding)
        self.invariants.check_snapshot(node, snapshot_id)
        return True

    # --- the end ------------------------------------------------------------------------------------------------------

    def unconverged(self) -> list[str]:
        """What is missing until all nodes agree."""
        leader = self.leader()
        if leader is None or leader.quorum is None or not isinstance(leader.quorum.epoch_state, Leader):
            return ["nobody leads"]
        epoch, end_offset = leader.quorum.epoch, leader.log.end_offset
        found = []
        for node in self.nodes.values():
            quorum = node.quorum
            if quorum is None:
                found.append(f"{node.name} is down")
            elif (quorum.leader_id, quorum.epoch) != (leader.node_id, epoch):
                found.append(f"{node.name} follows n{quorum.leader_id} in epoch {quorum.epoch}")
            elif node.log.end_offset != end_offset or quorum.high_watermark != end_offset:
                found.append(
                    f"{node.name} has {node.log.end_offset}, committed {quorum.high_watermark}, of {end_offset}"
                )
        return found


def _has_news(response: Any) -> bool:  # noqa: ANN401
    if not response.responses:
        return True
    partition = response.responses[0].partitions[0]
    has_marks = partition.diverging_epoch.epoch >= 0 or partition.snapshot_id.end_offset >= 0
    return (
        bool(partition.records) or has_marks or (bool(partition.error_code) and partition.current_leader.leader_id >= 0)
    )


def _response(request: Any, response: Any) -> Any:  # noqa: ANN401
    """A refusal as the API's handler would send it."""
    if not isinstance(response, Reject):
        return response
    kind = AddRaftVoterResponse if isinstance(request, AddRaftVoterRequest) else RemoveRaftVoterResponse
    assert isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest)
    return kind(error_code=response.code, error_message=response.message)
