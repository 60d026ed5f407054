"""What Apache Kafka 4.3.1 gets wrong, and ottla right. Each expectation names both, so that a fix there is noticed."""

from __future__ import annotations

from collections.abc import Callable

from ottla.client import topics
from ottla.wire.errors import ErrorCode
from ottla.wire.types import ShareFetchRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.node.brokers import OTTLA
from tests.interop.share.brokers import Cluster, Node
from tests.interop.share.workers import DeliveredRecord, OttlaWorker, Workers, closing, settled, silent, until

EXPLICIT = {"share.acknowledgement.mode": "explicit"}
COUNT = 5


def fetching(cluster: Cluster, worker: OttlaWorker, topic: str) -> None:
    """Wait until a group that begins with the latest records has begun: what is written now comes."""

    def step() -> bool:
        cluster.produce(topic, "begin")
        given = worker.poll()
        settled(worker, given, "ACCEPT")
        return bool(given)

    until("the first record", step)


def taken(worker: OttlaWorker, count: int) -> list[DeliveredRecord]:
    """So many records, which stay in the worker's hands."""
    given: list[DeliveredRecord] = []
    until(f"{count} records", lambda: given.extend(worker.poll()) or len(given) >= count)
    return given


def test_latest_before_the_first_write(boot: Callable[..., Node], kind: str, name: str):
    """Records are taken, nothing is acknowledged, and the broker is killed: ottla has written where the group began."""
    node = boot()
    cluster = Cluster(node.bootstrap_servers)
    cluster.topic(name)
    cluster.produce(name, "before")
    worker = OttlaWorker(node.bootstrap_servers, name, name, EXPLICIT)
    with closing(worker):
        until("an assignment", lambda: worker.poll() or worker.assigned())
        assert silent(worker, 0.5), "it begins behind what is there"
        cluster.produce(name, *(f"v{number}" for number in range(COUNT)))
        assert [each.offset for each in taken(worker, COUNT)] == [*range(1, COUNT + 1)]
        node.kill()
    node.start()
    again = OttlaWorker(node.bootstrap_servers, name, name, EXPLICIT)
    with closing(again):
        if kind == OTTLA:
            assert [each.offset for each in taken(again, COUNT)] == [*range(1, COUNT + 1)]
        else:
            assert silent(again, 5), "4.3.1 loses them"


def test_partitions_added_to_a_known_topic(cluster: Cluster, kind: str, name: str):
    """What is written to a new partition before the group hears of it is delivered, also to a group at the latest."""
    cluster.topic(name)
    worker = OttlaWorker(cluster.bootstrap_servers, name, name, EXPLICIT)
    with closing(worker):
        fetching(cluster, worker, name)
        cluster.run(lambda client: topics.add_partitions(client, name, 2))
        until("the partition can be written", lambda: written(cluster, name))
        given: list[DeliveredRecord] = []

        def step() -> bool:
            cluster.produce(name, "later", partition=1)
            given.extend(each for each in worker.poll() if each.partition == 1)
            return bool(given)

        until("a record of the new partition", step)
        early = [each.value for each in given if each.value == "early"]
        assert early == (["early"] * COUNT if kind == OTTLA else []), "4.3.1 skips them"


def written(cluster: Cluster, name: str) -> bool:
    from ottla.client import ClientError

    try:
        cluster.produce(name, *["early"] * COUNT, partition=1)
    except ClientError:
        return False
    return True


def test_one_unknown_topic_fails_alone(workers: Workers, cluster: Cluster, kind: str, name: str):
    """A fetch names a topic that is there and one that is not."""
    cluster.topic(name)
    cluster.configure(name, {"share.auto.offset.reset": "earliest"})
    cluster.produce(name, "here")
    worker = OttlaWorker(cluster.bootstrap_servers, name, name, EXPLICIT)
    with closing(worker):  # which makes the group know the partition
        settled(worker, until("records", worker.poll), "RELEASE")
    topic_id = cluster.run(lambda client: client.topics([name]))[name].topic_id
    client = RawClient.at(cluster.bootstrap_servers)
    try:
        partitions = (ShareFetchRequest.FetchPartition(0),)
        request = ShareFetchRequest(
            group_id=name,
            member_id="raw",
            max_wait_ms=2000,
            min_bytes=1,
            max_bytes=1_000_000,
            max_records=10,
            batch_size=10,
            topics=(
                ShareFetchRequest.FetchTopic(topic_id, partitions),
                ShareFetchRequest.FetchTopic(b"x" * 16, partitions),
            ),
        )
        answer = client.ask(request, 2)
    finally:
        client.close()
    if kind != OTTLA:
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        return
    assert answer.error_code == ErrorCode.NONE
    found = {each.topic_id: each.partitions[0] for each in answer.responses}
    assert found[b"x" * 16].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert found[topic_id].error_code == ErrorCode.NONE
    assert [(each.first_offset, each.delivery_count) for each in found[topic_id].acquired_records] == [(0, 2)]
