"""How the share consumer looks after the locks of what it has not given yet."""

from __future__ import annotations

import time

import pytest

from ottla.client import ShareConsumer
from tests.component.client.share.leaders import (
    ACCEPT,
    EXPLICIT,
    LOCK_MS,
    QUICK,
    REJECT,
    RENEW,
    OneLeader,
    consuming,
    delivery,
    polled,
)
from tests.unit.client.running import run


class Clock:
    """Moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_s = 0.0
        for module in ("consumer", "exchange"):
            monkeypatch.setattr(f"ottla.client.share.{module}.monotonic_s", self)

    def __call__(self) -> float:
        return time.monotonic() + self._ahead_s

    def pass_locks(self, share: float) -> None:
        self._ahead_s += share * LOCK_MS / 1000


async def read(consumer: ShareConsumer, count: int) -> list[int]:
    return [(await anext(consumer)).offset for _ in range(count)]


def test_slow_work_is_accepted_in_time_and_the_rest_is_kept(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(6))])
        clock = Clock(monkeypatch)
        async with scene.cluster, scene.cluster.client() as client:
            async with ShareConsumer(client, "g", ["jobs"], **QUICK) as consumer:
                assert await read(consumer, 2) == [0, 1]
                clock.pass_locks(0.6)
                assert await read(consumer, 1) == [2]
                assert scene.leader.said == [(0, 0, 1, ACCEPT), (0, 2, 5, RENEW)]
                clock.pass_locks(0.6)
                assert await read(consumer, 2) == [3, 4]
                assert scene.leader.said[2:] == [(0, 2, 2, ACCEPT), (0, 3, 5, RENEW)]
            assert scene.leader.said[4:] == [(0, 3, 3, ACCEPT)]

    run(body)


def test_what_waits_behind_slow_work_is_kept_as_well(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(0, 1), delivery(0, 1, partition=1)], partitions=2)
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **QUICK) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [1]
            assert scene.leader.said == [(0, 0, 0, ACCEPT), (0, 1, 1, RENEW), (1, 0, 1, RENEW)]
            clock.pass_locks(0.45)
            assert await read(consumer, 2) == [0, 1], "of the other partition, whose first locks would have ended"

    run(body)


def test_explicit_verdicts_are_sent_in_time(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(4))])
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            one, two = await anext(consumer), await anext(consumer)
            consumer.reject(one)
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [2]
            assert scene.leader.said == [(0, 0, 0, REJECT), (0, 2, 3, RENEW)], "what is in hand is the user's matter"
            consumer.accept(two)

    run(body)


def test_where_locks_cannot_be_renewed_they_are_used_up(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(*range(5))], [delivery(9)])
        scene.broker.versions = {"ShareFetch": (1, 1), "ShareAcknowledge": (1, 1)}
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(0.6)
            assert await read(consumer, 2) == [1, 2]
            clock.pass_locks(0.6)
            assert await read(consumer, 1) == [9], "3 and 4 are for others"
            assert consumer.held_count == 4

    run(body)


def test_what_nobody_asked_for_in_time_is_not_given(monkeypatch: pytest.MonkeyPatch):
    async def body() -> None:
        scene = OneLeader([delivery(0), delivery(0, partition=1)], [delivery(7)], partitions=2)
        clock = Clock(monkeypatch)
        async with consuming(scene.cluster, **EXPLICIT) as consumer:
            assert await read(consumer, 1) == [0]
            clock.pass_locks(1.1)
            assert [each.offset for each in await polled(consumer)] == [7]

    run(body)
