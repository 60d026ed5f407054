"""A directory changes hands, after a stop or a crash: a share group goes on with gaps in its window, nothing lost.

Of forty records some are accepted, one is rejected, some are released and taken again, and the others are in somebody's
hands when the broker ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.apache import dump_log
from tests.interop.node.brokers import APACHE, OTTLA, booting
from tests.interop.share.brokers import Cluster, Node, new_node
from tests.interop.share.gapped_window import (
    EXPLICIT,
    GROUP,
    TOPIC,
    accept_the_rest,
    prepare,
    state,
    state_or_none,
    work,
)
from tests.interop.share.workers import OttlaWorker, closing, polled, settled, until

TURNS = [(OTTLA, APACHE), (APACHE, OTTLA), (OTTLA, OTTLA)]


@pytest.fixture
def node(apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts nodes on the one directory: `node(kind=...)`."""
    yield from booting(
        lambda number, kind: new_node(str(kind), tmp_path / f"{kind}-{number}", data_dir=tmp_path / "data")
    )


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize(("first", "second"), TURNS)
def test_a_group_with_gaps_in_its_window_changes_brokers(node: Callable[..., Node], first: str, second: str, how: str):
    old = node(kind=first)
    cluster = Cluster(old.bootstrap_servers)
    prepare(cluster)
    worker = OttlaWorker(old.bootstrap_servers, GROUP, TOPIC, EXPLICIT | {"max.poll.records": "40"})
    with closing(worker):
        work(worker)
        before = state(cluster)
        (old.kill if how == "killed" else old.stop)()
    cluster = Cluster(node(kind=second).bootstrap_servers)
    until("the group is there", lambda: state_or_none(cluster) == before)
    again = OttlaWorker(cluster.bootstrap_servers, GROUP, TOPIC, EXPLICIT)
    with closing(again):
        accept_the_rest(again)
    assert cluster.lag(GROUP) == 0


def test_the_dump_of_the_window_is_whole(node: Callable[..., Node]):
    """kafka-dump-log prints every record that the run above leaves."""
    ottla = node(kind=OTTLA)
    prepare(Cluster(ottla.bootstrap_servers))
    worker = OttlaWorker(ottla.bootstrap_servers, GROUP, TOPIC, EXPLICIT | {"max.poll.records": "40"})
    with closing(worker):
        work(worker)
        ottla.stop()
    logs = sorted(ottla.data_dir.glob("__share_group_state-*/*.log"))
    dumped = dump_log(logs, "--share-group-state-decoder")
    rows = [line for line in dumped.splitlines() if line.startswith("| offset:")]
    assert len(rows) >= 3
    assert all('"type":"0"' in row or '"type":"1"' in row for row in rows), rows
    assert "Exception" not in dumped


@pytest.mark.parametrize(("first", "second"), TURNS[:2])
def test_an_idle_group_goes_on(node: Callable[..., Node], first: str, second: str):
    """Everything is done, the members have left: nothing comes again, and what is written next does."""
    old = node(kind=first)
    cluster = Cluster(old.bootstrap_servers)
    prepare(cluster)
    worker = OttlaWorker(old.bootstrap_servers, GROUP, TOPIC, EXPLICIT)
    with closing(worker):
        done = 0
        while done < 40:
            given = polled(worker)
            done += len(given)
            settled(worker, given, "ACCEPT")
    old.stop()
    cluster = Cluster(node(kind=second).bootstrap_servers)
    cluster.produce(TOPIC, "new")
    again = OttlaWorker(cluster.bootstrap_servers, GROUP, TOPIC, EXPLICIT)
    with closing(again):
        given = polled(again)
        assert [(each.offset, each.value) for each in given] == [(40, "new")]
        settled(again, given, "ACCEPT")
