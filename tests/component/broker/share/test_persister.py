"""The persister: what is tried again, how often, and in which order."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ottla.broker.loop.clock import ManualClock
from ottla.broker.share.persister import Persister
from ottla.broker.share.share_coordinators import ShareCoordinators
from ottla.wire.errors import ErrorCode
from tests.component.broker.raw_client import running_node
from tests.unit.broker.share_state_requests import codes, initialize, read, results, write


def test_on_a_node(tmp_path: Path) -> None:
    """The topic of state comes with the first request; a start while it cannot be made is tried again."""
    with running_node(tmp_path, ManualClock()) as running:
        topic_id = running.client.topic(3).topic_id
        node = running.node
        heard: dict[str, Any] = {}
        ensure = node.internal_topics.ensure
        node.internal_topics.ensure = lambda topic, done: done(ErrorCode.REQUEST_TIMED_OUT)  # type: ignore[method-assign]
        persister, keep = Persister(node, ShareCoordinators(node).ask), heard.__setitem__
        running.change(lambda: persister.ask(initialize(topic_id, (0, 1, 2), start=4), partial(keep, "first")))
        running.change(lambda: persister.ask(read(topic_id, (2, 1)), partial(keep, "second")))
        assert heard == {}
        node.internal_topics.ensure = ensure  # type: ignore[method-assign]
        running.advance(1_000)
        running.until(lambda: len(heard) == 2)
        assert codes(heard["first"]) == {0: 0, 1: 0, 2: 0}
        assert [each.start_offset for each in results(heard["second"]).values()] == [4, 4]


def test_numbers_on_the_page_of_metrics(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        topic_id = running.client.topic(3).topic_id
        node = running.node
        heard: list[Any] = []
        running.change(lambda: node.share.persister.ask(initialize(topic_id, (0, 1, 2), start=4), heard.append))
        running.until(lambda: heard)
        body = write(topic_id, (5, 5, 2, 1), (7, 7, 2, 1), start=4)
        running.change(lambda: node.share.persister.ask(body, lambda answer: None))
        codes(running.client.ask(read(topic_id, (0,)), 0))
        lines = node.metrics.page().splitlines()
        assert "ottla_share_state_partitions 3" in lines
        assert "ottla_share_state_ranges 2" in lines
        assert 'ottla_share_state_requests_total{request="InitializeShareGroupState"} 3' in lines
        assert "kafka_server_share_coordinator_metrics_write_total 1" in lines
        assert "ottla_share_state_retries_total 0" in lines
