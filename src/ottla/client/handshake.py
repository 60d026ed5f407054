"""From an address to a connection that can be used: TCP, TLS, and what `negotiation` says."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from ipaddress import ip_address
from typing import Final

from ottla.client.address import Peer
from ottla.client.clock import monotonic_s
from ottla.client.connection import SECOND_MS, Connection
from ottla.client.errors import ConnectError, RequestTimeoutError
from ottla.client.negotiation import Negotiated, Negotiation, negotiate
from ottla.client.settings import ClientSettings

__all__ = ["NEGOTIATION", "open_connection", "reason"]

NEGOTIATION: Final = "ApiVersions or SASL"
"""The request that an error names when a connection fails before its first request."""

HAPPY_EYEBALLS_DELAY_S: Final = 0.25
"""A name may have addresses of both kinds, and one kind may lead nowhere: after this time the other is tried, too."""


async def open_connection(peer: Peer, settings: ClientSettings) -> Connection:
    """A connection that is ready for requests, or ConnectError, AuthenticationError and the like."""
    connection = await _connect(peer, settings)
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / SECOND_MS):
            agreed = await _follow(connection, negotiate(peer, settings.sasl))
    except TimeoutError:
        error = RequestTimeoutError(peer, NEGOTIATION, settings.connect_timeout_ms)
        connection.abort(error)
        raise error from None
    except BaseException:
        await connection.close()
        raise
    connection.versions = agreed.versions
    if agreed.session_s is not None:
        connection.session_ends_at_s = monotonic_s() + agreed.session_s
    return connection


async def _follow(connection: Connection, negotiation: Negotiation) -> Negotiated:
    try:
        said = next(negotiation)
        while True:
            said = negotiation.send(await connection.request(*said))
    except StopIteration as end:
        agreed: Negotiated = end.value
        return agreed


async def _connect(peer: Peer, settings: ClientSettings) -> Connection:
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
        raise ConnectError(peer, reason(error, has_tls=settings.tls is not None)) from None
    return connection


def _is_number(host: str) -> bool:
    """Whether it is an address already, of which there is only one to try."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def reason(error: OSError, *, has_tls: bool) -> str:
    """Why there is no connection."""
    if isinstance(error, socket.gaierror):
        return "unknown host"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was rejected: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {(error.reason or str(error)).replace('_', ' ').lower()}; does it use TLS?"
    if has_tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
        return "it was closed during the TLS handshake; does it use TLS?"
    numbers = [error.errno] if error.errno else [int(each) for each in re.findall(r"\[Errno (\d+)\]", str(error))]
    # A name with several addresses fails once for each, mostly in the same way.
    reasons = dict.fromkeys(os.strerror(number).lower() for number in numbers)
    return ", ".join(reasons) or str(error) or type(error).__name__
