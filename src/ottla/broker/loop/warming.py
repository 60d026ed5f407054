"""Loads, soon after the start and little by little, the code that the first request of its kind would have to wait for.

A node serves long before all of its code is in memory: that is why it starts fast. But whoever then sends the first
JoinGroup would wait for a tenth of a second while half the group coordinator is read from disk, and everybody else with
him. So, once the first moments are over, modules are imported one by one with pauses between them.
"""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Final

__all__ = ["Warming", "modules"]

BEGIN_SECONDS: Final = 1.0
"""A broker that a test starts and stops again should not pay for this."""
PAUSE_SECONDS: Final = 0.02
_PACKAGES: Final = (
    "ottla.core.coordinator",
    "ottla.core.groups",
    "ottla.core.txn",
    "ottla.core.share",
    "ottla.broker.coordinators",
    "ottla.broker.transactions",
    "ottla.broker.share",
    "ottla.broker.handlers",
)


class Warming:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._modules = modules()
        self._timer = loop.call_later(BEGIN_SECONDS, self._step)

    def _step(self) -> None:
        name = next(self._modules, None)
        if name is not None:
            import_module(name)
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._step)

    def stop(self) -> None:
        self._timer.cancel()


def modules() -> Iterator[str]:
    """What is loaded, in order; looked for only when it is its turn."""
    for package in _PACKAGES:
        yield package
        yield from _inside(package)


def _inside(package: str) -> Iterator[str]:
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    for found in pkgutil.iter_modules(places, f"{package}."):
        yield found.name
        if found.ispkg:
            yield from _inside(found.name)
