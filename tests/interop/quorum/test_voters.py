"""Voters of both kinds in one quorum: they elect each other, follow each other, and lose nothing acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import MIXED, Quorum, View

NODES = (1, 2, 3)


@pytest.mark.parametrize("kinds", MIXED.values(), ids=MIXED)
def test_every_voter_leads_in_turn(kinds: dict[int, str], tmp_path: Path) -> None:
    """Whoever is to lead next is the only one that has the newest records: nobody else can be elected."""
    with Quorum(tmp_path, voters=kinds) as quorum:
        names = set()
        for chosen in NODES:
            view = quorum.wait_for(lambda view: view.voter_ids == set(NODES) and not view.has_lag(), "all voters")
            if view.leader_id != chosen:
                names |= depose(quorum, view, chosen)
            names.add(f"led-by-{chosen}")
            quorum.create_topic(f"led-by-{chosen}", at=chosen)
        for number in NODES:
            quorum.wait_for_topics(names, at=number)
        assert len({frozenset(quorum.topics(number).items()) for number in NODES}) == 1
        quorum.wait_for(lambda view: not view.has_lag(), "all records everywhere")
        logs = [quorum.metadata_log(number) for number in NODES]
        common = min(max(log) for log in logs)
        first, *others = [{offset: data for offset, data in log.items() if offset <= common} for log in logs]
        assert others == [first, first]
        quorum.check_health()


def depose(quorum: Quorum, view: View, chosen: int) -> set[str]:
    """Kill the leader when only the chosen voter has all that it has acknowledged; give the names of new topics."""
    leader = view.leader_id
    (third,) = set(NODES) - {leader, chosen}
    quorum.pause(third)
    names = {f"epoch-{view.epoch}-{number}" for number in range(3)}
    for name in names:
        quorum.create_topic(name, at=chosen)
    quorum.nodes[leader].kill()
    quorum.resume(third)
    quorum.wait_for(lambda view: view.leader_id == chosen, f"node {chosen} to lead")
    quorum.create_topic(f"epoch-{view.epoch}-after", at=third)
    quorum.start(leader)
    return names | {f"epoch-{view.epoch}-after"}


def test_a_quorum_changes_its_kind_node_by_node_and_back(tmp_path: Path) -> None:
    """Each node is stopped, and one of the other kind goes on with its directory; the others serve meanwhile."""
    with Quorum(tmp_path, voters=dict.fromkeys(NODES, APACHE)) as quorum:
        names = set()
        for kind in (OTTLA, APACHE):
            for number in NODES:
                quorum.nodes[number].stop()
                names.add(f"without-{number}-to-{kind}")
                quorum.create_topic(f"without-{number}-to-{kind}", at=number % len(NODES) + 1)
                quorum.replace(number, kind)
                quorum.start(number)
                quorum.wait_for(lambda view: view.voter_ids == set(NODES) and not view.has_lag(), "all voters")
                quorum.wait_for_topics(names, at=number)
                quorum.check_health()
        assert len({frozenset(quorum.topics(number).items()) for number in NODES}) == 1
