"""Logging in with SASL: PLAIN and SCRAM, as conversations without a connection.

`exchange()` is a generator: it yields what the client says, is sent what the broker answers, and ends when the broker
has proved itself. AuthenticationError says what is wrong with the broker's side; that the broker refuses ours, the
caller learns from the broker's error code.

SCRAM is RFC 5802 with the hashes of RFC 7677: the password never travels, and the broker proves in its last message
that it knows it, too. As in Kafka (4.3.1), there is no channel binding, and names and passwords are taken as UTF-8
without the normalisation of RFC 4013.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Generator
from typing import Final, Protocol

from ottla.client.errors import AuthenticationError, ConfigurationError

__all__ = ["Exchange", "Plain", "Sasl", "Scram", "mechanism_named"]

Exchange = Generator[bytes, bytes, None]

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN: Final = 4096
"""A broker that asks for fewer may be an impostor who wants something easy to guess from."""
ITERATIONS_MAX: Final = 1_000_000
"""More would hold up the event loop for a second; Kafka itself stores credentials of at most 16,384."""
GS2_HEADER: Final = "n,,"


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
            raise ConfigurationError("a SASL name or password cannot hold a NUL character")
        self.username = username
        self._password = password

    def __repr__(self) -> str:
        return f"Plain({self.username!r})"

    def exchange(self) -> Exchange:
        yield f"\0{self.username}\0{self._password}".encode()


class Scram:
    """SCRAM-SHA-256 or SCRAM-SHA-512."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    ) -> None:
        if mechanism not in HASHES:
            raise ConfigurationError(f"{mechanism!r} is none of {', '.join(HASHES)}")
        self.mechanism = mechanism
        self.username = username
        self._password = password.encode()
        self._hash = HASHES[mechanism]
        self._nonce = nonce
        self._salted: tuple[tuple[bytes, int], bytes] | None = None

    def __repr__(self) -> str:
        return f"Scram({self.mechanism!r}, {self.username!r})"

    def exchange(self) -> Exchange:
        nonce = self._nonce()
        client_first = f"n={escaped_name(self.username)},r={nonce}"
        server_first = _text((yield f"{GS2_HEADER}{client_first}".encode()))
        server_nonce, salt, iterations = _read_server_first(server_first, nonce)
        salted = self._salted_password(salt, iterations)
        client_final = f"c={_base64(GS2_HEADER.encode())},r={server_nonce}"
        signed = f"{client_first},{server_first},{client_final}".encode()
        proof = self._proof(salted, signed)
        server_final = _attributes(_text((yield f"{client_final},p={_base64(proof)}".encode())))
        server_key = self._hmac(salted, b"Server Key")
        _check_server_final(server_final, self._hmac(server_key, signed))

    def _proof(self, salted: bytes, signed: bytes) -> bytes:
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        return bytes(left ^ right for left, right in zip(client_key, signature, strict=True))

    def _salted_password(self, salt: bytes, iterations: int) -> bytes:
        # Thousands of hashes on purpose; a client opens several connections, and the salt stays the same.
        if self._salted is None or self._salted[0] != (salt, iterations):
            salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
            self._salted = ((salt, iterations), salted)
        return self._salted[1]

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def mechanism_named(mechanism: str, username: str, password: str) -> Sasl:
    """The way to log in that Kafka's `sasl.mechanism` names."""
    if mechanism == Plain.mechanism:
        return Plain(username, password)
    if mechanism in HASHES:
        return Scram(mechanism, username, password)
    known = ", ".join((Plain.mechanism, *HASHES))
    raise ConfigurationError(f"the SASL mechanism {mechanism!r} is not known; there are {known}")


def escaped_name(username: str) -> str:
    """A name in which comma and equals sign cannot be taken for SCRAM's own."""
    return username.replace("=", "=3D").replace(",", "=2C")


def _read_server_first(text: str, nonce: str) -> tuple[str, bytes, int]:
    """The common nonce, the salt and the number of iterations, or AuthenticationError."""
    attributes = _attributes(text)
    server_nonce = attributes.get("r", "")
    if not server_nonce.startswith(nonce) or server_nonce == nonce:
        raise _refused("the broker's nonce does not continue ours")
    try:
        salt = b64decode(attributes.get("s", ""), validate=True)
        iterations = int(attributes.get("i", ""))
    except (Base64Error, ValueError):
        raise _refused("the broker's first message cannot be read") from None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise _refused(f"the broker asks for {iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are taken")
    if not salt:
        raise _refused("the broker sends no salt")
    return server_nonce, salt, iterations


def _check_server_final(attributes: dict[str, str], expected: bytes) -> None:
    if "e" in attributes:
        raise _refused(f"the broker says {attributes['e']}")
    if not hmac.compare_digest(attributes.get("v", "").encode(), _base64(expected).encode()):
        raise _refused("the broker does not prove that it knows the password")


def _attributes(text: str) -> dict[str, str]:
    """`r=...,s=...,i=...` by letter."""
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _refused("the broker's message is no text") from None


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _refused(reason: str) -> AuthenticationError:
    return AuthenticationError(None, reason)
