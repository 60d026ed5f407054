"""The result of a probe: a fact about one entity, or the error that hides it."""

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

__all__ = ["NODE_UNREACHABLE", "ProbeResult", "error_of", "not_visible", "probe_error", "probe_result"]

NODE_UNREACHABLE = "NODE_UNREACHABLE"
"""The error where one node does not answer and others do."""
NO_ANSWER = (ConnectError, ConnectionLostError, RequestTimeoutError, BootstrapError, UnknownBrokerError)


class ProbeResult(NamedTuple):
    kind: str
    entity: str
    fact: Fact | None
    error: str | None = None


def probe_result(entity: str, fact: Fact) -> ProbeResult:
    return ProbeResult(fact.kind, entity, fact)


def probe_error(kind: str, entity: str, error: str) -> ProbeResult:
    return ProbeResult(kind, entity, None, error)


def not_visible(what: str, why: str) -> ProbeResult:
    return probe_result(what, Coverage(what=what, visible=False, why=why))


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
