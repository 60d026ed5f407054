"""The guard of this folder: it stops a unit test that is none, wherever its fixtures or its threads are."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("attempt", "what"),
    [
        (lambda: socket.socket(), "opens a socket"),
        (lambda: socket.create_server(("127.0.0.1", 0)), "opens a socket"),
        (lambda: socket.create_connection(("127.0.0.1", 9)), "opens a socket"),
        (lambda: asyncio.run(asyncio.open_connection("127.0.0.1", 9)), "opens a socket"),
        (lambda: asyncio.run(asyncio.start_server(print, "127.0.0.1", 0)), "opens a socket"),
        (lambda: socket.socketpair(), "opens a pair of sockets"),
        (lambda: subprocess.run([sys.executable, "-V"], check=True), "starts a process"),
        (lambda: asyncio.run(asyncio.create_subprocess_exec(sys.executable, "-V")), "starts a process"),
        (lambda: multiprocessing.Process(target=print).start(), "starts a process"),
        (lambda: os.fork(), "starts a process"),
        (lambda: time.sleep(0), "sleeps"),
        (lambda: asyncio.run(asyncio.sleep(0.001)), "waits for a timer"),
    ],
)
def test_stops(attempt: Callable[[], object], what: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"a unit test {what}"):
        attempt()


def test_lets_event_loops_and_threads_be() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            return await asyncio.to_thread(lambda: 7)

    assert asyncio.run(work()) == 7


def test_threads_are_stopped_too() -> None:
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            socket.socket()
        except pytest.fail.Exception as failed:
            failures.append(failed)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert len(failures) == 1


@pytest.fixture(scope="module")
def stopped() -> str:
    with pytest.raises(pytest.fail.Exception) as failed:
        socket.socket()
    return str(failed.value)


def test_fixtures_of_a_module_are_stopped_too(stopped: str) -> None:
    assert stopped == "a unit test opens a socket; such a test belongs in tests/component"
