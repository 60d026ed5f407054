"""A table of client instances that is asked without a clock."""

from __future__ import annotations

from ottla.broker.telemetry.clients.instances import Instance, Instances
from ottla.broker.telemetry.clients.subscriptions import Client, ClientSubscription
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

INTERVAL_MS = 10_000
INTEREST = ClientSubscription(("*",), INTERVAL_MS, 77)
MAX_BYTES = 100


class Table:
    def __init__(self) -> None:
        self.left: list[bytes] = []
        self.instances = Instances(self.left.append)
        self.generation = 0

    def find(self, number: int = 1, now_ms: int = 0, connection: object = "c1") -> Instance:
        client = Client(number.to_bytes(16, "big"), "c", None, None, "127.0.0.1", 1)
        return self.instances.find(client, connection, self.generation, lambda: INTEREST, now_ms)

    def ask(self, now_ms: int) -> ErrorCode:
        try:
            self.instances.check_get(self.find(now_ms=now_ms), now_ms)
        except Reject as reject:
            return reject.code
        return ErrorCode.NONE

    def push(
        self, now_ms: int, *, subscription_id: int = 77, codec: int = 0, size: int = 1, last: bool = False
    ) -> ErrorCode:
        instance = self.find(now_ms=now_ms)
        try:
            self.instances.check_push(
                instance, subscription_id, codec, size, is_terminating=last, max_bytes=MAX_BYTES, now_ms=now_ms
            )
        except Reject as reject:
            return reject.code
        return ErrorCode.NONE
