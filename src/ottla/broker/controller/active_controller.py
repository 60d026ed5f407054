"""The active controller: takes requests, writes their records to the metadata log, and replies when they are committed.

The core (`ottla.core.metadata.controller`) works on a fork of the image that is at the log's end, since the next
request must see what the last one has decided. The brokers follow the committed image (see `publisher`). A node that
stops leading throws its fork away, and tells those whose records are not committed that it is not the controller: the
next one may have them or not, so whoever asked asks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.core.metadata import controller
from ottla.core.metadata.context import Authorize, Context, Result, allow_all, unlimited
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.records import build_batches
from ottla.log.errors import StorageError
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ottla.broker.controller.publisher import MetadataPublisher
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.loop.clock import Clock
    from ottla.core.metadata.context import ConfigRules, ControllerSettings
    from ottla.core.metadata.image import MetadataImage
    from ottla.wire.keyed import Versioned

__all__ = ["ActiveController", "Done", "refuse"]

Done = Callable[[Any, int], None]
"""Takes a reply, and the offset behind its records; or None, if this node is not the controller (any more)."""


_OF_THE_QUORUM: Final[dict[type, type]] = {
    DescribeQuorumRequest: DescribeQuorumResponse,
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
}
"""Requests about the quorum itself, which its leader answers, and their responses."""


def refuse(request: object, reject: Reject) -> Any:  # noqa: ANN401 - the response to any request
    """The reply that refuses a request as a whole."""
    response = _OF_THE_QUORUM.get(type(request))
    if response is not None:
        return response(error_code=reject.code, error_message=reject.message)
    return controller.refuse(request, reject)


class _Pending(NamedTuple):
    """A reply that waits until the log is committed up to an offset."""

    end_offset: int
    reply: object
    done: Done


class ActiveController:
    """The controller of the cluster while this node leads the quorum."""

    def __init__(
        self,
        raft: RaftLog,
        publisher: MetadataPublisher,
        rules: ConfigRules,
        settings: ControllerSettings,
        clock: Clock,
        new_uuid: Callable[[], bytes],
    ) -> None:
        self._raft = raft
        self._publisher = publisher
        self._rules = rules
        self._settings = settings
        self._clock = clock
        self._new_uuid = new_uuid
        self._core: controller.Controller | None = None
        self._pending: deque[_Pending] = deque()

    @property
    def is_active(self) -> bool:
        return self._core is not None

    @property
    def image(self) -> MetadataImage | None:
        """The image at the log's end, uncommitted records included; None while another node is the controller."""
        return None if self._core is None else self._core.image

    def activate(self, bootstrap_records: Sequence[Versioned], *, own_broker_id: int) -> None:
        """Take over; the committed image holds all that earlier leaders have written."""
        self._core = controller.Controller(self._publisher.image.fork(), self._rules, self._settings)
        self.append(self._core.activate(bootstrap_records, self._clock.monotonic_ms(), own_broker_id=own_broker_id))

    def resign(self) -> None:
        """Throw the fork away, and refuse what is not committed."""
        self._core = None
        self._publisher.forget_uncommitted()
        pending, self._pending = self._pending, deque()
        for each in pending:
            each.done(None, -1)

    def submit(
        self,
        request: object,
        api_version: int,
        done: Done,
        *,
        authorize: Authorize = allow_all,
        charge: Callable[[int], bool] = unlimited,
    ) -> None:
        """Handle a request; `done` gets the reply when its records are committed."""
        if type(request) in _OF_THE_QUORUM:
            done(self._raft.answer(request, api_version), -1)
            return
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
            authorize=authorize,
            charge=charge,
        )
        result = core.handle(request, context)
        try:
            end_offset = self.append(result)
        except Reject as reject:
            done(refuse(request, reject), self._raft.high_watermark)
            return
        except StorageError:
            done(None, -1)
            return
        if self._raft.high_watermark >= end_offset and not self._pending:
            done(result.reply, end_offset)
            return
        self._pending.append(_Pending(end_offset, result.reply, done))

    def append(self, result: Result) -> int:
        """Append the records of a result; returns the end of the log. Reject if they are too many for one step."""
        if not result.records or self._core is None:
            return self._raft.end_offset
        base_offset, epoch = self._raft.end_offset, self._raft.quorum.epoch
        batches = build_batches(result, base_offset=base_offset, epoch=epoch, timestamp_ms=self._clock.wall_ms())
        self._publisher.expect(result.records, base_offset, epoch)
        self._core.image.replay_all(result.records, base_offset, epoch)
        self._core.image.take_changes()  # of the fork nobody wants to know
        return self._raft.append(batches)

    def expire_sessions(self) -> None:
        """Fence brokers that have been silent for too long."""
        while self._core is not None and (result := self._core.expire(self._clock.monotonic_ms())) is not None:
            self.append(result)

    def committed(self, end_offset: int) -> None:
        """Reply to the requests whose records are committed."""
        while self._pending and self._pending[0].end_offset <= end_offset:
            pending = self._pending.popleft()
            pending.done(pending.reply, pending.end_offset)
