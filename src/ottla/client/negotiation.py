"""The beginning of a connection, without the connection: versions, then SASL.

`negotiate` is a generator: it yields requests with their versions, is sent the answers, and returns what was agreed on.

Versions: ApiVersions is asked in version 4. Version 5 (KIP-1242) only adds the broker's identity, which we do not
check, and would cost a second round trip at every broker older than 4.4. A broker that does not have version 4 answers
in version 0 with the range that it has (KIP-511), and is asked again. SASL comes after that.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple

from ottla import __version__
from ottla.client.address import Peer
from ottla.client.errors import AuthenticationError, ResponseError, UnsupportedVersionError, error_name
from ottla.client.sasl import Sasl
from ottla.client.versions import ApiRanges, choose_version, ranges_of
from ottla.security.errors import LoginRefused
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import API_VERSIONS_KEY
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["Negotiated", "Negotiation", "VersionedRequest", "negotiate"]

SOFTWARE_NAME: Final = "ottla"
API_VERSIONS_FIRST: Final = 4
API_VERSIONS_HIGHEST: Final = 5
SASL_HANDSHAKE_VERSION: Final = 1
"""Version 0 is followed by bare tokens without Kafka's frames, which only brokers before 1.0 need."""
SESSION_SHARE: Final = 0.85
"""Which part of a session's lifetime is used; Kafka's clients log in anew after 85 to 95 %."""
SECOND_MS: Final = 1000


class VersionedRequest(NamedTuple):
    """A request, and the version that it is said in."""

    message: object
    version: int


class Negotiated(NamedTuple):
    versions: ApiRanges
    session_s: float | None
    """How long the login may be used."""


Negotiation = Generator[VersionedRequest, object, Negotiated]


def negotiate(peer: Peer, sasl: Sasl | None) -> Negotiation:
    """Learn the broker's versions and log in, if there is a way to; AuthenticationError and the like say why not."""
    versions = yield from _negotiate_versions(peer)
    return Negotiated(versions, None if sasl is None else (yield from _log_in(peer, sasl, versions)))


# --- versions ---------------------------------------------------------------------------------------------------------


def _negotiate_versions(peer: Peer) -> Generator[VersionedRequest, object, ApiRanges]:
    answer = yield from _ask_versions(API_VERSIONS_FIRST)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = yield from _ask_versions(_step_down(peer, answer))
    if answer.error_code:
        raise ResponseError(peer, "ApiVersions", answer.error_code)
    return ranges_of(answer.api_keys)


def _ask_versions(version: int) -> Generator[VersionedRequest, object, ApiVersionsResponse]:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    answer = yield VersionedRequest(request, version)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def _step_down(peer: Peer, answer: ApiVersionsResponse) -> int:
    """The version to ask in, after the broker has said which ones it has. Before 2.4 brokers said nothing: then 0."""
    offered = ranges_of(answer.api_keys).get(API_VERSIONS_KEY)
    if offered is None:
        return 0
    version = min(offered.high, API_VERSIONS_HIGHEST)
    if version < offered.low or version == API_VERSIONS_FIRST:
        raise UnsupportedVersionError(peer, "ApiVersions", f"it supports {offered}")
    return version


# --- SASL -------------------------------------------------------------------------------------------------------------


def _log_in(peer: Peer, sasl: Sasl, versions: ApiRanges) -> Generator[VersionedRequest, object, float | None]:
    yield from _choose_mechanism(peer, sasl.mechanism, versions)
    version = choose_version("SaslAuthenticate", versions, peer)
    exchange = sasl.exchange()
    answer = yield from _say(peer, next(exchange), version)
    while True:
        try:
            token = exchange.send(answer.auth_bytes)
        except StopIteration:
            break
        except LoginRefused as refused:
            raise AuthenticationError(peer, refused.reason) from None
        answer = yield from _say(peer, token, version)
    lifetime_ms = answer.session_lifetime_ms
    return lifetime_ms / SECOND_MS * SESSION_SHARE if lifetime_ms > 0 else None


def _say(peer: Peer, token: bytes, version: int) -> Generator[VersionedRequest, object, SaslAuthenticateResponse]:
    answer = yield VersionedRequest(SaslAuthenticateRequest(auth_bytes=token), version)
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code:
        raise AuthenticationError(peer, answer.error_message or error_name(answer.error_code))
    return answer


def _choose_mechanism(peer: Peer, mechanism: str, versions: ApiRanges) -> Generator[VersionedRequest, object, None]:
    version = choose_version("SaslHandshake", versions, peer, SASL_HANDSHAKE_VERSION)
    answer = yield VersionedRequest(SaslHandshakeRequest(mechanism), version)
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(sorted(answer.mechanisms)) or "none"
        raise AuthenticationError(peer, f"it does not offer {mechanism}; it offers {offered}")
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(peer, "this listener does not use SASL")
    if answer.error_code:
        raise ResponseError(peer, "SaslHandshake", answer.error_code)
