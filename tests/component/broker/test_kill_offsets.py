"""Crashes while offsets are committed: what was acknowledged is there afterwards, and nothing that was never sent."""

import random
import threading
from collections.abc import Iterator

import ottla.testing
from ottla.testing import Broker
from ottla.wire.errors import ErrorCode
from tests.component.broker.offset_requests import commit_request, fetch, found
from tests.component.broker.raw_client import Closed, RawClient, Topic

KILLS = 3
GROUPS = tuple(f"group-{number}" for number in range(5))
TOGETHER = 20


class Ledger:
    """By group: the last offset that was sent, and the last one that was acknowledged."""

    def __init__(self) -> None:
        self.sent = dict.fromkeys(GROUPS, -1)
        self.acknowledged = dict.fromkeys(GROUPS, -1)

    def check(self, client: RawClient, topic: Topic) -> None:
        for group in GROUPS:
            offset = found(fetch(client, group, {topic: [0]}))[(topic.name, 0)][0]
            assert self.acknowledged[group] <= offset <= self.sent[group]


def commit_until_gone(address: tuple[str, int], topic: Topic, ledger: Ledger, numbers: Iterator[int]) -> None:
    """Commit ever larger offsets, many at a time, until the broker is gone."""
    connection = RawClient(*address).connect()
    try:
        for number in numbers:
            group = GROUPS[number % len(GROUPS)]
            first = ledger.sent[group] + 1
            ledger.sent[group] += TOGETHER
            requests = [(commit_request(group, (topic, 0, first + each)), 9) for each in range(TOGETHER)]
            for each, sent in enumerate(connection.send_together(*requests)):
                answer = connection.receive(8, 9, sent)
                assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
                ledger.acknowledged[group] = first + each
    except (ConnectionError, Closed):
        connection.close()


def address_of(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return host, int(port)


def test_offsets_that_were_acknowledged_survive_kills():
    seeded, ledger = random.Random(6), Ledger()
    with ottla.testing.broker(process=True) as broker:
        client = RawClient(*address_of(broker))
        topic = client.topic()
        client.close()
        for turn in range(KILLS):
            numbers = iter(range(turn * 1_000_000, (turn + 1) * 1_000_000))
            arguments = (address_of(broker), topic, ledger, numbers)
            thread = threading.Thread(target=commit_until_gone, args=arguments)
            thread.start()
            threading.Event().wait(seeded.uniform(0.1, 0.5))
            broker.kill()
            thread.join()
            broker.start()
            client = RawClient(*address_of(broker))
            ledger.check(client, topic)
            client.close()
    assert max(ledger.acknowledged.values()) > TOGETHER * KILLS
