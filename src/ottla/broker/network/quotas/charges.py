"""What a request counts against quotas, from its first byte to its response.

While any client has a limit, each request carries a `Charge`. It knows how large the request was and how much of the
loop's time it took, and when the answer is there it counts all of that and makes the connection pause if it must.

What counts: for Produce the bytes of the request, for Fetch and ShareFetch those of the answer, for requests that
create or delete partitions the partitions, and for every request its time, except for those of brokers among each
other and for Produce without acknowledgement. A Fetch that is over its limit is answered with nothing, and nothing is
counted. For a ShareFetch this is looked at before anything is acquired, since nobody else could have it meanwhile; what
was acquired is sent, and then the client pauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ottla.broker.network.quotas.quotas import Quotas
from ottla.broker.network.quotas.sensors import Mutations, RateQuotas, TokenQuotas

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Charge", "Meter"]

_PRODUCE: Final = 0
_FETCH: Final = 1
_SHARE_FETCH: Final = 78
_AMONG_BROKERS: Final = frozenset({27, 52, 53, 54, 56, 59})
"""WriteTxnMarkers, Vote, BeginQuorumEpoch, EndQuorumEpoch, AlterPartition, FetchSnapshot."""
_STRICT_FROM: Final = {19: 6, 20: 5, 37: 3}
"""CreateTopics, DeleteTopics and CreatePartitions: from these versions on clients know THROTTLING_QUOTA_EXCEEDED."""
_USER_PREFIX: Final = "User:"


class MutableConnection(Protocol):
    """A connection that can be muted."""

    def mute(self, pause_ms: int) -> None: ...


class ChargedRequest(Protocol):
    """A request that counts against quotas."""

    api_key: int
    version: int
    client_id: str
    charge: Charge | None

    @property
    def principal(self) -> str: ...
    @property
    def connection(self) -> MutableConnection: ...


class Meter:
    """Measures requests of a node. `now_ns` is a clock for short times, `now_ms` that of timers."""

    def __init__(self, quotas: Quotas, now_ms: Callable[[], int], now_ns: Callable[[], int]) -> None:
        self.quotas = quotas
        self.now_ms = now_ms
        self.now_ns = now_ns

    def begin(self, request: ChargedRequest, size_bytes: int, started_ns: int) -> None:
        request.charge = Charge(self, request, size_bytes, started_ns)


class Charge:
    """What one request counts against quotas."""

    __slots__ = ("_is_counted", "_meter", "_mutations", "_request", "_size_bytes", "_spent_ns", "_started_ns", "_user")

    def __init__(self, meter: Meter, request: ChargedRequest, size_bytes: int, started_ns: int) -> None:
        self._meter = meter
        self._request = request
        self._size_bytes = size_bytes
        self._started_ns = started_ns
        self._spent_ns: int | None = None
        self._mutations: Mutations | None = None
        self._is_counted = False
        self._user = request.principal.removeprefix(_USER_PREFIX)

    # --- while it is worked on ----------------------------------------------------------------------------------------

    def park(self) -> None:
        """The request is parked: stop counting its time."""
        self._spent_ns = self._meter.now_ns() - self._started_ns

    def fetch_max_bytes(self) -> float:
        """More than this could never be sent without a pause."""
        return self._meter.quotas.fetch.most_without_pause(self._user, self._request.client_id)

    def fetch_excess_ms(self) -> int:
        """How long a pause is due for what was fetched before; meanwhile nothing more may be."""
        return self._meter.quotas.fetch.excess_ms(self._user, self._request.client_id, self._meter.now_ms())

    def take_mutations(self, count: int) -> bool:
        """Whether so many partitions may be created or deleted now."""
        now_ms = self._meter.now_ms()
        if self._mutations is None:
            request = self._request
            is_strict = request.version >= _STRICT_FROM.get(request.api_key, 0)
            self._mutations = self._meter.quotas.mutations.begin(
                self._user, request.client_id, now_ms, is_strict=is_strict
            )
        return self._mutations is None or self._mutations.take(count, now_ms)

    # --- when the answer is there -------------------------------------------------------------------------------------

    def count_fetch(self, size_bytes: int) -> tuple[int, bool]:
        """Count an answer to Fetch. Says how long the pause after it is, and whether it may be sent.

        If it may not it was not counted, and nothing is sent but the pause. A batch that is too large for all windows
        together goes to somebody who has been quiet, and his pause comes after it: else he would never get it.
        """
        fetch, who, now_ms = self._meter.quotas.fetch, (self._user, self._request.client_id), self._meter.now_ms()
        self._is_counted = True
        time_ms = self._count_time(now_ms)
        is_sent = fetch.is_overdue(*who, size_bytes, now_ms)
        bytes_ms = fetch.record(*who, size_bytes, now_ms)
        pause_ms = max(time_ms, bytes_ms)
        if not pause_ms:
            return 0, True
        if not is_sent:
            fetch.add(*who, -size_bytes, now_ms)
        self._pause(pause_ms, fetch if bytes_ms > time_ms else self._meter.quotas.request, now_ms)
        return pause_ms, is_sent

    def exempt(self) -> None:
        """Do not count the request at all."""
        self._is_counted = True

    def count_answer(self, message: Any) -> Any:  # noqa: ANN401
        """Count what was not counted yet; the answer, with the pause in it. None for none, as the answer's message."""
        if self._is_counted or self._request.api_key in _AMONG_BROKERS:
            return message
        self._is_counted = True
        now_ms = self._meter.now_ms()
        pause_ms = self._count(message, now_ms)
        if pause_ms and hasattr(message, "throttle_time_ms"):
            return msgspec.structs.replace(message, throttle_time_ms=pause_ms)
        return message

    def count_writing(self, started_ns: int) -> None:
        """Count the time that it took to write the answer down; no pause follows from it before the next request."""
        meter = self._meter
        meter.quotas.add_time(self._user, self._request.client_id, meter.now_ns() - started_ns, meter.now_ms())

    def now_ns(self) -> int:
        return self._meter.now_ns()

    def _count(self, message: Any, now_ms: int) -> int:  # noqa: ANN401
        quotas, who = self._meter.quotas, (self._user, self._request.client_id)
        pauses: list[tuple[int, RateQuotas | TokenQuotas]] = [
            (0 if message is None else self._count_time(now_ms), quotas.request)
        ]
        if self._request.api_key == _PRODUCE:
            pauses.append((quotas.produce.record(*who, self._size_bytes, now_ms), quotas.produce))
        elif self._request.api_key == _SHARE_FETCH:
            pauses.append((quotas.fetch.record(*who, _records_bytes(message), now_ms), quotas.fetch))
        elif self._mutations is not None and self._request.api_key in _STRICT_FROM:
            pauses.append((self._mutations.pause_ms(now_ms), quotas.mutations))
        pause_ms, cause = max(pauses, key=lambda pair: pair[0])
        if pause_ms:
            self._pause(pause_ms, cause, now_ms)
        return pause_ms

    def _count_time(self, now_ms: int) -> int:
        spent_ns = self._meter.now_ns() - self._started_ns if self._spent_ns is None else self._spent_ns
        return self._meter.quotas.record_time(self._user, self._request.client_id, spent_ns, now_ms)

    def _pause(self, pause_ms: int, cause: RateQuotas | TokenQuotas, now_ms: int) -> None:
        cause.paused(self._user, self._request.client_id, pause_ms, now_ms)
        self._request.connection.mute(pause_ms)


def _records_bytes(message: Any) -> int:  # noqa: ANN401
    return sum(len(one.records or b"") for topic in message.responses for one in topic.partitions)
