"""What planning asks of a cluster, against the fake one."""

from collections.abc import Iterator

import pytest
from msgspec import structs

from ottla.client.blocking import BlockingClient
from ottla.spark.options import read_options
from ottla.spark.topic.cluster import LiveCluster
from ottla.spark.topic.options import TopicOptions
from ottla.wire import frames, types, uuid_text
from tests.component.client.blocking.threaded import ThreadedCluster, threaded
from tests.component.client.fake import FakeCluster, topic_id
from tests.component.client.fake_logs import Logs
from tests.unit.client.batches import batch
from tests.unit.spark.fake_cluster import SERVERS, at

TOPICS = {"orders": [1, 1], "payments": [1], "__offsets": [1], "__audit": [1]}


@pytest.fixture
def there() -> Iterator[ThreadedCluster]:
    cluster = FakeCluster(1, TOPICS)

    def metadata(request: frames.Request) -> types.MetadataResponse:
        answer = cluster.metadata(request.body)
        marked = [structs.replace(each, is_internal=each.name == "__offsets") for each in answer.topics]
        return structs.replace(answer, topics=tuple(marked))

    cluster.broker().on("Metadata", metadata)
    with threaded(cluster) as made:
        yield made


@pytest.fixture
def client(there: ThreadedCluster) -> Iterator[BlockingClient]:
    with there.client() as made:
        yield made


def asked(client: BlockingClient, **given: str) -> LiveCluster:
    return LiveCluster(lambda: client, read_options(TopicOptions, {**SERVERS, **given}))


def test_topics_by_name(client: BlockingClient):
    found = asked(client, subscribe="orders,payments").assigned()
    assert found.leaders == {at(0, "orders"): 1, at(1, "orders"): 1, at(0, "payments"): 1}
    assert found.ids["orders"] == uuid_text(topic_id("orders"))
    assert found.missing == ()


def test_topics_that_are_not_there(client: BlockingClient):
    found = asked(client, subscribe="orders,invoices").assigned()
    assert set(found.ids) == {"orders"}
    assert found.missing == ("topic invoices",)


def test_internal_topics_match_no_pattern_but_can_be_named(client: BlockingClient):
    assert set(asked(client, subscribePattern="__.*").assigned().ids) == {"__audit"}
    assert set(asked(client, subscribePattern=".*ers").assigned().ids) == {"orders"}
    assert set(asked(client, subscribePattern="order").assigned().ids) == set()
    assert set(asked(client, subscribe="__offsets").assigned().ids) == {"__offsets"}


def test_partitions_by_number(client: BlockingClient):
    found = asked(client, assign='{"orders":[1,5]}').assigned()
    assert found.leaders == {at(1, "orders"): 1}
    assert found.missing == ("topic orders partition 5",)


@pytest.mark.parametrize(("ttl_ms", "requests"), [("-1", 2), ("60000", 1)])
def test_what_a_pattern_matches_can_be_kept_for_a_while(
    client: BlockingClient, there: ThreadedCluster, ttl_ms: str, requests: int
):
    cluster = asked(client, subscribePattern="o.*", **{"partition.metadata.cache.ttl.ms": ttl_ms})
    before = len(there.cluster.broker().asked_for("Metadata"))
    assert cluster.assigned() == cluster.assigned()
    assert len(there.cluster.broker().asked_for("Metadata")) - before == requests


def test_a_topic_that_grew_is_seen_at_once(client: BlockingClient, there: ThreadedCluster):
    cluster = asked(client, subscribe="payments")
    assert len(cluster.assigned().leaders) == 1
    there.cluster.topics["payments"] = [1, 1, 1]
    assert len(cluster.assigned().leaders) == 3


def test_ends_are_the_last_stable_ones_for_who_reads_what_is_committed(client: BlockingClient, there: ThreadedCluster):
    logs = Logs(payments=[batch(3, 4, 5)])
    logs.start, logs.last_stable = 3, 4
    there.cluster.broker().on("ListOffsets", logs.list_offsets)
    partition = at(0, "payments")
    usual = asked(client, subscribe="payments")
    assert usual.earliest([partition]) == {partition: 3}
    assert usual.latest([partition]) == {partition: 6}
    assert asked(client, subscribe="payments", isolationLevel="read_committed").latest([partition]) == {partition: 4}
    assert usual.latest([]) == {}


def test_a_time_without_a_record_is_no_offset(client: BlockingClient, there: ThreadedCluster):
    def answer(request: frames.Request) -> types.ListOffsetsResponse:
        (asked_for,) = request.body.topics[0].partitions
        offset = 7 if asked_for.timestamp < 1000 else -1
        part = types.ListOffsetsResponse.ListOffsetsPartitionResponse(0, 0, -1, offset)
        return types.ListOffsetsResponse(
            topics=(types.ListOffsetsResponse.ListOffsetsTopicResponse("payments", (part,)),)
        )

    there.cluster.broker().on("ListOffsets", answer)
    cluster = asked(client, subscribe="payments")
    partition = at(0, "payments")
    assert cluster.at_time({partition: 999}) == {partition: 7}
    assert cluster.at_time({partition: 1000}) == {partition: None}
