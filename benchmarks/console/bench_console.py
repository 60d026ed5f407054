"""Pages of the console on a large cluster, and its memory while people look at it.

    python -m benchmarks.console.bench_console [--topics 5000] [--groups 1000] [--viewers 10] [--minutes 60]

One node with that many topics and groups, and a streams application of 200 processors. Each page is loaded in turn;
the time is that of the whole answer, as a browser waits for it. Then viewers, each with a stream of events, load one
page after the other every few seconds. The memory of the console's process is sampled; what counts is the most that it
held in each quarter of the time. A page that is not answered is counted, and the viewer goes on. Nobody else shows all
of this, so no figure stands beside another's.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from benchmarks import runner
from benchmarks.broker.brokers import Ottla, resident_bytes
from benchmarks.rounds import boot
from benchmarks.runner import Case, Measurement, Size
from ottla.client import Client, topics
from ottla.client.group_offsets import commit
from ottla.client.metadata import TopicPartition
from ottla.client.topics import NewTopic
from ottla.wire.types import StreamsGroupHeartbeatRequest, StreamsGroupTopologyDescriptionUpdateRequest
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join
from tests.interop import process
from tests.interop.apache import free_ports

MIB = 1 << 20
TOPICS = {Size.FULL: 5_000, Size.QUICK: 5_000, Size.SMOKE: 5}
GROUPS = {Size.FULL: 1_000, Size.QUICK: 1_000, Size.SMOKE: 3}
MINUTES = {Size.FULL: 60.0, Size.QUICK: 1.0, Size.SMOKE: 0.05}
SUBTOPOLOGIES = 20
PROCESSORS = 10
"""Of a subtopology."""
TOPICS_AT_ONCE = 500
LOADS_EVERY_S = 2.0
SAMPLES_EVERY_S = 1.0
PAGE_TIMEOUT_S = 60.0
MESSAGE_CHARS = 200
APPLICATION = "large"
SETTINGS = {
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    ),
    "group.streams.max.session.timeout.ms": "2000000000",
    "group.streams.session.timeout.ms": "2000000000",
}
"""Its one member never heartbeats again."""
PAGES = (
    "/",
    "/findings",
    "/topics",
    "/topics?after=topic-2500",
    "/topics/topic-7",
    "/topics/topic-7/records",
    "/groups",
    "/groups/group-7",
    "/groups/group-7/offsets",
    f"/groups/{APPLICATION}",
    f"/groups/{APPLICATION}/topology",
    "/nodes",
    "/quorum",
    "/transactions",
    "/wire/api/StreamsGroupDescribe/response-v1",  # the longest page about a message
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__)
    parser.add_argument("--topics", type=int, help="how many topics the cluster has")
    parser.add_argument("--groups", type=int, help="how many groups have committed offsets")
    parser.add_argument("--viewers", type=int, default=10, help="how many look at pages at the same time")
    parser.add_argument("--minutes", type=float, help="how long they look")
    options = runner.read_options(
        parser, arguments, rounds=runner.ROUNDS, topics=TOPICS, groups=GROUPS, minutes=MINUTES
    )
    with running_console(options) as console:
        done = [page_times(console, path, options.rounds) for path in PAGES if options.only in path]
        viewing = view(console, options.viewers, options.minutes * 60)
    print(viewing.told(options.viewers, options.minutes), flush=True)
    facts = {name: getattr(options, name) for name in ("topics", "groups", "viewers", "minutes")}
    runner.save("console", done, options, ("starlette", "uvicorn"), {**facts, **viewing.facts()})
    return 0


# --- a large cluster and its console ----------------------------------------------------------------------------------


class Console:
    def __init__(self, address: str, pid: int) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self.pid = pid
        self._cookie = ""
        answer = self.open(f"/?{parts.query}")
        self._cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        answer.close()

    def open(self, path: str) -> HTTPResponse:
        connection = HTTPConnection(self._host, self._port, timeout=PAGE_TIMEOUT_S)
        connection.request("GET", path, headers={"cookie": self._cookie} if self._cookie else {})
        return connection.getresponse()

    def load(self, path: str) -> float:
        """The seconds until a page is there."""
        began = time.perf_counter()
        with self.open(path) as answer:
            body = answer.read()
        seconds = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")
        return seconds


@contextmanager
def running_console(options: argparse.Namespace) -> Iterator[Console]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        broker = Ottla(directory / "broker", free_ports(1)[0], SETTINGS)
        stack.callback(broker.stop)
        boot(broker)
        servers = f"127.0.0.1:{broker.port}"
        asyncio.run(fill(servers, options.topics, options.groups))
        raw = RawClient.at(servers)
        stack.callback(raw.close_all)
        describe_application(raw)
        command = [sys.executable, "-m", "ottla", "console", "--bootstrap", servers, "--port", "0"]
        child = subprocess.Popen(process.tied(command), stdout=subprocess.PIPE, text=True)
        stack.callback(process.stop, child, timeout_s=30.0)
        assert child.stdout is not None
        address = child.stdout.readline().removeprefix("console=").strip()
        console = Console(address, child.pid)
        wait_for_samples(console)
        yield console


async def fill(servers: str, count: int, groups: int) -> None:
    names = [f"topic-{number}" for number in range(max(count, 10))]
    async with Client(servers) as client:
        for start in range(0, len(names), TOPICS_AT_ONCE):
            await topics.create(client, *(NewTopic(name, 1) for name in names[start : start + TOPICS_AT_ONCE]))
        for number in range(max(groups, 10)):
            at = TopicPartition(names[number % len(names)], 0)
            await commit(client, f"group-{number}", {at: 0})


def describe_application(raw: RawClient) -> None:
    """A streams application whose subtopologies read one topic each, and the description of its processors."""
    request, push = StreamsGroupHeartbeatRequest, StreamsGroupTopologyDescriptionUpdateRequest
    node = push.TopologyDescriptionNode
    parts = [(str(number), f"topic-{number % 10}") for number in range(SUBTOPOLOGIES)]
    declared = request.Topology(0, tuple(request.Subtopology(part, (topic,)) for part, topic in parts))
    raw.ask(join(APPLICATION, "member", declared), 1)

    def processors(part: str, topic: str) -> tuple[push.TopologyDescriptionNode, ...]:
        names = [f"KSTREAM-PEEK-{part}{number:09}" for number in range(PROCESSORS)]
        following = [*((name,) for name in names[1:]), ()]
        first = node(names[0], 1, source_topics=(topic,), successors=following[0])
        return first, *(node(name, 2, successors=after) for name, after in zip(names[1:], following[1:], strict=True))

    described = tuple(push.TopologyDescriptionSubtopology(part, processors(part, topic)) for part, topic in parts)
    answer = raw.ask(push(APPLICATION, "member", 0, push.TopologyDescription(described, ())), 0)
    assert answer.error_code == 0, answer


def wait_for_samples(console: Console) -> None:
    """Until the console knows all groups and topics."""
    for path in PAGES:
        until = time.monotonic() + PAGE_TIMEOUT_S
        while True:
            try:
                console.load(path)
                break
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


# --- what is measured -------------------------------------------------------------------------------------------------


def page_times(console: Console, path: str, rounds: int) -> tuple[Case, list[Measurement]]:
    case = Case(path, [])
    measured = [Measurement(path, "console", 1, tuple(console.load(path) for _ in range(rounds)))]
    print("\n".join(runner.table(measured)), flush=True)
    return case, measured


class Viewing:
    """What happened while viewers looked. Their threads only append."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.held_bytes: list[int] = []
        self.seconds: list[float] = []
        """Of each page that was loaded."""
        self.failures: list[str] = []

    def facts(self) -> dict[str, object]:
        return {
            "peak_bytes_of_quarters": runner.quarters(self.held_bytes),
            "pages_loaded": len(self.seconds),
            "pages_failed": len(self.failures),
            "median_s_with_viewers": median(self.seconds),
            "slowest_s_with_viewers": max(self.seconds, default=0.0),
        }

    def told(self, viewers: int, minutes: float) -> str:
        shown = ", ".join(f"{each / MIB:.0f} MiB" for each in runner.quarters(self.held_bytes))
        middle, worst = runner.duration(median(self.seconds)), runner.duration(max(self.seconds, default=0.0))
        pages = f"{len(self.seconds):,} pages, median {middle}, slowest {worst}; {len(self.failures):,} failed"
        return f"{viewers} viewers for {minutes:g} min: {pages}. Held at most, quarter by quarter: {shown}"


def median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) if seconds else 0.0


def view(console: Console, viewers: int, seconds: float) -> Viewing:
    viewing = Viewing()
    looking = [threading.Thread(target=look, args=(console, each, viewing), daemon=True) for each in range(viewers)]
    following = [threading.Thread(target=follow, args=(console, viewing), daemon=True) for _ in range(viewers)]
    for thread in (*looking, *following):
        thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        viewing.held_bytes.append(resident_bytes(console.pid))
        time.sleep(min(SAMPLES_EVERY_S, seconds / 10))
    viewing.is_over.set()
    for thread in looking:
        thread.join(PAGE_TIMEOUT_S)  # a page that is being loaded when the time is over has not failed
    return viewing


def look(console: Console, number: int, viewing: Viewing) -> None:
    """A viewer who goes from page to page, and on to the next one if a page is not answered."""
    while not viewing.is_over.wait(LOADS_EVERY_S):
        try:
            viewing.seconds.append(console.load(PAGES[number % len(PAGES)]))
        except (OSError, HTTPException, RuntimeError) as error:
            viewing.failures.append(str(error))
            print(f"not answered: {error}"[:MESSAGE_CHARS], flush=True)
        number += 1


def follow(console: Console, viewing: Viewing) -> None:
    """The stream of events of one open page."""
    with console.open("/events?of=finding&of=group&of=topic") as answer:
        while not viewing.is_over.is_set() and answer.readline():
            pass


if __name__ == "__main__":
    sys.exit(main())
