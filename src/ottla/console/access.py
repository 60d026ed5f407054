"""Who may look: a token on this machine, as notebooks have it, or a login with a user of the cluster elsewhere.

The token is in the address that is printed at the start. Whoever brings it gets a cookie, and the address loses the
token again, so that it stands in no history and no referrer. Users of the cluster give their name and password, which
the cluster checks; each of them sees what the cluster lets him see, by a connection of his own. A page of another site
cannot read the console: cookies are not sent with its requests, and requests under a foreign name are refused (DNS
rebinding).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from ottla.client import Client, ClientError
from ottla.client.errors import AuthenticationError, ConfigurationError
from ottla.console.watcher import ClusterWatcher, now_ms
from ottla.draw.svg import file_style

__all__ = [
    "DRAWING_POLICY",
    "HEADERS",
    "POLICY",
    "Access",
    "Field",
    "LoginError",
    "PasswordAccess",
    "TokenAccess",
    "hosts_of",
]

SECRET_BYTES: Final = 24
SESSIONS_MAX: Final = 200
IDLE_MS: Final = 30 * 60_000
"""A session that nobody has used for so long is over."""
SWEEP_S: Final = 30.0
FAILURES_MAX: Final = 20
FAILURES_WITHIN_MS: Final = 60_000
"""So many wrong passwords a minute; the cluster would shut the console out if it passed on all that are tried."""
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
POLICY: Final = "content-security-policy"
HEADERS: Final = {
    POLICY: (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Sent with every answer."""
_STYLE_HASH: Final = b64encode(sha256(file_style().encode()).digest()).decode()
DRAWING_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'"
"""The content-security-policy of SVG files, which have their style in them."""


def hosts_of(host: str, port: int, others: Iterable[str] = ()) -> frozenset[str]:
    """The names under which a console may be asked."""
    names = {host, *LOOPBACK_NAMES} if host in LOOPBACK_NAMES else {host}
    return frozenset({f"{name}:{port}" for name in names} | {each.lower() for each in others})


class Field(NamedTuple):
    """A field of the login form."""

    name: str
    label: str
    is_secret: bool = False


class LoginError(Exception):
    """Somebody is not let in; the text says why."""


class Access(Protocol):
    """Decides whose cluster a request may see."""

    fields: tuple[Field, ...]
    how: str
    """What somebody needs to log in, in words."""

    def watcher_of(self, cookie: str | None) -> ClusterWatcher | None:
        """The cluster as the bearer of a cookie sees it; None if he must log in first."""

    async def log_in(self, form: Mapping[str, str]) -> str:
        """The cookie for what a login form, or the query of an address, brings. Raises LoginError."""

    def log_out(self, cookie: str | None) -> None: ...

    async def run(self) -> None:
        """Watch the cluster until this is cancelled."""

    def end_events(self) -> None:
        """End all streams of events: the console stops."""


class TokenAccess:
    """One token, and one view of the cluster for all who have it."""

    fields: tuple[Field, ...] = (Field("token", "Token", is_secret=True),)
    how = "The console printed a URL with its token when it started; open that URL. The token follows ?token="

    def __init__(self, watcher: ClusterWatcher, token: str | None = None) -> None:
        self._watcher = watcher
        self.token = secrets.token_urlsafe(SECRET_BYTES) if token is None else token
        self._cookie = secrets.token_urlsafe(SECRET_BYTES)

    def watcher_of(self, cookie: str | None) -> ClusterWatcher | None:
        return self._watcher if cookie is not None and _is_same(cookie, self._cookie) else None

    async def log_in(self, form: Mapping[str, str]) -> str:
        if not _is_same(form.get("token", "").strip(), self.token):
            raise LoginError("This is not the token of this console.")
        return self._cookie

    def log_out(self, cookie: str | None) -> None:
        """Whoever has the token comes back with it; a new cookie would log out everybody else."""

    async def run(self) -> None:
        await self._watcher.run()

    def end_events(self) -> None:
        self._watcher.events.end()


_Login = tuple[str, str]
"""User and password. After a change of the password the old one may be refused, so each has its own view."""


@dataclass
class _Session:
    login: _Login
    used_ms: int


@dataclass
class _Viewer:
    watcher: ClusterWatcher
    watching: asyncio.Task[None]


class PasswordAccess:
    """Users of the cluster, each with a view of his own. `make` gives the watcher of a user and his password."""

    fields: tuple[Field, ...] = (Field("user", "User"), Field("password", "Password", is_secret=True))
    how = "Log in as a user of the cluster. You see what this user is authorized to see."

    def __init__(self, make: Callable[[str, str], ClusterWatcher]) -> None:
        self._make = make
        self._sessions: dict[str, _Session] = {}
        self._viewers: dict[_Login, _Viewer] = {}
        self._failed_ms: deque[int] = deque(maxlen=FAILURES_MAX)
        self._checking = 0
        """Logins that the cluster is being asked about: any of them may fail."""

    def watcher_of(self, cookie: str | None) -> ClusterWatcher | None:
        session = self._sessions.get(cookie or "")
        if session is None:
            return None
        session.used_ms = now_ms()
        return self._viewers[session.login].watcher

    async def log_in(self, form: Mapping[str, str]) -> str:
        user, password = form.get("user", ""), form.get("password", "")
        if not user or not password:
            raise LoginError("Enter a user and a password.")
        self._check_bounds()
        self._checking += 1
        try:
            watcher = await self._checked(user, password)
        finally:
            self._checking -= 1
        login = user, password
        if login not in self._viewers:
            self._viewers[login] = _Viewer(watcher, asyncio.create_task(watcher.run()))
        cookie = secrets.token_urlsafe(SECRET_BYTES)
        self._sessions[cookie] = _Session(login, now_ms())
        return cookie

    def _check_bounds(self) -> None:
        """Refuse one login too many. Those that the cluster is still asked about count as failed, and as users."""
        failed = sum(now_ms() - each < FAILURES_WITHIN_MS for each in self._failed_ms)
        if failed >= FAILURES_MAX:
            raise LoginError("Too many failed logins. Try again in a minute.")
        if failed + self._checking >= FAILURES_MAX:
            raise LoginError("Too many logins at once. Try again in a minute.")
        if len(self._sessions) + self._checking >= SESSIONS_MAX:
            raise LoginError("Too many users are logged in. Try again later.")

    async def _checked(self, user: str, password: str) -> ClusterWatcher:
        """The watcher of a user, if the cluster says that it knows him."""
        try:
            watcher = self._make(user, password)
            async with Client(watcher.bootstrap_servers, **watcher.settings):
                return watcher
        except AuthenticationError:
            self._failed_ms.append(now_ms())
            raise LoginError("Wrong user or password.") from None
        except ConfigurationError as error:
            raise LoginError(f"Nobody can log in like that: {error}.") from None
        except ClientError as error:
            raise LoginError(f"The cluster cannot be reached: {error}") from None

    def log_out(self, cookie: str | None) -> None:
        self._sessions.pop(cookie or "", None)
        self._end_unused()

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(SWEEP_S)
                self.sweep(now_ms())
        finally:
            for viewer in self._viewers.values():
                viewer.watching.cancel()

    def end_events(self) -> None:
        for viewer in self._viewers.values():
            viewer.watcher.events.end()

    def sweep(self, at_ms: int) -> None:
        """End sessions that nobody uses."""
        self._sessions = {key: each for key, each in self._sessions.items() if at_ms - each.used_ms < IDLE_MS}
        self._end_unused()

    def _end_unused(self) -> None:
        used = {each.login for each in self._sessions.values()}
        for login in self._viewers.keys() - used:
            viewer = self._viewers.pop(login)
            viewer.watching.cancel()
            viewer.watcher.events.end()


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
