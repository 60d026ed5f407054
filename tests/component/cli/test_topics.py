"""`ottla topics`: what it shows, what it changes, and how it refuses."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from ottla.cli import run
from ottla.client import Client, Producer, transactions
from ottla.wire import frames, types, uuid_text
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.cli.live import Live, live_node
from tests.component.client.admin_answers import offsets_answer
from tests.component.client.fake import DROP, FakeCluster, topic_id

START_ONE = "is it running? 'ottla serve' starts a broker; --bootstrap sets the address"
Capture = pytest.CaptureFixture[str]
Described = types.DescribeTopicPartitionsResponse
Partition = Described.DescribeTopicPartitionsResponsePartition
Topic = Described.DescribeTopicPartitionsResponseTopic

ORDERS = Topic(
    0,
    "orders",
    topic_id("orders"),
    False,
    (Partition(0, 0, 1, 7, (1, 2), (1,), (2,), (), (2,)), Partition(5, 1, -1, 8, (2,), (), (), (), (2,))),
)
FINE = Topic(0, "fine", topic_id("fine"), False, (Partition(0, 0, 1, 0, (1,), (1,)),))
OFFSETS = Topic(0, "__consumer_offsets", topic_id("__consumer"), True, (Partition(0, 0, 1, 0, (1,), (1,)),))
MISSING = Topic(3, "ordres")
OWN = types.DescribeConfigsResponse.DescribeConfigsResourceResult("retention.ms", "5", False, 1)
INHERITED = types.DescribeConfigsResponse.DescribeConfigsResourceResult("flush.ms", "9", False, 4)
CONFIGS = types.DescribeConfigsResponse(
    results=(
        types.DescribeConfigsResponse.DescribeConfigsResult(0, None, 2, "orders", (OWN, INHERITED)),
        types.DescribeConfigsResponse.DescribeConfigsResult(29, "hidden", 2, "__consumer_offsets"),
    )
)
ID = uuid_text(topic_id("orders"))
NO_DIRS = types.DescribeLogDirsResponse(results=())
NO_GROUPS = types.ListGroupsResponse()


def described(*topics: Any) -> types.DescribeTopicPartitionsResponse:
    return Described(topics=topics)


def sick_cluster(*topics: Any, **changes: Any) -> Any:
    answers = {
        "DescribeTopicPartitions": described(*topics),
        "DescribeConfigs": CONFIGS,
        "ListOffsets": offsets_answer,
        "DescribeLogDirs": NO_DIRS,
        "ListGroups": NO_GROUPS,
        **changes,
    }
    places = {topic.name: [each.leader_id for each in topic.partitions] for topic in topics}
    return fake_cluster(topics=places, **answers)


def to(cluster: FakeCluster, *words: str) -> list[str]:
    return ["topics", *words, "--bootstrap-server", cluster.bootstrap_servers]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture
def ottla(running: RunningNode, capsys: Capture) -> Live:
    return Live(running, capsys)


# --- list -------------------------------------------------------------------------------------------------------------


def test_a_list_says_what_is_in_topics_and_what_they_lack(capsys: Capture):
    with sick_cluster(FINE, OFFSETS, ORDERS) as cluster:
        assert run(to(cluster, "list")) == 0
        assert capsys.readouterr().out.splitlines() == [
            "NAME    PARTITIONS  COPIES  RECORDS  SIZE  READERS  NOTE",
            "fine             1       1        0     -",
            "orders           2       2        0     -           1 offline, 2 under-replicated",
        ]
        assert run(to(cluster, "list", "--unhealthy", "--internal", "--json")) == 0
        assert json.loads(capsys.readouterr().out) == {
            "rows": [
                {
                    "name": "orders",
                    "id": ID,
                    "internal": False,
                    "partitions": 2,
                    "copies": 2,
                    "offline": 1,
                    "under_replicated": 2,
                    "records": 0,
                    "size_bytes": None,
                    "readers": [],
                }
            ]
        }


def test_a_list_says_when_offsets_are_not_known(capsys: Capture):
    def refused(request: frames.Request) -> types.ListOffsetsResponse:
        answer = offsets_answer(request)
        topics = [
            msgspec.structs.replace(
                each, partitions=tuple(msgspec.structs.replace(p, error_code=29) for p in each.partitions)
            )
            for each in answer.topics
        ]
        return msgspec.structs.replace(answer, topics=tuple(topics))

    with sick_cluster(FINE, ListOffsets=refused) as cluster:
        assert run(to(cluster, "list", "--json")) == 0
        assert json.loads(capsys.readouterr().out)["rows"][0]["records"] is None


def test_internal_topics_are_listed_when_asked_for(capsys: Capture):
    with sick_cluster(FINE, OFFSETS) as cluster:
        assert run(to(cluster, "list", "--internal")) == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["__consumer_offsets", "fine"]


def test_the_largest_come_first(ottla: Live):
    for name, count in (("a-small", 1), ("b-large", 90), ("c-middle", 30)):
        ottla("topics", "create", name)
        ottla("topics", "produce", name, *(f"record {number}" for number in range(count)))
    rows = [row["name"] for row in ottla.json("topics", "list", "--largest")["rows"]]

    assert [name for name in rows if name[1] == "-"] == ["b-large", "c-middle", "a-small"]


def test_records_sizes_and_readers(ottla: Live):
    ottla("topics", "create", "read", "--partitions", "2")
    ottla("topics", "produce", "read", "a", "b", "c", "--partition", "1")
    ottla("groups", "reset", "billing", "--topic", "read", "--to-earliest", "--yes", "--create")
    (row,) = [each for each in ottla.json("topics", "list")["rows"] if each["name"] == "read"]
    assert (row["partitions"], row["copies"], row["records"]) == (2, 1, 3)
    assert row["size_bytes"] > 3
    assert row["readers"] == [{"group_id": "billing", "kind": "classic"}]
    (shown,) = ottla.json("topics", "describe", "read")["rows"]
    assert shown["readers"] == [{"group_id": "billing", "kind": "classic", "lag": 3}]
    assert [(each["partition"], each["start_offset"], each["end_offset"]) for each in shown["partitions"]] == [
        (0, 0, 0),
        (1, 0, 3),
    ]
    assert "billing (classic)" in next(line for line in ottla.lines("topics", "list") if line.startswith("read"))


def test_looking_again_and_again_is_one_object_a_line(ottla: Live):
    lines = ottla.lines("topics", "list", "--json", "--watch", "10ms", "--count", "2")
    assert len(lines) == 2
    assert all("rows" in json.loads(line) for line in lines)


# --- describe ---------------------------------------------------------------------------------------------------------


def test_describe(capsys: Capture):
    with sick_cluster(ORDERS) as cluster:
        assert run(to(cluster, "describe", "orders")) == 0
        assert capsys.readouterr().out.splitlines() == [
            f"orders  id {ID}",
            "  retention.ms=5",
            "PARTITION  LEADER  EPOCH  REPLICAS  ISR  ELR  OFFLINE  START  END  SIZE",
            "        0       1      7  1,2       1    2    2           10   10     -",
            "        1       -      8  2         -    -    2            -    -     -",
        ]


def test_describe_as_json(capsys: Capture):
    with sick_cluster(OFFSETS, ORDERS) as cluster:
        assert run(to(cluster, "describe", "--json")) == 0
        hidden, orders = json.loads(capsys.readouterr().out)["rows"]
        assert hidden["configs"] == [], "what may not be looked into is no failure"
        assert [(each["name"], each["value"]) for each in orders["configs"]] == [("retention.ms", "5")]
        assert orders["partitions"][1] == {
            "partition": 1,
            "leader": None,
            "leader_epoch": 8,
            "replicas": [2],
            "isr": [],
            "elr": [],
            "last_known_elr": [],
            "offline": [2],
            "start_offset": None,
            "end_offset": None,
            "size_bytes": None,
        }


def test_several_topics_are_set_apart(capsys: Capture):
    with sick_cluster(OFFSETS, ORDERS) as cluster:
        assert run(to(cluster, "describe")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith("internal")
        assert lines.index("") == 3


def test_only_what_is_unhealthy(capsys: Capture):
    with sick_cluster(FINE, ORDERS) as cluster:
        assert run(to(cluster, "describe", "--unhealthy", "--json")) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["name"], [each["partition"] for each in row["partitions"]]) == ("orders", [0, 1])


def test_a_topic_that_is_not_there_is_named_with_the_nearest(capsys: Capture):
    with fake_cluster(topics={"orders": [1]}, DescribeTopicPartitions=described(MISSING)) as cluster:
        assert run(to(cluster, "describe", "ordres")) == 1
        assert capsys.readouterr() == ("", "ottla: topic 'ordres' does not exist\n  → did you mean orders?\n")
    with fake_cluster(DescribeTopicPartitions=described(Topic(29, "secret"))) as cluster:
        assert run(to(cluster, "describe", "secret")) == 4
        assert "TOPIC_AUTHORIZATION_FAILED" in capsys.readouterr().err


# --- create, delete, alter, grow --------------------------------------------------------------------------------------


def test_create(capsys: Capture):
    result = types.CreateTopicsResponse.CreatableTopicResult
    answer = types.CreateTopicsResponse(topics=(result("b"), result("a", error_code=36, error_message="a is\n there")))
    with fake_cluster(CreateTopics=answer) as cluster:
        words = ("create", "b", "a", "--partitions", "3", "--replication-factor", "2", "--config", "retention.ms=5=6")
        assert run(to(cluster, *words)) == 6
        out, err = capsys.readouterr()
        assert out == "b created\n"
        assert err.count("\n") == 1
        assert "for topic a: TOPIC_ALREADY_EXISTS (36): a is there" in err
        assert run(to(cluster, "create", "a", "b", "--if-not-exists", "--dry-run")) == 0
        assert capsys.readouterr().out == "a already exists\nb could be created\n"
        first, second = cluster.broker().asked_for("CreateTopics")
        topic = first.topics[0]
        assert (topic.num_partitions, topic.replication_factor, topic.configs[0].value) == (3, 2, "5=6")
        assert (second.topics[0].num_partitions, second.validate_only) == (-1, True)


def test_nothing_created_is_a_refusal(ottla: Live):
    assert "INVALID_REPLICATION_FACTOR" in ottla.refused(1, "topics", "create", "wide", "--copies", "3")


def test_delete(capsys: Capture):
    result = types.DeleteTopicsResponse.DeletableTopicResult
    answer = types.DeleteTopicsResponse(responses=(result("b", error_code=3), result("a")))
    with fake_cluster(DeleteTopics=answer) as cluster:
        assert run(to(cluster, "delete", "a", "b", "--yes")) == 6
        out, err = capsys.readouterr()
        assert out == "a deleted\n"
        assert "for topic b: UNKNOWN_TOPIC_OR_PARTITION" in err
        assert run(to(cluster, "delete", "a", "b", "--if-exists", "--yes")) == 0
        assert capsys.readouterr().out == "a deleted\nb does not exist\n"


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        (("delete", "kept"), "would delete kept: 1 partition, 3 records"),
        (("delete", "kept", "gone", "--if-exists"), "would delete kept: 1 partition, 3 records"),
        (("delete-records", "kept", "--before", "end"), "would delete 3 records of kept-0, before offset 3"),
        (("delete-records", "kept", "--before", "2"), "would delete 2 records of kept-0, before offset 2"),
    ],
)
def test_without_a_terminal_nothing_goes_unless_told_so(ottla: Live, words: tuple[str, ...], plan: str):
    if "kept" not in [each["name"] for each in ottla.json("topics", "list")["rows"]]:
        ottla("topics", "create", "kept")
        ottla("topics", "produce", "kept", "a", "b", "c")
    assert ottla.refused(2, "topics", *words) == (
        f"{plan}\nottla: nothing was changed: confirmation needs a terminal\n  → --yes skips the confirmation\n"
    )
    assert ottla.json("topics", "offsets", "kept")["rows"] == [
        {"topic": "kept", "partition": 0, "start_offset": 0, "end_offset": 3}
    ]


def test_deleting_topics_that_do_not_exist_names_no_others(ottla: Live):
    ottla("topics", "create", "other")
    assert ottla("topics", "delete", "gone", "--if-exists") == "gone does not exist\n"


def test_records_are_deleted(ottla: Live):
    ottla("topics", "create", "old", "--partitions", "2")
    ottla("topics", "produce", "old", "a", "b", "c", "--partition", "1")
    words = ("topics", "delete-records", "old", "--before", "2", "--partition", "1", "--yes")
    assert ottla(*words) == "old-1 starts at 2\n"
    assert [each["start_offset"] for each in ottla.json("topics", "offsets", "old")["rows"]] == [0, 2]
    assert "OFFSET_OUT_OF_RANGE" in ottla.refused(1, "topics", "delete-records", "old", "--before", "99", "--yes")
    assert "has no partition 7" in ottla.refused(
        2, "topics", "delete-records", "old", "--before", "1", "--partition", "7"
    )
    assert "neither an offset nor 'end'" in ottla.refused(2, "topics", "delete-records", "old", "--before", "soon")


def test_settings_of_a_topic_are_altered(ottla: Live):
    ottla("topics", "create", "set")
    assert ottla("topics", "alter", "set", "retention.ms=5", "cleanup.policy+=compact") == (
        "set changed: retention.ms, cleanup.policy\n"
    )
    shown = {each["name"]: each["value"] for each in ottla.json("topics", "describe", "set")["rows"][0]["configs"]}
    assert shown == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    ottla("topics", "alter", "set", "cleanup.policy-=compact", "--unset", "retention.ms")
    shown = {each["name"]: each["value"] for each in ottla.json("topics", "describe", "set")["rows"][0]["configs"]}
    assert shown == {"cleanup.policy": "delete"}
    assert ottla.refused(2, "topics", "alter", "set", "retention.mss=1") == (
        "ottla: topic set has no setting 'retention.mss'\n  → did you mean retention.ms?\n"
    )
    assert "nothing to change" in ottla.refused(2, "topics", "alter", "set")
    assert "did you mean set?" in ottla.refused(1, "topics", "alter", "sett", "retention.ms=1")


def test_partitions_grow(ottla: Live):
    ottla("topics", "create", "small")
    assert ottla("topics", "grow", "small", "3", "--dry-run") == "small could have 3 partitions\n"
    assert ottla("topics", "grow", "small", "3") == "small has 3 partitions\n"
    assert "INVALID_PARTITIONS (37)" in ottla.refused(1, "topics", "grow", "small", "2")


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def filled(running: RunningNode) -> str:
    to = ("--bootstrap", f"127.0.0.1:{running.node.advertised['PLAINTEXT'].port}")
    assert run(["topics", "create", "rows", "--partitions", "1", *to]) == 0
    for number, key in enumerate(["eu-1", "us-2", "eu-3"]):
        value = json.dumps({"amount": number * 100, "name": "ü"})
        assert run(["topics", "produce", "rows", value, "--key", key, "--header", "trace=7f", *to]) == 0
    return "rows"


def test_a_record_says_where_it_went(ottla: Live):
    ottla("topics", "create", "one")
    assert ottla("topics", "produce", "one", "hello") == "one-0 offset 0\n"
    assert ottla.json("topics", "produce", "one", "again")["rows"][0]["offset"] == 1
    assert (
        ottla("topics", "produce", "one", "a", "b", "--compression", "zstd") == "2 records written: 2 to partition 0\n"
    )


def test_lines_of_standard_input_are_records(ottla: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ottla("topics", "create", "lines")
    path = tmp_path / "lines"
    path.write_bytes("k1=v1\nk2=v=2\r\nk3=\nk4=große Zahl".encode())
    with path.open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert ottla("topics", "produce", "lines", "--key-separator", "=").startswith("4 records written")
    rows = [json.loads(line) for line in ottla.lines("topics", "consume", "lines", "--json")]
    assert [(row["key"]["text"], row["value"]["text"]) for row in rows] == [
        ("k1", "v1"),
        ("k2", "v=2"),
        ("k3", ""),
        ("k4", "große Zahl"),
    ]


def test_a_line_is_sent_before_the_next_one_is_typed(ottla: Live, monkeypatch: pytest.MonkeyPatch):
    ottla("topics", "create", "typed")
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "w", buffering=1) as keyboard:
        monkeypatch.setattr("sys.stdin", stdin)
        producing = Thread(target=ottla.code, args=("topics", "produce", "typed"))
        producing.start()
        try:
            for offset, text in enumerate(("first", "second")):
                keyboard.write(f"{text}\n")
                there = ["--from", str(offset), "--follow", "--max", "1", "--values"]
                assert ottla("topics", "consume", "typed", *there) == f"{text}\n"
        finally:
            keyboard.close()
            producing.join()


def test_bytes_that_are_no_text_are_written_as_they_are(ottla: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ottla("topics", "create", "raw")
    ottla("topics", "produce", "raw", "v\udcff", "--key", "k\udcff", "--header", "h=\udcff")
    path = tmp_path / "lines"
    path.write_bytes(b"w\xff\n")
    with path.open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        ottla("topics", "produce", "raw")
    first, second = ottla.lines("topics", "consume", "raw", "--decode", "hex")
    assert first.endswith("  6bff  76ff  h=ff")
    assert second.endswith("  77ff")


def test_a_tombstone_has_no_value(ottla: Live):
    ottla("topics", "create", "dead")
    ottla("topics", "produce", "dead", "--key", "k", "--tombstone")
    (line,) = ottla.lines("topics", "consume", "dead", "--json")
    assert json.loads(line)["value"] == {"as": "null", "text": None, "bytes_len": 0, "truncated": False}
    assert "a tombstone has a key and no value" in ottla.refused(2, "topics", "produce", "dead", "--tombstone")


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ((), [0, 1, 2]),
        (("--from", "beginning"), [0, 1, 2]),
        (("--from", "end"), []),
        (("--from", "1"), [1, 2]),
        (("--from", "-1"), [2]),
        (("--from", "2020-01-01T00:00:00"), [0, 1, 2]),
        (("--from", "2100-01-01T00:00:00"), []),
        (("--from", "1h"), [0, 1, 2]),
        (("--max", "2"), [0, 1]),
        (("--filter", "value.amount >= 100"), [1, 2]),
        (("--filter", 'key ~ "^eu-" and value.amount > 0'), [2]),
        (("--filter", "headers.trace == '7f'", "--max", "1"), [0]),
        (("--filter", "offset in [0, 2]", "--committed"), [0, 2]),
    ],
)
def test_records_are_read_from_a_place_on_through_a_filter(
    ottla: Live, filled: str, words: tuple[str, ...], offsets: list[int]
):
    rows = [json.loads(line) for line in ottla.lines("topics", "consume", filled, "--json", *words)]
    assert [row["offset"] for row in rows] == offsets


def test_how_records_are_shown(ottla: Live, filled: str):
    (line,) = ottla.lines("topics", "consume", filled, "--max", "1")
    partition, offset, day, time, key, value = line.split(None, 5)
    assert (partition, offset, key) == ("0", "0", "eu-1")
    assert value == '{"amount": 0, "name": "\\u00fc"}  trace=7f'
    (line,) = ottla.lines("topics", "consume", filled, "--max", "1", "--decode", "json", "--values")
    assert line == '{"amount": 0, "name": "ü"}'
    (line,) = ottla.lines("topics", "consume", filled, "--max", "1", "--decode", "hex", "--json")
    assert json.loads(line)["key"] == {"as": "hex", "text": b"eu-1".hex(), "bytes_len": 4, "truncated": False}
    assert json.loads(line)["ts_type"] == "CREATE_TIME"
    assert (len(day), len(time)) == (10, 12)


def test_partitions_without_a_leader_are_not_left_out_silently(capsys: Capture):
    with sick_cluster(ORDERS) as cluster:
        assert run(to(cluster, "consume", "orders", "--from", "end")) == 0
        assert capsys.readouterr().err == "ottla: orders-1 cannot be read: no leader answers\n"
        assert run(to(cluster, "copy", "orders", "orders", "--to-bootstrap", cluster.bootstrap_servers)) == 3
        assert capsys.readouterr().err == (
            "ottla: orders-1 cannot be read: no leader answers\n  → --partition chooses others\n"
        )
        assert run(to(cluster, "consume", "orders", "--from", "end", "--partition", "0")) == 0
        assert capsys.readouterr().err == ""


def test_control_characters_do_not_reach_the_terminal(ottla: Live):
    ottla("topics", "create", "wild")
    ottla("topics", "produce", "wild", "\x1b[31mred\u202e")
    assert ottla.lines("topics", "consume", "wild")[0].endswith(b"\x1b[31mred".hex() + "\u202e".encode().hex())
    assert ottla.lines("topics", "consume", "wild", "--decode", "utf8")[0].endswith("\\x1b[31mred\\u202e")


def test_names_in_kafka_s_own_topics_do_not_turn_the_terminal_around(ottla: Live, filled: str):
    ottla("groups", "reset", "gpj.\u202eexe", "--topic", filled, "--to-earliest", "--yes", "--create")
    shown = ottla("topics", "consume", "__consumer_offsets")
    assert "gpj.\\u202eexe" in shown
    assert "\u202e" not in shown


def test_a_time_after_the_year_9999_is_shown_as_its_number(ottla: Live):
    ottla("topics", "create", "micros", "--partitions", "1", "--config", f"message.timestamp.after.max.ms={2**63 - 1}")

    async def produce() -> None:
        async with Client(ottla.bootstrap) as client:
            await Producer(client).send("micros", b"v", timestamp_ms=1_795_049_966_599_000)

    asyncio.run(produce())
    assert ottla("topics", "consume", "micros") == "0  0  1795049966599000  -  v\n"


def test_kafka_s_own_topics_are_read(ottla: Live, filled: str):
    ottla("groups", "reset", "seen", "--topic", filled, "--to-earliest", "--yes", "--create")
    rows = [json.loads(line) for line in ottla.lines("topics", "consume", "__consumer_offsets", "--json")]
    kinds = {row["value"]["record"]["type"] for row in rows}
    assert "OffsetCommit" in kinds
    words = ("--filter", "key.group == 'seen'", "--json")
    (row,) = [json.loads(line) for line in ottla.lines("topics", "consume", "__consumer_offsets", *words)]
    assert row["value"]["record"]["json"]["offset"] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--from", "77"), "no partition has the offset 77\n  → rows-0 has 0 to 3"),
        (("--from", "yesterday"), "'yesterday' is not a time"),
        (("--filter", "amount > 1"), "--filter: character 1, 'amount'"),
        (("--partition", "9"), "topic 'rows' has no partition 9\n  → it has 1, counted from 0"),
    ],
)
def test_places_and_filters_that_cannot_be(ottla: Live, filled: str, words: tuple[str, ...], complaint: str):
    assert complaint in ottla.refused(2, "topics", "consume", filled, *words)


def test_offsets_at_a_time(ottla: Live, filled: str):
    assert ottla.lines("topics", "offsets", filled, "--at", "2020-01-01T00:00:00") == [
        "TOPIC  PARTITION  START  END  RECORDS  AT",
        "rows           0      0    3        3   0",
    ]
    (row,) = ottla.json("topics", "offsets", filled, "--at", "2100-01-01T00:00:00")["rows"]
    assert row["at"] is None


# --- transactions -----------------------------------------------------------------------------------------------------


def test_open_transactions_are_listed_and_hanging_ones_aborted(ottla: Live):
    ottla("topics", "create", "ledger")

    async def begin() -> None:
        async with Client(ottla.bootstrap) as client:
            identity = await transactions.begin(client, "loader", timeout_ms=60_000)
            await Producer(client, identity=identity).send("ledger", b"open", partition=0)

    asyncio.run(begin())
    (row,) = ottla.json("topics", "transactions", "list", "ledger")["rows"]
    assert (row["topic"], row["partition"], row["transactional_id"], row["first_offset"], row["hanging"]) == (
        "ledger",
        0,
        "loader",
        0,
        False,
    )
    assert "loader" in ottla("topics", "transactions", "list")
    assert ottla.lines("topics", "consume", "ledger", "--committed") == []
    where = ("topics", "transactions", "abort", "ledger", "--partition", "0")
    assert "would abort the transaction of producer" in ottla.refused(2, *where, "--start-offset", "0")
    assert "has no such open transaction" in ottla.refused(1, *where, "--start-offset", "7", "--yes")
    assert ottla(*where, "--producer-id", str(row["producer_id"]), "--yes").startswith("aborted the transaction of")
    assert ottla.json("topics", "transactions", "list", "ledger")["rows"] == []


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["lst"], "unknown command 'lst' of 'ottla topics'\n  → did you mean list?"),
        (["create"], "Missing argument 'NAME...'"),
        (["create", "a", "--partitions", "0"], "--partitions"),
        (["create", "a", "--config", "retention.ms"], "--config 'retention.ms' is not KEY=VALUE"),
        (["create", "a", "--config", "=5"], "--config '=5' is not KEY=VALUE"),
        (["grow", "a", "many"], "COUNT"),
        (["list", "--bootstrap-server", "nowhere"], "'nowhere' is not an address; write HOST:PORT"),
        (["list", "--bootstrap", "a:99999"], "'99999' is not a port"),
        (["list", "--timeout", "0"], "--timeout"),
        (["list", "--timeout", "soon"], "'soon' is not a time above 0"),
        (["list", "--timeout", "25d"], "'25d' is longer than 24 days"),
        (["list", "--command-config", "/nowhere/client.properties"], "client.properties"),
        (["transactions", "abort", "a", "--partition", "0"], "no transaction selected"),
    ],
)
def test_bad_input_is_named(words: list[str], fragment: str, capsys: Capture):
    assert run(["topics", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") <= 2
    assert fragment in err


def test_nobody_at_the_address_is_one_line_naming_it(capsys: Capture):
    with fake_cluster() as gone:
        address = gone.bootstrap_servers
    assert run(["topics", "list", "--bootstrap-server", address]) == 3
    assert capsys.readouterr() == ("", f"ottla: no broker at {address}: connection refused\n  → {START_ONE}\n")


def test_the_address_may_stand_in_the_environment(ottla: Live, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla.bootstrap)
    assert run(["topics", "list"]) == 0


def test_the_timeout_bounds_the_attempts(capsys: Capture):
    with fake_cluster(DescribeTopicPartitions=DROP) as cluster:
        assert run([*to(cluster, "list"), "--timeout", "500ms"]) == 3
        assert "was lost" in capsys.readouterr().err


def test_a_client_s_properties_are_used(tmp_path: Any, capsys: Capture):
    path = tmp_path / "client.properties"
    path.write_text("# ours\nclient.id=operator\\:1\nrequest.timeout.ms=5000\n")
    with sick_cluster(FINE) as cluster:
        assert run([*to(cluster, "list"), "--command-config", str(path)]) == 0
        assert cluster.broker().requests[0].header.client_id == "operator:1"
        path.write_text("security.protocol=SASL\n")
        assert run([*to(cluster, "list"), "--command-config", str(path)]) == 2
        assert "security.protocol is 'SASL'" in capsys.readouterr().err
