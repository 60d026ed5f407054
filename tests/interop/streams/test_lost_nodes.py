"""Exactly once on three nodes of which one is lost every twenty seconds."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import count
from pathlib import Path

import ottla.testing
from tests.interop.streams.conftest import SETTINGS, MakeApp
from tests.interop.streams.feeding import create, feed, read, wait_for
from tests.interop.streams.groups import lines

LOST_S = 180
LOST_EVERY_S = 20
DOWN_S = 4
PARTITIONS = 4
OF_ONE_NODE = ("replication.factor", "min.isr", "num.partitions")


def test_counts_are_exact_although_nodes_are_lost(apache_jars: Path, prefix: str, start: MakeApp):
    """The leader of a topic of coordinators, mostly; the application goes on by itself."""
    settings = {key: value for key, value in SETTINGS.items() if not key.endswith(OF_ONE_NODE)}
    with ottla.testing.cluster(3, **settings) as nodes:
        servers, chance = nodes.bootstrap_servers, random.Random(prefix)
        create(servers, f"{prefix}-words", f"{prefix}-out", partitions=PARTITIONS)
        apps = [start("count", prefix, servers, processing_guarantee="exactly_once_v2") for _ in range(2)]
        for app in apps:
            app.running()
        began_s, numbers = time.monotonic(), count()
        lost_at_s, killed = began_s, 0
        while time.monotonic() - began_s < LOST_S:
            feed(servers, f"{prefix}-words", lines(next(numbers)))
            if time.monotonic() - lost_at_s >= LOST_EVERY_S:
                lost_at_s, killed = time.monotonic(), killed + 1
                topic = chance.choice(("__transaction_state", "__consumer_offsets", f"{prefix}-words"))
                victim = nodes.leader(topic, 0)
                victim.kill()
                time.sleep(DOWN_S)
                victim.start()
                nodes.wait_in_sync()
        assert killed >= LOST_S // LOST_EVERY_S - 1
        # A producer that lost its connection may have written a line twice: what is in the topic counts.
        words = Counter(word for _, line in read(servers, f"{prefix}-words", PARTITIONS) for word in line.split())
        wait_for(servers, f"{prefix}-out", {word: str(number) for word, number in words.items()}, PARTITIONS)
        for app in apps:
            last = max(at for at, line in enumerate(app.lines) if line.startswith("STATE "))
            app.wait_for("STATE RUNNING", since=last)  # the last loss may still move tasks
            states = [line.removeprefix("STATE ") for line in app.lines if line.startswith("STATE ")]
            assert not {"ERROR", "PENDING_ERROR", "PENDING_SHUTDOWN", "NOT_RUNNING"} & set(states), states
            app.close()
