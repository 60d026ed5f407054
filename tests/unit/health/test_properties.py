"""Whatever is told, findings are whole, and memory is bounded."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.health import Bounds, ChangeType, Engine, Finding
from ottla.health.facts import (
    Broker,
    Cluster,
    Configs,
    Coverage,
    Fact,
    Failed,
    Gone,
    Group,
    GroupMember,
    Lag,
    LogDir,
    LoginFailures,
    Partition,
    Quorum,
    Replica,
    ShareMetrics,
    ShareOffsets,
    ShareState,
    ShareWindow,
    StateBatch,
    Subtopology,
    Tasks,
    Topic,
    TopicPartitions,
    Transaction,
    TransactionPartition,
)
from tests.unit.health.story import START_MS

T = TypeVar("T")
ROOM = 8
NAMES = st.sampled_from(["a", "b", "orders.v1", "x/y ü", "__consumer_offsets", "__share_group_state"])
MANY_NAMES = st.integers(0, 40).map("name-{}".format)
SMALL = st.integers(-1, 6)
OFFSETS = st.integers(-1, 5000)
NODES = st.lists(st.integers(1, 4), max_size=3, unique=True).map(tuple)
TASKS = st.builds(
    Tasks, **dict.fromkeys(("active", "standby", "warmup"), st.just(()) | st.just(("0_1",)) | st.just(("0_2",)))
)


def tuples(inner: st.SearchStrategy[T], most: int = 3) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(inner, max_size=most).map(tuple)


def maybe(inner: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | inner


HELD = tuples(st.builds(TopicPartitions, topic=NAMES, partitions=st.just((0,)) | st.just((1,))))
MEMBERS = tuples(
    st.builds(
        GroupMember, member=st.sampled_from(["m1", "m2", "m3"]), epoch=SMALL, instance=maybe(st.just("i-1")),
        client=st.sampled_from(["", "client"]), topology_epoch=maybe(SMALL), assigned=HELD, target=HELD,
        tasks=maybe(TASKS), target_tasks=maybe(TASKS), task_offsets=maybe(st.just({"0_1": 5})),
        task_end_offsets=maybe(st.just({"0_1": 9})),
    )
)  # fmt: skip
REPLICAS = tuples(
    st.builds(
        Replica, id=st.integers(1, 4), role=st.sampled_from(["voter", "observer"]), log_end=maybe(OFFSETS),
        last_fetch_ts=maybe(st.just(-1) | st.integers(START_MS, START_MS + 10**6)),
        last_caught_up_ts=maybe(st.just(-1) | st.integers(START_MS, START_MS + 10**6)),
    )
)  # fmt: skip
PARTITIONS = st.lists(
    st.builds(Partition, partition=st.integers(0, 2), leader=st.integers(-1, 3), replicas=NODES, isr=NODES),
    max_size=3, unique_by=lambda each: each.partition,
).map(tuple)  # fmt: skip
BATCHES = tuples(
    st.builds(
        StateBatch, first=st.integers(0, 50), last=st.integers(0, 90), state=st.sampled_from([0, 2, 4]), count=SMALL
    )
)
BROKERS = tuples(
    st.builds(Broker, id=st.integers(1, 4), fenced=maybe(st.booleans()), reachable=maybe(st.booleans()),
              supported=maybe(st.just({"share.version": (0, 1)})))
)  # fmt: skip
VALUES = st.sampled_from(
    [
        {"min.insync.replicas": "2"},
        {"consumer.session.timeout.ms": "6000"},
        {"x": None},
        {"share.delivery.count.limit": "junk"},
    ]
)
PLACES = tuples(st.builds(TransactionPartition, topic=NAMES, partition=SMALL, first_offset=maybe(OFFSETS)))


def facts(names: st.SearchStrategy[str]) -> st.SearchStrategy[Fact]:
    where = {"group": names, "topic": names, "partition": st.integers(0, 2)}
    return st.one_of(
        st.builds(
            Group, group=names, type=st.sampled_from(["classic", "consumer", "share", "streams"]),
            state=st.sampled_from(["Stable", "Empty", "NotReady"]), group_epoch=SMALL, assignment_epoch=SMALL,
            members=MEMBERS, topology_epoch=maybe(SMALL),
            topology_description=st.sampled_from([None, "not_stored", "error"]),
            subtopologies=maybe(tuples(st.builds(Subtopology, id=st.just("0"), source=tuples(names)))),
        ),
        st.builds(Lag, **where, committed=maybe(OFFSETS), log_start=maybe(OFFSETS), high_watermark=maybe(OFFSETS)),
        st.builds(ShareOffsets, **where, start=maybe(OFFSETS), lag=maybe(OFFSETS), high_watermark=maybe(OFFSETS)),
        st.builds(ShareState, group=names, topic=maybe(names), topic_id=maybe(names), partition=st.just(0),
                  record=st.sampled_from(["ShareUpdate", "ShareSnapshot"]), start=maybe(OFFSETS), batches=BATCHES),
        st.builds(ShareWindow, **where, start=OFFSETS, end=OFFSETS, first_count=maybe(SMALL)),
        st.builds(ShareMetrics, group=names, node=st.just(1), delivered=OFFSETS, redelivered=OFFSETS,
                  rejected=OFFSETS, lock_expiries=OFFSETS),
        st.builds(Quorum, leader=st.integers(-1, 3), leader_epoch=SMALL, high_watermark=maybe(OFFSETS),
                  replicas=REPLICAS),
        st.builds(Cluster, controller=maybe(SMALL), brokers=BROKERS,
                  finalized=maybe(st.just({"metadata.version": 30}))),
        st.builds(Topic, topic=names, id=maybe(names), internal=st.booleans(), partitions=PARTITIONS),
        st.builds(Configs, resource=st.sampled_from(["topic", "group", "broker"]), name=names, values=VALUES),
        st.builds(LogDir, node=st.integers(1, 4), path=names, error=st.sampled_from([None, "KAFKA_STORAGE_ERROR"]),
                  total=maybe(st.integers(0, 100)), usable=maybe(st.integers(0, 100))),
        st.builds(Transaction, id=maybe(names), producer=st.integers(1, 9), started=maybe(st.just(0)),
                  partitions=PLACES),
        st.builds(LoginFailures, node=st.just(1), user=names, address=names, failed=st.integers(0, 99)),
        st.builds(Coverage, what=names, visible=st.booleans()),
        st.builds(Failed, what=st.sampled_from(["cluster", "quorum"]), error=st.just("TIMEOUT"),
                  unreachable=st.booleans()),
        st.builds(Gone, what=st.sampled_from(["topic", "group", "transaction"]), name=names),
    )  # fmt: skip


def tales(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[int, Fact]]]:
    """Facts, each so many milliseconds after the one before."""
    gaps = st.sampled_from([0, 0, 1000, 5000, 30_000, 400_000])
    return st.lists(st.tuples(gaps, facts(names)), max_size=60)


def whole(finding: Finding) -> bool:
    texts = [finding.sentence, *(step.text for step in finding.next)]
    texts += [step.command for step in finding.next if isinstance(step.command, str)]
    return bool(finding.next) and not any(mark in text for text in texts for mark in ("{", "}", "None", "UNSET", "  "))


@settings(max_examples=80, deadline=None)
@given(tales(NAMES))
def test_every_finding_is_whole_and_opens_before_it_closes(tale: list[tuple[int, Fact]]) -> None:
    engine, now_ms, is_open = Engine(), START_MS, {}
    for gap_ms, fact in tale:
        now_ms += gap_ms
        for change in engine.take(now_ms, fact):
            finding = change.finding
            assert whole(finding), finding
            assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding
            assert is_open.get(finding.id, False) is (change.what in {ChangeType.CHANGED, ChangeType.RESOLVED})
            is_open[finding.id] = change.what is not ChangeType.RESOLVED
            assert finding.is_open is is_open[finding.id]
    subjects = [(each.rule, each.subject) for each in engine.findings() if each.is_open]
    assert len(subjects) == len(set(subjects)) == sum(is_open.values())


@settings(max_examples=30, deadline=None)
@given(tales(MANY_NAMES))
def test_nothing_grows_beyond_its_bounds(tale: list[tuple[int, Fact]]) -> None:
    engine, now_ms = Engine(bounds=Bounds(groups=ROOM, topics=ROOM, partitions=ROOM, others=ROOM)), START_MS
    for gap_ms, fact in tale:
        now_ms += gap_ms
        engine.take(now_ms, fact)
    history = engine._history
    shelves = (
        history.groups,
        history.topics,
        history.lags,
        history.topic_lags,
        history.topics_of,
        history.share_groups,
    )
    shelves += (history.share_partitions, history.disks, history.transactions, history.logins)  # type: ignore[assignment]

    assert all(len(shelf) <= ROOM for shelf in shelves)
    assert engine._condition_count == sum(map(len, engine._conditions.values()))


@settings(max_examples=30, deadline=None)
@given(tales(NAMES))
def test_when_all_is_silent_for_a_day_nothing_is_left_in_the_queue(tale: list[tuple[int, Fact]]) -> None:
    engine, now_ms = Engine(muted=["observer-stale"]), START_MS
    for gap_ms, fact in tale:
        now_ms += gap_ms
        engine.take(now_ms, fact)
    engine.advance(now_ms + 86_400_000)

    assert not engine._due
    assert not engine._due_at


def told(tale: list[tuple[int, Fact]], step_ms: int | None) -> list[tuple[int, ChangeType, Finding]]:
    """What an engine says of a tale, with time told in between or not; how often numbers are told again may differ."""
    engine, now_ms, changes = Engine(), START_MS, []
    for gap_ms, fact in tale:
        for moment in range(now_ms, now_ms + gap_ms, step_ms) if step_ms else ():
            changes += engine.advance(moment)
        now_ms += gap_ms
        changes += engine.take(now_ms, fact)
    changes += engine.advance(now_ms + 100_000)
    return [(each.at_ms, each.what, each.finding) for each in changes if each.what is not ChangeType.CHANGED]


@settings(max_examples=40, deadline=None)
@given(tales(NAMES), st.sampled_from([700, 10_000]))
def test_findings_do_not_hang_on_how_often_time_is_told(tale: list[tuple[int, Fact]], step_ms: int) -> None:
    assert told(tale, None) == told(tale, step_ms)
