"""Counts failed logins by address, and shuts out an address that guesses.

An address may fail 60 times in a minute (`ottla.login.failures.per.minute`). Beyond that its connections are closed
unread for a while, which doubles with each further failure. Others do not notice.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LoginFailures"]

FREE_PER_MINUTE: Final = 60
_MINUTE_MS: Final = 60_000
_PAUSE_MS: Final = 1_000
_PAUSE_MAX_MS: Final = 30_000
ADDRESSES_MAX: Final = 10_000


class _Address:
    __slots__ = ("count", "pause_ms", "shut_until_ms", "since_ms")

    def __init__(self, now_ms: int) -> None:
        self.count = 0
        self.since_ms = now_ms
        self.pause_ms = _PAUSE_MS
        self.shut_until_ms = 0


class LoginFailures:
    def __init__(self, per_minute: int = FREE_PER_MINUTE) -> None:
        """`per_minute` failures shut nobody out; 0 is no limit."""
        self._per_minute = per_minute or 1 << 62
        self._addresses: dict[str, _Address] = {}

    def add(self, host: str, now_ms: int) -> int:
        """A login from this address has failed; for how long it is shut out now, in milliseconds."""
        address = self._addresses.pop(host, None)
        if address is None or now_ms - max(address.since_ms, address.shut_until_ms) >= _MINUTE_MS:
            address = _Address(now_ms)
        self._addresses[host] = address  # the last of them
        if len(self._addresses) > ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        address.count += 1
        if address.count <= self._per_minute:
            return 0
        pause_ms = address.pause_ms
        address.shut_until_ms = now_ms + pause_ms
        address.pause_ms = min(pause_ms * 2, _PAUSE_MAX_MS)
        return pause_ms

    def is_shut_out(self, host: str, now_ms: int) -> bool:
        address = self._addresses.get(host)
        return address is not None and now_ms < address.shut_until_ms
