"""How this node secures its connections to other nodes: TLS around the socket, and a login.

The settings are those of the listener at the other end, which has the same name on all nodes; whose name and password
are used stands in the JAAS line of its mechanism.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple

from ottla.broker.peers.peer_connection import Address, Dial, Login, PeerError, no_login
from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.jaas import read_jaas
from ottla.security.sasl_client import Sasl, mechanism_named
from ottla.security.tls import client_context
from ottla.security.tls_socket import TlsSocket
from ottla.wire.types.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.types.sasl_handshake import SaslHandshakeRequest

__all__ = ["PeerSecurity", "peer_security", "probing_dial"]

_HAS_TLS: Final = (1, 3)
_HAS_SASL: Final = (2, 3)


class PeerSecurity(NamedTuple):
    dial: Dial
    login: Login


def peer_security(
    protocol: int, mechanism: str, tls: Mapping[str, str], jaas: tuple[str, str | None], dial: Dial
) -> PeerSecurity:
    """Of a security protocol, the `ssl.*` settings, and name and text of the JAAS line. Raises SecuritySettingError."""
    return PeerSecurity(
        _tls_dial(client_context(tls), dial) if protocol in _HAS_TLS else dial,
        _sasl_login(_sasl(mechanism, *jaas)) if protocol in _HAS_SASL else no_login,
    )


def probing_dial(protocol: int, dial: Dial) -> Dial:
    """For a connection that only asks whether somebody answers: nothing is told to him, and he need not be known."""
    if protocol not in _HAS_TLS:
        return dial
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return _tls_dial(context, dial)


def _tls_dial(context: ssl.SSLContext, dial: Dial) -> Callable[[Address], Any]:
    def begin(address: Address) -> TlsSocket:
        sock: socket.socket = dial(address)
        return TlsSocket(sock, context, server_hostname=address.host)

    return begin


def _sasl(mechanism: str, name: str, text: str | None) -> Sasl:
    if text is None:
        raise SecuritySettingError(f"connections to other nodes authenticate with {mechanism}: set {name}")
    options = read_jaas(name, text).options
    if "username" not in options or "password" not in options:
        raise SecuritySettingError(f"{name} has no username and password for connections to other nodes")
    is_token = options.get("tokenauth", "false").lower() == "true"
    return mechanism_named(mechanism, options["username"], options["password"], is_token=is_token)


def _sasl_login(sasl: Sasl) -> Login:
    def log_in() -> Generator[tuple[object, tuple[int, int]], Any, int]:
        response = yield SaslHandshakeRequest(sasl.mechanism), (1, 1)
        if response.error_code:
            raise PeerError(
                f"it does not offer SASL with {sasl.mechanism}, but {', '.join(response.mechanisms) or 'none'}"
            )
        exchange = sasl.exchange()
        said = next(exchange)
        while True:
            response = yield SaslAuthenticateRequest(said), (0, 2)
            if response.error_code:
                raise PeerError(f"it rejected the login: {response.error_message}")
            try:
                said = exchange.send(response.auth_bytes)
            except StopIteration:
                return int(response.session_lifetime_ms)
            except LoginRefused as refused:
                raise PeerError(f"the login failed: {refused}") from None

    return log_in
