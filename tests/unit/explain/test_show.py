"""Trees and exchanges as people see them: within the width, with what matters in sight."""

import json

import pytest

from ottla.explain.dissect import dissect, no_topic_names
from ottla.explain.exchanges import Connection, Event, Exchange, Loss, Side
from ottla.explain.facts import TopicNames, exchange_facts
from ottla.explain.guess import Wrapping
from ottla.explain.render.lines import Line, width_of
from ottla.explain.show_exchange import (
    WIDE,
    Label,
    exchange_block,
    exchange_json,
    exchange_line,
    loss_json,
    loss_line,
    versions_text,
)
from ottla.explain.show_tree import tree_lines
from ottla.explain.tree import Node
from ottla.explain.values_text import value_text
from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch
from tests.unit.explain import packets as made

LABEL = Label(3, "10.0.0.1:40000", "10.0.0.2:9092")
REQUEST, RESPONSE = Wrapping(True, "request header"), Wrapping(True, "response header")


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


def tree_text(data: bytes, name: str, version: int, wrapping: Wrapping, width: int = 100, marks: bool = False) -> str:
    taken_apart = dissect(data, name, version, wrapping)
    return text_of(list(tree_lines(taken_apart.nodes, data, width, shows_marks=marks)))


def fetch_frame() -> bytes:
    kind = types.FetchResponse
    batch = build_batch([Record(number, 1_700_000_000_000, b"key", bytes(range(40))) for number in range(2)])
    partition = kind.PartitionData(error_code=6, records=batch, aborted_transactions=None)
    topic = kind.FetchableTopicResponse(topic_id=made.topic_id("orders"), partitions=(partition,))
    return frames.write_response(kind(responses=(topic,)), 13, correlation_id=7)


def test_a_line_has_offset_bytes_field_value_and_type():
    lines = tree_text(made.heartbeat_request(5, "orders-app"), "HeartbeatRequest", 4, REQUEST).splitlines()
    assert (
        lines[0]
        == "  0  00 00 00 22              Size: 34                                                         int32"
    )
    assert lines[2].split() == ["4", "00", "0c", "RequestApiKey:", "12", "Heartbeat", "int16"]
    assert '12  00 02 6d 65                ClientId: "me"' in lines[5]


def test_the_bytes_of_a_field_end_with_the_field():
    """The next field may be a secret."""
    for line in tree_text(fetch_frame(), "FetchResponse", 13, RESPONSE).splitlines():
        if "CorrelationId" in line:
            assert "00 00 00 07  " in line


def test_marks_are_shown_on_demand():
    data = made.heartbeat_request(5, "g")
    assert "tagged fields" not in tree_text(data, "HeartbeatRequest", 4, REQUEST)
    assert tree_text(data, "HeartbeatRequest", 4, REQUEST, marks=True).count("tagged fields: 0") == 2


def test_arrays_of_numbers_take_one_line():
    request = types.StreamsGroupHeartbeatRequest(
        active_tasks=(types.StreamsGroupHeartbeatRequest.TaskIds("0", tuple(range(100))),)
    )
    data = frames.write_request(request, 0, correlation_id=1)
    printed = tree_text(data, "StreamsGroupHeartbeatRequest", 0, REQUEST)
    assert "Partitions: [0, 1, 2, 3" in printed
    assert len(printed.splitlines()) < 40


@pytest.mark.parametrize("width", [40, 60, 72, 90, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int):
    data = fetch_frame()
    taken_apart = dissect(data, "FetchResponse", 13, RESPONSE)
    for line in tree_lines(taken_apart.nodes, data, width, shows_marks=True):
        assert width_of(line) <= width


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Node("ErrorCode", "int16", 0, 2, value=0), "0 NONE"),
        (Node("ErrorCode", "int16", 0, 2, value=110), "110 FENCED_MEMBER_EPOCH"),
        (Node("CommitTimestamp", "int64", 0, 8, value=1_700_000_000_000), "1700000000000 (2023-11-14 22:13:20.000)"),
        (Node("TopicId", "uuid", 0, 16, value=bytes(16)), "AAAAAAAAAAAAAAAAAAAAAA"),
        (Node("Value", "bytes", 0, 3, value=b"abc"), '"abc"'),
        (Node("Value", "bytes", 0, 2, value=b"\xff\x00"), "0xff00"),
        (Node("Name", "string", 0, 4, value='a"b'), '"a\\"b"'),
        (Node("Name", "string?", 0, 1, value=None), "null"),
        (Node("IsInternal", "bool", 0, 1, value=True), "true"),
        (Node("Crc", "uint32", 0, 4, value=255), "0x000000ff"),
        (Node("ApiKey", "int16", 0, 2, value=78), "78 ShareFetch"),
        (Node("Hmac", "bytes", 0, 9, withheld=True), "withheld (9 bytes)"),
    ],
)
def test_values_as_people_read_them(node: Node, text: str):
    assert value_text(node) == text


# --- exchanges --------------------------------------------------------------------------------------------------------


def events(*said: tuple[Side, bytes], in_sync: bool = True) -> list[Event]:
    connection = Connection(in_sync=in_sync)
    found = [
        event
        for number, (side, data) in enumerate(said)
        for event in connection.receive(side, data, made.START_NS + number * 12_300_000)
    ]
    return found + connection.close(made.START_NS)


def heartbeat(error_code: int = 0) -> Exchange:
    asked = (Side.CLIENT, made.heartbeat_request(1, "orders-app", "consumer-1"))
    [found] = events(asked, (Side.BROKER, made.heartbeat_response(1, error_code)))
    assert isinstance(found, Exchange)
    return found


def line_of(found: Event, width: int = 120) -> str:
    assert isinstance(found, Exchange)
    return text_of([exchange_line(found, exchange_facts(found, TopicNames()), LABEL, width)])


def test_a_line_tells_when_who_what_how_much_and_how_long():
    assert line_of(heartbeat(27)) == (
        "04:00:00.000  #3 consumer-1  Heartbeat v4  46 B → 16 B  12.3 ms  REBALANCE_IN_PROGRESS  group orders-app"
    )


def test_in_a_wide_terminal_lines_are_aligned():
    first, second = line_of(heartbeat(), WIDE), line_of(heartbeat(27), WIDE)
    assert first.index("12.3 ms") == second.index("12.3 ms")
    assert first.index("Heartbeat") == second.index("Heartbeat") == 41


@pytest.mark.parametrize("width", [40, 60, 80, 130, 200])
def test_lines_and_blocks_keep_within_the_width(width: int):
    found = heartbeat(27)
    facts = exchange_facts(found, TopicNames())
    for line in [
        exchange_line(found, facts, LABEL, width),
        *exchange_block(found, facts, LABEL, width, no_topic_names),
    ]:
        assert width_of(line) <= width


def test_what_has_no_answer_says_so():
    [unanswered] = events((Side.CLIENT, made.metadata_request(1)))
    assert "no response" in line_of(unanswered)
    one_way = frames.write_request(types.ProduceRequest(acks=0), 9, correlation_id=1)
    [found] = events((Side.CLIENT, one_way))
    assert "no response expected" in line_of(found)


def test_a_response_without_its_request_is_guessed():
    [found] = events((Side.BROKER, made.metadata_response(1, "orders")), in_sync=False)
    assert "response without its request" in line_of(found, 200)
    assert "certain: Metadata v11 to v12" in line_of(found, 200)


def test_a_response_that_may_hold_a_secret_is_guessed_but_not_shown():
    secret = types.SaslAuthenticateResponse(auth_bytes=b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")
    [found] = events((Side.BROKER, frames.write_response(secret, 2, correlation_id=4)), in_sync=False)
    assert isinstance(found, Exchange)
    facts = exchange_facts(found, TopicNames())
    printed = text_of(list(exchange_block(found, facts, LABEL, 200, no_topic_names)))
    assert "withheld because it may contain a secret" in printed
    assert "rmF9" not in printed


def test_a_broken_message_says_why():
    broken = made.metadata_request(1, "orders")
    broken = (len(broken) - 6).to_bytes(4, "big") + broken[4:-2]
    [found] = events((Side.CLIENT, broken))
    assert "cannot be read: MetadataRequest" in line_of(found, 200)


def test_a_block_has_both_trees_and_where_they_went():
    found = heartbeat(27)
    facts = exchange_facts(found, TopicNames())
    printed = text_of(list(exchange_block(found, facts, LABEL, 120, no_topic_names)))
    assert "HeartbeatRequest, 46 bytes, 2025-11-15T04:00:00.000000Z, 10.0.0.1:40000 → 10.0.0.2:9092" in printed
    assert "HeartbeatResponse, 16 bytes, 2025-11-15T04:00:00.012300Z, 10.0.0.2:9092 → 10.0.0.1:40000" in printed
    assert 'GroupId: "orders-app"' in printed
    assert "ErrorCode: 27 REBALANCE_IN_PROGRESS" in printed


def test_json_has_an_object_for_each_message():
    found = heartbeat(27)
    facts = exchange_facts(found, TopicNames())
    request, response = exchange_json(found, facts, LABEL, no_topic_names, with_records=False)
    assert json.loads(json.dumps(request)) == {
        "time": "2025-11-15T04:00:00.000000Z",
        "connection": 3,
        "client": "10.0.0.1:40000",
        "broker": "10.0.0.2:9092",
        "kind": "request",
        "size_bytes": 46,
        "api": "Heartbeat",
        "version": 4,
        "correlation_id": 1,
        "client_id": "consumer-1",
        "body": {"groupId": "orders-app", "generationId": 3, "memberId": "m-1", "groupInstanceId": None},
        "groups": ["orders-app"],
        "topics": [],
        "outcome": "answered",
    }
    assert (response["kind"], response["latency_ms"], response["errors"]) == (
        "response",
        12.3,
        {"REBALANCE_IN_PROGRESS": 1},
    )


@pytest.mark.parametrize("with_records", [True, False])
def test_json_opens_batches_and_on_demand_their_records(with_records: bool):
    batch = build_batch([Record(0, 0, b"k", b"v")])
    partition = types.ProduceRequest.PartitionProduceData(records=batch)
    topic = types.ProduceRequest.TopicProduceData(name="orders", partition_data=(partition,))
    request = types.ProduceRequest(acks=0, topic_data=(topic,))
    [found] = events((Side.CLIENT, frames.write_request(request, 9, correlation_id=1)))
    assert isinstance(found, Exchange)
    [message] = exchange_json(
        found, exchange_facts(found, TopicNames()), LABEL, no_topic_names, with_records=with_records
    )
    [opened] = message["body"]["topicData"][0]["partitionData"][0]["records"]
    assert opened["recordCount"] == 1
    assert ("records" in opened) is with_records


def test_losses_are_told():
    loss = Loss(Side.BROKER, 1_448, 20, made.START_NS)
    words = ("1,448 bytes from the broker are missing", "20 bytes from the broker skipped, no complete message")
    assert text_of([loss_line(loss, LABEL, 200)]) == f"04:00:00.000  #3 {', '.join(words)}"
    assert loss_json(loss, LABEL)["lost_bytes"] == 1_448


@pytest.mark.parametrize(
    ("versions", "text"), [((), ""), ((3,), "v3"), ((1, 2, 3), "v1 to v3"), ((0, 1, 5), "v0, v1, v5")]
)
def test_versions_in_words(versions: tuple[int, ...], text: str):
    assert versions_text(versions) == text
