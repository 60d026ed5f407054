"""Logins of all listeners: counted, told to the audit log, and refused to addresses that guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.network.login_failures import LoginFailures

if TYPE_CHECKING:
    from ottla.broker.network.request import Peer

__all__ = ["CERTIFICATE", "LoginResult", "Logins", "Tell", "count_last"]

CERTIFICATE: Final = "TLS"
"""What stands for a mechanism where a certificate tells who somebody is."""
_OTHER: Final = "other"
_MECHANISMS: Final = frozenset({CERTIFICATE, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "HTTP"})
_TEXT_CHARS_MAX: Final = 200

COUNTED_MAX: Final = 1_000
"""Users and addresses, and principals and APIs, that are counted one by one."""

Tell = Callable[[str, dict[str, object]], None]
"""Takes an event and what belongs to it."""


def count_last(counts: Counter[Any], key: object) -> None:
    """Count one more, and forget the one that was counted longest ago if there are too many."""
    counts[key] = counts.pop(key, 0) + 1
    if len(counts) > COUNTED_MAX:
        del counts[next(iter(counts))]


class LoginResult(StrEnum):
    OK = "ok"
    RENEWED = "renewed"
    FAILED = "failed"
    SHUT_OUT = "shut out"


_EVENTS: Final = {
    LoginResult.OK: "login.ok",
    LoginResult.RENEWED: "reauth",
    LoginResult.FAILED: "login.failed",
}


class Logins:
    def __init__(self, failures: LoginFailures, monotonic_ms: Callable[[], int], tell: Tell) -> None:
        self._failures = failures
        self._monotonic_ms = monotonic_ms
        self._tell = tell
        self.counts: Counter[tuple[str, str, LoginResult]] = Counter()
        """By listener, mechanism and result."""

        self._failed_by_user: Counter[tuple[str, str]] = Counter()
        """By user and address; the longest unheard of is forgotten."""

    def succeeded(self, peer: Peer, mechanism: str, principal: str, *, is_renewal: bool = False) -> None:
        self._add(peer, mechanism, LoginResult.RENEWED if is_renewal else LoginResult.OK, principal=principal)

    def failed(self, peer: Peer, mechanism: str, reason: str, user: str | None = None) -> None:
        pause_ms = self._failures.add(peer.host, self._monotonic_ms())
        name = {} if user is None else {"principal": f"User:{user[:_TEXT_CHARS_MAX]}"}
        if user is not None:
            count_last(self._failed_by_user, (user[:_TEXT_CHARS_MAX], peer.host))
        self._add(peer, mechanism, LoginResult.FAILED, **name, reason=reason[:_TEXT_CHARS_MAX])
        if pause_ms:
            self._tell("login.throttled", {"host": peer.host, "listener": peer.listener, "ms": pause_ms})

    def is_shut_out(self, peer: Peer) -> bool:
        """Whether an address has failed too often of late. Who is shut out is counted each time, and was told once."""
        is_shut_out = self._failures.is_shut_out(peer.host, self._monotonic_ms())
        if is_shut_out:
            self.counts[peer.listener, "", LoginResult.SHUT_OUT] += 1
        return is_shut_out

    def _add(self, peer: Peer, mechanism: str, result: LoginResult, **more: str) -> None:
        known = mechanism if mechanism in _MECHANISMS else _OTHER
        self.counts[peer.listener, known, result] += 1
        self._tell(_EVENTS[result], {"host": peer.host, "listener": peer.listener, "mechanism": known, **more})

    def view(self) -> list[dict[str, object]]:
        """Failed logins for the inspect listener."""
        return [
            {"user": user, "address": address, "count": count}
            for (user, address), count in self._failed_by_user.items()
        ]

    def samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        for (listener, mechanism, result), count in sorted(self.counts.items()):
            yield "ottla_logins_total", {"listener": listener, "mechanism": mechanism, "result": result}, count
