"""The active controller: takes requests, writes their records to the metadata log, and replies when they are committed.

The core (`ottla.core.metadata.controller`) works on a fork of the image that is at the log's end, since the next
request must see what the last one has decided. The brokers follow the committed image (see `publisher`). A node that
stops leading throws its fork away, and tells those whose records are not committed that it is not the controller: the
next one may have them or not, so whoever asked asks again.

A change that concerns many partitions is worked out and written in slices, between which the loop serves clients.
Requests to the controller wait for it in line.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.core.metadata import controller
from ottla.core.metadata.context import Authorize, Context, KRaftUpgrade, Result, allow_all, unlimited
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.records import build_batches
from ottla.core.metadata.topic_image import RECOVERING
from ottla.log.errors import StorageError
from ottla.wire.access import ANONYMOUS
from ottla.wire.batch import read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.cluster_metadata import PartitionChangeRecord
from ottla.wire.types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.controller.publisher import MetadataPublisher
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.core.metadata.context import ConfigRules, ControllerSettings
    from ottla.core.metadata.image import MetadataImage
    from ottla.wire.keyed import Versioned

__all__ = ["ActiveController", "Done", "refuse"]

log = logging.getLogger(__name__)

Done = Callable[[Any, int], None]
"""Takes a reply, and the offset behind its records; or None, if this node is not the controller (any more)."""


_OF_THE_QUORUM: Final[dict[type, type]] = {
    DescribeQuorumRequest: DescribeQuorumResponse,
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
}
"""Requests about the quorum itself, which its leader answers, and their responses."""
_PASSING: Final = (ErrorCode.DUPLICATE_BROKER_REGISTRATION,)
"""Refusals that a broker asks again after."""
_RESIGNED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def refuse(request: object, reject: Reject) -> Any:  # noqa: ANN401 - the response to any request
    """The reply that refuses a request as a whole."""
    response = _OF_THE_QUORUM.get(type(request))
    if response is not None:
        return response(error_code=reject.code, error_message=reject.message)
    return controller.refuse(request, reject)


def _log_failure(error: Exception) -> None:
    log.error("a change of the controller failed", exc_info=error)


class _Pending(NamedTuple):
    """A reply that waits until the log is committed up to an offset."""

    end_offset: int
    reply: object
    done: Done


class ControllerCounts:
    """What the controller has done while it was active, since this node has started."""

    def __init__(self) -> None:
        self.operations = 0
        self.elr_elections = 0
        self.unclean_elections = 0

    def take(self, records: Sequence[Versioned], image: MetadataImage) -> None:
        """Count the elections among records that the image does not have yet."""
        for record in records:
            change = record.message
            if not isinstance(change, PartitionChangeRecord) or change.leader < 0:
                continue
            self.unclean_elections += change.leader_recovery_state == RECOVERING
            topic = image.topics_by_id.get(change.topic_id)
            former = None if topic is None else topic.partitions.get(change.partition_id)
            self.elr_elections += former is not None and change.leader in former.elr


class _Sender(NamedTuple):
    """Who has sent a request, and what he may do."""

    principal: str
    authorize: Authorize
    charge: Callable[[int], bool]


class ActiveController:
    """The controller of the cluster while this node leads the quorum."""

    def __init__(
        self,
        raft: RaftLog,
        publisher: MetadataPublisher,
        tasks: CooperativeTasks,
        rules: ConfigRules,
        settings: ControllerSettings,
        clock: Clock,
        new_uuid: Callable[[], bytes],
    ) -> None:
        self._raft = raft
        self._publisher = publisher
        self._tasks = tasks
        self._rules = rules
        self._settings = settings
        self._clock = clock
        self._new_uuid = new_uuid
        self._core: controller.Controller | None = None
        self.counts = ControllerCounts()
        self._pending: deque[_Pending] = deque()
        self._is_busy = False
        """A change is written in slices."""
        self._in_line: deque[tuple[Callable[[], None], Done]] = deque()
        """How to handle each request that waits for the change, and whom to tell if this node resigns before."""

    @property
    def is_active(self) -> bool:
        return self._core is not None

    @property
    def image(self) -> MetadataImage | None:
        """The image at the log's end, uncommitted records included; None while another node is the controller."""
        return None if self._core is None else self._core.image

    def activate(self, bootstrap_records: Sequence[Versioned], *, own_broker_id: int | None) -> None:
        """Take over; the committed image holds all that earlier leaders have written."""
        self._core = controller.Controller(self._publisher.image.fork(), self._rules, self._settings)
        result = self._core.activate(bootstrap_records, self._clock.monotonic_ms(), own_broker_id=own_broker_id)
        with suppress(StorageError):  # the log has failed, and the node resigns
            self.append(result)

    def resign(self) -> None:
        """Throw the fork away, and refuse what is not committed."""
        self._core = None
        self._is_busy = False
        pending, self._pending = self._pending, deque()
        in_line, self._in_line = self._in_line, deque()
        for done in (*(each.done for each in pending), *(done for _, done in in_line)):
            done(None, -1)

    def submit(
        self,
        request: object,
        api_version: int,
        done: Done,
        *,
        principal: str = ANONYMOUS,
        authorize: Authorize = allow_all,
        charge: Callable[[int], bool] = unlimited,
    ) -> None:
        """Handle a request; `done` gets the reply when its records are committed."""
        if type(request) in _OF_THE_QUORUM:
            self._ask_quorum(request, api_version, done)
            return
        sender = _Sender(principal, authorize, charge)
        if self._core is not None and (self._is_busy or self._in_line):
            self._core.note_contact(request, self._clock.monotonic_ms())
        self._line_up(partial(self._handle, request, api_version, done, sender), done)

    def _line_up(self, handle: Callable[[], None], done: Done) -> None:
        """Handle a request, behind those that wait for a change in slices."""
        if self._is_busy or self._in_line:
            self._in_line.append((handle, done))
        else:
            handle()

    def _handle(self, request: object, api_version: int, done: Done, sender: _Sender) -> None:
        core = self._core
        if core is None:
            done(None, -1)
            return
        context = Context(
            now_ms=self._clock.monotonic_ms(),
            log_end_offset=self._raft.end_offset,
            new_uuid=self._new_uuid,
            api_version=api_version,
            kraft_version=self._raft.quorum.control.kraft_version,
            wall_ms=self._clock.wall_ms(),
            principal=sender.principal,
            authorize=sender.authorize,
            charge=sender.charge,
        )
        self.counts.operations += 1
        failed = partial(self._failed, request, done)
        try:
            result = core.handle(request, context)
            if result.kraft_upgrade is None:
                self.append(result)
            records = next(result.rest, None)
        except Reject as reject:
            done(refuse(request, reject), self._raft.high_watermark)
            return
        except StorageError:
            done(None, -1)
            return
        except Exception as error:  # noqa: BLE001  # those in line behind it must be heard
            failed(error)
            return
        if isinstance(request, BrokerRegistrationRequest) and result.refusal is not None:
            level = logging.DEBUG if result.refusal.code in _PASSING else logging.WARNING
            log.log(level, "broker %d cannot register: %s", request.broker_id, result.refusal)
        if result.kraft_upgrade is not None:
            again = partial(self._handle, request, api_version, done, sender)
            self._upgrade(request, result.kraft_upgrade, result.reply, done, again)
            return
        self._finish(records, result.rest, done, partial(self._reply, result.reply, done), failed)

    def _failed(self, request: object, done: Done, error: Exception) -> None:
        """Answer a request whose error nobody has foreseen."""
        log.error("%s failed", type(request).__name__, exc_info=error)
        done(refuse(request, Reject(ErrorCode.UNKNOWN_SERVER_ERROR)), self._raft.high_watermark)

    def _upgrade(
        self, request: object, upgrade: KRaftUpgrade, reply: object, done: Done, again: Callable[[], None]
    ) -> None:
        """Let the quorum reach a level of kraft.version, and then handle the rest of the request."""

        def upgraded(reject: Reject | None) -> None:
            if self._core is None or (reject is not None and reject.code in _RESIGNED):
                done(None, -1)
            elif reject is not None:
                done(refuse(request, reject), self._raft.high_watermark)
            elif upgrade.validate_only:
                self._reply(reply, done)
            else:
                self._line_up(again, done)

        self._raft.upgrade(upgrade.level, upgraded, validate_only=upgrade.validate_only)

    def _reply(self, reply: object, done: Done) -> None:
        end_offset = self._raft.end_offset
        if self._raft.high_watermark >= end_offset and not self._pending:
            done(reply, end_offset)
        else:
            self._pending.append(_Pending(end_offset, reply, done))

    def _finish(
        self,
        records: tuple[Versioned, ...] | None,
        rest: Iterator[tuple[Versioned, ...]],
        done: Done,
        then: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Write the rest of a change, and then do what follows. If this node resigns before, tell whoever waits."""
        if records is None:
            then()
            return
        self._is_busy = True
        self._tasks.add("controller", self._write_rest(self._core, records, rest, done, then, failed), is_urgent=True)

    def _write_rest(
        self,
        core: controller.Controller | None,
        records: tuple[Versioned, ...] | None,
        rest: Iterator[tuple[Versioned, ...]],
        done: Done,
        then: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> Generator[None, None, None]:
        try:
            while records is not None and core is self._core:
                self.append(Result(records, None))
                yield
                records = next(rest, None) if core is self._core else None
        except StorageError:
            pass  # the log has failed, and the node resigns
        except Exception as error:  # noqa: BLE001  # as in `_handle`
            records, then = None, partial(failed, error)
        if core is not self._core or records is not None:
            done(None, -1)
            return
        self._is_busy = False
        then()
        while self._in_line and not self._is_busy:
            handle, _ = self._in_line.popleft()
            handle()
            yield
        self.run_timers()

    def _ask_quorum(self, request: Any, api_version: int, done: Done) -> None:  # noqa: ANN401
        if isinstance(request, DescribeQuorumRequest):
            done(self._raft.describe(request, api_version), -1)
            return

        def answered(response: Any) -> None:  # noqa: ANN401
            done(refuse(request, response) if isinstance(response, Reject) else response, -1)

        self._raft.receive(request, api_version, "", answered)

    def append(self, result: Result) -> int:
        """Append the records of a result; returns the end of the log. Reject if they are too many for one step."""
        if not result.records or self._core is None:
            return self._raft.end_offset
        base_offset, epoch = self._raft.end_offset, self._raft.quorum.epoch
        batches = build_batches(result, base_offset=base_offset, epoch=epoch, timestamp_ms=self._clock.wall_ms())
        self._expect(result.records, batches, base_offset, epoch)
        self.counts.take(result.records, self._core.image)
        self._core.image.replay_all(result.records, base_offset, epoch)
        self._core.image.take_changes()  # of the fork nobody wants to know
        return self._raft.append(batches)

    def _expect(self, records: Sequence[Versioned], batches: Sequence[bytes], base_offset: int, epoch: int) -> None:
        """Have the records published batch by batch: the first may be committed, and the next be lost."""
        at = 0
        for batch in batches:
            end = at + read_header(batch).record_count
            self._publisher.expect(records[at:end], base_offset + at, epoch)
            at = end

    def run_timers(self) -> None:
        """Do what is due: fence brokers that have been silent for too long, look after leaders.

        Not before those in line are heard.
        """
        while self._core is not None and not self._is_busy and not self._in_line:
            result = self._core.tick(self._clock.monotonic_ms(), self._clock.wall_ms())
            if result is None:
                return
            try:
                self.append(result)
            except StorageError:
                return  # the log has failed, and the node resigns
            records = next(result.rest, None)
            self._finish(records, result.rest, lambda reply, end_offset: None, lambda: None, _log_failure)

    def due_in_ms(self) -> int | None:
        """How long until `run_timers` has something to do; None if nothing is known to be due."""
        deadline_ms = None if self._core is None else self._core.next_deadline_ms()
        return None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()

    def has_session(self, broker_id: int, epoch: int) -> bool:
        """Whether a broker was heard of lately."""
        return self._core is not None and self._core.has_session(broker_id, epoch, self._clock.monotonic_ms())

    def broker_ended(self, broker_id: int, epoch: int) -> None:
        """The process of a broker is dead: fence it."""
        if self._core is not None:
            self._core.broker_ended(broker_id, epoch)
            self.run_timers()

    def broker_silent(self, broker_id: int, epoch: int) -> None:
        """Nobody serves where a broker did: a new process may take its place."""
        if self._core is not None:
            self._core.broker_silent(broker_id, epoch)

    def excuse(self, duration_ms: int) -> None:
        """This node has stood still for so long: no broker is fenced for that."""
        if self._core is not None:
            self._core.excuse(duration_ms)

    def committed(self, end_offset: int) -> None:
        """Reply to the requests whose records are committed."""
        while self._pending and self._pending[0].end_offset <= end_offset:
            pending = self._pending.popleft()
            pending.done(pending.reply, pending.end_offset)
