"""A topic that was deleted, where metadata requests create missing topics: it is seen to be gone, and can come back."""

from __future__ import annotations

from collections.abc import Callable

from tests.interop.groups.members import TIME_LIMIT_S, until
from tests.interop.node.brokers import Node


def test_who_looks_for_a_deleted_topic_sees_that_it_is_gone_and_who_writes_to_it_has_it_again(
    boot: Callable[..., Node], name: str
) -> None:
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka.admin import AdminClient

    node = boot(auto_create_topics_enable=True)
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})  # librdkafka lets it create what it looks for
    producer = Producer({"bootstrap.servers": node.bootstrap_servers})

    def is_written() -> bool:
        errors: list[KafkaError | None] = []
        producer.produce(name, b"value", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(TIME_LIMIT_S) == 0
        return errors == [None]

    def is_gone() -> bool:
        error = admin.list_topics(name, TIME_LIMIT_S).topics[name].error
        return error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART

    until("a topic by writing to it", is_written)
    for _ in range(3):
        admin.delete_topics([name])[name].result(TIME_LIMIT_S)
        until("an answer without the topic", is_gone)
        until("the topic by writing to it again", is_written)
