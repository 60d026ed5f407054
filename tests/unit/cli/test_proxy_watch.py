"""What the proxy tells of the traffic, without any."""

import json
from typing import Any

import pytest

from ottla.cli.proxy.address import Address
from ottla.cli.proxy.fronts import Front
from ottla.cli.proxy.relay import Link
from ottla.cli.proxy.report import report_lines
from ottla.cli.proxy.session import Session
from ottla.cli.proxy.show import Show
from ottla.cli.proxy.watch import Watch
from ottla.explain.exchanges import Side
from ottla.explain.filters import make_filters
from ottla.wire import frames, types

SECRET = b"\0me\0correct horse"
UPSTREAM = Address("kafka", 9092)
LINK = Link(1, Address("10.0.0.1", 5000), Address("10.0.0.2", 9092), UPSTREAM, None)
TOPIC_ID = bytes(range(16))


class Conversation:
    """A watch, and exchanges that it is told of."""

    def __init__(self, *, as_json: bool = False, verbose: bool = False, width: int = 200, **filters: Any) -> None:
        self.notes: list[str] = []
        show = Show(make_filters(**filters), as_json=as_json, verbose=verbose, width=width)
        self.watch = Watch(show, self.notes.append)
        self._session = Session(lambda host, port, _: (host, port))

    def exchange(self, question: Any, version: int, reply: Any, client_id: str = "me") -> None:
        request = frames.write_request(question, version, correlation_id=1, client_id=client_id)
        self.raw(request, frames.write_response(reply, version, correlation_id=1))

    def raw(self, request: bytes, response: bytes) -> None:
        self.watch.exchanged(LINK, self._session.from_client(request, 0))
        self.watch.exchanged(LINK, self._session.from_broker(response, 1_500_000).exchanges)


def talk(conversation: Conversation) -> Conversation:
    heartbeat = types.HeartbeatRequest(group_id="orders-app")
    conversation.exchange(types.MetadataRequest(), 12, types.MetadataResponse())
    conversation.exchange(heartbeat, 4, types.HeartbeatResponse(error_code=27))
    conversation.exchange(heartbeat, 4, types.HeartbeatResponse(), "other")
    conversation.exchange(
        types.SaslAuthenticateRequest(auth_bytes=SECRET), 2, types.SaslAuthenticateResponse(auth_bytes=SECRET)
    )
    conversation.raw(frames.frame(b"\x03\xe7\0\0\0\0\0\x05\xff\xff"), frames.frame(b"\0\0\0\x05"))
    return conversation


@pytest.mark.parametrize(
    ("filters", "apis"),
    [
        ({}, ["Metadata", "Heartbeat", "Heartbeat", "SaslAuthenticate", "Api999"]),
        ({"apis": ["12"]}, ["Heartbeat", "Heartbeat"]),
        ({"apis": ["heartbeat", "METADATA"], "client_ids": ["m*"]}, ["Metadata", "Heartbeat"]),
        ({"groups": ["orders-*"]}, ["Heartbeat", "Heartbeat"]),
        ({"groups": ["orders-*"], "client_ids": ["other"]}, ["Heartbeat"]),
        ({"topics": ["none"]}, []),
    ],
)
def test_filters_decide_what_is_shown_and_counted(
    filters: dict[str, list[str]], apis: list[str], capsys: pytest.CaptureFixture[str]
):
    conversation = talk(Conversation(as_json=True, **filters))
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [message["api"] for message in shown if message["kind"] == "request"] == apis
    assert conversation.watch.summary.exchanges == len(apis)
    assert conversation.watch.filtered_out == 5 - len(apis)


@pytest.mark.parametrize("how", [{}, {"verbose": True}, {"as_json": True}, {"as_json": True, "verbose": True}])
def test_secrets_are_not_shown(how: dict[str, bool], capsys: pytest.CaptureFixture[str]):
    talk(Conversation(**how))
    text = capsys.readouterr().out
    assert text.count("SaslAuthenticate") >= 1
    for form in (SECRET.decode(), SECRET.hex(), SECRET.hex(" "), "correct", "AG1lAGNvcnJlY3Q"):
        assert form not in text


def test_topics_are_named_once_a_message_has_taught_them(capsys: pytest.CaptureFixture[str]):
    conversation = Conversation(topics=["orders"])
    topic = types.MetadataResponse.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID)
    fetched = types.FetchRequest.FetchTopic(topic_id=TOPIC_ID)
    conversation.exchange(types.FetchRequest(topics=(fetched,)), 13, types.FetchResponse())
    conversation.exchange(types.MetadataRequest(), 12, types.MetadataResponse(topics=(topic,)))
    conversation.exchange(types.FetchRequest(topics=(fetched,)), 13, types.FetchResponse())
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in shown] == ["Metadata", "Fetch"]
    assert conversation.watch.filtered_out == 1


@pytest.mark.parametrize("width", [80, 300])
def test_a_line_is_as_wide_as_asked_for(width: int, capsys: pytest.CaptureFixture[str]):
    names = tuple(f"a-long-name-of-a-topic-{number}" for number in range(3))
    topics = tuple(types.MetadataRequest.MetadataRequestTopic(name=name) for name in names)
    Conversation(width=width).exchange(types.MetadataRequest(topics=topics), 9, types.MetadataResponse())
    line = capsys.readouterr().out.rstrip("\n")
    assert len(line) <= width
    assert line.endswith(", ".join(names)) == (width == 300)


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]):
    talk(Conversation(as_json=True))
    messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(messages) == 10
    assert messages[3]["errors"] == {"REBALANCE_IN_PROGRESS": 1}
    assert messages[3]["client"] == "10.0.0.1:5000"
    assert messages[3]["broker"] == "kafka:9092"


def test_the_sums():
    *table, total = report_lines(talk(Conversation()).watch)
    assert table[0].split() == ["API", "EXCHANGES", "NO", "RESPONSE", "P50", "P99", "ERRORS"]
    assert table[1].split() == ["Heartbeat", "2", "0", "1.5", "ms", "1.5", "ms", "REBALANCE_IN_PROGRESS"]
    assert [line.split()[0] for line in table[2:]] == ["Api999", "Metadata", "SaslAuthenticate"]
    assert total == "5 exchanges on 0 connections, 2 messages could not be read"
    assert list(report_lines(Conversation().watch)) == ["0 exchanges on 0 connections"]


def test_an_unreachable_broker_is_named_once_until_it_is_back():
    conversation = Conversation()
    with_listener: Any = None
    front = Front(with_listener, Address("127.0.0.1", 1), UPSTREAM, None)
    for _ in range(3):
        conversation.watch.refused(front, "Connection refused")
    assert conversation.notes == ["cannot reach kafka:9092: Connection refused"]
    conversation.watch.connected(LINK, 0)
    conversation.watch.refused(front, "Connection refused")
    assert len(conversation.notes) == 2


def test_what_cannot_be_rewritten_is_said_once():
    request = bytearray(frames.write_request(types.MetadataRequest(), 12, correlation_id=1))
    request[6:8] = (99).to_bytes(2)
    conversation = Conversation()
    for _ in range(2):
        conversation.raw(bytes(request), frames.frame(b"\0\0\0\x01rest"))
    assert conversation.notes == ["Metadata v99 could not be read: clients may bypass the proxy"]


def test_a_full_disk_ends_the_capture_but_not_the_traffic():
    class Full:
        calls = 0

        def moved(self, *_: object) -> None:
            self.calls += 1
            raise OSError(28, "No space left on device")

    full: Any = Full()
    notes: list[str] = []
    watch = Watch(Show(make_filters()), notes.append, full)
    for _ in range(2):
        watch.moved(LINK, Side.CLIENT, b"data", 0)
    assert notes == ["the capture cannot be written (No space left on device) and is incomplete"]
    assert full.calls == 1


def test_notes_about_ports_and_foreign_connections():
    conversation = Conversation()
    no_listener: Any = None
    conversation.watch.front_opened(Front(no_listener, Address("::1", 19092), UPSTREAM, None))
    conversation.watch.front_opened(Front(no_listener, Address("::1", 19093), Address("kafka-2", 9092), 2))
    conversation.watch.front_missing(Address("kafka-999", 9092))
    conversation.watch.turned_foreign(LINK, Side.CLIENT, "it speaks TLS")
    assert conversation.notes == [
        "ottla proxy ready [::1]:19092 -> kafka:9092",
        "node 2 (kafka-2:9092) is reachable at [::1]:19093",
        "more than 512 addresses: clients will connect to kafka-999:9092 directly",
        "connection #1 from 10.0.0.1:5000: cannot read the client: it speaks TLS",
    ]
