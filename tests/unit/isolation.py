"""What a unit test must not do: open a socket, start a process (a Java that runs Spark is one), or let time go by."""

from __future__ import annotations

import multiprocessing.process
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Call = Callable[..., Any]


def refuse(what: str) -> None:
    pytest.fail(f"a unit test {what}; such a test belongs in tests/component")


@contextmanager
def isolated() -> Iterator[None]:
    """Meanwhile, whoever tries one of these fails the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "__init__", _only_from_a_descriptor(socket.socket.__init__))
        patch.setattr(socket, "socketpair", _only_for_asyncio(socket.socketpair))
        patch.setattr(subprocess.Popen, "__init__", _refusing("starts a process"))
        patch.setattr(multiprocessing.process.BaseProcess, "start", _refusing("starts a process"))
        patch.setattr(os, "fork", _refusing("starts a process"))
        patch.setattr(os, "posix_spawn", _refusing("starts a process"))
        patch.setattr(time, "sleep", _only_for_others(time.sleep))
        patch.setattr(selectors.DefaultSelector, "select", _never_in_vain(selectors.DefaultSelector.select))
        yield


def _refusing(what: str) -> Call:
    return lambda *arguments, **options: refuse(what)


def _only_for_others(sleep: Call) -> Call:
    """Threads that an earlier test has left, such as py4j's, may sleep as they like."""

    def sleep_elsewhere(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            refuse("sleeps")
        sleep(seconds)

    return sleep_elsewhere


def _only_from_a_descriptor(init: Call) -> Call:
    """Half of a pair is made from a descriptor that is open; what connects or listens is not."""

    def __init__(
        self: socket.socket, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
    ) -> None:
        if fileno is None and not _is_called_by("py4j"):
            refuse("opens a socket")
        init(self, family, type, proto, fileno)

    return __init__


def _only_for_asyncio(make_pair: Call) -> Call:
    """An event loop wakes itself through a pair of sockets."""

    def socketpair(*arguments: Any) -> tuple[socket.socket, socket.socket]:
        if not _is_called_by("asyncio"):
            refuse("opens a pair of sockets")
        return make_pair(*arguments)

    return socketpair


def _never_in_vain(select: Call) -> Call:
    """An event loop that waits and hears of nothing has waited for a timer."""

    def select_at_once(self: selectors.BaseSelector, timeout: float | None = None) -> Any:
        events = select(self, timeout)
        if not events and timeout is not None and timeout > 0:
            refuse("waits for a timer of the event loop")
        return events

    return select_at_once


def _is_called_by(package: str) -> bool:
    """Spark of an earlier test may let go of its objects in Java, through py4j, while a unit test runs."""
    caller = sys._getframe(2)
    return str(caller.f_globals.get("__name__")).partition(".")[0] == package
