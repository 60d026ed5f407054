"""Turns errors of the client into messages for users, with exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.cli.failure import (
    EXIT_BAD_INPUT,
    EXIT_NOT_ALLOWED,
    EXIT_REFUSED,
    EXIT_UNREACHABLE,
    EXIT_UNSUPPORTED,
    Failure,
)

if TYPE_CHECKING:
    from ottla.client.errors import BootstrapError, ClientError, ResponseError

_NOT_ALLOWED: Final = frozenset(
    (
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
    )
)
_LOGIN: Final = "--command-config names a file with sasl.* and ssl.*"
_UNSUPPORTED: Final = frozenset(("UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT"))


def failure_of(error: ClientError) -> Failure:
    """A client's error as a Failure of one line, with advice if there is some."""
    from ottla.client import errors

    match error:
        case errors.BootstrapError():
            return _unreachable(error)
        case errors.AuthenticationError():
            return Failure(
                one_line(error), "--command-config names a file with sasl.* and ssl.*", code=EXIT_NOT_ALLOWED
            )
        case errors.UnsupportedVersionError():
            return Failure(one_line(error), code=EXIT_UNSUPPORTED)
        case errors.ConfigurationError():
            return Failure(one_line(error), code=EXIT_BAD_INPUT)
        case errors.UnknownBrokerError():
            return Failure(one_line(error), code=EXIT_REFUSED)
        case errors.ResponseError():
            return Failure(one_line(error), _advice(error), code=code_of(error))
    return Failure(one_line(error), code=EXIT_UNREACHABLE)


def one_line(error: ClientError) -> str:
    """An error's text in one line; the messages of brokers may have several."""
    return " ".join(str(error).split())


def code_of(error: ResponseError) -> int:
    """The exit code for an error of a broker."""
    name = "" if error.error is None else error.error.name
    if name in _NOT_ALLOWED:
        return EXIT_NOT_ALLOWED
    return EXIT_UNSUPPORTED if name in _UNSUPPORTED else EXIT_REFUSED


def _advice(error: ResponseError) -> str:
    if error.error is not None and error.error.name == "TOPIC_AUTHORIZATION_FAILED":
        return "or the topic does not exist: Kafka does not say which"
    return ""


def _unreachable(error: BootstrapError) -> Failure:
    from ottla.client.errors import AuthenticationError, ConnectError

    causes = [cause for _, cause in error.failures]
    if causes and all(isinstance(cause, AuthenticationError) for cause in causes):
        return failure_of(causes[0])
    if not all(isinstance(cause, ConnectError) for cause in causes):
        return Failure(one_line(error), code=EXIT_UNREACHABLE)
    reasons = dict.fromkeys(cause.reason for cause in causes if isinstance(cause, ConnectError))
    places = ", ".join(str(address) for address, _ in error.failures)
    return Failure(f"no broker at {places}: {', '.join(reasons)}", _how_to_reach(reasons), code=EXIT_UNREACHABLE)


def _how_to_reach(reasons: dict[str, None]) -> str:
    text = " ".join(reasons).lower()
    if "tls" in text:
        return "without TLS, set security.protocol=PLAINTEXT or SASL_PLAINTEXT in the --command-config file"
    if "refused" in text:
        return "is it running? 'ottla serve' starts a broker; --bootstrap sets the address"
    return "set --bootstrap to the address of the cluster"
