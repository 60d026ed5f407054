"""Who may look: a token on this machine, as notebooks have it, and which names the console answers to.

The token is in the address that is printed at the start. Whoever brings it gets a cookie, and the address loses the
token again, so that it stands in no history and no referrer. A page of another site cannot read the console: cookies
are not sent with its requests, and requests under a foreign name are refused (DNS rebinding).
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from ottla.draw.svg import file_style

__all__ = ["DRAWING_POLICY", "HEADERS", "Access", "hosts_of"]

COOKIE: Final = "ottla-console"
TOKEN_BYTES: Final = 24
LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
HEADERS: Final = {
    "content-security-policy": (
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
    names = {host, *LOOPBACK_NAMES} if host in ("127.0.0.1", "::1", "localhost") else {host}
    return frozenset({f"{name}:{port}" for name in names} | {each.lower() for each in others})


class Access:
    """The token of one run of the console."""

    def __init__(self, hosts: frozenset[str], token: str | None = None) -> None:
        self.hosts = hosts
        self.token = secrets.token_urlsafe(TOKEN_BYTES) if token is None else token
        self._session = secrets.token_urlsafe(TOKEN_BYTES)

    def is_known_host(self, host: str) -> bool:
        return host.lower() in self.hosts

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def is_session(self, cookie: str | None) -> bool:
        return cookie is not None and hmac.compare_digest(cookie.encode(), self._session.encode())

    @property
    def cookie(self) -> str:
        """What a browser that brought the token keeps."""
        return self._session
