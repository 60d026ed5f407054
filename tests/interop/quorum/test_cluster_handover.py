"""Hand-over of three nodes, both ways, stopped or killed: what one kind has kept, the other serves and goes on with.

Topics, settings, ACLs, users, quotas, records, offsets, groups of all kinds, share state and transactions, an open one
among them; the quorum, its voters and its epoch. Replicas are equal in the end.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ottla.client import Client
from ottla.client.errors import ClientError
from ottla.wire.types import FindCoordinatorRequest
from tests.component.broker.raw_client import RawClient
from tests.component.broker.streams_requests import join, topology
from tests.interop.admin.quota_changes import change_all, seen
from tests.interop.groups.commits import change, found
from tests.interop.handing_over import TIME_LIMIT_S, TOPICS, Ledger
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.cluster_load import COORDINATORS, committed_values
from tests.interop.quorum.members import Quorum, View, ask, until
from tests.interop.share.brokers import Cluster
from tests.interop.share.gapped_window import EXPLICIT, GROUP, TOPIC, accept_the_rest, prepare, state_or_none, work
from tests.interop.share.workers import OttlaWorker, closing
from tests.interop.streams.groups import described

NODES = (1, 2, 3)
OTHER = {OTTLA: APACHE, APACHE: OTTLA}
PAID, APP = "paid", "app"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "9000",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    **{
        f"{topic}.{setting}": value
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for setting, value in (("num.partitions", "3"), ("replication.factor", "3"))
    },
}
ACL = AclBinding(
    ResourceType.TOPIC,
    "orders",
    ResourcePatternType.LITERAL,
    "User:ana",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


class Shown(NamedTuple):
    """What clients are shown of a cluster, apart from records."""

    acls: list[AclBinding]
    quotas_and_users: Any
    offsets_and_groups: Any
    share_group: Any
    streams_group: Any


class Contents:
    """What is put into a cluster, and looked for after it has changed hands."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._servers = quorum.bootstrap_servers
        self._ledger = Ledger(replicas=3)
        self._open: Producer | None = None
        self._paid: list[bytes] = []

    def fill(self) -> None:
        servers = self._servers
        self._ledger.create_topics(servers)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(PAID, 3, 3)])[PAID].result(TIME_LIMIT_S)
        for created in admin.create_acls([ACL]).values():
            created.result(TIME_LIMIT_S)
        client = RawClient.at(servers.split(",")[0])
        change_all(client)
        client.close_all()
        prepare(Cluster(servers))
        self._join_streams_group()

    def add(self, turn: int) -> None:
        """More of everything, by whichever kind serves now."""
        self._ledger.produce(self._servers)
        asyncio.run(self._on_client(lambda client: change(client, turn)))

    def begin_transaction(self) -> None:
        """One that is committed, one that is aborted, and one that is left open."""
        settings = {"transactional.id": "till", "transaction.timeout.ms": 600_000}
        producer = Producer({"bootstrap.servers": self._servers, **settings})
        producer.init_transactions(TIME_LIMIT_S)
        for name, end in (("kept", producer.commit_transaction), ("never", producer.abort_transaction)):
            producer.begin_transaction()
            self._pay(producer, name)
            end(TIME_LIMIT_S)
        producer.begin_transaction()
        self._pay(producer, "open")
        self._paid += [b"kept", b"open"]
        self._open = producer

    def end_transaction(self) -> None:
        """The same producer goes on where it was, on another kind of broker."""
        assert self._open is not None
        assert committed_values(self._servers, PAID) == [self._paid[:-1]] * 3, "what is open is not shown"
        self._pay(self._open, "after")
        self._open.commit_transaction(TIME_LIMIT_S)
        self._paid.append(b"after")
        assert committed_values(self._servers, PAID) == [self._paid] * 3

    def _pay(self, producer: Producer, name: str) -> None:
        for partition in range(3):
            producer.produce(PAID, name.encode(), partition=partition)
        assert producer.flush(TIME_LIMIT_S) == 0

    def _join_streams_group(self) -> None:
        """A member that will be remembered for its session."""

        def find() -> bool:
            (coordinator,) = ask(
                self._quorum.nodes[1].bootstrap_servers, FindCoordinatorRequest(key_type=0, coordinator_keys=(APP,)), 6
            ).coordinators
            if coordinator.error_code:
                return False
            where = self._quorum.nodes[coordinator.node_id].bootstrap_servers
            return not ask(where, join(APP, "member-1", topology("orders")), 0).error_code

        until(find, "the member has joined")

    async def _on_client(self, work: Any) -> Any:
        async with Client(self._servers) as client:
            return await work(client)

    def shown(self) -> Shown:
        """Raises while coordinators are loading."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        any_acl = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        client = RawClient.at(self._quorum.nodes[1].bootstrap_servers)
        streams = described(self._servers, APP)
        try:
            return Shown(
                sorted(admin.describe_acls(any_acl).result(TIME_LIMIT_S), key=str),
                seen(client),
                asyncio.run(self._on_client(found)),
                state_or_none(Cluster(self._servers)),
                (streams.group_epoch, streams.topology),
            )
        finally:
            client.close_all()

    def check(self, before: Shown) -> None:
        last: list[Any] = []

        def find() -> bool:
            try:
                last[:] = [self.shown()]
            except ClientError as error:
                last[:] = [error]
            return last == [before]

        try:
            until(find, "what was shown before")
        except AssertionError as error:
            error.add_note(f"expected: {before}\nfound: {last}")
            raise
        self._ledger.check(self._servers)


def check_quorum(before: View, after: View) -> None:
    assert [each[:2] for each in after.voters] == [each[:2] for each in before.voters], "ids and directories"
    assert after.epoch > before.epoch
    assert after.high_watermark > before.high_watermark


def check_storage(quorum: Quorum) -> str:
    directories = [str(node.data_dir) for node in quorum.nodes.values()]
    command = [sys.executable, "-m", "ottla", "storage", "check", *directories]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize("first", [OTTLA, APACHE], ids=["from ottla", "from apache"])
def test_three_nodes_change_hands_and_back(first: str, how: str, tmp_path: Path) -> None:
    with Quorum(tmp_path, voters=dict.fromkeys(NODES, first), **SETTINGS) as quorum:
        contents = Contents(quorum)
        contents.fill()
        worker = OttlaWorker(quorum.bootstrap_servers, GROUP, TOPIC, EXPLICIT | {"max.poll.records": "40"})
        with closing(worker):
            work(worker)
            for turn, kind in enumerate((OTHER[first], first)):
                contents.add(turn)
                contents.begin_transaction()
                before, view = contents.shown(), quorum.wait_for(lambda view: not view.has_lag(), "no lag")
                quorum.end(how)
                assert "3 directories: Apache Kafka 4.3 and ottla can start on them" in check_storage(quorum)
                for number in NODES:
                    quorum.replace(number, kind)
                quorum.start(*NODES)
                contents.check(before)
                contents.end_transaction()
                check_quorum(view, quorum.wait_for(lambda view: view.voter_ids == set(NODES), "all voters"))
        again = OttlaWorker(quorum.bootstrap_servers, GROUP, TOPIC, EXPLICIT)
        with closing(again):
            accept_the_rest(again)
        quorum.check_equal_logs(*TOPICS, PAID, TOPIC, *COORDINATORS)
        quorum.check_health()
