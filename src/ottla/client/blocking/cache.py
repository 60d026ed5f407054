"""Clients that outlive a task: Spark uses its workers again, and a connection costs more than a small task."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Final

from ottla.client.blocking.client import BlockingClient

__all__ = ["cached_client", "forget"]

HELD_MAX: Final = 8
"""Clusters, or ways to log in to them, that one worker talks to."""
_held: dict[tuple[Hashable, int, int], BlockingClient] = {}


def cached_client(key: Hashable, make: Callable[[], BlockingClient]) -> BlockingClient:
    """The client that this process and thread has for a key, or a new one, which is entered first.

    After a fork the child makes its own: two processes that read from one socket would each get half of the answers.
    """
    full_key = (key, os.getpid(), threading.get_ident())
    found = _held.get(full_key)
    if found is None:
        _drop_others()
        found = make().__enter__()
        _held[full_key] = found
    return found


def forget(key: Hashable) -> None:
    """Close the client of this key: what it knows may be why something failed."""
    found = _held.pop((key, os.getpid(), threading.get_ident()), None)
    if found is not None:
        found.close()


def _drop_others() -> None:
    """Let go of what came over a fork (closing our copy of a socket does not end the parent's), and of our oldest."""
    here = (os.getpid(), threading.get_ident())
    for key in [key for key in _held if key[1] != here[0]]:
        _held.pop(key).close()
    mine = [key for key in _held if key[1:] == here]
    for key in mine[: max(0, len(mine) + 1 - HELD_MAX)]:
        _held.pop(key).close()
