"""The client's side of SASL: PLAIN and SCRAM, as conversations without a connection.

`exchange()` is a generator: it yields what the client says, is sent what the server answers, and ends when the server
has proved itself. LoginRefused says what is wrong with the server's side; that the server refuses ours, the caller
learns from its error code.

SCRAM is RFC 5802 with the hashes of RFC 7677: the password never travels, and the server proves in its last message
that it knows it, too. As in Kafka (4.3.1), there is no channel binding, and names and passwords are taken as UTF-8
without the normalisation of RFC 4013.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable, Generator
from typing import Final, Protocol

from ottla.security.errors import LoginRefused, SecuritySettingError
from ottla.security.scram_messages import GS2_HEADER, HASHES, attributes, decoded, encoded, escaped_name, sign, xor

__all__ = ["Exchange", "Plain", "Sasl", "Scram", "mechanism_named"]

Exchange = Generator[bytes, bytes, None]

ITERATIONS_MIN: Final = 4096
"""A server that asks for fewer may be an impostor who wants something easy to guess from."""
ITERATIONS_MAX: Final = 1_000_000
"""More would hold up the event loop for a second; Kafka itself stores credentials of at most 16,384."""


class Sasl(Protocol):
    """A way to log in."""

    @property
    def mechanism(self) -> str: ...

    def exchange(self) -> Exchange: ...


class Plain:
    """PLAIN (RFC 4616): name and password in the clear, so for TLS connections only."""

    mechanism: Final = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username + password:
            raise SecuritySettingError("a SASL name or password cannot hold a NUL character")
        self.username = username
        self._password = password

    def __repr__(self) -> str:
        return f"Plain({self.username!r})"

    def exchange(self) -> Exchange:
        yield f"\0{self.username}\0{self._password}".encode()

    def http_authorization(self) -> str:
        """The header for a web page that has the same users."""
        return basic_authorization(self.username, self._password.encode())


class Scram:
    """SCRAM-SHA-256 or SCRAM-SHA-512; for a delegation token name and password are its id and its secret."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        is_token: bool = False,
        nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    ) -> None:
        if mechanism not in HASHES:
            raise SecuritySettingError(f"{mechanism!r} is not one of {', '.join(HASHES)}")
        self.mechanism = mechanism
        self.username = username
        self._password = password.encode()
        self._hash = HASHES[mechanism]
        self._extensions = ",tokenauth=true" if is_token else ""
        self._nonce = nonce
        self._salted: tuple[tuple[bytes, int], bytes] | None = None

    def __repr__(self) -> str:
        return f"Scram({self.mechanism!r}, {self.username!r})"

    def http_authorization(self) -> str:
        """The header for a web page that has the same users: unlike SCRAM itself, it has the password."""
        return basic_authorization(self.username, self._password)

    def exchange(self) -> Exchange:
        nonce = self._nonce()
        client_first = f"n={escaped_name(self.username)},r={nonce}{self._extensions}"
        server_first = _text((yield f"{GS2_HEADER}{client_first}".encode()))
        server_nonce, salt, iterations = _read_server_first(server_first, nonce)
        salted = self._salted_password(salt, iterations)
        client_final = f"c={encoded(GS2_HEADER.encode())},r={server_nonce}"
        signed = f"{client_first},{server_first},{client_final}"
        proof = self._proof(salted, signed)
        server_final = attributes(_text((yield f"{client_final},p={encoded(proof)}".encode())))
        server_key = sign(self._hash, salted, "Server Key")
        _check_server_final(server_final, sign(self._hash, server_key, signed))

    def _proof(self, salted: bytes, signed: str) -> bytes:
        client_key = sign(self._hash, salted, "Client Key")
        return xor(client_key, sign(self._hash, hashlib.new(self._hash, client_key).digest(), signed))

    def _salted_password(self, salt: bytes, iterations: int) -> bytes:
        # Thousands of hashes on purpose; a client opens several connections, and the salt stays the same.
        if self._salted is None or self._salted[0] != (salt, iterations):
            salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
            self._salted = ((salt, iterations), salted)
        return self._salted[1]


def basic_authorization(username: str, password: bytes) -> str:
    """The header of HTTP's Basic login (RFC 7617)."""
    return f"Basic {b64encode(username.encode() + b':' + password).decode()}"


def mechanism_named(mechanism: str, username: str, password: str, *, is_token: bool = False) -> Sasl:
    """The way to log in that Kafka's `sasl.mechanism` names."""
    if mechanism == Plain.mechanism:
        return Plain(username, password)
    if mechanism in HASHES:
        return Scram(mechanism, username, password, is_token=is_token)
    known = ", ".join((Plain.mechanism, *HASHES, "OAUTHBEARER"))
    raise SecuritySettingError(f"unknown SASL mechanism {mechanism!r}; known: {known}")


def _read_server_first(text: str, nonce: str) -> tuple[str, bytes, int]:
    """The common nonce, the salt and the number of iterations, or LoginRefused."""
    found = attributes(text)
    server_nonce = found.get("r", "")
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise LoginRefused("the broker's nonce does not continue ours")
    try:
        salt, iterations = decoded(found.get("s", "")), int(found.get("i", ""))
    except ValueError:
        raise LoginRefused("the broker's first message cannot be read") from None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise LoginRefused(
            f"the broker requires {iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
        )
    if not salt:
        raise LoginRefused("the broker sent no salt")
    return server_nonce, salt, iterations


def _check_server_final(found: dict[str, str], expected: bytes) -> None:
    if "e" in found:
        raise LoginRefused(f"the broker responded with {found['e']}")
    if not hmac.compare_digest(found.get("v", "").encode(), encoded(expected).encode()):
        raise LoginRefused("the broker did not prove that it knows the password")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise LoginRefused("the broker's message is not valid text") from None
