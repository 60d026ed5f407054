"""A directory changes hands, after a stop or a crash: a share group goes on with gaps in its window, nothing lost.

Of forty records some are accepted, one is rejected, some are released and taken again, and the others are in somebody's
hands when the broker ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.client import groups
from tests.interop.apache import dump_log
from tests.interop.node.brokers import APACHE, OTTLA, booting
from tests.interop.share.brokers import Cluster, Node, new_node
from tests.interop.share.workers import DeliveredRecord, OttlaWorker, closing, polled, settled, silent, until

GROUP, TOPIC = "workers", "jobs"
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
ACCEPTED = {*range(5, 10), 21, *range(30, 40)}
REJECTED = {12}
RELEASED = {*range(20, 25)} - {21}
DONE = ACCEPTED | REJECTED
TURNS = [(OTTLA, APACHE), (APACHE, OTTLA), (OTTLA, OTTLA)]


@pytest.fixture
def node(apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts nodes on the one directory: `node(kind=...)`."""
    yield from booting(
        lambda number, kind: new_node(str(kind), tmp_path / f"{kind}-{number}", data_dir=tmp_path / "data")
    )


def prepare(cluster: Cluster) -> None:
    cluster.topic(TOPIC)
    cluster.configure(GROUP, {"share.auto.offset.reset": "earliest"})
    for start in range(0, 40, 10):
        cluster.produce(TOPIC, *(f"v{number}" for number in range(start, start + 10)))


def work(worker: OttlaWorker) -> None:
    """All are delivered; in the end everything that is not done is in the worker's hands."""
    given: list[DeliveredRecord] = []
    until("all records", lambda: given.extend(worker.poll()) or len(given) == 40)
    for each in given:
        if each.offset in DONE:
            worker.acknowledge(each, "REJECT" if each.offset in REJECTED else "ACCEPT")
        elif each.offset in RELEASED:
            worker.acknowledge(each, "RELEASE")
    assert worker.commit() == {0: "NONE"}
    again: list[DeliveredRecord] = []
    until("what was released", lambda: again.extend(worker.poll()) or len(again) == len(RELEASED))
    assert {each.offset: each.delivery_count for each in again} == dict.fromkeys(RELEASED, 2)


def state(cluster: Cluster) -> tuple[int | None, str, str]:
    view = cluster.run(lambda client: groups.view(client, GROUP))
    return view.epoch, view.type, view.assignor


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
        given: dict[int, int] = {}
        expected = set(range(40)) - DONE

        def step() -> bool:
            found = again.poll()
            for each in found:
                assert each.offset not in given, f"offset {each.offset} came twice"
                given[each.offset] = each.delivery_count
            assert set(settled(again, found, "ACCEPT").values()) <= {"NONE"}
            return len(given) >= len(expected)

        until("what was not done", step)
        assert given.keys() == expected
        # At least the last one that was written: what was never written begins anew.
        assert all(given[offset] >= 2 for offset in RELEASED)
        assert silent(again, 0.5)
    assert cluster.lag(GROUP) == 0


def state_or_none(cluster: Cluster) -> tuple[int | None, str, str] | None:
    from ottla.client import ResponseError

    try:
        return state(cluster)
    except ResponseError:  # it loads
        return None


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
