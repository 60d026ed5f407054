"""The client instances that push metrics, and whether they may send a request now.

A client gets its subscription and then pushes, each at most once in an interval; the first push after a response may
come at any time, since clients spread theirs. A client with an outdated subscription id is told so; it may get its
subscription again at once, but not push. A push that is marked as terminating is the last one. A client that is silent
for three intervals, or whose connection is closed, is forgotten. When there are too many, the client that was silent
for longest is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from ottla.broker.telemetry.clients.subscriptions import Client, ClientSubscription
from ottla.wire.compress import Compression
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["INSTANCES_MAX", "Instance", "Instances"]

INSTANCES_MAX: Final = 16_384
_KEPT_MS_MIN: Final = 60_000
_KEPT_INTERVALS: Final = 3
_NEVER: Final = -(1 << 62)
_ASKS_AGAIN: Final = frozenset((ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE))
_CODECS: Final = frozenset(Compression)


class Instance:
    """One client. `generation` is that of the subscriptions from which its own was made."""

    __slots__ = (
        "client",
        "connection",
        "expires_at_ms",
        "generation",
        "got_at_ms",
        "has_answer",
        "is_terminating",
        "last_error",
        "pushed_at_ms",
        "subscription",
    )

    def __init__(self, client: Client, subscription: ClientSubscription, generation: int, connection: Hashable) -> None:
        self.client = client
        self.subscription = subscription
        self.generation = generation
        self.connection = connection
        self.got_at_ms = _NEVER
        self.pushed_at_ms = _NEVER
        self.has_answer = False
        """Whether it has heard what is wanted and not pushed since."""
        self.expires_at_ms = 0
        self.is_terminating = False
        self.last_error = ErrorCode.NONE

    def is_time_to_get(self, now_ms: int) -> bool:
        return now_ms - max(self.got_at_ms, self.pushed_at_ms) >= self.subscription.interval_ms

    def is_time_to_push(self, now_ms: int) -> bool:
        return self.has_answer or now_ms - self.pushed_at_ms >= self.subscription.interval_ms

    def note_get(self, now_ms: int) -> None:
        self.got_at_ms = now_ms
        self.has_answer = True

    def note_push(self, now_ms: int) -> None:
        self.pushed_at_ms = now_ms
        self.has_answer = False


class Instances:
    """All client instances. `left` is called for those that are forgotten."""

    def __init__(self, left: Callable[[bytes], None]) -> None:
        self._left = left
        self._by_id: OrderedDict[bytes, Instance] = OrderedDict()
        self._by_connection: dict[Hashable, bytes] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, instance_id: object) -> bool:
        return instance_id in self._by_id

    def all(self) -> list[Instance]:
        return list(self._by_id.values())

    def find(
        self,
        client: Client,
        connection: Hashable,
        generation: int,
        subscription: Callable[[], ClientSubscription],
        now_ms: int,
    ) -> Instance:
        """The client, with its subscription from the present subscriptions."""
        instance = self._by_id.get(client.instance_id)
        if instance is None or instance.generation < generation:
            known = client if instance is None else instance.client
            instance = Instance(known, subscription(), generation, connection)
            self._by_id[client.instance_id] = instance
        self._by_connection[connection] = client.instance_id
        instance.connection = connection
        instance.expires_at_ms = now_ms + max(_KEPT_MS_MIN, instance.subscription.interval_ms * _KEPT_INTERVALS)
        self._by_id.move_to_end(client.instance_id)
        if len(self._by_id) > INSTANCES_MAX:
            self._forget(next(iter(self._by_id)))
        return instance

    def check_get(self, instance: Instance, now_ms: int) -> None:
        """Reject a GetTelemetrySubscriptions that comes too early."""
        if instance.is_time_to_get(now_ms):
            instance.note_get(now_ms)
        elif instance.last_error not in _ASKS_AGAIN:
            raise Reject(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE

    def check_push(
        self,
        instance: Instance,
        subscription_id: int,
        compression_type: int,
        size_bytes: int,
        *,
        is_terminating: bool,
        max_bytes: int,
        now_ms: int,
    ) -> None:
        """Reject what may not be pushed; the client's state follows."""
        try:
            _check_push(
                instance,
                subscription_id,
                compression_type,
                size_bytes,
                is_terminating=is_terminating,
                max_bytes=max_bytes,
                now_ms=now_ms,
            )
        except Reject as reject:
            instance.last_error = reject.code
            raise
        finally:
            instance.is_terminating = is_terminating

    def disconnected(self, connection: Hashable) -> None:
        instance_id = self._by_connection.pop(connection, None)
        instance = None if instance_id is None else self._by_id.get(instance_id)
        if instance is not None and instance.connection == connection:
            self._forget(instance.client.instance_id)

    def expire(self, now_ms: int) -> None:
        """Forget clients that were silent for too long."""
        for instance in self.all():
            if instance.expires_at_ms <= now_ms:
                self._forget(instance.client.instance_id)

    def _forget(self, instance_id: bytes) -> None:
        instance = self._by_id.pop(instance_id)
        if self._by_connection.get(instance.connection) == instance_id:
            del self._by_connection[instance.connection]
        self._left(instance_id)


def _check_push(
    instance: Instance,
    subscription_id: int,
    compression_type: int,
    size_bytes: int,
    *,
    is_terminating: bool,
    max_bytes: int,
    now_ms: int,
) -> None:
    if instance.is_terminating:
        raise Reject(ErrorCode.INVALID_REQUEST)
    if instance.is_time_to_push(now_ms):
        instance.note_push(now_ms)
    elif not is_terminating:
        raise Reject(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    if subscription_id != instance.subscription.subscription_id:
        raise Reject(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    if compression_type not in _CODECS:
        raise Reject(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if size_bytes > max_bytes:
        raise Reject(ErrorCode.TELEMETRY_TOO_LARGE)
