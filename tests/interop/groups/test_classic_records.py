"""What classic groups leave in `__consumer_offsets`: the same records as with Apache Kafka. Either broker goes on with
what the other has written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.wire import to_json
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import decode_keyed, encode_framed
from ottla.wire.types import (
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
)
from tests.component.broker.classic_members import Member, protocols
from tests.component.broker.raw_client import READY_ATTEMPTS, RawClient
from tests.interop.groups.brokers import Node, new_node
from tests.interop.node.brokers import APACHE, OTTLA

pytestmark = pytest.mark.interop

TOPIC = "__consumer_offsets"
MADE_UP = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SESSION_MS = 60_000
ONE, TWO = (encode_framed(ConsumerProtocolSubscription((topic,)), 1) for topic in ("one", "two"))
"""Apache Kafka 4.3.1 cannot load a group of consumers whose metadata is no subscription but looks like a long one."""


def client_of(node: Node) -> RawClient:
    client = RawClient.at(node.bootstrap_servers)
    for _ in range(READY_ATTEMPTS):
        (found,) = client.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6).coordinators
        if not found.error_code and client.ask(HeartbeatRequest("g", 1, "m"), 4).error_code == 25:
            return client
    raise AssertionError("there is no coordinator")


def new_member(client: RawClient, group: str, **fields: Any) -> Member:
    return Member(client, group, **({"session_timeout_ms": SESSION_MS, "protocols": protocols(range=ONE)} | fields))


def joined(client: RawClient, group: str, version: int = 9, **fields: Any) -> Member:
    member = new_member(client, group, **fields)
    if version >= 4 and "group_instance_id" not in fields:
        member.join(version)
    assert member.join(version).error_code == 0
    return member


def grow(leader: Member, client: RawClient) -> Member:
    """A second member joins, and gets half of the work."""
    other = new_member(client, leader.group)
    other.join()
    number = other.send_join()
    while leader.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    leader.join()
    other.receive_join(number)
    leader.sync(**{leader.member_id: b"one", other.member_id: b"two"})
    other.sync()
    return other


def live(client: RawClient) -> Member:
    """The life of some groups; gives a member that is still there."""
    member = joined(client, "grows")
    member.sync(**{member.member_id: b"all"})
    other = grow(member, client)
    other.leave()
    while member.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    member.join()
    member.sync(**{member.member_id: b"all"})
    member.leave()

    member = joined(client, "static", group_instance_id="i1")
    member.sync(**{member.member_id: b"all"})
    back = joined(client, "static", group_instance_id="i1", protocols=protocols(range=TWO))
    back.leave()

    Member(client, "refused").join(protocols=())
    Member(client, "pending").join()
    joined(client, "old", version=0).leave()
    joined(client, "connect", protocol_type="connect", protocols=protocols(sessioned=b"x")).leave()
    forgotten = joined(client, "forgotten")
    forgotten.sync()
    forgotten.leave()
    for group in ("forgotten", "refused", "none"):
        client.ask(DeleteGroupsRequest((group,)), 2)

    kept = joined(client, "kept", group_instance_id="i1", client_id="keeper")
    kept.sync(**{kept.member_id: b"mine"})
    return kept


def records(data_dir: Path) -> list[Any]:
    """All records of the partition, with made-up ids and times replaced, and members in order."""
    return list(_records(data_dir))


def _records(data_dir: Path) -> Iterator[Any]:
    seen: dict[str, str] = {}
    data = (data_dir / f"{TOPIC}-0" / f"{0:020}.log").read_bytes()
    for batch in split_batches(data):
        for record in batch.records():
            assert record.key is not None
            keyed = decode_keyed(TOPIC, bytes(record.key), None if record.value is None else bytes(record.value))
            shown: Any = None if keyed.value is None else to_json(keyed.value, keyed.value_version)
            if shown is not None:
                assert shown["currentStateTimestamp"] > 0
                shown["currentStateTimestamp"] = "then"
                shown["members"].sort(key=lambda member: member["assignment"])  # Java has no order of its own
            text = MADE_UP.sub(lambda match: seen.setdefault(match[0], f"#{len(seen) + 1}"), repr(shown))
            yield type(keyed.key).__name__, keyed.key.group, keyed.value_version, text


def test_records_and_handover(apache_jars: Path, tmp_path: Path) -> None:
    found, kept = {}, {}
    for kind in (OTTLA, APACHE):
        node = new_node(kind, tmp_path / kind)
        with node:
            client = client_of(node)
            kept[kind] = live(client)
            node.stop()
            client.close_all()
        found[kind] = records(node.data_dir)
    assert found[OTTLA] == found[APACHE]
    for kind, successor in ((OTTLA, APACHE), (APACHE, OTTLA)):
        with new_node(successor, tmp_path / f"{kind}-then-{successor}", data_dir=tmp_path / kind / "data") as node:
            go_on(node, kept[kind])


def go_on(node: Node, before: Member) -> None:
    """The member that was there is still there, and its group lives on."""
    client = client_of(node)
    member = new_member(client, "kept", client_id="keeper", group_instance_id="i1")
    member.member_id, member.generation = before.member_id, before.generation
    assert member.heartbeat() == 0
    assert member.sync().assignment == b"mine"
    other = new_member(client, "kept")
    other.join()
    number = other.send_join()
    while member.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    assert member.join().generation_id == 2
    assert other.receive_join(number).generation_id == 2
    assert joined(client, "grows").generation == 5
    client.close_all()
