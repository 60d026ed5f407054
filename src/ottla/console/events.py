"""Tells open pages what has changed. A viewer who is slow gets the newest of what he missed, not all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["EventHub", "Viewer"]

VIEWERS_MAX: Final = 200
KEYS_MAX: Final = 1_000
"""A viewer who has missed more is told to load everything anew."""
EVERYTHING: Final = "*"


class Viewer:
    """One open page. `wanted` are kinds (`group`) and subjects (`group:billing`)."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._missed: dict[str, None] = {}
        self._woken = asyncio.Event()
        self._has_ended = False

    def tell(self, changed: Iterable[str]) -> None:
        self._missed |= dict.fromkeys(self._wanted.intersection(changed))
        if len(self._missed) > KEYS_MAX:
            self._missed = {EVERYTHING: None}
        if self._missed:
            self._woken.set()

    def end(self) -> None:
        self._has_ended = True
        self._woken.set()

    async def changes(self, quiet_s: float) -> AsyncIterator[list[str]]:
        """What has changed since the last time; an empty list when nothing has for a while. Stops at the end."""
        while not self._has_ended:
            try:
                async with asyncio.timeout(quiet_s):
                    await self._woken.wait()
            except TimeoutError:
                yield []
                continue
            self._woken.clear()
            missed, self._missed = sorted(self._missed), {}
            if missed:
                yield missed


class EventHub:
    def __init__(self, viewers_max: int = VIEWERS_MAX) -> None:
        self._viewers: set[Viewer] = set()
        self._viewers_max = viewers_max

    def __len__(self) -> int:
        return len(self._viewers)

    @property
    def is_full(self) -> bool:
        """Whether there are as many viewers as the console allows."""
        return len(self._viewers) >= self._viewers_max

    def publish(self, changed: set[str]) -> None:
        if changed:
            for viewer in self._viewers:
                viewer.tell(changed)

    def end(self) -> None:
        """Let all viewers go."""
        for viewer in self._viewers:
            viewer.end()

    @contextmanager
    def viewer(self, wanted: Iterable[str]) -> Iterator[Viewer]:
        viewer = Viewer(frozenset(wanted))
        self._viewers.add(viewer)
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
