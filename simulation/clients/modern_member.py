"""A member of a consumer or streams group, which sends nothing but heartbeats.

The coordinator sends the partitions or tasks that the member may own now. The member revokes the others after some
time, and its next heartbeat lists what it owns, so that the coordinator knows. A fenced member owns nothing and joins
again with epoch 0.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from ottla.core.groups.modern.members import JOIN_GROUP_MEMBER_EPOCH
from ottla.wire.errors import ErrorCode
from simulation.clients.client import RETRIED, Client

__all__ = ["ModernMember"]

_FENCED: Final = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND))
_UNRELEASED_RETRY_MS: Final = 1_000

A = TypeVar("A")
"""An assignment."""


class ModernMember(Client, Generic[A]):
    nothing: A
    version = 1
    rebalance_timeout_ms = 20_000
    heartbeat_ms = 5_000
    stuck_chance = 0.0
    """How likely the application hangs while its heartbeats go on."""

    def ended(self) -> None:
        self.epoch = JOIN_GROUP_MEMBER_EPOCH
        self.target = self.nothing
        self.hold(self.nothing)
        self._told: A | None = None
        """The assignment in the last heartbeat, if the coordinator has certainly received it."""
        self._is_asking = False
        self._is_giving_up = False
        self._beats = 0
        self._joined = 0
        """How often it has joined: work that began before the last join is void."""

    def begin(self) -> None:
        self.member_id = f"{self.name}-{self.life}"
        self.beat()

    def has_converged(self) -> bool:
        return self.epoch > 0 and self.owned == self.target and not self._is_giving_up

    def hold(self, assignment: A) -> None:
        """Own exactly this."""
        self.owned = assignment

    # --- the protocol -------------------------------------------------------------------------------------------------

    def heartbeat(self, told: A | None) -> Any:  # noqa: ANN401
        """The request. The coordinator has certainly received `told`; None after a join or a lost response."""
        raise NotImplementedError

    def assigned(self, answer: Any) -> A | None:  # noqa: ANN401
        """The assignment in a response; None if it has not changed."""
        raise NotImplementedError

    def has_too_much(self) -> bool:
        """Whether it owns something that is no longer assigned."""
        raise NotImplementedError

    def refused(self, code: ErrorCode) -> None:
        raise NotImplementedError

    def commit_owned(self) -> None:
        raise NotImplementedError

    def interval_ms(self, answer: Any) -> int:  # noqa: ANN401
        return self.heartbeat_ms

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def beat(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        self._beats += 1
        sent = self.owned
        request = self.heartbeat(self._told)
        self._told = None
        self.ask(request, self.version, lambda answer: self._beaten(answer, sent))

    def _beat_later(self, delay_ms: int) -> None:
        beats = self._beats
        self.after(delay_ms, lambda: self.beat() if self._beats == beats else None)

    def _beaten(self, answer: Any, sent: A) -> None:  # noqa: ANN401
        self._is_asking = False
        code = ErrorCode.REQUEST_TIMED_OUT if answer is None else ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._told = sent
            self._take(answer)
        elif code in _FENCED:
            self._join_anew()
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self._beat_later(_UNRELEASED_RETRY_MS)
        elif code in RETRIED or code is ErrorCode.REQUEST_TIMED_OUT:
            self._beat_later(self.backoff_ms)
        else:
            self.refused(code)

    def _join_anew(self) -> None:
        self.epoch, self.target, self._told = JOIN_GROUP_MEMBER_EPOCH, self.nothing, None
        self.hold(self.nothing)
        self._is_giving_up = False
        self._joined += 1
        self._beat_later(self.backoff_ms)

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        self.epoch = answer.member_epoch
        assigned = self.assigned(answer)
        if assigned is not None:
            self.target = assigned
        self.commit_owned()
        if self.owned != self.target and not self._is_giving_up:
            self._reconcile()
        self._beat_later(self.interval_ms(answer))

    def _reconcile(self) -> None:
        """Revoke what is no longer assigned, which takes some time, then take what is new."""
        if not self.has_too_much():
            self._own()
            return
        self._is_giving_up = True
        if self.world.random.random() < self.stuck_chance:
            self.world.note(f"{self.name} never gives up what it should, until it is fenced")
            return
        joined = self._joined
        self.after(self.world.random.randint(0, 3_000), lambda: self._own() if self._joined == joined else None)

    def _own(self) -> None:
        self._is_giving_up = False
        self.hold(self.target)
        self.world.check_belief(self)
        self.world.note(f"{self.name} owns {sorted(self.believes_to_own())} in epoch {self.epoch}")
        self.beat()
