"""What is remembered of a cluster, and what makes it forget."""

from typing import Any

from ottla.client.metadata import Broker, Metadata, TopicPartition
from ottla.wire.types import MetadataResponse, ProduceResponse

AT = TopicPartition("orders", 0)
ID, OTHER_ID = b"\1" * 16, b"\2" * 16
UNKNOWN = float("-inf")


def topic(leader: int = 1, epoch: int = 5, topic_id: bytes = ID, name: str = "orders", error: int = 0) -> Any:
    partition = MetadataResponse.MetadataResponsePartition(0, 0, leader, epoch, (1, 2), (1,), (2,))
    return MetadataResponse.MetadataResponseTopic(error, name, topic_id, False, (partition,))


def answer(*topics: Any, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    return MetadataResponse(
        brokers=tuple(MetadataResponse.MetadataResponseBroker(each, f"host{each}", 9092) for each in brokers),
        cluster_id="cluster",
        controller_id=2,
        topics=topics,
    )


def known(*answers: MetadataResponse) -> Metadata:
    metadata = Metadata()
    for number, each in enumerate(answers):
        assert metadata.take(each, 10.0 + number) == {}
    return metadata


def leader_of(metadata: Metadata) -> tuple[int, int]:
    partition = metadata.partition(AT)
    assert partition is not None
    return partition.leader, partition.leader_epoch


def test_an_answer_is_remembered():
    metadata = known(answer(topic()))
    assert metadata.cluster_id == "cluster"
    assert metadata.controller_id == 2
    assert metadata.brokers[2] == Broker(2, "host2", 9092)
    assert str(metadata.brokers[2].peer) == "broker 2 (host2:9092)"
    partition = metadata.partition(AT)
    assert partition is not None
    assert (partition.replicas, partition.isr, partition.offline_replicas) == ((1, 2), (1,), (2,))
    assert metadata.name_of(ID) == "orders"
    assert metadata.name_of(OTHER_ID) is None
    assert metadata.since_s("orders") == 10.0


def test_an_older_leader_does_not_come_back():
    assert leader_of(known(answer(topic(1, 5)), answer(topic(2, 4)))) == (1, 5)
    assert leader_of(known(answer(topic(1, 5)), answer(topic(2, 6)))) == (2, 6)
    assert leader_of(known(answer(topic(1, 5)), answer(topic(-1, 5)))) == (-1, 5)


def test_a_broker_that_knows_no_epochs_is_believed():
    assert leader_of(known(answer(topic(1, 5)), answer(topic(2, -1)))) == (2, -1)


def test_a_topic_that_was_created_again_begins_anew():
    assert leader_of(known(answer(topic(1, 5)), answer(topic(2, 0, OTHER_ID)))) == (2, 0)


def test_an_error_makes_it_forget_the_topic():
    metadata = known(answer(topic()))
    assert metadata.take(answer(topic(error=3)), 11.0) == {"orders": 3}
    assert metadata.partition(AT) is None
    assert metadata.since_s("orders") == UNKNOWN


def test_a_complete_answer_shows_what_is_gone():
    metadata = known(answer(topic(), topic(name="bills")))
    metadata.take(answer(topic(name="bills")), 11.0)
    assert "orders" in metadata.topics
    metadata.take(answer(topic(name="bills")), 12.0, is_complete=True)
    assert list(metadata.topics) == ["bills"]
    assert metadata.since_s("orders") == UNKNOWN


def test_a_broker_that_knows_of_no_brokers_takes_none_away():
    metadata = known(answer(topic()), answer(brokers=()))
    assert sorted(metadata.brokers) == [1, 2]


def test_doubt_keeps_the_value_and_drops_its_age():
    metadata = known(answer(topic()))
    metadata.expire("orders")
    metadata.expire("never seen")
    metadata.expire_brokers()
    assert leader_of(metadata) == (1, 5)
    assert metadata.since_s("orders") == metadata.refreshed_at_s == UNKNOWN


def test_a_new_leader_is_learned_from_other_answers():
    metadata = known(answer(topic()))
    endpoint = ProduceResponse.NodeEndpoint(3, "host3", 9093, "rack")
    assert metadata.learn_leader(AT, 3, 6, [endpoint])
    assert leader_of(metadata) == (3, 6)
    assert metadata.brokers[3] == Broker(3, "host3", 9093, "rack")


def test_what_is_no_news_is_not_learned():
    metadata = known(answer(topic()))
    assert not metadata.learn_leader(AT, 2, 5, [])
    assert not metadata.learn_leader(AT, -1, 9, [])
    assert not metadata.learn_leader(TopicPartition("orders", 7), 2, 9, [])
    assert leader_of(metadata) == (1, 5)


def test_a_leader_without_an_address_has_to_be_asked_for():
    assert not known(answer(topic())).learn_leader(AT, 7, 9, [])
