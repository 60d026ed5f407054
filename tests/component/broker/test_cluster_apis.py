"""ApiVersions, Metadata, DescribeTopicPartitions, DescribeCluster, DescribeQuorum: what every client asks first."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from ottla.broker.controller.deleted_topics import REMEMBERED_MS
from ottla.broker.handlers import SERVED
from ottla.broker.handlers.metadata import VERSIONS as METADATA_VERSIONS
from ottla.broker.loop.clock import ManualClock
from ottla.core.metadata.image import TOPIC
from ottla.wire import frames
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    MetadataResponse,
)
from tests.component.broker.raw_client import Closed, RawClient, RunningNode, Topic, running_node

NEWEST = METADATA_VERSIONS[1]
ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096
NOT_ASKED = -(2**31)
SOFTWARE = ("tests", "1.0")
UNKNOWN_ID = bytes(15) + b"\xaa"
SHARED = ("acls", "controller", "delegation_tokens", "group_describe", "raft", "share_group_offsets", "share_state")


# --- ApiVersions ------------------------------------------------------------------------------------------------------


def raw(client: RawClient, api_key: int, version: int, body: bytes = b"") -> bytes:
    """The answer to a frame made by hand, without its size; raises Closed."""
    connection = client.connect()
    with closing(connection):
        header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + b"\xff\xff"
        frame = header + body
        connection._sock.sendall(len(frame).to_bytes(4, "big") + frame)
        return connection._read(int.from_bytes(connection._read(4), "big"))


def test_a_version_from_the_future_is_answered_with_the_range_of_this_api_alone(client: RawClient):
    answer = raw(client, 18, 99, b"\x00")
    assert len(answer) == 16
    decoded = frames.read_response(answer, 18, 0).body
    assert decoded.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [key.api_key for key in decoded.api_keys] == [18]
    assert decoded.api_keys[0].min_version == 0
    assert decoded.api_keys[0].max_version >= 4


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_what_is_served(client: RawClient, version: int):
    answer = client.ask(ApiVersionsRequest(*SOFTWARE), version)
    assert answer.error_code == 0
    ranges = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert ranges[0] == (0, 13), "shown from 0 on though 0 to 2 are refused"
    assert ranges[3] == (0, 13)
    assert 52 not in ranges, "Vote is for controllers"


def test_version_three_hides_features_that_may_be_off(client: RawClient):
    three, four = (client.ask(ApiVersionsRequest(*SOFTWARE), version) for version in (3, 4))
    assert {each.name: (each.min_version, each.max_version) for each in three.supported_features} == {
        "metadata.version": (7, 30)
    }
    supported = {each.name: (each.min_version, each.max_version) for each in four.supported_features}
    assert supported["transaction.version"] == (0, 2)
    assert supported["kraft.version"] == (0, 1)
    for answer in (three, four):
        finalized = {each.name: (each.min_version_level, each.max_version_level) for each in answer.finalized_features}
        assert finalized["metadata.version"] == (30, 30)
        assert finalized["kraft.version"] == (1, 1)
        assert finalized["transaction.version"] == (2, 2)


def test_the_epoch_of_features_grows_with_the_metadata(client: RawClient):
    before = client.ask(ApiVersionsRequest(*SOFTWARE), 4).finalized_features_epoch
    client.topic()
    assert client.ask(ApiVersionsRequest(*SOFTWARE), 4).finalized_features_epoch > before


@pytest.mark.parametrize("software", [("", "1"), ("-x", "1"), ("x", "1 2"), ("x", "1.")])
def test_software_must_have_a_proper_name(client: RawClient, software: tuple[str, str]):
    answer = client.ask(ApiVersionsRequest(*software), 4)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, ())


def test_version_five_compares_the_cluster_and_the_node(running: RunningNode, client: RawClient):
    own = running.node.cluster_id

    def code(cluster_id: str | None, node_id: int) -> int:
        return client.ask(ApiVersionsRequest(*SOFTWARE, cluster_id=cluster_id, node_id=node_id), 5).error_code

    assert code(None, -1) == 0
    assert code(own, 1) == 0
    assert code(own, 2) == ErrorCode.REBOOTSTRAP_REQUIRED
    assert code("x" * 22, 1) == ErrorCode.REBOOTSTRAP_REQUIRED
    assert code(own, -1) == ErrorCode.INVALID_REQUEST
    assert code(None, 1) == ErrorCode.INVALID_REQUEST


def test_the_table_of_handlers_says_what_their_modules_say():
    from importlib import import_module

    for key, served in SERVED.items():
        module = import_module(f"ottla.broker.handlers.{served.module}")
        if not hasattr(module, "API_KEY"):
            assert served.module in SHARED  # of several APIs, whose versions only the table has
            continue
        low = getattr(module, "ADVERTISED_LOW", served.low)
        assert (module.API_KEY, *module.VERSIONS, low) == (
            key,
            served.low,
            served.high,
            served.low if served.advertised_low is None else served.advertised_low,
        )
        assert served.module == _snake(frames.api_names()[key])


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


# --- what is not answered at all --------------------------------------------------------------------------------------


def test_what_cannot_be_served_ends_the_connection(client: RawClient):
    for api_key, version in ((999, 0), (52, 0), (4, 0), (0, 2), (0, 99), (3, 14), (-1, 0)):
        with pytest.raises(Closed):
            raw(client, api_key & 0xFFFF, version)


def test_bodies_that_cannot_be_read_end_the_connection(client: RawClient):
    for body in (b"", b"\x00\x00\x00\x05", b"\x7f\xff\xff\xff"):
        with pytest.raises(Closed):
            raw(client, 3, 1, body)


def test_bytes_behind_a_body_are_overlooked(client: RawClient):
    answer = raw(client, 3, 1, b"\x00\x00\x00\x00" + b"and more")
    assert frames.read_response(answer, 3, 1).body.topics == ()


@pytest.mark.parametrize("size", [-1, 0, 104_857_601, int.from_bytes(b"GET ", "big")])
def test_frames_of_an_impossible_size_end_the_connection(client: RawClient, size: int):
    connection = client.connect()
    with closing(connection):
        connection._sock.sendall(size.to_bytes(4, "big", signed=True))
        with pytest.raises(Closed):
            connection._read(1)


def test_controllers_have_apis_of_their_own(running: RunningNode):
    advertised = running.node.advertised["CONTROLLER"]
    with closing(RawClient(advertised.host, advertised.port)) as client:
        keys = {key.api_key for key in client.ask(ApiVersionsRequest(*SOFTWARE), 4).api_keys}
        assert {18, 19, 60} <= keys
        assert not {0, 2, 3} & keys
        with pytest.raises(Closed):
            client.ask(MetadataRequest(), 12)


# --- Metadata ---------------------------------------------------------------------------------------------------------


def by_name(*names: str | None, **fields: object) -> MetadataRequest:
    topics = tuple(MetadataRequest.MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics, **fields)  # type: ignore[arg-type]


def codes(answer: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in answer.topics}


def test_an_empty_list_is_everything_at_first_and_nothing_later(client: RawClient):
    topic = client.topic()
    assert topic.name in codes(client.ask(by_name(), 0))
    assert client.ask(by_name(), 1).topics == ()
    assert client.ask(by_name(), NEWEST).topics == ()
    for version in (1, NEWEST):
        assert topic.name in codes(client.ask(MetadataRequest(None), version))


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_every_version_describes_a_topic(client: RawClient, version: int):
    topic = client.topic(partitions=2)
    answer = client.ask(by_name(topic.name, allow_auto_topic_creation=version < 4), version)
    (described,) = answer.topics
    assert (described.error_code, described.name) == (0, topic.name)
    assert [(each.partition_index, each.leader_id) for each in described.partitions] == [(0, 1), (1, 1)]
    assert [each.node_id for each in answer.brokers] == [1]
    if version >= 1:
        assert answer.controller_id == 1
        assert not described.is_internal
    if version >= 2:
        assert len(answer.cluster_id) == 22
    if version >= 7:
        assert described.partitions[0].leader_epoch == 0
    if version >= 10:
        assert described.topic_id == topic.topic_id


def test_the_broker_is_where_the_client_reached_it(running: RunningNode, client: RawClient):
    (broker,) = client.ask(by_name(), NEWEST).brokers
    advertised = running.node.advertised["PLAINTEXT"]
    assert (broker.host, broker.port, broker.rack) == (advertised.host, advertised.port, None)


def test_missing_topics_and_impossible_names(client: RawClient):
    answer = client.ask(by_name("nowhere", "a b", "", allow_auto_topic_creation=False), NEWEST)
    assert codes(answer) == {
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert all(topic.topic_id == bytes(16) and topic.partitions == () for topic in answer.topics)


@pytest.mark.parametrize("version", [10, 11])
def test_versions_that_could_carry_an_id_and_do_not_serve_it_say_so(client: RawClient, version: int):
    asked = (MetadataRequest.MetadataRequestTopic(topic_id=bytes(15) + b"x", name=None),)
    [found] = client.ask(MetadataRequest(asked, False), version).topics
    assert (found.error_code, found.name) == (ErrorCode.INVALID_REQUEST, "")


def test_topics_by_id(client: RawClient):
    topic = client.topic()
    kind = MetadataRequest.MetadataRequestTopic
    asked = (kind(topic.topic_id, None), kind(UNKNOWN_ID, None), kind(name="overlooked"))
    found = {each.topic_id: each for each in client.ask(MetadataRequest(asked, False), NEWEST).topics}
    assert set(found) == {topic.topic_id, UNKNOWN_ID}
    assert (found[topic.topic_id].name, found[topic.topic_id].error_code) == (topic.name, 0)
    assert (found[UNKNOWN_ID].name, found[UNKNOWN_ID].error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_operations_are_told_to_who_asks(client: RawClient):
    topic = client.topic()
    for version in (8, 10):
        answer = client.ask(
            by_name(topic.name, include_cluster_authorized_operations=True, include_topic_authorized_operations=True),
            version,
        )
        assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
        assert answer.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS
    answer = client.ask(by_name(topic.name), 10)
    assert answer.cluster_authorized_operations == NOT_ASKED
    assert answer.topics[0].topic_authorized_operations == NOT_ASKED


def test_the_same_topic_twice_is_described_once(client: RawClient):
    topic = client.topic()
    assert len(client.ask(by_name(topic.name, topic.name), NEWEST).topics) == 1


def test_missing_topics_are_created_where_both_sides_allow_it(tmp_path_factory: pytest.TempPathFactory):
    with running_node(tmp_path_factory.mktemp("auto"), num_partitions=3) as running:
        answer = running.client.ask(by_name("made", "a b"), NEWEST)
        assert codes(answer) == {"made": 0, "a b": ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert len(answer.topics[0].partitions) == 3
        answer = running.client.ask(by_name("unwanted", allow_auto_topic_creation=False), NEWEST)
        assert codes(answer) == {"unwanted": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert set(running.node.image.topics_by_name) == {"made"}
    with running_node(tmp_path_factory.mktemp("none"), auto_create_topics_enable=False) as running:
        answer = running.client.ask(by_name("made"), NEWEST)
        assert codes(answer) == {"made": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(
    ("name", "setting", "cleanup_policy"),
    [
        ("__consumer_offsets", "offsets_topic_num_partitions", "compact"),
        ("__transaction_state", "transaction_state_log_num_partitions", "compact"),
        ("__share_group_state", "share_coordinator_state_topic_num_partitions", "delete"),
    ],
)
def test_a_missing_internal_topic_gets_the_settings_of_its_coordinator(
    tmp_path: Path, name: str, setting: str, cleanup_policy: str
):
    with running_node(tmp_path, **{setting: 7}) as running:
        (found,) = running.client.ask(by_name(name), NEWEST).topics
        assert (found.error_code, found.is_internal, len(found.partitions)) == (0, True, 7)
        configs = running.node.image.configs(TOPIC, name)
        assert configs["cleanup.policy"] == cleanup_policy
        assert configs["segment.bytes"] == "104857600"


def test_a_topic_that_cannot_be_created_yet_is_missing(tmp_path: Path):
    """Brokers may still be starting: librdkafka drops what it is to write to a topic with any other error."""
    with running_node(tmp_path, default_replication_factor=3) as running:
        assert codes(running.client.ask(by_name("made"), NEWEST)) == {"made": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_several_clients_that_miss_one_topic_all_get_it(running: RunningNode):
    connections = [running.client.connect() for _ in range(5)]
    sent = [connection.send(by_name("wanted-by-all"), NEWEST) for connection in connections]
    answers = [connection.receive(3, NEWEST, number) for connection, number in zip(connections, sent, strict=True)]
    for connection in connections:
        connection.close()
    assert [codes(answer) for answer in answers] == [{"wanted-by-all": 0}] * 5
    assert len({answer.topics[0].topic_id for answer in answers}) == 1


def test_a_deleted_topic_stays_away_for_a_moment(tmp_path: Path):
    """Whoever deletes a topic, and whoever used it, asks for it at once: that must not bring it back."""
    with running_node(tmp_path, ManualClock()) as running:
        deleter, user = running.client.connect(), running.client.connect()
        topic = running.client.topic()
        sent = deleter.send_together(
            (DeleteTopicsRequest(topic_names=(topic.name,)), 5),
            (by_name(topic.name), NEWEST),
        )
        assert deleter.receive(20, 5, sent[0]).responses[0].error_code == 0
        gone = {topic.name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert codes(deleter.receive(3, NEWEST, sent[1])) == gone
        running.advance(REMEMBERED_MS - 1)
        assert codes(user.ask(by_name(topic.name), NEWEST)) == gone
        running.advance(1)
        assert codes(user.ask(by_name(topic.name), NEWEST)) == {topic.name: 0}


def test_a_topic_can_be_deleted_and_created_at_once(tmp_path: Path):
    with running_node(tmp_path, ManualClock()) as running:
        topic = running.client.topic()
        assert running.client.ask(DeleteTopicsRequest(topic_names=(topic.name,)), 5).responses[0].error_code == 0
        again = CreateTopicsRequest((CreateTopicsRequest.CreatableTopic(topic.name, 1, 1),))
        assert running.client.ask(again, 7).topics[0].error_code == 0
        assert codes(running.client.ask(by_name(topic.name), NEWEST)) == {topic.name: 0}


# --- DescribeTopicPartitions ------------------------------------------------------------------------------------------


def portion(client: RawClient, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None):
    kind = DescribeTopicPartitionsRequest
    topics = tuple(kind.TopicRequest(name) for name in names)
    answer = client.ask(kind(topics, limit, kind.Cursor(*cursor) if cursor else None), 0)
    after = answer.next_cursor
    found = [
        (topic.name, topic.error_code, [each.partition_index for each in topic.partitions]) for topic in answer.topics
    ]
    return found, (after.topic_name, after.partition_index) if after else None


def ordered(client: RawClient, *partitions: int) -> list[Topic]:
    return sorted((client.topic(partitions=count) for count in partitions), key=lambda topic: topic.name)


def test_topics_come_in_portions_in_the_order_of_their_names(client: RawClient):
    one, two, three = ordered(client, 3, 3, 3)
    names = (three.name, one.name, two.name)
    assert portion(client, *names) == (
        [(one.name, 0, [0, 1, 2]), (two.name, 0, [0, 1, 2]), (three.name, 0, [0, 1, 2])],
        None,
    )
    first = portion(client, *names, limit=4)
    assert first == ([(one.name, 0, [0, 1, 2]), (two.name, 0, [0])], (two.name, 1))
    second = portion(client, *names, limit=4, cursor=first[1])
    assert second == ([(two.name, 0, [1, 2]), (three.name, 0, [0, 1])], (three.name, 2))
    assert portion(client, *names, limit=4, cursor=second[1]) == ([(three.name, 0, [2])], None)
    assert portion(client, *names, limit=3)[1] == (two.name, 0), "a full portion goes on with the next topic"
    assert portion(client, *names, limit=0)[0] == [(one.name, 0, [0])], "at least one at a time"


def test_a_described_topic_has_all_its_facts(client: RawClient):
    topic = client.topic()
    answer = client.ask(DescribeTopicPartitionsRequest((DescribeTopicPartitionsRequest.TopicRequest(topic.name),)), 0)
    (described,) = answer.topics
    assert described.topic_id == topic.topic_id
    assert described.topic_authorized_operations == ALL_TOPIC_OPERATIONS
    (partition,) = described.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes, partition.isr_nodes) == (
        1,
        0,
        (1,),
        (1,),
    )
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ((), (), ())


def test_missing_topics_take_their_place_in_a_portion(client: RawClient):
    topic = client.topic()
    found, cursor = portion(client, "a b", topic.name, "missing")
    expected = [("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, []), (topic.name, 0, [0]), ("missing", 3, [])]
    assert (sorted(found), cursor) == (sorted(expected), None)


def test_a_cursor_must_fit_the_question(client: RawClient):
    topic = client.topic()
    for cursor in (("elsewhere", 0), (topic.name, -1)):
        found, after = portion(client, topic.name, cursor=cursor)
        assert (found, after) == ([(topic.name, ErrorCode.INVALID_REQUEST, [])], None)


def test_an_empty_question_is_about_all_topics(client: RawClient):
    topic = client.topic()
    assert (topic.name, 0, [0]) in portion(client)[0]
    assert portion(client, cursor=(topic.name, 0))[0][0] == (topic.name, 0, [0])


# --- DescribeCluster and DescribeQuorum -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_has_one_broker(client: RawClient, version: int):
    answer = client.ask(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.controller_id, len(answer.cluster_id)) == (0, 1, 22)
    assert [each.broker_id for each in answer.brokers] == [1]
    assert answer.cluster_authorized_operations == NOT_ASKED


def test_who_asks_learns_what_he_may_do_to_the_cluster(client: RawClient):
    answer = client.ask(DescribeClusterRequest(True, include_fenced_brokers=True), 2)
    assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert [each.is_fenced for each in answer.brokers] == [False]


def test_brokers_do_not_show_controllers(client: RawClient):
    assert client.ask(DescribeClusterRequest(endpoint_type=2), 1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert client.ask(DescribeClusterRequest(endpoint_type=7), 1).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_controllers_show_controllers(running: RunningNode):
    advertised = running.node.advertised["CONTROLLER"]
    with closing(RawClient(advertised.host, advertised.port)) as client:
        answer = client.ask(DescribeClusterRequest(endpoint_type=2), 1)
        assert [(each.broker_id, each.port) for each in answer.brokers] == [(1, advertised.port)]
        assert (answer.controller_id, answer.endpoint_type) == (1, 2)
        assert client.ask(DescribeClusterRequest(), 1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        assert client.ask(DescribeClusterRequest(), 0).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_has_one_voter(client: RawClient, version: int):
    kind = DescribeQuorumRequest
    answer = client.ask(kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),)), version)
    assert answer.error_code == 0
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, 1)
    assert partition.high_watermark > 0
    (voter,) = partition.current_voters
    assert voter.replica_id == 1
    assert voter.log_end_offset >= partition.high_watermark
    if version >= 2:
        assert answer.error_message == ""
        assert [each.node_id for each in answer.nodes] == [1]


@pytest.mark.parametrize("version", range(3))
def test_only_the_metadata_log_has_a_quorum(client: RawClient, version: int):
    kind = DescribeQuorumRequest
    answer = client.ask(kind((kind.TopicData("orders", (kind.PartitionData(3),)),)), version)
    assert answer.error_code == 0
    assert answer.topics[0].topic_name == "orders"
    (partition,) = answer.topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not partition.current_voters
    assert not partition.observers


# --- connections ------------------------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(client: RawClient):
    connection = client.connect()
    with closing(connection):
        sent = [connection.send(by_name("nowhere", allow_auto_topic_creation=False), NEWEST) for _ in range(50)]
        for number in sent:
            assert codes(connection.receive(3, NEWEST, number)) == {"nowhere": 3}


def test_too_many_connections_from_one_address_are_closed(tmp_path_factory: pytest.TempPathFactory):
    with running_node(tmp_path_factory.mktemp("few"), max_connections_per_ip=2) as running:
        client = running.client
        connections = [client.connect(), client.connect()]
        assert all(connection.ask(by_name(), NEWEST).brokers for connection in connections)
        with closing(client.connect()) as third, pytest.raises((Closed, ConnectionError)):
            third.ask(by_name(), NEWEST)
        connections.pop().close()
        for connection in connections:
            connection.close()


def test_a_full_listener_lets_newcomers_wait(tmp_path_factory: pytest.TempPathFactory):
    with running_node(tmp_path_factory.mktemp("full"), max_connections=1) as running:
        first = running.client.connect()
        assert first.ask(by_name(), NEWEST).brokers
        second = running.client.connect()
        number = second.send(by_name(), NEWEST)
        assert second.is_silent(0.2)
        first.close()
        assert second.receive(3, NEWEST, number).brokers
        second.close()


def test_limits_can_be_changed_while_the_node_runs(tmp_path_factory: pytest.TempPathFactory):
    kind = IncrementalAlterConfigsRequest
    change = kind.AlterConfigsResource(4, "", (kind.AlterableConfig("max.connections", 0, "2"),))
    with running_node(tmp_path_factory.mktemp("change"), max_connections=1) as running:
        first = running.client.connection
        assert first.ask(by_name(), NEWEST).brokers
        second = running.client.connect()
        number = second.send(by_name(), NEWEST)
        assert second.is_silent(0.1)
        assert first.ask(kind((change,)), 1).responses[0].error_code == 0
        assert second.receive(3, NEWEST, number).brokers
        second.close()


def test_idle_connections_are_closed(tmp_path_factory: pytest.TempPathFactory):
    from ottla.broker.loop.clock import ShiftedClock

    clock = ShiftedClock()
    with running_node(tmp_path_factory.mktemp("idle"), clock) as running:
        connection = running.client.connect()
        assert connection.ask(by_name(), NEWEST).brokers

        def later() -> None:
            clock.shift_ms += 601_000
            running.node.housekeeping.run_due()

        running.change(later)
        with closing(connection), pytest.raises(Closed):
            connection._read(1)


def test_a_stop_answers_what_was_asked_and_refuses_newcomers(tmp_path_factory: pytest.TempPathFactory):
    running = RunningNode(tmp_path_factory.mktemp("stop"))
    running.start()
    client = running.client
    topic = client.topic()
    from tests.component.broker.raw_client import fetch_partition, fetch_request

    connection = client.connect()
    waiting = fetch_request(topic, fetch_partition(0, 0), max_wait_ms=60_000, session_epoch=-1)
    number = connection.send(waiting, 17)
    assert connection.is_silent(0.1), "it waits for records"
    running.stop()
    assert connection.receive(1, 17, number).error_code == 0
    with closing(connection), pytest.raises(Closed):
        connection._read(1)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(client._address, 1)


def test_a_topic_can_be_used_as_soon_as_it_is_made(client: RawClient):
    from tests.component.broker.raw_client import batch

    for _ in range(10):
        topic = client.topic()
        assert client.produce(topic, batch(b"x")).error_code == 0
