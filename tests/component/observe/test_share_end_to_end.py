"""A share group at work on an ottla broker, with all that such a broker tells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

import ottla.testing
from ottla.health import Engine
from ottla.health.facts import ShareMetrics, ShareState, ShareWindow
from ottla.health.samples import fact_in
from ottla.testing.ports import PortReservation
from tests.interop.observe.sharing import (
    GROUP,
    LIMIT,
    LIMITS,
    POISON,
    RECORDS,
    REJECTED,
    TOPIC,
    Observed,
    observed_work,
)


@pytest.fixture(scope="module")
def observed() -> Iterator[Observed]:
    with closing(PortReservation()) as metrics, closing(PortReservation()) as inspect:
        settings = {"ottla.metrics.port": metrics.port, "ottla.inspect.listeners": f"http://127.0.0.1:{inspect.port}"}
        with ottla.testing.broker(**LIMITS, **settings) as broker:
            yield asyncio.run(observed_work(broker.bootstrap_servers, (f"http://127.0.0.1:{metrics.port}/metrics",)))


def test_every_record_of_the_state_is_told_once(observed: Observed):
    facts = [fact_in(each) for each in observed.of("share_state")]
    assert all(isinstance(each, ShareState) and each.group == GROUP and each.topic == TOPIC for each in facts)
    offsets = [each.offset for each in facts if isinstance(each, ShareState)]
    assert offsets == sorted(set(offsets))
    ended = [
        (batch.first, batch.last, batch.count)
        for each in facts
        if isinstance(each, ShareState)
        for batch in each.batches
        if batch.state == 4
    ]
    assert (REJECTED, REJECTED, 1) in ended
    assert (POISON, POISON, LIMIT) in ended


def test_the_brokers_own_counters(observed: Observed):
    last = fact_in(observed.of("share_metrics")[-1])
    assert isinstance(last, ShareMetrics)
    assert (last.group, last.rejected, last.lock_expiries) == (GROUP, 1, 0)
    assert last.accepted == RECORDS - 2
    assert last.redelivered == LIMIT - 1
    assert last.lock_count >= RECORDS


def test_what_was_in_flight(observed: Observed):
    windows = [fact_in(each) for each in observed.of("share_window")]
    assert windows
    assert all(isinstance(each, ShareWindow) and (each.group, each.topic) == (GROUP, TOPIC) for each in windows)


def test_the_rules_name_the_poison_record_and_the_rejected_one(observed: Observed):
    engine = Engine(muted=["single-voter"])
    for each in observed.samples:
        fact = fact_in(each)
        if fact is not None:
            engine.take(each.ts, fact)
    found = {each.rule: each for each in engine.findings()}
    assert set(found) == {"poison-records", "rejected-records"}
    assert f"{TOPIC}-0 {POISON}" in found["poison-records"].sentence
    assert list(engine.unseen()) == []
