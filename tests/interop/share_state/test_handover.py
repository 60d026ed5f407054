"""A share group with gaps in its window changes brokers, to and fro, and goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.wire.types import FindCoordinatorRequest
from tests.component.broker.raw_client import RawClient, Topic
from tests.component.broker.share.group_requests import beat, describe, join, offsets, set_config, starts_and_lags
from tests.component.broker.share.share_members import Member, produce
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.share_state.nodes import SETTINGS, Node, new_node, until

GROUP, MEMBER = "workers", "m-1"
ACCEPT, RELEASE, REJECT = (1,), (2,), (3,)
ANSWERED = [(0, 4, ACCEPT), (5, 5, RELEASE), (7, 7, ACCEPT), (12, 14, ACCEPT), (20, 20, REJECT)]
LEFT = {5, 6, *range(8, 12), *range(15, 20), *range(21, 30)}


@pytest.fixture
def nodes(apache_jars: Path, tmp_path: Path) -> Iterator[dict[str, Node]]:
    """One of each kind, on the same directory. A topic of state that ottla makes is as large as it is by default."""
    by_default = dict.fromkeys((each for each in SETTINGS if each.startswith("share.")), None)
    made = {
        APACHE: new_node(APACHE, tmp_path / APACHE, data_dir=tmp_path / "data"),
        OTTLA: new_node(OTTLA, tmp_path / OTTLA, data_dir=tmp_path / "data", **by_default),
    }
    yield made
    for node in made.values():
        if node.running:
            node.kill()


@contextmanager
def talk(node: Node) -> Iterator[RawClient]:
    client = RawClient.at(node.bootstrap_servers)
    try:
        yield client
    finally:
        client.close_all()


def become_member(client: RawClient, topic: Topic) -> int:
    """Join, and wait for the partition; gives the epoch."""
    client.ask(FindCoordinatorRequest(coordinator_keys=(GROUP,)), 6)  # Apache Kafka makes its topic for whoever looks
    heard = client.ask(join(GROUP, MEMBER, topic.name), 1)

    def has_partition() -> bool:
        nonlocal heard
        if heard.error_code == 0 and heard.assignment is not None and heard.assignment.topic_partitions:
            return True
        epoch = heard.member_epoch
        heard = client.ask(beat(GROUP, MEMBER, epoch) if epoch else join(GROUP, MEMBER, topic.name), 1)
        return False

    until(has_partition)
    return int(heard.member_epoch)


def take_all(member: Member, wanted: set[int]) -> dict[int, int]:
    """Fetch until all that is wanted is there, and once more; offset -> delivery count."""
    found: dict[int, int] = {}

    def take() -> bool:
        for first, last, count in member.take(max_wait_ms=500, max_bytes=1 << 20):
            for offset in range(first, last + 1):
                assert offset not in found
                found[offset] = count
        return found.keys() >= wanted

    until(take)
    take()
    assert found.keys() == wanted
    return found


def is_served(client: RawClient, epoch: int) -> bool:
    """Whether the group coordinator knows the member still, with its epoch."""
    heard = client.ask(beat(GROUP, MEMBER, epoch), 1)
    assert heard.error_code in (0, 14, 15, 16), heard
    return bool(heard.error_code == 0 and heard.member_epoch == epoch)


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("kinds", [(OTTLA, APACHE), (APACHE, OTTLA)], ids=lambda kinds: f"{kinds[0]} first")
def test_a_group_changes_brokers_and_back(nodes: dict[str, Node], kinds: tuple[str, str], how: str) -> None:
    first, second = (nodes[kind] for kind in kinds)
    first.start()
    with talk(first) as client:
        topic = client.topic()
        produce(client, topic, 10, 10, 10)
        assert set_config(client, GROUP, "share.auto.offset.reset", "earliest") == 0
        epoch = become_member(client, topic)
        member = Member(client, GROUP, MEMBER, topic)
        assert set(take_all(member, set(range(30))).values()) == {1}
        assert member.acknowledge(*ANSWERED) == 0
        group_epoch = describe(client, GROUP)[0].group_epoch
        end(first, how)
    second.start()
    with talk(second) as client:
        until(lambda: is_served(client, epoch))
        assert describe(client, GROUP)[0].group_epoch == group_epoch
        member = Member(client, GROUP, MEMBER, topic)
        counts = take_all(member, LEFT)
        assert counts[5] == 2
        if how == "killed":  # nobody has set free what was held
            assert all(count == 1 for offset, count in counts.items() if offset != 5)
        assert member.acknowledge((5, 5, ACCEPT), (6, 6, ACCEPT), (8, 8, ACCEPT), (9, 9, RELEASE)) == 0
        end(second, how)
    first.start()
    with talk(first) as client:
        until(lambda: is_served(client, epoch))
        member = Member(client, GROUP, MEMBER, topic)
        counts = take_all(member, LEFT - {5, 6, 8})
        assert counts[9] >= 2
        ranges = [(9, 11, ACCEPT), (15, 19, ACCEPT), (21, 29, ACCEPT)]
        assert member.acknowledge(*ranges) == 0
        assert starts_and_lags(offsets(client, GROUP))[topic.name, 0][1] == 0
        produce(client, topic, 5)
        assert take_all(member, set(range(30, 35))) == dict.fromkeys(range(30, 35), 1)


def end(node: Node, how: str) -> None:
    if how == "stopped":
        node.stop()
    else:
        node.kill()
