"""An observer on a real broker with groups of all kinds and transactions in all states."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla.testing
from ottla.client import Client
from ottla.health import Engine
from ottla.health.facts import Group, Lag, ShareOffsets, Transaction
from ottla.health.samples import OBSERVATIONS, Sample, encode, fact_in
from ottla.observe import QUIET, FileSink, Observer, Options, TopicSink, prepare_topic, read_files, read_topic
from ottla.observe.kinds import INTERVALS_S
from tests.interop.spark import group_history as history
from tests.interop.spark.topics import TIME_MS, Topics


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with ottla.testing.broker(**history.LONG_SESSIONS) as broker:
        topics = Topics(broker.bootstrap_servers)
        history.make_history(topics)
        yield broker.bootstrap_servers
        history.let_go()
        topics.close()


async def observed_into_topic(servers: str) -> tuple[list[Sample], list[Sample]]:
    taken: list[Sample] = []
    async with Client(servers, **QUIET) as client:
        await prepare_topic(client, OBSERVATIONS)
        sink = TopicSink(client, OBSERVATIONS)
        watching = Observer(client, "run", Options(), sink=sink, on_sample=taken.append)
        await watching.run(is_enough=lambda: watching.probed_all)
        return taken, await read_topic(client, OBSERVATIONS)


@pytest.fixture(scope="module")
def samples(servers: str) -> list[Sample]:
    taken, kept = asyncio.run(observed_into_topic(servers))
    assert written(kept) == in_order(taken)
    return kept


def in_order(samples: list[Sample]) -> list[bytes]:
    return written(sorted(samples, key=lambda each: (each.ts, each.observer, each.seq)))


def written(samples: Iterable[Sample]) -> list[bytes]:
    return [encode(each) for each in samples]


def facts(samples: list[Sample], kind: type[Any]) -> list[Any]:
    return [fact for each in samples if isinstance(fact := fact_in(each), kind)]


def test_every_kind_is_sampled_or_said_to_be_hidden(samples: list[Sample]):
    seen = {each.kind for each in samples}
    hidden = {each.entity for each in samples if each.kind == "coverage" and each.body and not each.body["visible"]}
    assert set(INTERVALS_S) - seen == {"share_state", "share_metrics", "share_window", "access"}
    nobody_tells = {"share_metrics", "share_window", "login_failures", "refusals"}
    assert hidden == nobody_tells  # and nobody wrote share state meanwhile
    assert [each for each in samples if each.error] == []


def test_groups_of_all_kinds(samples: list[Sample]):
    groups: dict[str, Group] = {each.group: each for each in facts(samples, Group)}
    kinds = {name: each.type for name, each in groups.items()}
    assert kinds == {
        history.CLASSIC: "classic",
        history.SIMPLE: "classic",
        history.CONSUMER: "consumer",
        history.SHARE: "share",
        history.IDLE_SHARE: "share",
        history.STREAMS: "streams",
    }
    (member,) = groups[history.CONSUMER].members
    assert {each.topic: each.partitions for each in member.assigned} == {history.TOPIC: (0, 1)}
    assert member.assigned == member.target
    assert member.epoch == groups[history.CONSUMER].group_epoch > 0
    (sharing,) = groups[history.SHARE].members
    assert {each.topic for each in sharing.assigned} == {history.TOPIC, history.OTHER}
    (streaming,) = groups[history.STREAMS].members
    assert streaming.tasks is not None
    assert streaming.tasks.active == ("0_0", "0_1")
    assert streaming.process == "process-1"
    assert [each.source for each in groups[history.STREAMS].subtopologies or ()] == [(history.TOPIC,)]


def test_offsets_and_ends(samples: list[Sample]):
    lags = {(each.group, each.topic, each.partition): each for each in facts(samples, Lag)}
    simple = lags[history.SIMPLE, history.TOPIC, 0]
    assert (simple.committed, simple.log_start, simple.high_watermark, simple.last_stable) == (4, 0, 30, 30)
    assert simple.committed_ts == TIME_MS + 3_000
    assert lags[history.SIMPLE, history.OTHER, 1].committed == 9  # what was aborted does not count
    held = lags[history.SIMPLE, history.OTHER, 1]
    assert held.last_stable < held.high_watermark  # a transaction is open
    shares = {(each.group, each.topic, each.partition): each for each in facts(samples, ShareOffsets)}
    assert shares[history.IDLE_SHARE, history.OTHER, 0].start == 7
    assert shares[history.IDLE_SHARE, history.OTHER, 0].high_watermark == 30


def test_only_the_open_transaction_is_told(samples: list[Sample]):
    (transaction,) = facts(samples, Transaction)
    assert (transaction.id, transaction.state) == ("tx-open", "Ongoing")
    ((place),) = transaction.partitions
    assert (place.topic, place.partition) == (history.OTHER, 1)
    assert place.first_offset is not None


def test_the_rules_find_nothing_wrong(samples: list[Sample]):
    engine = Engine(muted=["single-voter"])
    for each in samples:
        fact = fact_in(each)
        assert fact is not None
        engine.take(each.ts, fact)
    assert engine.findings() == []
    assert {each.rule for each in engine.unseen()} == {"lock-expiries", "auth-failures", "refused-requests"}


def test_files_hold_the_same(servers: str, tmp_path: Path):
    taken: list[Sample] = []

    async def observe() -> None:
        async with Client(servers, **QUIET) as client:
            sink = FileSink(tmp_path)
            watching = Observer(client, "12345678-run", Options(), sink=sink, on_sample=taken.append)
            await watching.run(is_enough=lambda: watching.probed_all)

    asyncio.run(observe())
    assert written(read_files(tmp_path)) == in_order(taken)
    names = {path.name for path in tmp_path.glob("kind=group/date=*/*")}
    assert all(name.startswith("12345678-") and name.endswith(".jsonl.zst") for name in names)
