"""Hostile clients against a node in a process of its own: others are served, memory stays, the log stays short.

The sizes are small here. `OTTLA_HOSTILE_FRAMES=100000` and `make bench FOLDER=hostile` are for the large ones; how long
others wait is reported there.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.broker.brokers import resident_bytes
from ottla.broker.network.request import CloseCause
from ottla.broker.telemetry.log_deduplication import VALUES_MAX
from tests.component.broker.raw_client import RawClient, batch
from tests.hostile import attacks
from tests.hostile.neighbour import Neighbour, neighbour
from tests.interop.serving import OttlaServe

FRAMES = int(os.environ.get("OTTLA_HOSTILE_FRAMES", "4000"))
GROWTH_MAX_BYTES = 100 << 20
ENOUGH_ASKED = 30
PATIENCE_S = 20


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServe]:
    with OttlaServe(tmp_path_factory.mktemp("hostile")) as node:
        yield node


@pytest.fixture
def address(served: OttlaServe) -> tuple[str, int]:
    host, _, port = served.bootstrap_servers.rpartition(":")
    return host, int(port)


@pytest.fixture
def beside(served: OttlaServe) -> Iterator[Neighbour]:
    """Somebody who must not notice; whoever attacks must not make the node much larger either."""
    before = resident_bytes(served.pid)
    with neighbour(served.bootstrap_servers) as found:
        yield found
        goes_on(found)
    assert resident_bytes(served.pid) - before < GROWTH_MAX_BYTES
    assert served.running


def goes_on(beside: Neighbour) -> None:
    """Wait until it was served so many times more."""
    wanted = len(beside.waits_ms) + ENOUGH_ASKED
    deadline = time.monotonic() + PATIENCE_S
    while len(beside.waits_ms) < wanted:
        assert time.monotonic() < deadline, "nobody is served any more"
        assert beside.failure is None
        time.sleep(0.01)


def causes(log: str) -> Counter[str]:
    """Lines of the log without their times and numbers."""
    lines = [line for line in log.splitlines() if re.match(r"\d\d:\d\d:\d\d", line)]
    return Counter(re.sub(r"\d+", "#", line.split(" ", 1)[1]) for line in lines)


def test_frames_that_no_honest_client_sends(served: OttlaServe, address: tuple[str, int], beside: Neighbour) -> None:
    outcomes = attacks.shoot(address, seed=20261115, count=FRAMES)
    assert outcomes.total() == FRAMES
    assert {kind for kind, outcome in outcomes if outcome == "answered"} >= {"golden", "broken body"}
    assert outcomes["noise", "answered"] == 0
    assert "Traceback" not in served.log


def test_nothing_is_logged_more_than_once_for_one_cause(served: OttlaServe, address: tuple[str, int]) -> None:
    for _ in range(3):
        attacks.shoot(address, seed=5, count=300)
    [*_, (_, most)] = [("", 0), *causes(served.log).most_common()[:1]]
    assert most <= 20, causes(served.log).most_common(3)
    for cause in (CloseCause.FRAME_SIZE, CloseCause.MALFORMED_REQUEST, CloseCause.VERSION_NOT_SERVED):
        assert 1 <= served.log.count(f"[{cause}]") <= VALUES_MAX + 1, "who is closed is named, and not too often"


def test_requests_that_begin_and_do_not_go_on(address: tuple[str, int], beside: Neighbour) -> None:
    with attacks.half_open(address, 100):
        goes_on(beside)


def test_connections_that_say_nothing(address: tuple[str, int], beside: Neighbour) -> None:
    with attacks.idle(address, 300):
        goes_on(beside)


def test_clients_that_take_no_answer(served: OttlaServe, address: tuple[str, int], beside: Neighbour) -> None:
    topic = attacks.large_topic(served.bootstrap_servers, 10 << 20)
    with attacks.never_reading(address, topic, 20, max_bytes=10 << 20):
        goes_on(beside)


def test_large_answers_to_slow_readers(served: OttlaServe, address: tuple[str, int], beside: Neighbour) -> None:
    topic = attacks.large_topic(served.bootstrap_servers, 10 << 20)
    with attacks.slow_readers(address, topic, 10, max_bytes=10 << 20) as taken:
        goes_on(beside)
    assert all(taken)


def test_a_node_that_has_no_file_left_serves_who_is_there(tmp_path: Path) -> None:
    with OttlaServe(tmp_path, prefix=("prlimit", "--nofile=80:80")) as node:
        client = RawClient.at(node.bootstrap_servers)
        topic = client.topic()
        host, _, port = node.bootstrap_servers.rpartition(":")
        with attacks.idle((host, int(port)), 70):  # of which some wait in the backlog
            assert client.fetch(topic).error_code == 0
            assert client.produce(client.topic(), batch(b"v")).error_code == 0, "logs can still be opened"
        client.close()
        assert client.fetch(topic).error_code == 0, "there is room again"
        assert node.log.count("no file descriptors are left") == 1
        assert "offline" not in node.log
        client.close_all()
