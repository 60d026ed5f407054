"""Plans of replicas: they are spread, nothing is lost, and what is well stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.metadata import TopicPartition
from ottla.client.replica_plan import Move, PlacedPartition, PlanError, spread

NO_RACKS = dict.fromkeys((1, 2, 3))


def placed(*replicas: tuple[int, ...], sizes: tuple[int, ...] = ()) -> list[PlacedPartition]:
    """Partitions of one topic."""
    return [
        PlacedPartition(TopicPartition("orders", number), each, sizes[number] if sizes else 100)
        for number, each in enumerate(replicas)
    ]


def after(partitions: list[PlacedPartition], moves: list[Move]) -> dict[int, tuple[int, ...]]:
    return {each.at.partition: each.replicas for each in partitions} | {each.at.partition: each.after for each in moves}


def test_what_is_spread_stays_as_it_is() -> None:
    assert spread(placed((1, 2), (2, 3), (3, 1)), NO_RACKS) == []


def test_a_broker_that_is_new_takes_its_share_and_nothing_else_moves() -> None:
    partitions = placed((1, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 1))
    moves = spread(partitions, NO_RACKS)
    assert Counter(broker for each in after(partitions, moves).values() for broker in each) == {1: 4, 2: 4, 3: 4}
    assert sum(len(each.added) for each in moves) == 4
    assert sum(each.copied_bytes for each in moves) == 400


def test_a_broker_that_shall_go_keeps_nothing() -> None:
    partitions = placed((1, 2, 3), (3, 2, 1), (4, 1, 2))
    moves = spread(partitions, dict.fromkeys((1, 2, 4)))
    assert all(3 not in each for each in after(partitions, moves).values())
    assert sum(len(each.added) for each in moves) == 2


def test_more_and_fewer_replicas() -> None:
    partitions = placed((1,), (1,), (1,))
    more = spread(partitions, NO_RACKS, replication_factor=3)
    assert all(sorted(each) == [1, 2, 3] for each in after(partitions, more).values())
    assert Counter(each[0] for each in after(partitions, more).values()) == {1: 1, 2: 1, 3: 1}
    fewer = spread(placed((1, 2, 3), (1, 2, 3), (1, 2, 3)), NO_RACKS, replication_factor=1)
    assert Counter(each.after for each in fewer) == {(1,): 1, (2,): 1, (3,): 1}
    assert sum(each.copied_bytes for each in fewer) <= 200


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(PlanError, match="4 replicas need as many brokers, but there are 3"):
        spread(placed((1,)), NO_RACKS, replication_factor=4)


def test_replicas_stay_on_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    partitions = placed((1, 3), (1, 3), (1, 3), (1, 3))
    moves = spread(partitions, racks)
    found = after(partitions, moves)
    assert all(len({racks[broker] for broker in each}) == 2 for each in found.values())
    assert Counter(broker for each in found.values() for broker in each) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_bytes_are_evened_by_exchange() -> None:
    partitions = placed((1,), (1,), (2,), (2,), sizes=(1000, 1000, 10, 10))
    found = after(partitions, spread(partitions, dict.fromkeys((1, 2))))
    on = [
        sum(partitions[number].size_bytes for number, each in found.items() if each == (broker,)) for broker in (1, 2)
    ]
    assert on == [1010, 1010]


def test_leaders_are_handed_on_without_copying() -> None:
    partitions = placed((1, 2), (1, 2), (1, 3), (2, 3), (3, 1), (3, 2))
    moves = spread(partitions, NO_RACKS)
    found = after(partitions, moves)
    assert max(Counter(each[0] for each in found.values()).values()) == 2
    assert sum(each.copied_bytes for each in moves) == 0


BROKERS = st.integers(1, 6)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PlacedPartition], Mapping[int, str | None]]:
    count = draw(BROKERS)
    racks = {number: draw(st.sampled_from([None, "a", "b"])) for number in range(1, count + 1)}
    everywhere = st.integers(1, count + 1)
    factor = draw(st.integers(1, count))
    replicas = st.lists(everywhere, min_size=factor, max_size=factor, unique=True).map(tuple)
    partitions = draw(st.lists(st.tuples(replicas, st.integers(0, 1000)), min_size=1, max_size=30))
    return [PlacedPartition(TopicPartition("t", n), *each) for n, each in enumerate(partitions)], racks


@given(clusters())
def test_every_plan_is_sound(cluster: tuple[list[PlacedPartition], Mapping[int, str | None]]) -> None:
    partitions, racks = cluster
    moves = spread(partitions, racks)
    found = after(partitions, moves)
    for each in partitions:
        replicas = found[each.at.partition]
        assert len(set(replicas)) == len(replicas) == len(each.replicas)
        assert set(replicas) <= set(racks)
    if len(set(racks.values())) == 1:
        counts = Counter(broker for each in found.values() for broker in each)
        assert max(counts.values()) - min(counts[broker] for broker in racks) <= 1
    again = [each._replace(replicas=found[each.at.partition]) for each in partitions]
    assert not [each for each in spread(again, racks) if each.added], "a second plan has nothing to copy"
