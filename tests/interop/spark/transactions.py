"""Records that a transaction writes."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.interop.spark.topics import Topics, new_name


def in_transaction(topics: Topics, name: str, count: int, *, end: str) -> Producer:
    producer = Producer({"bootstrap.servers": topics.bootstrap_servers, "transactional.id": new_name("tx")})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(name, f"{end}-{number}", partition=0)
    assert producer.flush(30) == 0
    if end == "committed":
        producer.commit_transaction(30)
    elif end == "aborted":
        producer.abort_transaction(30)
    return producer
