from collections import Counter

import pytest

from ottla.core.metadata.cluster_image import BrokerImage
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.placement import draw_from, place
from ottla.wire.errors import ErrorCode
from tests.unit.core.metadata.cluster import counter, uuid


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[BrokerImage]:
    """Brokers 0, 1, 2… in these racks."""
    return [BrokerImage(n, 1, uuid(n), rack=rack, fenced=n in fenced) for n, rack in enumerate(racks)]


def placed(of: list[BrokerImage], partitions: int, factor: int, seed: int = 1) -> list[list[int]]:
    return place(of, partitions, factor, draw_from(counter(seed)))


def test_one_broker_holds_everything():
    assert placed(brokers(None), 3, 1) == [[0], [0], [0]]


def test_leaders_spread_evenly():
    for seed in range(20):
        leaders = Counter(replicas[0] for replicas in placed(brokers(None, None, None, None), 12, 3, seed))
        assert leaders == {0: 3, 1: 3, 2: 3, 3: 3}


def test_replicas_are_different_brokers():
    for replicas in placed(brokers("a", "a", "b", "b", "c"), 50, 5):
        assert sorted(replicas) == [0, 1, 2, 3, 4]


def test_replicas_lie_in_different_racks():
    racks = ("a", "a", "b", "b", "c", "c")
    for seed in range(20):
        for replicas in placed(brokers(*racks), 18, 3, seed):
            assert {racks[broker] for broker in replicas} == {"a", "b", "c"}


def test_leaders_spread_over_racks():
    racks = ("a", "a", "a", "b", "c", "c")
    leaders = Counter(racks[replicas[0]] for replicas in placed(brokers(*racks), 6, 1))
    assert leaders == {"a": 2, "b": 2, "c": 2}


def test_two_racks_for_three_replicas_hold_both():
    racks = ("a", "a", "b", "b")
    for replicas in placed(brokers(*racks), 20, 3):
        assert Counter(racks[broker] for broker in replicas).most_common(1)[0][1] == 2


def test_a_fenced_broker_never_leads_and_is_the_last_choice():
    racks = ("a", "a", "b")
    for replicas in placed(brokers(*racks, fenced=(1,)), 20, 2):
        assert sorted(replicas) == [0, 2]
    for replicas in placed(brokers(*racks, fenced=(1,)), 20, 3):
        assert replicas[0] != 1
        assert sorted(replicas) == [0, 1, 2]


def test_neighbours_change_once_everybody_has_led():
    pairs = {tuple(replicas) for replicas in placed(brokers(*[None] * 5), 200, 2)}
    assert len(pairs) > 10  # of the 20 that there are


def test_a_single_unfenced_broker_leads_all():
    assert {replicas[0] for replicas in placed(brokers(None, None, None, fenced=(0, 2)), 30, 2)} == {1}


@pytest.mark.parametrize(
    ("of", "factor", "reason"),
    [
        (brokers(), 1, "no broker"),
        (brokers(None, fenced=(0,)), 1, "no broker"),
        (brokers(None, None), 3, "only 2"),
        (brokers(None), 0, "at least one"),
    ],
)
def test_what_cannot_be_placed(of: list[BrokerImage], factor: int, reason: str):
    with pytest.raises(Reject, match=reason) as refused:
        placed(of, 1, factor)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_brokers_that_shut_down_or_are_cordoned_take_nothing():
    stopping = BrokerImage(0, 1, uuid(0), fenced=False, in_controlled_shutdown=True)
    cordoned = BrokerImage(1, 1, uuid(1), fenced=False, log_dirs=(uuid(9),), cordoned_log_dirs=(uuid(9),))
    open_one = BrokerImage(2, 1, uuid(2), fenced=False, log_dirs=(uuid(8), uuid(7)), cordoned_log_dirs=(uuid(8),))
    assert placed([stopping, cordoned, open_one], 2, 1) == [[2], [2]]
