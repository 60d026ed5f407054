"""A share group with gaps in its window: of forty records some are accepted, one is rejected, some are released and
taken again, and the others are in somebody's hands."""

from __future__ import annotations

from ottla.client import ResponseError, groups
from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import DeliveredRecord, OttlaWorker, settled, silent, until

GROUP, TOPIC = "workers", "jobs"
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
ACCEPTED = {*range(5, 10), 21, *range(30, 40)}
REJECTED = {12}
RELEASED = {*range(20, 25)} - {21}
DONE = ACCEPTED | REJECTED


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


def accept_the_rest(worker: OttlaWorker) -> None:
    """What is not done comes, once each, and nothing else."""
    given: dict[int, int] = {}
    expected = set(range(40)) - DONE

    def step() -> bool:
        found = worker.poll()
        for each in found:
            assert each.offset not in given, f"offset {each.offset} came twice"
            given[each.offset] = each.delivery_count
        assert set(settled(worker, found, "ACCEPT").values()) <= {"NONE"}
        return len(given) >= len(expected)

    until("what was not done", step)
    assert given.keys() == expected
    # At least the last one that was written: what was never written begins anew.
    assert all(given[offset] >= 2 for offset in RELEASED)
    assert silent(worker, 0.5)


def state(cluster: Cluster) -> tuple[int | None, str, str]:
    view = cluster.run(lambda client: groups.view(client, GROUP))
    return view.epoch, view.type, view.assignor


def state_or_none(cluster: Cluster) -> tuple[int | None, str, str] | None:
    try:
        return state(cluster)
    except ResponseError:  # it loads
        return None
