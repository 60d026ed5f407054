"""What a look brings: facts about things, or why something could not be seen."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.errors import (
    AuthenticationError,
    BootstrapError,
    ClientError,
    ConnectError,
    ConnectionLostError,
    RequestTimeoutError,
    ResponseError,
    UnknownBrokerError,
    UnsupportedVersionError,
    error_name,
)
from ottla.health.facts import Coverage, Fact
from ottla.health.samples import UNREACHABLE

__all__ = ["NODE_UNREACHABLE", "Sighting", "cannot_see", "error_of", "no_sight", "sight"]

NODE_UNREACHABLE = "NODE_UNREACHABLE"
"""The error where one node does not answer and others do."""
NO_ANSWER = (ConnectError, ConnectionLostError, RequestTimeoutError, BootstrapError, UnknownBrokerError)


class Sighting(NamedTuple):
    kind: str
    entity: str
    fact: Fact | None
    error: str | None = None


def sight(entity: str, fact: Fact) -> Sighting:
    return Sighting(fact.kind, entity, fact)


def no_sight(kind: str, entity: str, error: str) -> Sighting:
    return Sighting(kind, entity, None, error)


def cannot_see(what: str, why: str) -> Sighting:
    return sight(what, Coverage(what=what, visible=False, why=why))


def error_of(error: ClientError, *, is_connected: bool) -> str:
    """A name for what went wrong: Kafka's, where it has one."""
    if isinstance(error, ResponseError):
        return error_name(error.code)
    if isinstance(error, UnsupportedVersionError):
        return "UNSUPPORTED_VERSION"
    if isinstance(error, AuthenticationError):
        return "SASL_AUTHENTICATION_FAILED"
    if isinstance(error, NO_ANSWER):
        return NODE_UNREACHABLE if is_connected else UNREACHABLE
    return type(error).__name__
