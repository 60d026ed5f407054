"""What a client can be told; names and defaults are those of Kafka's own clients where they have them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TypedDict, Unpack

from ottla.client.errors import ConfigurationError
from ottla.client.sasl import Sasl
from ottla.wire.frames import FRAME_MAX_BYTES

__all__ = ["Changes", "ClientSettings"]


class Changes(TypedDict, total=False):
    """Settings that differ from the defaults; `Settings` says what each of them is."""

    client_id: str
    tls: ssl.SSLContext | None
    sasl: Sasl | None
    request_timeout_ms: int
    default_api_timeout_ms: int
    connect_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    metadata_max_age_ms: int
    unknown_topic_wait_ms: int
    connections_max_idle_ms: int
    max_in_flight: int
    max_response_bytes: int
    allow_auto_create_topics: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    client_id: str = "ottla"
    """How the client calls itself; it appears in the broker's logs, metrics and quotas."""
    tls: ssl.SSLContext | None = None
    """Speak TLS with this context; `ssl.create_default_context()` trusts what the machine trusts."""
    sasl: Sasl | None = None
    """Log in: `Plain(...)` or `Scram(...)` of `ottla.client.sasl`."""
    request_timeout_ms: int = 30_000
    """How long one answer may take, beyond the time that the request itself allows the broker to wait."""
    default_api_timeout_ms: int = 60_000
    """How long a call may take with all its attempts."""
    connect_timeout_ms: int = 10_000
    """How long a connection may take to come about, and once more as long to negotiate versions and log in."""
    retry_backoff_ms: int = 100
    """The first pause between two attempts; each further one is twice as long."""
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 0
    """How long to leave a broker alone after a connection to it failed; each further time twice as long."""
    reconnect_backoff_max_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    """After this time, what is known about a topic is asked anew before it is used."""
    unknown_topic_wait_ms: int = 2_000
    """How long to ask again for a topic that the cluster does not know: word of a new one takes a moment to spread."""
    connections_max_idle_ms: int = 540_000
    """A connection that was idle for so long is opened anew; brokers close them after ten minutes."""
    max_in_flight: int = 5
    """How many requests may wait for their answers on one connection; further ones wait for room."""
    max_response_bytes: int = FRAME_MAX_BYTES
    """A larger answer is refused, and the connection closed."""
    allow_auto_create_topics: bool = False
    """Whether asking for an unknown topic may create it, where the cluster allows that."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            lowest = 0 if field.name.startswith(("retry", "reconnect")) else 1
            if field.type == "int" and not (type(value) is int and value >= lowest):
                raise ConfigurationError(f"{field.name} is {value!r}; it must be a number of at least {lowest}")

    @classmethod
    def of(cls, **changes: Unpack[Changes]) -> ClientSettings:
        """The defaults with these changes; ConfigurationError, naming the nearest one, for one that is not there."""
        known = [field.name for field in fields(cls)]
        for name in changes:
            if name not in known:
                nearest = get_close_matches(name, known, n=1, cutoff=0.0)[0]
                raise ConfigurationError(f"unknown setting {name!r}; the nearest is {nearest}")
        return replace(cls(), **changes)
