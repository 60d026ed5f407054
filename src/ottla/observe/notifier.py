"""Posts findings to a web hook as they open and close, one JSON object a request, in their order.

A hook that does not take one is tried again, with growing pauses. While it does not answer, at most a thousand changes
wait; the oldest are dropped first, and the next request says how many.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException
from itertools import count
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec

from ottla.client.backoff import Backoff
from ottla.health import Change, ChangeType

__all__ = ["Notifier", "post"]

WAITING_MAX: Final = 1_000
TIMEOUT_S: Final = 10.0
FIRST_PAUSE_MS: Final = 1_000
LONGEST_PAUSE_MS: Final = 60_000
_PASSING: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)

Post = Callable[[bytes], int]
"""Sends a body, and gives the status of the answer. OSError if there is none."""


def post(url: str) -> Post:
    """A POST of JSON to a URL, which is http or https."""

    def send(body: bytes) -> int:
        headers = {"content-type": "application/json", "user-agent": "ottla"}
        try:
            with urlopen(Request(url, body, headers), timeout=TIMEOUT_S) as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code
        except URLError as error:
            raise OSError(str(error.reason)) from None
        except HTTPException as error:  # it speaks another protocol, or the URL has no proper port
            raise OSError(f"{type(error).__name__}: {error}") from None

    return send


class Notifier:
    """`tell` is called with each change; `run` posts them until it is cancelled. `say` gets what goes wrong."""

    def __init__(self, send: Post, cluster: str, say: Callable[[str], object], waiting_max: int = WAITING_MAX) -> None:
        self._send = send
        self._cluster = cluster
        self._say = say
        self._waiting: deque[Change] = deque(maxlen=waiting_max)
        self._woken = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._dropped = 0

    def tell(self, change: Change) -> None:
        if change.what is ChangeType.CHANGED:
            return
        self._dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append(change)
        self._is_idle.clear()
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                await self._post(self._waiting.popleft())
            self._is_idle.set()

    async def drain(self, longest_s: float) -> None:
        """Wait until everything is posted, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await self._is_idle.wait()

    async def _post(self, change: Change) -> None:
        """Try until the hook has taken it, or will never take it."""
        backoff = Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
        for attempt in count():
            dropped = self._dropped
            try:
                status = await asyncio.to_thread(self._send, self._body(change, dropped))
            except OSError as error:
                problem = f"the hook does not answer: {error}"
            else:
                if status < HTTPStatus.BAD_REQUEST:
                    self._dropped -= dropped
                    return
                problem = f"the hook answers {status}"
                if status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _PASSING:
                    self._say(f"a finding was not posted: {problem}")
                    return
            if attempt == 0:
                self._say(f"findings wait: {problem}")
            await asyncio.sleep(backoff.next_ms() / 1000)

    def _body(self, change: Change, dropped: int) -> bytes:
        body = {"cluster": self._cluster, "at_ms": change.at_ms, "what": change.what, "finding": change.finding}
        return msgspec.json.encode(body | {"dropped": dropped} if dropped else body)
