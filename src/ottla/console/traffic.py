"""Live traffic for pages: streams of all brokers with one filter, merged, while somebody looks.

A page that is opened begins a tap, or finds the one that others with the same rights have begun with the same filter.
A tap that nobody has looked at for `IDLE_MS` ends. What it has seen is in a ring; open pages are told at most once a
second that there is more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ottla.client import Client
from ottla.client.traffic import TrafficRefusedError, follow_traffic, traffic_url

__all__ = ["Follow", "LiveFrame", "NodeTraffic", "Tap", "Taps", "TrafficFilter"]

FRAMES_MAX: Final = 2_000
TAPS_MAX: Final = 4
IDLE_MS: Final = 30_000
NEWS_S: Final = 1.0
RETRY_S: Final = 5.0
READY_S: Final = 3.0

Follow = Callable[[Client, str], Any]
"""`follow_traffic`, or what stands in for it in tests."""


class TrafficFilter(NamedTuple):
    client_id: str = ""
    api: str = ""
    errors_only: bool = False


class LiveFrame(msgspec.Struct, frozen=True):
    """A request or a response."""

    node: int
    at_us: int
    conn: str
    """The client's address."""
    listener: str
    client_id: str | None
    principal: str
    api: str
    version: int
    corr: int
    dir: str
    """req or resp."""
    bytes: int
    ms: float | None
    """Of a response: the time since its request."""
    error: str | None
    """Names of the errors in it."""
    text: str
    """What it is about, in a few words."""
    json: Any
    """The message; null if it is too large, and then `left_out` says so."""
    left_out: str | None
    hex: str | None
    """The bytes of the message, if it is small and can hold neither secrets nor records."""
    record_bytes_left_out: int


class NodeTraffic(msgspec.Struct, frozen=True):
    """How the stream of one node goes."""

    node: int
    seen_per_s: int = 0
    shown_per_s: int = 0
    one_in: int = 1
    """One exchange in so many is shown."""
    dropped: int = 0
    """Frames that the console was too slow for."""
    why_not: str | None = None


def live_frame(line: Mapping[str, Any]) -> LiveFrame:
    """A line of a broker's stream."""
    errors: Mapping[str, int] = line["errors"]
    return LiveFrame(
        node=line["node"],
        at_us=line["at_us"],
        conn=line["client"],
        listener=line["broker"],
        client_id=line["client_id"],
        principal=line["principal"],
        api=line["api"],
        version=line["version"],
        corr=line["correlation_id"],
        dir="req" if line["kind"] == "request" else "resp",
        bytes=line["size_bytes"],
        ms=line.get("latency_ms"),
        error=", ".join(name if count == 1 else f"{name} ×{count}" for name, count in errors.items()) or None,
        text=line["text"],
        json=line["body"],
        left_out=line.get("body_left_out"),
        hex=line.get("body_hex"),
        record_bytes_left_out=line["record_bytes_left_out"],
    )


class Tap:
    """The merged streams of some nodes."""

    def __init__(self, nodes: Mapping[int, str], now_ms: int) -> None:
        self.addresses = dict(nodes)
        self.since_ms = self.viewed_ms = now_ms
        self.frames: deque[LiveFrame] = deque(maxlen=FRAMES_MAX)
        self.nodes: dict[int, NodeTraffic] = {}
        self.has_news = False
        self.is_ready = asyncio.Event()
        """Every node has answered, or has failed to."""
        self.tasks: list[asyncio.Task[None]] = []

    def take(self, node: int, line: Mapping[str, Any]) -> None:
        if line["kind"] == "status":
            self._note(
                NodeTraffic(node, line["seen_per_second"], line["shown_per_second"], line["one_in"], line["dropped"])
            )
        else:
            self.frames.append(live_frame(line))
            self.has_news = True

    def fail(self, node: int, why: str) -> None:
        self._note(NodeTraffic(node, why_not=why))

    def _note(self, state: NodeTraffic) -> None:
        self.nodes[state.node] = state
        if len(self.nodes) == len(self.addresses):
            self.is_ready.set()

    def newest(self, limit: int) -> list[LiveFrame]:
        """The last frames of all nodes, the newest first, by the clocks of the nodes."""
        return sorted(self.frames, key=lambda each: each.at_us, reverse=True)[:limit]

    async def ready(self) -> None:
        """Wait until it is known of every node whether it shows its traffic, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_S):
                await self.is_ready.wait()


class Taps:
    """The taps of one principal. `publish` tells open pages that there is more."""

    def __init__(
        self, publish: Callable[[set[str]], None], now_ms: Callable[[], int], follow: Follow = follow_traffic
    ) -> None:
        self._publish = publish
        self._now_ms = now_ms
        self._follow_traffic = follow
        self._taps: dict[TrafficFilter, Tap] = {}

    def look(self, client: Client, nodes: Mapping[int, str], wanted: TrafficFilter) -> Tap:
        """The tap with a filter; it is begun if there is none, or if the nodes are others than they were."""
        tap = self._taps.get(wanted)
        if tap is None or tap.addresses != dict(nodes):
            self._end(wanted)
            if len(self._taps) >= TAPS_MAX:
                self._end(min(self._taps, key=lambda each: self._taps[each].viewed_ms))
            tap = self._taps[wanted] = self._begin(client, nodes, wanted)
        tap.viewed_ms = self._now_ms()
        return tap

    def _begin(self, client: Client, nodes: Mapping[int, str], wanted: TrafficFilter) -> Tap:
        tap = Tap(nodes, self._now_ms())
        for node, address in nodes.items():
            url = traffic_url(address, client_id=wanted.client_id, api=wanted.api, errors_only=wanted.errors_only)
            tap.tasks.append(asyncio.create_task(self._follow(client, url, node, tap)))
        tap.tasks.append(asyncio.create_task(self._tell(wanted, tap)))
        return tap

    async def _follow(self, client: Client, url: str, node: int, tap: Tap) -> None:
        while True:
            try:
                async for line in self._follow_traffic(client, url):
                    tap.take(node, line)
                tap.fail(node, "the node has ended the stream")
            except TrafficRefusedError as error:
                tap.fail(node, str(error))
                return
            except OSError as error:
                tap.fail(node, f"{url} cannot be read: {error}")
            await asyncio.sleep(RETRY_S)

    async def _tell(self, wanted: TrafficFilter, tap: Tap) -> None:
        while self._now_ms() - tap.viewed_ms < IDLE_MS:
            await asyncio.sleep(NEWS_S)
            if tap.has_news:
                tap.has_news = False
                self._publish({"frame"})
        self._end(wanted)

    def _end(self, wanted: TrafficFilter) -> None:
        tap = self._taps.pop(wanted, None)
        for task in () if tap is None else tap.tasks:
            task.cancel()

    def close(self) -> None:
        for wanted in list(self._taps):
            self._end(wanted)
