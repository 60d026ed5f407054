"""Child processes that compute: answers, failures, time limits, and their end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.broker.loop.child_process import ChildFailure, ChildProcess

LIMIT_MS = 20_000


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    child = ChildProcess("tests.component.broker.own_assignors:echo")
    yield child
    child.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(child: ChildProcess) -> int:
    return int(child.call([b"pid"], LIMIT_MS)[0])


def test_answers_come_back_from_one_process(child: ChildProcess):
    large = bytes(3_000_000)
    assert child.call([b"echo", b"", b"a", large], LIMIT_MS) == [b"", b"a", large]
    assert pid_of(child) == pid_of(child) != os.getpid()


def test_a_failure_is_told_and_the_process_stays(child: ChildProcess):
    pid = pid_of(child)
    with pytest.raises(ChildFailure, match=r"^ValueError: bad part$"):
        child.call([b"raise"], LIMIT_MS)
    assert pid_of(child) == pid


def test_another_process_follows_one_that_has_ended(child: ChildProcess):
    pid = pid_of(child)
    with pytest.raises(ChildFailure, match=r"^its process has ended with code (3|-9)$"):
        child.call([b"exit"], LIMIT_MS)
    assert pid_of(child) != pid


def test_a_call_that_takes_too_long_ends_with_the_process(child: ChildProcess):
    pid = pid_of(child)
    with pytest.raises(ChildFailure, match=r"^no answer within 200 ms$"):
        child.call([b"sleep"], 200)
    assert not is_running(pid)
    assert child.call([b"echo", b"x"], LIMIT_MS) == [b"x"]


def test_closing_ends_a_call_that_is_under_way(child: ChildProcess):
    pid_of(child)
    failures = []

    def call() -> None:
        try:
            child.call([b"sleep"], LIMIT_MS)
        except ChildFailure as failure:
            failures.append(failure)

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.1)
    child.close()
    thread.join(10)
    assert len(failures) == 1


def test_the_process_is_gone_after_closing(child: ChildProcess):
    pid = pid_of(child)
    child.close()
    child.close()
    assert not is_running(pid)
