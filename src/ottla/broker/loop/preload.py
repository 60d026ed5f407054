"""Imports the handlers' modules soon after the start, so that the first request of a kind need not wait for them.

A node starts fast because it serves before all of its code is in memory. The first JoinGroup would then wait a tenth of
a second while the group coordinator is imported, and so would all other requests. A second after the start the node
imports these modules in a cooperative task, between requests.

An import brings all that the module imports in turn, which can take as long as thirty modules do. So a module is
imported after those that it names: these are read from its code, which has to be loaded for that once more.
"""

from __future__ import annotations

import asyncio
import pkgutil
import sys
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Final

from ottla.broker.loop.cooperative_tasks import CooperativeTasks

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock

__all__ = ["Preload", "import_steps", "modules"]

BEGIN_SECONDS: Final = 1.0
"""A broker that a test starts and stops again should not pay for this."""
_OURS: Final = "ottla."
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
_MODULES: Final = ("ottla.log.cleaner",)


class Preload:
    """The import of all modules, which begins a while after the start."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._tasks = CooperativeTasks(loop, clock)  # not the node's, where other work would wait for this
        self._timer = loop.call_later(BEGIN_SECONDS, lambda: self._tasks.add("preload", import_steps()))

    def stop(self) -> None:
        self._timer.cancel()
        self._tasks.close()


def import_steps() -> Generator[None, None, None]:
    """Import the modules, one a step."""
    begun: set[str] = set()
    for name in modules():
        yield from _import(name, begun)
        if name not in sys.modules:  # it did not come with its package
            import_module(name)
            yield


def modules() -> Iterator[str]:
    """The names of the modules. Nothing is imported for it."""
    for package in _PACKAGES:
        yield package
        yield from _inside(package)
    yield from _MODULES


def _inside(package: str) -> Iterator[str]:
    spec = _spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    for found in pkgutil.iter_modules(places, f"{package}."):
        yield found.name
        if found.ispkg:
            yield from _inside(found.name)


def _import(name: str, begun: set[str]) -> Generator[None, None, None]:
    """Import a module after its package and after those that it names, but for those that are begun already."""
    if name in sys.modules or name in begun:
        return
    package = name.rpartition(".")[0]
    if package in begun and package not in sys.modules:
        begun.add(name)
        yield from _import_named(name, begun)  # the module itself comes with its package, or later
        return
    yield from _import(package, begun)
    begun.add(name)
    yield from _import_named(name, begun)
    import_module(name)
    yield


def _import_named(name: str, begun: set[str]) -> Generator[None, None, None]:
    named = _named_in(name)
    yield
    for each in named:
        yield from _import(each, begun)


def _named_in(name: str) -> list[str]:
    """The modules of ours that a module imports. Of the names in its code only those of modules have dots."""
    spec = _spec(name)
    get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
    code = get_code(name) if get_code is not None else None
    return [] if code is None else [each for each in code.co_names if each.startswith(_OURS)]


@cache
def _spec(name: str) -> ModuleSpec | None:
    """As `importlib.util.find_spec`, which would import the package of the module."""
    package = name.rpartition(".")[0]
    if not package:
        return PathFinder.find_spec(name)
    above = _spec(package)
    return None if above is None else PathFinder.find_spec(name, above.submodule_search_locations)
