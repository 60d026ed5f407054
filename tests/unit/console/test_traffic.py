"""Taps of live traffic: streams of several nodes in one list, for as long as somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from ottla.client import Client
from ottla.client.traffic import TrafficRefusedError, traffic_url
from ottla.console import traffic
from ottla.console.traffic import FRAMES_MAX, IDLE_MS, TAPS_MAX, Taps, TrafficFilter
from ottla.testing.virtual_loop import VirtualLoop

CLIENT = cast(Client, None)
NODES = {1: "http://127.0.0.1:1", 2: "http://127.0.0.1:2"}
EVERYTHING = TrafficFilter()


def frame(node: int, at_us: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "request",
        "node": node,
        "at_us": at_us,
        "client": "127.0.0.1:50000",
        "broker": "PLAINTEXT",
        "client_id": "app",
        "principal": "User:ann",
        "api": "Fetch",
        "version": 17,
        "correlation_id": 1,
        "size_bytes": 10,
        "errors": {},
        "text": "",
        "body": {},
        "record_bytes_left_out": 0,
        **more,
    }


def status(node: int) -> dict[str, Any]:
    return {"kind": "status", "node": node, "seen_per_second": 40, "shown_per_second": 4, "one_in": 10, "dropped": 3}


class Streams:
    """Brokers: what each of them sends, and then it is silent."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.lines: dict[str, list[Mapping[str, Any] | OSError]] = {}
        self.asked: list[str] = []
        self.open = 0
        self.published: list[set[str]] = []
        self.taps = Taps(self.published.append, self.now_ms, self.follow)

    def now_ms(self) -> int:
        return round(1000 * self._loop.time())

    async def follow(self, client: Client, url: str) -> AsyncIterator[Mapping[str, Any]]:
        self.asked.append(url)
        self.open += 1
        try:
            for line in self.lines.get(url.partition("/inspect")[0], []):
                if isinstance(line, OSError):
                    raise line
                yield line
            await asyncio.Event().wait()
        finally:
            self.open -= 1


def played(story: Any) -> None:
    """Run a story on virtual time."""
    loop = VirtualLoop()
    try:
        loop.run_until_complete(story(Streams(loop)))
    finally:
        loop.close()


def test_frames_of_all_nodes_are_merged_by_their_time():
    async def story(streams: Streams) -> None:
        streams.lines = {NODES[1]: [status(1), frame(1, 10), frame(1, 30)], NODES[2]: [status(2), frame(2, 20)]}
        tap = streams.taps.look(CLIENT, NODES, EVERYTHING)
        await tap.ready()
        await asyncio.sleep(0.1)
        assert [(each.node, each.at_us) for each in tap.newest(10)] == [(1, 30), (2, 20), (1, 10)]
        assert [each.at_us for each in tap.newest(1)] == [30]
        assert [(each.seen_per_s, each.one_in, each.dropped) for each in tap.nodes.values()] == [(40, 10, 3)] * 2
        streams.taps.close()

    played(story)


def test_pages_with_the_same_filter_share_a_tap():
    async def story(streams: Streams) -> None:
        first = streams.taps.look(CLIENT, NODES, EVERYTHING)
        assert streams.taps.look(CLIENT, NODES, EVERYTHING) is first
        other = streams.taps.look(CLIENT, NODES, TrafficFilter("a b*", "Fetch", errors_only=True))
        assert other is not first
        await asyncio.sleep(0.1)
        assert streams.asked[2] == f"{NODES[1]}/inspect/v1/traffic?client=a+b%2A&api=Fetch&errors=1"
        assert streams.taps.look(CLIENT, {1: NODES[1]}, EVERYTHING) is not first, "a node is gone"
        streams.taps.close()

    played(story)


def test_a_tap_ends_when_nobody_looks():
    async def story(streams: Streams) -> None:
        tap = streams.taps.look(CLIENT, NODES, EVERYTHING)
        await asyncio.sleep(0.9 * IDLE_MS / 1000)
        assert streams.taps.look(CLIENT, NODES, EVERYTHING) is tap
        await asyncio.sleep(0.9 * IDLE_MS / 1000)
        assert streams.open == 2
        await asyncio.sleep(0.2 * IDLE_MS / 1000)
        assert streams.open == 0
        assert streams.taps.look(CLIENT, NODES, EVERYTHING) is not tap
        streams.taps.close()

    played(story)


def test_so_many_taps_at_a_time():
    async def story(streams: Streams) -> None:
        for number in range(TAPS_MAX + 1):
            streams.taps.look(CLIENT, NODES, TrafficFilter(f"client-{number}"))
            await asyncio.sleep(0.1)
        assert streams.open == TAPS_MAX * len(NODES)
        streams.taps.close()
        await asyncio.sleep(0)
        assert streams.open == 0

    played(story)


def test_open_pages_are_told_once_a_second():
    async def story(streams: Streams) -> None:
        streams.lines = {NODES[1]: [frame(1, each) for each in range(3 * FRAMES_MAX)]}
        tap = streams.taps.look(CLIENT, NODES, EVERYTHING)
        await asyncio.sleep(5)
        assert streams.published == [{"frame"}]
        assert len(tap.frames) == FRAMES_MAX
        streams.taps.close()

    played(story)


def test_who_is_refused_does_not_ask_again_and_who_is_cut_off_does():
    async def story(streams: Streams) -> None:
        refused = TrafficRefusedError("needs ALTER on the cluster (you are User:bob)")
        streams.lines = {NODES[1]: [refused], NODES[2]: [status(2), ConnectionResetError("reset")]}
        tap = streams.taps.look(CLIENT, NODES, EVERYTHING)
        await tap.ready()
        await asyncio.sleep(2.5 * traffic.RETRY_S)
        assert tap.nodes[1].why_not == "needs ALTER on the cluster (you are User:bob)"
        assert tap.nodes[2].why_not == f"{NODES[2]}/inspect/v1/traffic cannot be read: reset"
        assert [streams.asked.count(traffic_url(each)) for each in NODES.values()] == [1, 3]
        streams.taps.close()

    played(story)


def test_a_node_that_does_not_answer_is_not_waited_for_long():
    async def story(streams: Streams) -> None:
        tap = streams.taps.look(CLIENT, NODES, EVERYTHING)
        await tap.ready()
        assert streams.now_ms() == round(1000 * traffic.READY_S)
        assert tap.nodes == {}
        streams.taps.close()

    played(story)


def test_errors_are_counted_in_words():
    line = frame(1, 1, kind="response", errors={"NOT_LEADER_OR_FOLLOWER": 2, "REQUEST_TIMED_OUT": 1}, latency_ms=1.5)
    shown = traffic.live_frame(line)
    assert (shown.dir, shown.ms, shown.error) == ("resp", 1.5, "NOT_LEADER_OR_FOLLOWER ×2, REQUEST_TIMED_OUT")
