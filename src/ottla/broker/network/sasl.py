"""SASL on one connection: what may come when, and who has logged in.

====================  ===================================  =====================================================
state                 is taken                             anything else
====================  ===================================  =====================================================
NEW                   ApiVersions, SaslHandshake           the connection is closed
GREETED               SaslHandshake                        the connection is closed
SHAKEN                SaslAuthenticate                     ILLEGAL_SASL_STATE, then the connection is closed
SHAKEN_BARE           tokens without a header (v0)         -
LOGGED_IN             everything                           -
====================  ===================================  =====================================================

A session that has an end can be renewed in band (KIP-368): SaslHandshake leads back to SHAKEN, and the login must be
of the same mechanism and of the same principal. At its end only SaslHandshake is taken. A failed login is answered
after `connection.failed.authentication.delay.ms`, and the connection is closed.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from ottla.broker.network.listener_security import ListenerSecurity
from ottla.broker.network.request import Answer, Close, CloseCause, DelayedResponse, Request
from ottla.security.errors import LoginRefused
from ottla.security.sasl_server import Conversation, Login, Success
from ottla.wire.errors import ErrorCode
from ottla.wire.types.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.types.sasl_handshake import SaslHandshakeResponse

__all__ = ["SaslLogin", "SaslState"]

_SASL_HANDSHAKE: Final = 17
_HANDSHAKE_BYTES: Final = _SASL_HANDSHAKE.to_bytes(2, "big")
_API_VERSIONS: Final = 18
_SASL_AUTHENTICATE: Final = 36
_RENEWAL_PAUSE_MS: Final = 1_000
"""Nobody has reason to renew a session more often."""
_AGAIN: Final = "SaslAuthenticate request received after successful authentication"


class SaslState(Enum):
    NEW = "new"
    GREETED = "greeted"
    SHAKEN = "shaken"
    SHAKEN_BARE = "shaken, bare tokens follow"
    LOGGED_IN = "logged in"


class Connection(Protocol):
    """What is needed of the connection."""

    def monotonic_ms(self) -> int: ...
    def logged_in(self, login: Login, mechanism: str, *, is_renewal: bool) -> None:
        """Somebody has logged in, or renewed the session."""

    def login_failed(
        self, refused: LoginRefused, mechanism: str, later: DelayedResponse | None = None, answer: object = None
    ) -> None:
        """Complete the response after the delay, and close the connection."""


class SaslLogin:
    __slots__ = (
        "_connection",
        "_conversation",
        "_expires_at_ms",
        "_lifetime_ms",
        "_mechanism",
        "_security",
        "_shaken_at_ms",
        "_user",
        "state",
    )

    def __init__(self, security: ListenerSecurity, connection: Connection) -> None:
        self._security = security
        self._connection = connection
        self._conversation: Conversation | None = None
        self._mechanism = ""
        self._user: str | None = None
        self._expires_at_ms: int | None = None
        """On the clock of timers."""
        self._lifetime_ms = 0
        """Of the session; 0 if it does not end."""
        self._shaken_at_ms: int | None = None
        self.state = SaslState.NEW

    @property
    def has_logged_in(self) -> bool:
        """Whether somebody has, even if the session is being renewed now, or has expired."""
        return self._user is not None

    # --- what may come ------------------------------------------------------------------------------------------------

    def takes(self, request: Request) -> bool:
        """Whether a request is handled before the login; if not, it is answered with ILLEGAL_SASL_STATE. Raises
        Close."""
        key = request.api_key
        if self.state is SaslState.SHAKEN:
            return key == _SASL_AUTHENTICATE
        if key == _SASL_HANDSHAKE:
            return True
        if key != _API_VERSIONS or self.state is SaslState.GREETED:
            raise Close(f"it sent API {key} before authentication", CloseCause.LOGIN_NEEDED)
        if request.body is not None:  # else it is told which versions there are, and asks again
            self.state = SaslState.GREETED
        return True

    def check_session(self, frame: bytes) -> None:
        """After the login: raise Close if the session has ended, unless the request renews it."""
        if self._expires_at_ms is None or frame[:2] == _HANDSHAKE_BYTES:
            return
        if self._connection.monotonic_ms() >= self._expires_at_ms:
            raise Close("its session has expired", CloseCause.SESSION_EXPIRED)

    # --- SaslHandshake ------------------------------------------------------------------------------------------------

    def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse:
        """Choose a mechanism. Raises Close if a session is to be renewed with another one."""
        now_ms = self._connection.monotonic_ms()
        if self.state is SaslState.LOGGED_IN:
            if not self._may_renew(now_ms):
                return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
            if mechanism != self._mechanism:
                raise Close("it re-authenticated with another mechanism", CloseCause.FAILED_LOGIN)
        self._shaken_at_ms = now_ms
        offered = tuple(self._security.mechanisms)
        if mechanism not in self._security.mechanisms:
            self._connection.login_failed(LoginRefused(f"it requested mechanism {mechanism[:40]}"), mechanism)
            return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered)
        self._mechanism = mechanism
        self._conversation = None
        self.state = SaslState.SHAKEN if version else SaslState.SHAKEN_BARE
        return SaslHandshakeResponse(ErrorCode.NONE, offered)

    def _may_renew(self, now_ms: int) -> bool:
        is_soon = self._shaken_at_ms is not None and now_ms - self._shaken_at_ms < _RENEWAL_PAUSE_MS
        return self._expires_at_ms is not None and not is_soon

    # --- SaslAuthenticate ---------------------------------------------------------------------------------------------

    def authenticate(self, data: bytes) -> Answer:
        """Go on with the login."""
        if self.state is not SaslState.SHAKEN:
            return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _AGAIN)
        try:
            answer = self._converse(data)
        except LoginRefused as refused:
            message = refused.told or f"Authentication failed with SASL mechanism {self._mechanism}"
            later = DelayedResponse()
            failure = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
            self._connection.login_failed(refused, self._mechanism, later, failure)
            return later
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=self._told_lifetime_ms())

    def bare_token(self, data: bytes) -> bytes | None:
        """Go on with the login of an old client, which gets bare bytes; None if it gets nothing more."""
        try:
            return self._converse(data)
        except LoginRefused as refused:
            self._connection.login_failed(refused, self._mechanism)
            return None

    def _converse(self, data: bytes) -> bytes:
        """What is answered; the last answer logs in."""
        try:
            if self._conversation is None:
                self._conversation = self._security.mechanisms[self._mechanism].converse(data)
                return next(self._conversation)
            return self._conversation.send(data)
        except StopIteration as end:
            success: Success = end.value
        self._conversation = None
        self._log_in(success.login)
        return success.answer

    def _log_in(self, login: Login) -> None:
        if self._user is not None and login.user != self._user:
            reason = "it re-authenticated as another user"
            raise LoginRefused(reason, "Cannot change principals during re-authentication", user=login.user)
        is_renewal = self._user is not None
        self._user = login.user
        self._expires_at_ms = None
        limits = [self._security.max_reauth_ms.get(self._mechanism, 0)]
        if login.expires_at_ms is not None:
            limits.append(max(login.expires_at_ms - self._security.wall_ms(), 1))
        self._lifetime_ms = min((each for each in limits if each), default=0)
        if self._lifetime_ms:
            self._expires_at_ms = self._connection.monotonic_ms() + self._lifetime_ms
        self.state = SaslState.LOGGED_IN
        self._connection.logged_in(login, self._mechanism, is_renewal=is_renewal)

    def _told_lifetime_ms(self) -> int:
        return self._lifetime_ms if self.state is SaslState.LOGGED_IN else 0
