"""An observer on a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ottla.client.address import Address, Peer
from ottla.client.errors import ConnectError, ResponseError
from ottla.health.facts import Coverage, Group, Quorum
from ottla.health.samples import Sample, fact_in
from ottla.observe.memory import ProbeContext
from ottla.observe.observer import Observer, Options
from ottla.observe.probe_result import ProbeResult, probe_result
from ottla.wire.errors import ErrorCode
from tests.unit.client.running import run
from tests.unit.observe.virtual import START_MS, ListSink, NoClient, VirtualClock

ProbeFunction = Callable[[ProbeContext], Awaitable[list[ProbeResult]]]
PEER = Peer(Address("localhost", 9092))


async def quorum(_: ProbeContext) -> list[ProbeResult]:
    return [probe_result("", Quorum(leader=1, leader_epoch=1))]


async def group(_: ProbeContext) -> list[ProbeResult]:
    return [probe_result("billing", Group(group="billing", type="consumer", state="Stable"))]


def observer(
    probes: Mapping[str, ProbeFunction], intervals_s: Mapping[str, float], sink: ListSink | None = None, **more: Any
) -> Observer:
    clock, client = more.pop("clock", None) or VirtualClock(), more.pop("client", NoClient())
    options = Options(intervals_s, **more)
    return Observer(client, "run", options, sink=sink or ListSink(), probes=probes, clock=clock)


def of_kind(samples: list[Sample], kind: str) -> list[Sample]:
    return [each for each in samples if each.kind == kind]


def times(samples: list[Sample]) -> list[float]:
    return [(each.ts - START_MS) / 1000 for each in samples]


def test_samples_come_in_their_intervals():
    async def body() -> None:
        sink = ListSink()
        await observer({"quorum": quorum, "group": group}, {"quorum": 10, "group": 1}, sink).run(125_000)
        assert times(of_kind(sink.written, "quorum")) == list(range(0, 125, 10))
        assert times(of_kind(sink.written, "group")) == [0, 60, 120]  # it does not change
        assert [each.heartbeat for each in of_kind(sink.written, "group")] == [False, True, True]
        assert [each.seq for each in sink.written] == list(range(len(sink.written)))
        assert {each.cluster for each in sink.written} == {"cluster-1"}
        assert sink.is_closed

    run(body)


def test_a_slow_look_holds_up_none_of_the_others():
    async def body() -> None:
        clock, sink = VirtualClock(), ListSink()

        async def slow(_: ProbeContext) -> list[ProbeResult]:
            await clock.wait(clock.ms + 7_000, asyncio.Event())
            return await group(_)

        await observer({"quorum": quorum, "group": slow}, {"quorum": 1, "group": 1}, sink, clock=clock).run(20_000)
        assert len(of_kind(sink.written, "quorum")) == 20
        (first, *_) = of_kind(sink.written, "group")
        assert (first.took_ms, times([first])) == (7_000, [0])

    run(body)


def test_a_look_that_fails_is_a_sample_too_and_ends_with_a_whole_picture():
    async def body() -> None:
        sink = ListSink()
        clock = VirtualClock()

        class Client(NoClient):
            @property
            def is_connected(self) -> bool:  # type: ignore[override]
                return not 3_000 <= clock.ms < 6_000

        async def failing(_: ProbeContext) -> list[ProbeResult]:
            if 3_000 <= clock.ms < 6_000:
                raise ConnectError(PEER, "connection refused")
            return await group(_)

        await observer({"group": failing}, {"group": 1}, sink, clock=clock, client=Client()).run(10_000)
        told = [(time, each.error) for time, each in zip(times(sink.written), sink.written, strict=True)
                if each.kind == "group"]  # fmt: skip
        assert told == [(0, None), (3, "UNREACHABLE"), (4, "UNREACHABLE"), (5, "UNREACHABLE"), (6, None)]

    run(body)


def test_a_right_that_is_missing_is_said_once_a_minute():
    async def body() -> None:
        sink = ListSink()

        async def denied(_: ProbeContext) -> list[ProbeResult]:
            raise ResponseError(PEER, "DescribeQuorum", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        await observer({"quorum": denied}, {"quorum": 1}, sink).run(30_000)
        assert {each.error for each in of_kind(sink.written, "quorum")} == {"CLUSTER_AUTHORIZATION_FAILED"}
        (coverage,) = of_kind(sink.written, "coverage")
        why = "needs DescribeQuorum: DESCRIBE on the cluster (error: CLUSTER_AUTHORIZATION_FAILED)"
        assert fact_in(coverage) == Coverage(what="quorum", visible=False, why=why)

    run(body)


def test_one_node_that_is_down_is_not_the_whole_cluster():
    async def body() -> None:
        sink = ListSink()

        async def partly(_: ProbeContext) -> list[ProbeResult]:
            raise ConnectError(PEER, "connection refused")

        await observer({"quorum": partly}, {"quorum": 1}, sink).run(500)
        assert [each.error for each in sink.written] == ["NODE_UNREACHABLE"]

    run(body)


def test_what_cannot_be_written_waits_and_is_written_in_order():
    async def body() -> None:
        sink, clock = ListSink(), VirtualClock()
        sink.failing = True

        async def mend(_: ProbeContext) -> list[ProbeResult]:
            sink.failing = clock.ms < 40_000
            return await quorum(_)

        watching = observer({"quorum": mend}, {"quorum": 1}, sink, clock=clock)
        await watching.run(120_000)
        assert times(of_kind(sink.written, "quorum")) == list(range(120))
        assert watching.waiting == 0
        assert watching.problem is None
        assert sink.attempts < 40 + 120  # there were pauses between the attempts

    run(body)


def test_what_waits_is_written_at_once_when_the_cluster_is_back():
    async def body() -> None:
        sink, clock = ListSink(), VirtualClock()
        written_ms: list[int] = []

        def is_down() -> bool:
            return 3_000 <= clock.ms < 100_000

        class Client(NoClient):
            @property
            def is_connected(self) -> bool:  # type: ignore[override]
                return not is_down()

        async def probe(_: ProbeContext) -> list[ProbeResult]:
            if is_down():
                raise ConnectError(PEER, "connection refused")
            return await quorum(_)

        class Sink(ListSink):
            async def write(self, samples: Sequence[Sample]) -> None:
                self.failing = is_down()
                await super().write(samples)
                written_ms.append(clock.ms)

        sink = Sink()
        await observer({"quorum": probe}, {"quorum": 1}, sink, clock=clock, client=Client()).run(110_000)
        assert len(of_kind(sink.written, "quorum")) == 110
        assert min(at_ms for at_ms in written_ms if at_ms > 3_000) <= 100_000

    run(body)


def test_the_last_samples_are_tried_once_more_when_the_observer_ends():
    async def body() -> None:
        clock = VirtualClock()

        class Client(NoClient):
            is_left_alone = True

            def try_again(self) -> None:
                self.is_left_alone = False

        client = Client()

        class Sink(ListSink):
            async def write(self, samples: Sequence[Sample]) -> None:
                self.failing = client.is_left_alone
                await super().write(samples)

        sink = Sink()
        watching = observer({"quorum": quorum}, {"quorum": 1}, sink, clock=clock, client=client)
        await watching.run(30_000)
        assert len(of_kind(sink.written, "quorum")) == 30
        assert watching.waiting == 0

    run(body)


def test_a_queue_that_is_full_drops_the_oldest_and_says_so():
    async def body() -> None:
        sink, clock = ListSink(), VirtualClock()

        async def mend(_: ProbeContext) -> list[ProbeResult]:
            sink.failing = clock.ms < 50_000
            return await quorum(_)

        sink.failing = True
        await observer({"quorum": mend}, {"quorum": 1}, sink, clock=clock, room=10).run(120_000)
        lost = sum(each.dropped for each in sink.written)
        assert lost > 0
        assert sink.written[0].dropped == lost
        assert [each.seq for each in sink.written] == list(range(lost, lost + len(sink.written)))

    run(body)


def test_a_look_may_bring_more_than_there_is_room_for():
    async def body() -> None:
        sink = ListSink()

        async def many(_: ProbeContext) -> list[ProbeResult]:
            return [probe_result(str(number), Quorum(leader=number, leader_epoch=1)) for number in range(5_000)]

        watching = observer({"quorum": many}, {"quorum": 60}, sink, room=100)
        await watching.run(is_enough=lambda: watching.probed_all)
        assert len(of_kind(sink.written, "quorum")) == 5_000
        assert sum(each.dropped for each in sink.written) == 0

    run(body)


def test_an_observer_that_is_stopped_writes_what_it_has_seen():
    async def body() -> None:
        sink, clock = ListSink(), VirtualClock()
        watching: list[Observer] = []

        async def stopping(_: ProbeContext) -> list[ProbeResult]:
            if clock.ms >= 5_000:
                watching[0].stop()
            return await quorum(_)

        watching.append(observer({"quorum": stopping}, {"quorum": 1}, sink, clock=clock))
        await watching[0].run()
        assert len(of_kind(sink.written, "quorum")) == 6
        assert sink.is_closed

    run(body)


def test_it_ends_when_it_is_enough():
    async def body() -> None:
        sink = ListSink()
        watching = observer({"quorum": quorum, "group": group}, {"quorum": 1, "group": 1}, sink)
        await watching.run(is_enough=lambda: watching.probed_all)
        assert {each.kind for each in sink.written} == {"quorum", "group", "coverage"}

    run(body)
