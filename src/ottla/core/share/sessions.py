"""Share sessions: the partitions that a member of a share group fetches from this broker.

Theory of operation. A session belongs to a group and a member id, and to the connection that opened it; it has no time
limit. It holds partitions in the order in which they are served and the epoch that the next request must have. Fetches
and acknowledgements count in one sequence of epochs. ::

    request               session        what happens
    ShareFetch 0          any            with acknowledgements INVALID_REQUEST, and nothing changes; otherwise the old
                                         session is dropped, its records stay with the member, and a new one begins;
                                         SHARE_SESSION_LIMIT_REACHED if there is no room (the edge lets that wait)
    ShareAcknowledge 0    any            INVALID_SHARE_SESSION_EPOCH
    either -1             none / found   SHARE_SESSION_NOT_FOUND / the last one: `close` after the answer
    either n              none           SHARE_SESSION_NOT_FOUND
    either n              another epoch  INVALID_SHARE_SESSION_EPOCH; the session stays as it is
    either n              this epoch     goes on; a fetch adds and forgets partitions

A session is known by its identity, not by its key: a member that has come back on a new connection loses nothing when
the old one breaks. What a session's end releases are the records of the partitions that are in it at that moment;
those of forgotten partitions wait for their locks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "Ended", "ShareSession", "ShareSessions", "Turn"]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = (1 << 31) - 1

Partition = tuple[bytes, int]
"""Topic id and partition."""


class ShareSession:
    __slots__ = ("connection", "group_id", "member_id", "next_epoch", "owed", "partitions")

    def __init__(self, group_id: str, member_id: str, connection: Hashable) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.next_epoch = 1
        self.partitions: dict[Partition, None] = {}
        """In the order of service."""
        self.owed: set[Partition] = set()
        """Partitions that the next answer must have: they are new, or the last answer was an error."""

    def change(self, added: Iterable[Partition], forgotten: Iterable[Partition]) -> None:
        """What is both added and forgotten is not in the session afterwards."""
        for partition in added:
            if partition not in self.partitions:
                self.partitions[partition] = None
                self.owed.add(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)
            self.owed.discard(partition)


class Turn(NamedTuple):
    """A request that has its place in a session."""

    session: ShareSession
    epoch: int

    @property
    def is_final(self) -> bool:
        return self.epoch == FINAL_EPOCH

    def order(self) -> list[Partition]:
        """The partitions in the order in which this request serves them, so that each is first at some time."""
        return [] if self.is_final else _rotated(list(self.session.partitions), self.epoch)

    def is_news(self, partition: Partition, *, has_records: bool, has_error: bool) -> bool:
        """Whether the answer must have a partition that was read."""
        session = self.session
        is_news = self.epoch == INITIAL_EPOCH or has_records or has_error or partition in session.owed
        session.owed.discard(partition)
        if has_error and partition in session.partitions:
            session.owed.add(partition)
        return is_news

    def served(self, partitions: Sequence[Partition]) -> None:
        """These had records, and so are the last ones in the order of the next request."""
        session, following = self.session, _after(self.epoch)
        if len(session.partitions) < 2 or not partitions:
            return
        order = dict.fromkeys(_rotated(list(session.partitions), following))
        for partition in partitions:
            if partition in order:
                order[partition] = order.pop(partition)
        session.partitions = dict.fromkeys(_rotated(list(order), -following))


class Ended(NamedTuple):
    """A session that is over: what the member holds in these partitions is to be released."""

    group_id: str
    member_id: str
    partitions: Sequence[Partition]
    is_last_of_group: bool
    """No session of the group is left on this broker: its share partitions need not be kept in memory."""


class ShareSessions:
    """All share sessions of a broker, at most `slots`."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[Hashable, list[ShareSession]] = {}
        self._group_counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        return self._sessions.get((group_id, member_id))

    def has_group(self, group_id: str) -> bool:
        return group_id in self._group_counts

    def fetch(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        connection: Hashable,
        *,
        added: Sequence[Partition] = (),
        forgotten: Sequence[Partition] = (),
        has_acknowledgements: bool = False,
    ) -> Turn:
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise Reject(ErrorCode.INVALID_REQUEST, "A new share session has nothing to acknowledge.")
            session = self._open(group_id, member_id, connection)
        else:
            session = self._go_on(group_id, member_id, epoch)
        if epoch != FINAL_EPOCH:
            session.change(added, forgotten)
        return Turn(session, epoch)

    def acknowledge(self, group_id: str, member_id: str, epoch: int) -> Turn:
        if epoch == INITIAL_EPOCH:
            raise Reject(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return Turn(self._go_on(group_id, member_id, epoch), epoch)

    def is_current(self, turn: Turn) -> bool:
        """Whether no later request has used the session. Asked before records are acquired for an answer."""
        session = turn.session
        if self.get(session.group_id, session.member_id) is not session:
            return False
        return turn.is_final or session.next_epoch == _after(turn.epoch)

    def close(self, session: ShareSession) -> Ended | None:
        """End a session after its last answer; None if it is over already."""
        if self.get(session.group_id, session.member_id) is not session:
            return None
        self._remove(session)
        is_last = session.group_id not in self._group_counts
        return Ended(session.group_id, session.member_id, list(session.partitions), is_last)

    def disconnected(self, connection: Hashable) -> list[Ended]:
        """End the sessions that a connection has opened, unless their members have opened others since."""
        ended = (self.close(session) for session in list(self._by_connection.get(connection, ())))
        return [each for each in ended if each is not None]

    def close_all(self) -> list[Ended]:
        """Share groups were switched off."""
        return [each for each in map(self.close, list(self._sessions.values())) if each is not None]

    def _open(self, group_id: str, member_id: str, connection: Hashable) -> ShareSession:
        """Drop the member's old session, if any, and begin a new one, in one step."""
        old = self.get(group_id, member_id)
        if old is None and len(self._sessions) >= self.slots:
            raise Reject(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if old is not None:
            self._remove(old)
        session = ShareSession(group_id, member_id, connection)
        self._sessions[group_id, member_id] = session
        self._by_connection.setdefault(connection, []).append(session)
        self._group_counts[group_id] = self._group_counts.get(group_id, 0) + 1
        return session

    def _go_on(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        session = self.get(group_id, member_id)
        if session is None:
            raise Reject(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch != FINAL_EPOCH:
            if epoch != session.next_epoch:
                raise Reject(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            session.next_epoch = _after(epoch)
        return session

    def _remove(self, session: ShareSession) -> None:
        del self._sessions[session.group_id, session.member_id]
        of_connection = self._by_connection[session.connection]
        of_connection.remove(session)
        if not of_connection:
            del self._by_connection[session.connection]
        self._group_counts[session.group_id] -= 1
        if not self._group_counts[session.group_id]:
            del self._group_counts[session.group_id]


def _rotated(partitions: list[Partition], by: int) -> list[Partition]:
    first = by % (len(partitions) or 1)
    return partitions[first:] + partitions[:first]


def _after(epoch: int) -> int:
    return 1 if epoch == _EPOCH_MAX else epoch + 1
