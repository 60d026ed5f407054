"""Quotas of a node at work, on a clock that the tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ManualClock
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeQuorumRequest,
    MetadataRequest,
    WriteTxnMarkersRequest,
)
from tests.component.broker.network.quotas.setting import set_quota
from tests.component.broker.raw_client import (
    Closed,
    Connection,
    RunningNode,
    Topic,
    batch,
    fetch_partition,
    fetch_request,
    produce_request,
    running_node,
)
from tests.component.broker.share.share_members import Member, filled

QUOTA_EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
LATER_MS = 60_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(
        tmp_path_factory.mktemp("node"), ManualClock(), auto_create_topics_enable=True, num_partitions=2
    ) as running:
        yield running


@pytest.fixture
def running(node: RunningNode) -> Iterator[RunningNode]:
    """A node without quotas, whose time begins anew for all."""
    yield node
    for entity in list(node.node.image.quotas):
        for key in node.node.image.quotas.get(entity, {}):
            set_quota(node.client, key, None, **{part.replace("-", "_"): name for part, name in entity})
    node.advance(LATER_MS)


def produce(connection: Connection, topic: Topic, size: int, *, acks: int = 1) -> int:
    """How long the pause after it is."""
    answer = connection.ask(produce_request(topic, {0: batch(b"x" * size)}, acks=acks), 13)
    assert answer.responses[0].partition_responses[0].error_code == 0
    pause_ms: int = answer.throttle_time_ms
    return pause_ms


def fetch(connection: Connection, topic: Topic, offset: int = 0, max_bytes: int = 5_000, **fields: Any) -> Any:
    fields.setdefault("session_epoch", -1)
    wanted = fetch_partition(0, offset, partition_max_bytes=max_bytes)
    return connection.ask(fetch_request(topic, wanted, **fields), 17)


def size_of(answer: Any) -> int:
    return sum(len(one.records or b"") for topic in answer.responses for one in topic.partitions)


class TestProduce:
    def test_a_burst_is_answered_at_once_and_the_socket_is_not_read_meanwhile(self, running: RunningNode) -> None:
        """1 MB at 10 kB/s: throttle times above 0, no answer before they are over, 10 kB/s on average."""
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 10_000.0, client_id="p")
        connection = running.client.connect("p")
        started_ms, sent, pauses = running.node.monotonic_ms(), 0, []
        for _ in range(100):
            pause_ms = produce(connection, topic, 10_000)
            sent += 10_000
            if not pause_ms:
                continue
            pauses.append(pause_ms)
            number = connection.send(ApiVersionsRequest(), 0)
            running.advance(pause_ms - 1)
            assert connection.is_silent(0.001)
            running.advance(1)
            connection.receive(18, 0, number)
        assert len(pauses) > 50
        seconds = (running.node.monotonic_ms() - started_ms) / 1000
        assert sent / seconds == pytest.approx(10_000, rel=0.12)  # the first windows are free

    def test_one_large_request_pays_in_full(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 10_000.0, client_id="p")
        assert produce(running.client.connect("p"), topic, 1_000_000) == pytest.approx(90_000, rel=0.01)

    def test_the_pause_is_the_connections_the_rate_the_clients(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 1000.0, client_id=None)
        first, second, other = (running.client.connect(name) for name in ("a", "a", "b"))
        assert produce(first, topic, 15_000) > 0
        assert produce(second, topic, 10) > 0
        assert produce(other, topic, 10) == 0

    def test_without_acknowledgement_bytes_count_and_the_socket_is_not_read(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 1000.0, client_id="p")
        connection = running.client.connect("p")
        connection.send(produce_request(topic, {0: batch(b"x" * 20_000)}, acks=0), 13)
        number = connection.send(ApiVersionsRequest(), 0)
        assert connection.is_silent(0.05)
        running.advance(12_000)
        connection.receive(18, 0, number)

    def test_a_user_without_login_is_anonymous(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 1000.0, user="ANONYMOUS")
        assert produce(running.client.connect("x"), topic, 15_000) > 0
        assert produce(running.client.connect("y"), topic, 10) > 0

    def test_a_limit_that_is_taken_away_no_longer_holds(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 1000.0, client_id="p")
        assert produce(running.client.connect("p"), topic, 15_000) > 0
        set_quota(running.client, "producer_byte_rate", None, client_id="p")
        assert running.node.dispatch.meter is None
        assert produce(running.client.connect("p"), topic, 15_000) == 0


class TestFetch:
    @pytest.fixture
    def topic(self, running: RunningNode) -> Topic:
        topic = running.client.topic()
        for _ in range(8):
            produce(running.client.connection, topic, 4_000)
        set_quota(running.client, "consumer_byte_rate", 1000.0, client_id="f")
        return topic

    def test_an_answer_is_no_larger_than_the_windows_allow(self, running: RunningNode, topic: Topic) -> None:
        """What comes with the records is more than they allow, so there is a short pause before it, as in Kafka."""
        first = fetch(running.client.connect("f"), topic, max_bytes=100_000)
        assert (first.throttle_time_ms, size_of(first)) == (72, 0)
        running.advance(72)
        answer = fetch(running.client.connect("f"), topic, max_bytes=100_000)
        assert (answer.throttle_time_ms, size_of(answer)) == (0, 10_000)
        assert size_of(fetch(running.client.connect("free"), topic, max_bytes=100_000)) > 32_000

    def test_over_the_limit_it_is_empty_and_costs_nothing(self, running: RunningNode, topic: Topic) -> None:
        assert size_of(fetch(running.client.connect("f"), topic)) == 5_000
        connection = running.client.connect("f")
        answer = fetch(connection, topic, 1, max_bytes=8_000)
        assert answer.throttle_time_ms > 0
        assert answer.responses == ()
        again = fetch(running.client.connect("f"), topic, 1, max_bytes=8_000)
        assert again.throttle_time_ms == answer.throttle_time_ms  # nothing was added
        running.advance(answer.throttle_time_ms)
        assert size_of(fetch(connection, topic, 1)) > 0

    def test_a_session_goes_on_after_a_pause(self, running: RunningNode, topic: Topic) -> None:
        connection = running.client.connect("f")
        opened = fetch(connection, topic, session_epoch=0)
        assert opened.session_id > 0
        paused = fetch(connection, topic, 1, 8_000, session_id=opened.session_id, session_epoch=1)
        assert paused.throttle_time_ms > 0
        assert (paused.session_id, paused.responses) == (opened.session_id, ())
        running.advance(11_000)
        again = connection.ask(fetch_request(topic, session_id=opened.session_id, session_epoch=2), 17)
        assert size_of(again) > 0

    def test_no_session_is_opened_by_an_answer_that_tells_nothing(self, running: RunningNode, topic: Topic) -> None:
        fetch(running.client.connect("f"), topic)
        before = len(running.node.fetch_sessions)
        paused = fetch(running.client.connect("f"), topic, 1, 8_000, session_epoch=0)
        assert (paused.session_id, paused.responses) == (0, ())
        assert paused.throttle_time_ms > 0
        assert len(running.node.fetch_sessions) == before

    def test_a_batch_too_large_for_all_windows_is_sent_to_who_was_quiet(
        self, running: RunningNode, topic: Topic
    ) -> None:
        large = running.client.topic()
        produce(running.client.connection, large, 50_000)
        answer = fetch(running.client.connect("f"), large)
        assert size_of(answer) > 50_000
        assert answer.throttle_time_ms == pytest.approx(40_000, rel=0.01)
        assert size_of(fetch(running.client.connect("f"), large)) == 0


class TestRequests:
    def test_time_counts_for_every_request(self, running: RunningNode) -> None:
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        connection = running.client.connect("r")
        assert connection.ask(MetadataRequest(()), 12).throttle_time_ms == 1000
        number = connection.send(ApiVersionsRequest(), 0)
        assert connection.is_silent(0.02)
        running.advance(1000)
        connection.receive(18, 0, number)

    def test_an_answer_without_a_place_for_it_is_followed_by_the_pause_all_the_same(self, running: RunningNode) -> None:
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        connection = running.client.connect("r")
        connection.ask(DescribeQuorumRequest(()), 2)
        number = connection.send(ApiVersionsRequest(), 0)
        assert connection.is_silent(0.02)
        running.advance(1000)
        connection.receive(18, 0, number)

    def test_requests_of_brokers_among_each_other_are_exempt(self, running: RunningNode) -> None:
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        connection = running.client.connect("r")
        for _ in range(3):
            assert connection.ask(WriteTxnMarkersRequest(()), 1).markers == ()

    def test_others_do_not_pay(self, running: RunningNode) -> None:
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        assert running.client.connect("s").ask(MetadataRequest(()), 12).throttle_time_ms == 0

    def test_produce_without_acknowledgement_is_exempt(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        connection = running.client.connect("r")
        connection.send(produce_request(topic, {0: batch(b"x")}, acks=0), 13)
        assert connection.ask(MetadataRequest(()), 12).throttle_time_ms == 1000  # and not silent

    def test_a_fetch_over_the_limit_of_time_is_empty(self, running: RunningNode) -> None:
        topic = running.client.topic()
        produce(running.client.connection, topic, 100)
        set_quota(running.client, "request_percentage", 1e-6, client_id="r")
        answer = fetch(running.client.connect("r"), topic)
        assert (answer.throttle_time_ms, answer.responses) == (1000, ())


class TestMutations:
    @pytest.fixture(autouse=True)
    def _limit(self, running: RunningNode) -> None:
        set_quota(running.client, "controller_mutation_rate", 1.0, client_id="m")

    def create(
        self, connection: Connection, *names: str, version: int = 7, partitions: int = 6, only: bool = False
    ) -> Any:
        kind = CreateTopicsRequest
        topics = tuple(kind.CreatableTopic(name, partitions, 1) for name in names)
        return connection.ask(kind(topics, 1000, only), version)

    def test_topics_beyond_the_limit_are_refused_one_by_one(self, running: RunningNode) -> None:
        answer = self.create(running.client.connect("m"), "m1", "m2", "m3", "m4")
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {"m1": 0, "m2": 0, "m3": QUOTA_EXCEEDED, "m4": QUOTA_EXCEEDED}
        assert answer.throttle_time_ms == 1000
        assert answer.topics[2].error_message is None

    def test_old_versions_are_only_delayed(self, running: RunningNode) -> None:
        connection = running.client.connect("m")
        answer = self.create(connection, "o1", "o2", "o3", version=5)
        assert [topic.error_code for topic in answer.topics] == [0, 0, 0]
        assert answer.throttle_time_ms == 7000
        number = connection.send(ApiVersionsRequest(), 0)
        assert connection.is_silent(0.02)
        running.advance(7000)
        connection.receive(18, 0, number)

    def test_what_is_only_checked_costs_as_much(self, running: RunningNode) -> None:
        answer = self.create(running.client.connect("m"), "v1", "v2", "v3", only=True)
        assert [topic.error_code for topic in answer.topics] == [0, 0, QUOTA_EXCEEDED]

    def test_partitions_that_are_added_and_deleted_count(self, running: RunningNode) -> None:
        connection = running.client.connect("m")
        assert self.create(connection, "g1", "g2").topics[1].error_code == 0
        kind = CreatePartitionsRequest
        request = kind((kind.CreatePartitionsTopic("g1", 9, None),), 1000)
        refused = running.client.connect("m").ask(request, 3)
        assert refused.results[0].error_code == QUOTA_EXCEEDED
        assert refused.throttle_time_ms == 1000
        deleted = running.client.connect("m").ask(DeleteTopicsRequest(topic_names=("g2",), timeout_ms=1000), 5)
        assert deleted.responses[0].error_code == QUOTA_EXCEEDED
        delayed = running.client.connect("m").ask(DeleteTopicsRequest(topic_names=("g2",), timeout_ms=1000), 4)
        assert delayed.responses[0].error_code == 0
        assert delayed.throttle_time_ms == 7000

    def test_topics_that_create_themselves_wait(self, running: RunningNode) -> None:
        self.create(running.client.connect("m"), "w1", "w2")
        kind = MetadataRequest
        asked = kind((kind.MetadataRequestTopic(name="auto"),), allow_auto_topic_creation=True)
        connection = running.client.connect("m")
        answer = connection.ask(asked, 12)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.throttle_time_ms == 0
        running.advance(11_000)
        assert connection.ask(asked, 12).topics[0].error_code == 0


class TestConnections:
    def test_an_address_that_opens_too_many_is_held_and_closed(self, running: RunningNode) -> None:
        connection = running.client.connect()
        set_quota(running.client, "connection_creation_rate", 1.0, ip="127.0.0.1")
        for _ in range(10):
            assert running.client.connect().ask(ApiVersionsRequest(), 0).error_code == 0
        late = running.client.connect()
        with pytest.raises((Closed, ConnectionError)):
            late.ask(ApiVersionsRequest(), 0)
        assert connection.ask(ApiVersionsRequest(), 0).error_code == 0
        running.advance(20_000)
        assert running.client.connect().ask(ApiVersionsRequest(), 0).error_code == 0


class TestAround:
    def test_the_metrics_page_tells_who_is_slowed_down(self, running: RunningNode) -> None:
        topic = running.client.topic()
        set_quota(running.client, "producer_byte_rate", 1000.0, client_id="p")
        connection = running.client.connect("p")
        pause_ms = produce(connection, topic, 15_000)
        page = running.node.metrics.page()
        assert f'kafka_server_produce_throttle_time{{user="",client_id="p"}} {pause_ms}' in page
        assert 'kafka_server_produce_byte_rate{user="",client_id="p"} 15' in page
        assert "ottla_throttled_connections 1" in page

    def test_a_node_stops_while_clients_pause(self, tmp_path: Path) -> None:
        with running_node(tmp_path) as running:
            set_quota(running.client, "request_percentage", 1e-9, client_id=None)
            running.client.connect("r").ask(MetadataRequest(()), 12)

    def test_limits_hold_after_a_restart(self, tmp_path: Path) -> None:
        with running_node(tmp_path) as running:
            set_quota(running.client, "request_percentage", 1e-9, client_id="r")
        with running_node(tmp_path) as running:
            assert running.client.connect("r").ask(MetadataRequest(()), 12).throttle_time_ms == 1000

    def test_windows_are_configured(self, tmp_path: Path) -> None:
        with running_node(tmp_path, ManualClock(), quota_window_num=3, quota_window_size_seconds=2) as running:
            topic = running.client.topic()
            set_quota(running.client, "producer_byte_rate", 1000.0, client_id="p")
            assert produce(running.client.connect("p"), topic, 3_800) == 0
            assert produce(running.client.connect("p"), topic, 1_000) == pytest.approx(900, rel=0.2)


class TestShareFetch:
    def test_what_was_acquired_is_sent_and_while_the_pause_lasts_nothing_is_acquired(
        self, running: RunningNode
    ) -> None:
        topic, group = filled(running.client, 400, 400)
        first, second = (Member(running.client, group, name, topic) for name in "ab")
        set_quota(running.client, "consumer_byte_rate", 100.0, user="ANONYMOUS")
        answer = first.fetch(max_records=400)
        assert size_of(answer) > 2_000
        assert answer.throttle_time_ms > 10_000
        held_up = second.fetch()
        assert held_up.throttle_time_ms == answer.throttle_time_ms
        assert held_up.responses == ()
        set_quota(running.client, "consumer_byte_rate", None, user="ANONYMOUS")
        running.advance(11_000 + answer.throttle_time_ms)
        assert size_of(second.fetch()) > 2_000
