"""Subscriptions to client metrics, and the subscription of one client: all that match it, joined.

A subscription is a resource of configs: prefixes of metrics' names, how often they are to be pushed, and which clients
are meant. A client gets the metrics of all subscriptions that match it, at the shortest of their intervals. The number
that stands for this is made as Apache Kafka makes it; a client that shows another one asks again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from ottla.core.metadata.config_defs import client_metrics_defs
from ottla.wire import uuid_text

__all__ = ["Client", "ClientSubscription", "Subscription", "client_subscription", "subscription_from"]

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000

Matcher = Callable[[str], object]


class Client(msgspec.Struct, frozen=True):
    """A client that pushes metrics; None where the client has not told a value."""

    instance_id: bytes
    client_id: str
    software_name: str | None
    software_version: str | None
    address: str
    port: int

    def attribute(self, name: str) -> str | None:
        """What a subscription can ask for, by its name."""
        return _ATTRIBUTES[name](self)


_ATTRIBUTES: Final[Mapping[str, Callable[[Client], str | None]]] = {
    "client_instance_id": lambda client: uuid_text(client.instance_id),
    "client_id": lambda client: client.client_id,
    "client_software_name": lambda client: client.software_name,
    "client_software_version": lambda client: client.software_version,
    "client_source_address": lambda client: client.address,
    "client_source_port": lambda client: str(client.port),
}


class Subscription(msgspec.Struct, frozen=True):
    """A subscription: metrics that some clients are to push; without selectors, all clients."""

    name: str
    metrics: frozenset[str]
    interval_ms: int
    selectors: tuple[tuple[str, Matcher], ...] = ()

    def matches(self, client: Client) -> bool:
        for name, matcher in self.selectors:
            value = client.attribute(name)
            if value is None or not matcher(value):
                return False
        return True


class ClientSubscription(msgspec.Struct, frozen=True):
    """What one client is asked to push."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


def subscription_from(name: str, configs: Mapping[str, str]) -> Subscription:
    """A subscription from the configs of its resource, which were checked when they were set."""
    defs = client_metrics_defs()
    values = {key: defs[key].parse(configs.get(key, defs[key].default)) for key in defs}
    selectors = []
    for selector in values["match"]:
        attribute, _, expression = selector.partition("=")
        selectors.append((attribute.strip(), _matcher(expression.strip())))
    return Subscription(name, frozenset(values["metrics"]), values["interval.ms"], tuple(selectors))


def _matcher(expression: str) -> Matcher:
    # By automaton where that can be: who connects chooses what is matched.
    import re2

    try:
        return re2.compile(expression).fullmatch  # type: ignore[no-any-return]
    except re2.error:
        return re.compile(expression).fullmatch  # with references back or looks ahead


def client_subscription(client: Client, subscriptions: Iterable[Subscription]) -> ClientSubscription:
    matching = [each for each in subscriptions if each.matches(client)]
    metrics = {metric for each in matching for metric in each.metrics}
    wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    interval_ms = min((each.interval_ms for each in matching), default=DEFAULT_INTERVAL_MS)
    interval_ms = min(interval_ms, DEFAULT_INTERVAL_MS)
    return ClientSubscription(wanted, interval_ms, _subscription_id(wanted, interval_ms, client.instance_id))


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, instance_id: bytes) -> int:
    from crc32c import crc32c

    text = f"[{', '.join(metrics)}]{interval_ms}"
    high, low = int.from_bytes(instance_id[:8], "big"), int.from_bytes(instance_id[8:], "big")
    both = high ^ low
    number = (crc32c(text.encode()) ^ (both >> 32) ^ both) & 0xFFFFFFFF
    return number - (1 << 32) if number & 0x80000000 else number
