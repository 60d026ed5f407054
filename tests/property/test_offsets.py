"""Any sequence of commits, transactions, deletions and passing time: what is live is what the log says, compacted too.

The check itself is in the bench, after every step.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.groups.offsets.bench import DAY_MS, Bench

GROUPS = st.sampled_from(["g", "h"])
PARTITIONS = st.integers(0, 2)
PRODUCERS = st.sampled_from([7, 8])
STEPS = st.one_of(
    st.tuples(st.just("commit"), GROUPS, PARTITIONS, st.integers(0, 99), st.sampled_from([-1, 5_000])),
    st.tuples(st.just("transact"), GROUPS, PARTITIONS, st.integers(0, 99), PRODUCERS),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
    st.tuples(st.just("delete"), GROUPS, PARTITIONS),
    st.tuples(st.just("remove group"), GROUPS),
    st.tuples(st.just("delete topic")),
    st.tuples(st.just("advance"), st.sampled_from([1_000, DAY_MS, 8 * DAY_MS])),
)


def take(bench: Bench, step: tuple[Any, ...]) -> None:
    match step:
        case ("commit", group, partition, offset, retention_ms):
            bench.commit(group, ("orders", partition, offset), version=4, retention_time_ms=retention_ms)
        case ("transact", group, partition, offset, producer_id):
            bench.commit_in_transaction(group, producer_id, ("orders", partition, offset))
        case ("end", producer_id, committed):
            bench.end_transaction(producer_id, committed=committed)
        case ("delete", group, partition):
            bench.delete(group, {"orders": [partition]})
        case ("remove group", group):
            bench.remove_group(group)
        case ("delete topic",):
            bench.tell_deleted("orders", b"O" * 16)
        case ("advance", milliseconds):
            bench.advance(milliseconds)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_live_replayed_and_compacted_are_the_same(steps: list[tuple[Any, ...]]):
    bench = Bench()
    for step in steps:
        take(bench, step)
    for producer_id in (7, 8):
        bench.end_transaction(producer_id, committed=True)
    for group in ("g", "h"):
        bench.remove_group(group)
    assert bench.core.hard_state() == {}
