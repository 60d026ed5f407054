"""What a watcher asks for single pages: once for all who look at the same time, and not kept for longer."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import msgspec
import pytest

from ottla.client import Client
from ottla.console import watcher as module
from ottla.console.watcher import FRESH_MS, ClusterWatcher
from ottla.health.samples import Sample
from tests.unit.console.seen import NOW_MS, context_of, watcher_of


class Records:
    """A large answer."""


class Asked:
    """Questions of pages at times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = NOW_MS
        self.asked: list[str] = []
        monkeypatch.setattr(module, "now_ms", lambda: self.now_ms)
        monkeypatch.setattr(ClusterWatcher, "client", cast("Client", object()))
        self.watcher = watcher_of()

    async def ask(self, page: str, after_ms: int = 0) -> tuple[Any, int]:
        async def work(_: Client) -> Records:
            self.asked.append(page)
            return Records()

        self.now_ms += after_ms
        return await self.watcher.ask((page,), work)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def test_an_answer_serves_all_who_ask_within_two_seconds(asked: Asked):
    async def run() -> None:
        first, at_ms = await asked.ask("orders")
        assert await asked.ask("orders", after_ms=FRESH_MS - 1) == (first, at_ms)
        assert (await asked.ask("orders", after_ms=1))[1] == NOW_MS + FRESH_MS

    asyncio.run(run())
    assert asked.asked == ["orders", "orders"]


def test_an_answer_is_not_kept_for_longer(asked: Asked):
    async def run() -> None:
        page = ref((await asked.ask("orders"))[0])
        await asked.ask("payments", after_ms=FRESH_MS)
        gc.collect()
        assert page() is None

    asyncio.run(run())


def test_an_answer_is_asked_for_again_after_the_clock_was_set_back(asked: Asked):
    async def run() -> None:
        await asked.ask("orders")
        await asked.ask("orders", after_ms=-3_600_000)

    asyncio.run(run())
    assert asked.asked == ["orders", "orders"]


@pytest.mark.parametrize(("probed_ms", "error"), [(None, "UNREACHABLE"), (NOW_MS - 1, "UNREACHABLE"), (NOW_MS, None)])
def test_an_outage_is_over_with_the_next_probe_that_succeeds(
    probed_ms: int | None, error: str | None, monkeypatch: pytest.MonkeyPatch
):
    """A cluster without transactions has no sample that would tell it."""
    monkeypatch.setattr(ClusterWatcher, "probed_ms", lambda *_: probed_ms)
    watcher = watcher_of()
    watcher.state.take(
        Sample(kind="transactions", ts=NOW_MS - 1, cluster="c", observer="o", seq=1, error="UNREACHABLE")
    )
    assert context_of(watcher).source("transactions").error == error


def test_samples_of_an_observer_whose_clock_is_ahead_do_not_stop_the_time(monkeypatch: pytest.MonkeyPatch):
    ahead = Sample(kind="cluster", ts=NOW_MS + 600_000, cluster="c", observer="o", seq=1, body={"brokers": []})

    async def read_topic(*_: object) -> list[Sample]:
        return [msgspec.structs.replace(ahead, ts=NOW_MS), ahead]

    monkeypatch.setattr(module, "read_topic", read_topic)
    monkeypatch.setattr(module, "now_ms", lambda: NOW_MS)
    watcher = watcher_of()
    asyncio.run(watcher._recall(cast("Client", Connected())))
    assert watcher.state.evaluator.last_ms == NOW_MS


class Connected:
    """A client of a cluster that is there."""

    def __init__(self, *_: object, **settings: object) -> None:
        self.metadata = SimpleNamespace(cluster_id="c")

    async def __aenter__(self) -> Connected:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is to be closed."""


@pytest.mark.parametrize("failing", ["run", "advance"])
def test_an_unforeseen_error_is_logged_and_shown_and_the_cluster_is_watched_again(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    watcher = watcher_of()
    outages: list[str] = []
    is_watched_again = asyncio.Event()

    async def run(_: object) -> None:
        if outages:
            is_watched_again.set()
        elif failing == "run":
            raise LookupError("gone")
        await asyncio.Event().wait()

    def advance(now_ms: int) -> set[str]:
        if failing == "advance" and not outages:
            raise LookupError("gone")
        return set()

    def publish(_: set[str]) -> None:
        if watcher.outage is not None:
            outages.append(watcher.outage.why)

    async def scenario() -> None:
        watching = asyncio.create_task(watcher.run())
        again = asyncio.create_task(is_watched_again.wait())
        done, _ = await asyncio.wait([watching, again], return_when=asyncio.FIRST_COMPLETED)
        assert watching not in done
        watching.cancel()

    watcher.recalled = "nothing"
    monkeypatch.setattr(module, "Client", Connected)
    monkeypatch.setattr(module.Observer, "run", run)
    monkeypatch.setattr(watcher.state, "advance", advance)
    monkeypatch.setattr(watcher.events, "publish", publish)
    monkeypatch.setattr(module, "ADVANCE_S", 0)
    monkeypatch.setattr(module, "RETRY_LONGEST_MS", 0)
    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert outages == ["an unforeseen error, which the console's log tells"]
    assert "LookupError: gone" in caplog.text
