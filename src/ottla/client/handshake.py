"""From an address to a connection that can be used: TCP, TLS, versions, SASL.

Versions: ApiVersions is asked in version 4. Version 5 (KIP-1242) only adds the broker's identity, which we do not
check, and would cost a second round trip at every broker older than 4.4. A broker that does not have version 4 answers
in version 0 with the range that it has (KIP-511), and is asked again. SASL comes after that.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import time
from ipaddress import ip_address
from typing import Final

from ottla import __version__
from ottla.client.address import Peer
from ottla.client.connection import SECOND_MS, Connection
from ottla.client.errors import (
    AuthenticationError,
    ConnectError,
    RequestTimeoutError,
    ResponseError,
    UnsupportedVersionError,
    error_name,
)
from ottla.client.sasl import Sasl
from ottla.client.settings import Settings
from ottla.client.versions import choose_version, ranges_of
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import API_VERSIONS_KEY
from ottla.wire.types.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["open_connection"]

SOFTWARE_NAME: Final = "ottla"
API_VERSIONS_FIRST: Final = 4
API_VERSIONS_HIGHEST: Final = 5
SASL_HANDSHAKE_VERSION: Final = 1
"""Version 0 is followed by bare tokens without Kafka's frames, which only brokers before 1.0 need."""
SESSION_SHARE: Final = 0.85
"""Which part of a session's lifetime is used; Kafka's clients log in anew after 85 to 95 %."""
HAPPY_EYEBALLS_DELAY_S: Final = 0.25
"""A name may have addresses of both kinds, and one kind may lead nowhere: after this time the other is tried, too."""


async def open_connection(peer: Peer, settings: Settings) -> Connection:
    """A connection that is ready for requests, or ConnectError, AuthenticationError and the like."""
    connection = await _connect(peer, settings)
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / SECOND_MS):
            await _negotiate(connection)
            if settings.sasl is not None:
                await _log_in(connection, settings.sasl)
    except TimeoutError:
        error = RequestTimeoutError(peer, "ApiVersions or SASL", settings.connect_timeout_ms)
        connection.abort(error)
        raise error from None
    except BaseException:
        await connection.close()
        raise
    return connection


async def _connect(peer: Peer, settings: Settings) -> Connection:
    loop = asyncio.get_running_loop()
    host, port = peer.address
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / SECOND_MS):
            _, connection = await loop.create_connection(
                lambda: Connection(peer, settings),
                host,
                port,
                ssl=settings.tls,
                happy_eyeballs_delay=None if _is_number(host) else HAPPY_EYEBALLS_DELAY_S,
            )
    except TimeoutError:
        raise ConnectError(peer, f"no connection within {settings.connect_timeout_ms} ms") from None
    except OSError as error:
        raise ConnectError(peer, _reason(error, has_tls=settings.tls is not None)) from None
    return connection


def _is_number(host: str) -> bool:
    """Whether it is an address already, of which there is only one to try."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# --- versions ---------------------------------------------------------------------------------------------------------


async def _negotiate(connection: Connection) -> None:
    answer = await _ask_versions(connection, API_VERSIONS_FIRST)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = await _ask_versions(connection, _step_down(connection.peer, answer))
    if answer.error_code:
        raise ResponseError(connection.peer, "ApiVersions", answer.error_code)
    connection.versions = ranges_of(answer.api_keys)


async def _ask_versions(connection: Connection, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    answer = await connection.request(request, version)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def _step_down(peer: Peer, answer: ApiVersionsResponse) -> int:
    """The version to ask in, after the broker has said which ones it has. Before 2.4 brokers said nothing: then 0."""
    offered = ranges_of(answer.api_keys).get(API_VERSIONS_KEY)
    if offered is None:
        return 0
    version = min(offered.high, API_VERSIONS_HIGHEST)
    if version < offered.low or version == API_VERSIONS_FIRST:
        raise UnsupportedVersionError(peer, "ApiVersions", f"it has {offered}")
    return version


# --- SASL -------------------------------------------------------------------------------------------------------------


async def _log_in(connection: Connection, sasl: Sasl) -> None:
    await _choose_mechanism(connection, sasl.mechanism)
    exchange = sasl.exchange()
    answer = await _say(connection, next(exchange))
    while True:
        try:
            token = exchange.send(answer.auth_bytes)
        except StopIteration:
            break
        except AuthenticationError as error:
            raise AuthenticationError(connection.peer, error.reason) from None
        answer = await _say(connection, token)
    if answer.session_lifetime_ms > 0:
        lifetime_s = answer.session_lifetime_ms / SECOND_MS
        connection.session_ends_at_s = time.monotonic() + lifetime_s * SESSION_SHARE


async def _say(connection: Connection, token: bytes) -> SaslAuthenticateResponse:
    version = choose_version("SaslAuthenticate", connection.versions, connection.peer)
    answer = await connection.request(SaslAuthenticateRequest(auth_bytes=token), version)
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code:
        raise AuthenticationError(connection.peer, answer.error_message or error_name(answer.error_code))
    return answer


async def _choose_mechanism(connection: Connection, mechanism: str) -> None:
    version = choose_version("SaslHandshake", connection.versions, connection.peer, SASL_HANDSHAKE_VERSION)
    answer = await connection.request(SaslHandshakeRequest(mechanism), version)
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(sorted(answer.mechanisms)) or "none"
        raise AuthenticationError(connection.peer, f"it does not offer {mechanism}; it offers {offered}")
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(connection.peer, "this listener does not ask for SASL")
    if answer.error_code:
        raise ResponseError(connection.peer, "SaslHandshake", answer.error_code)


# --- why there is no connection ---------------------------------------------------------------------------------------


def _reason(error: OSError, *, has_tls: bool) -> str:
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {(error.reason or str(error)).replace('_', ' ').lower()}; does it speak TLS?"
    if has_tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return "it was closed during the TLS handshake; does it speak TLS?"
    numbers = [error.errno] if error.errno else [int(each) for each in re.findall(r"\[Errno (\d+)\]", str(error))]
    # A name with several addresses fails once for each, mostly in the same way.
    reasons = dict.fromkeys(os.strerror(number).lower() for number in numbers)
    return ", ".join(reasons) or str(error) or type(error).__name__
