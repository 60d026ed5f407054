"""Imports the handlers' modules soon after the start, so that the first request of a kind need not wait for them.

A node starts fast because it serves before all of its code is in memory. The first JoinGroup would then wait a tenth of
a second while the group coordinator is imported, and so would all other requests. A second after the start the node
imports these modules one by one, with pauses in between.
"""

from __future__ import annotations

import asyncio
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Final

__all__ = ["Preload", "modules"]

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


class Preload:
    """Imports one module after another, on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._modules = modules()
        self._timer = loop.call_later(BEGIN_SECONDS, self._step)

    def _step(self) -> None:
        name = next((each for each in self._modules if each not in sys.modules), None)
        if name is not None:
            import_module(name)
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._step)

    def stop(self) -> None:
        self._timer.cancel()


def modules() -> Iterator[str]:
    """The names of the modules, in order; a package is searched only when its turn comes."""
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
