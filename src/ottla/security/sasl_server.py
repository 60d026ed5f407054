"""The server's side of SASL: PLAIN, SCRAM and OAUTHBEARER, as conversations without a connection.

`Mechanism.converse(first)` is a generator: it was given what the client said first, yields what the server answers, is
sent what the client says next, and returns a `Success` with the last answer. LoginRefused ends it.

Who guesses learns nothing from what is refused: an unknown user is answered like a wrong password. SCRAM asks him for
his proof, with a salt that is made of the name and stays the same; Apache Kafka refuses him at the first message.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Generator, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.security.errors import LoginRefused
from ottla.security.scram_messages import HASHES, attributes, decoded, encoded, sign, unescaped_name, xor

__all__ = [
    "Conversation",
    "Login",
    "Mechanism",
    "OAuthBearerServer",
    "PlainServer",
    "ScramCredential",
    "ScramServer",
    "Success",
    "TokenLogin",
    "accepts_password",
    "derived_credential",
]

TOKEN_MAX_CHARS: Final = 65_536
"""No token of a real issuer is as long."""
_ITERATIONS: Final = 4096
_PLAIN_REFUSED: Final = "Authentication failed: Invalid username or password"
_FAILED: Final = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


class Login(NamedTuple):
    """Who has logged in."""

    user: str
    expires_at_ms: int | None = None
    """When what was shown loses its force, by the calendar."""
    is_token: bool = False
    """Whether it was a delegation token."""


class Success(NamedTuple):
    answer: bytes
    login: Login


Conversation = Generator[bytes, bytes, Success]


class Mechanism(Protocol):
    """A SASL mechanism that a listener offers."""

    @property
    def name(self) -> str: ...

    def converse(self, first: bytes) -> Conversation: ...


# --- PLAIN


class PlainServer:
    """PLAIN (RFC 4616) with the users of a JAAS line."""

    name: Final = "PLAIN"

    def __init__(self, users: Mapping[str, str]) -> None:
        self._passwords = {user: password.encode() for user, password in users.items()}

    def accepts(self, user: str, password: str) -> bool:
        known = self._passwords.get(user)
        return hmac.compare_digest(password.encode(), known or b"") and known is not None

    def converse(self, first: bytes) -> Conversation:
        yield from ()
        parts = first.split(b"\0")
        if len(parts) != 3:
            raise LoginRefused(f"PLAIN with {len(parts)} parts", "Invalid SASL/PLAIN response: expected 3 tokens")
        try:
            authorization, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise LoginRefused("PLAIN with a name that is not valid text", _PLAIN_REFUSED) from None
        if not user:
            raise LoginRefused("PLAIN without a name", "Authentication failed: username not specified")
        if not password:
            raise LoginRefused("PLAIN without a password", "Authentication failed: password not specified", user=user)
        if not self.accepts(user, password):
            raise LoginRefused("unknown user or wrong password", _PLAIN_REFUSED, user=user)
        if authorization not in ("", user):
            told = "Authentication failed: Client requested an authorization id that is different from username"
            raise LoginRefused("PLAIN for another user", told, user=user)
        return Success(b"", Login(user))


def accepts_password(mechanisms: Mapping[str, Mechanism], user: str, password: str) -> bool:
    """Whether one of these mechanisms knows the user by this password, for whoever sends it as it is."""
    for mechanism in mechanisms.values():
        if isinstance(mechanism, PlainServer | ScramServer) and mechanism.accepts(user, password):
            return True
    return False


# --- SCRAM


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class TokenLogin(NamedTuple):
    """A delegation token that can be logged in with."""

    credential: ScramCredential
    owner: str
    expires_at_ms: int


def derived_credential(algorithm: str, password: str, salt: bytes, iterations: int = _ITERATIONS) -> ScramCredential:
    """The credential of a password."""
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    stored_key = hashlib.new(algorithm, sign(algorithm, salted, "Client Key")).digest()
    return ScramCredential(salt, stored_key, sign(algorithm, salted, "Server Key"), iterations)


class ScramServer:
    """SCRAM-SHA-256 or SCRAM-SHA-512 without channel binding, for users and for delegation tokens."""

    def __init__(
        self,
        name: str,
        find: Callable[[str], ScramCredential | None],
        find_token: Callable[[str, str], TokenLogin | None],
        *,
        nonce: Callable[[], str],
        salting: bytes,
    ) -> None:
        """`find_token` is given the mechanism and the token's id. `salting` is secret; salts of unknown users are made
        of it."""
        self.name = name
        self._algorithm = HASHES[name]
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._salting = salting

    def accepts(self, user: str, password: str) -> bool:
        credential, login = self._found(user, is_token=False)
        derived = derived_credential(self._algorithm, password, credential.salt, credential.iterations)
        return hmac.compare_digest(derived.stored_key, credential.stored_key) and login is not None

    def converse(self, first: bytes) -> Conversation:
        user, client_nonce, is_token, first_bare = self._read_first(first)
        credential, login = self._found(user, is_token)
        nonce = client_nonce + self._nonce()
        server_first = f"r={nonce},s={encoded(credential.salt)},i={credential.iterations}"
        final = yield server_first.encode()
        without_proof, proof = self._read_final(final, nonce, user)
        signed = f"{first_bare},{server_first},{without_proof}"
        client_key = xor(sign(self._algorithm, credential.stored_key, signed), proof)
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key) or login is None:
            raise self._refused("unknown user or wrong password", user)
        return Success(f"v={encoded(sign(self._algorithm, credential.server_key, signed))}".encode(), login)

    def _found(self, user: str, is_token: bool) -> tuple[ScramCredential, Login | None]:
        if is_token:
            token = self._find_token(self.name, user)
            if token is not None:
                return token.credential, Login(token.owner, token.expires_at_ms, is_token=True)
        else:
            credential = self._find(user)
            if credential is not None:
                return credential, Login(user)
        made_up = sign("sha256", self._salting, user)
        size = hashlib.new(self._algorithm).digest_size
        return ScramCredential(made_up[:24], bytes(size), bytes(size), _ITERATIONS), None

    def _read_first(self, first: bytes) -> tuple[str, str, bool, str]:
        try:
            binding, authorization, bare = first.decode().split(",", 2)
            found = attributes(bare)
            user, nonce = unescaped_name(found["n"]), found["r"]
            authorized = unescaped_name(authorization.removeprefix("a="))
        except (ValueError, KeyError):
            raise self._refused("the first message of SCRAM cannot be read") from None
        if binding not in ("n", "y") or not user or not nonce or "m" in found:
            raise self._refused("the first message of SCRAM requests something that is not supported", user or None)
        if authorized not in ("", user):
            raise self._refused("SCRAM for another user", user)
        return user, nonce, "tokenauth=true" in bare.split(",")[2:], bare

    def _read_final(self, final: bytes, nonce: str, user: str) -> tuple[str, bytes]:
        try:
            text = final.decode()
            without_proof, proof_text = text.rsplit(",p=", 1)
            proof, found = decoded(proof_text), attributes(without_proof)
            header = decoded(found["c"])
        except (ValueError, KeyError):
            raise self._refused("the last message of SCRAM cannot be read", user) from None
        if found.get("r") != nonce or header[:1] not in (b"n", b"y"):
            raise self._refused("the last message of SCRAM belongs to another exchange", user)
        if len(proof) != hashlib.new(self._algorithm).digest_size:
            raise self._refused("a proof of the wrong length", user)
        return without_proof, proof

    def _refused(self, reason: str, user: str | None = None) -> LoginRefused:
        return LoginRefused(reason, _FAILED + self.name, user=user)


# --- OAUTHBEARER


class OAuthBearerServer:
    """OAUTHBEARER (RFC 7628). A bad token is answered with its state, and refused by the next message."""

    name: Final = "OAUTHBEARER"

    def __init__(self, validate: Callable[[str], Login]) -> None:
        """`validate` gives whose token it is, or raises LoginRefused."""
        self._validate = validate

    def converse(self, first: bytes) -> Conversation:
        authorization, token = _read_bearer(first)
        try:
            login = self._validate(token)
        except LoginRefused as refused:
            yield json.dumps({"status": "invalid_token"}).encode()
            raise LoginRefused(refused.reason, '{"status":"invalid_token"}', user=refused.user) from None
        if authorization not in ("", login.user):
            told = "Authentication failed: Client requested an authorization id that is different from the token's"
            raise LoginRefused("a token of another user", f"{told} principal name", user=login.user)
        return Success(b"", login)


def _read_bearer(first: bytes) -> tuple[str, str]:
    """The authorization id and the token of a first message."""
    told = "Invalid OAUTHBEARER client first message"
    try:
        header, *parts, last, end = first.decode().split("\x01")
        binding, authorization, rest = header.split(",", 2)
        found = dict(part.split("=", 1) for part in parts)
        scheme, _, token = found["auth"].partition(" ")
    except (ValueError, KeyError):
        raise LoginRefused("the first message of OAUTHBEARER cannot be read", told) from None
    if binding != "n" or rest or last or end or scheme.lower() != "bearer" or not token:
        raise LoginRefused("the first message of OAUTHBEARER is malformed", told)
    if len(token) > TOKEN_MAX_CHARS:
        raise LoginRefused(f"a token of {len(token)} characters", told)
    return authorization.removeprefix("a="), token
