"""Crashes while groups commit: no offset that was acknowledged is lost, and none comes from nowhere."""

from __future__ import annotations

import random
import threading

import ottla.testing
from ottla.testing import Broker
from ottla.wire.types import OffsetCommitRequest, OffsetFetchRequest
from tests.component.broker.raw_client import Closed, Connection, RawClient, Topic

KILLS = 4
ATTEMPTS = 2000
GROUPS = 6
VERSION = 9
COORDINATOR_ERRORS = {14, 15, 16}


class Committer:
    """One group that commits ever larger offsets for one partition, as fast as it can."""

    def __init__(self, group_id: str, topic: Topic) -> None:
        self.group_id = group_id
        self.topic = topic
        self.sent = 0
        self.acknowledged = 0

    def run(self, broker: Broker) -> None:
        """Until the broker is gone."""
        client = client_of(broker)
        try:
            while True:
                self.sent += 1
                code = self._commit(client.connection, self.sent)
                assert code == 0, code
                self.acknowledged = self.sent
        except (Closed, OSError):
            client.close_all()

    def _commit(self, connection: Connection, offset: int) -> int:
        kind = OffsetCommitRequest
        topic = kind.OffsetCommitRequestTopic(
            self.topic.name, partitions=(kind.OffsetCommitRequestPartition(0, offset, -1, ""),)
        )
        request = kind(self.group_id, -1, "", None, -1, (topic,))
        code: int = connection.ask(request, VERSION).topics[0].partitions[0].error_code
        return code

    def committed(self, client: RawClient) -> int:
        kind = OffsetFetchRequest
        group = kind.OffsetFetchRequestGroup(
            self.group_id, topics=(kind.OffsetFetchRequestTopics(self.topic.name, partition_indexes=(0,)),)
        )
        (answer,) = client.ask(kind(groups=(group,)), VERSION).groups
        assert answer.error_code not in COORDINATOR_ERRORS, "everything is loaded before the node listens"
        partition = answer.topics[0].partitions[0]
        assert (answer.error_code, partition.error_code) == (0, 0)
        offset: int = partition.committed_offset
        return offset


def wait_for(committers: list[Committer]) -> None:
    """Until each has committed something."""
    before = [each.acknowledged for each in committers]
    for _ in range(ATTEMPTS):
        if all(each.acknowledged > then for each, then in zip(committers, before, strict=True)):
            return
        threading.Event().wait(0.01)
    raise AssertionError("they do not get on")


def client_of(broker: Broker) -> RawClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return RawClient(host, int(port))


def test_offsets_that_were_acknowledged_survive_kills() -> None:
    seeded = random.Random(6)
    with ottla.testing.broker(process=True) as broker:
        client = client_of(broker)
        topic = client.topic()
        client.close_all()
        committers = [Committer(f"group-{number}", topic) for number in range(GROUPS)]
        for _ in range(KILLS):
            threads = [threading.Thread(target=each.run, args=(broker,)) for each in committers]
            for thread in threads:
                thread.start()
            wait_for(committers)
            threading.Event().wait(seeded.uniform(0.05, 0.3))
            broker.kill()
            for thread in threads:
                thread.join()
            broker.start()
            client = client_of(broker)
            for each in committers:
                assert each.acknowledged <= each.committed(client) <= each.sent
            client.close_all()
