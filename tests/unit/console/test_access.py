"""Logins of users, on a cluster that the test plays: how many are tried at once, and which view a session has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import AuthenticationError, ConfigurationError
from ottla.console import access as access_module
from ottla.console.access import FAILURES_MAX, LoginError, PasswordAccess
from ottla.console.events import EventHub


class Cluster:
    """Knows the password of ann, and answers when the test lets it."""

    def __init__(self) -> None:
        self.password = "right"
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    @asynccontextmanager
    async def client(self, bootstrap_servers: str, *, password: str) -> AsyncIterator[None]:
        self.asked.append(password)
        await self.may_answer.wait()
        if password != self.password:
            raise AuthenticationError(None, "wrong")
        yield


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(access_module, "Client", made.client)
    return made


def watcher(user: str, password: str) -> Any:
    if "\0" in password:
        raise ConfigurationError("a password cannot hold a NUL character")
    return SimpleNamespace(
        bootstrap_servers="", settings={"password": password}, run=asyncio.Event().wait, events=EventHub()
    )


async def log_in(access: PasswordAccess, password: str) -> str:
    return await access.log_in({"user": "ann", "password": password})


def test_no_more_is_tried_at_once_than_may_fail(cluster: Cluster):
    async def scenario() -> list[str | BaseException]:
        access = PasswordAccess(watcher)
        tries = [asyncio.create_task(log_in(access, f"guess {number}")) for number in range(3 * FAILURES_MAX)]
        await asyncio.sleep(0)  # until all wait for an answer
        cluster.may_answer.set()
        return await asyncio.gather(*tries, return_exceptions=True)

    assert all(isinstance(each, LoginError) for each in asyncio.run(scenario()))
    assert len(cluster.asked) == FAILURES_MAX


def test_who_logs_in_with_a_new_password_sees_the_cluster_with_it(cluster: Cluster):
    async def scenario() -> list[object]:
        cluster.may_answer.set()
        access = PasswordAccess(watcher)
        before = await log_in(access, "right")
        cluster.password = "changed"
        after = await log_in(access, "changed")
        watchers: list[Any] = [access.watcher_of(each) for each in (before, after)]
        return [each.settings["password"] for each in watchers]

    assert asyncio.run(scenario()) == ["right", "changed"]


def test_what_can_be_nobody_s_password_is_refused(cluster: Cluster):
    with pytest.raises(LoginError, match="NUL character"):
        asyncio.run(log_in(PasswordAccess(watcher), "right\0"))
    assert cluster.asked == []
