"""`ottla groups`: what it prints, what it changes, and how it refuses."""

import json
import re
import time
from typing import Any

import pytest

from ottla.cli import run
from ottla.cli.failure import Failure
from ottla.cli.groups.describe import compact
from ottla.cli.times import parse_duration_ms, parse_time_ms, time_ago_ms
from ottla.client import TopicPartition
from ottla.client.group_view import Task
from ottla.wire import frames, types
from ottla.wire.batch import Compression, Record, build_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import encode_framed
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.client.fake import DROP, FakeCluster, topic_id

Capture = pytest.CaptureFixture[str]
Classic = types.DescribeGroupsResponse
Consumer = types.ConsumerGroupDescribeResponse
START, END = 5, 20
NOW_MS = time.time_ns() // 1_000_000


def listed(**kinds: str) -> types.ListGroupsResponse:
    """`billing="classic Stable"`."""
    group = types.ListGroupsResponse.ListedGroup
    words = {name: kind.split() for name, kind in kinds.items()}
    return types.ListGroupsResponse(
        groups=tuple(group(name, "consumer", state, kind) for name, (kind, state) in words.items())
    )


def classic_answer(request: frames.Request) -> Classic:
    groups = {"billing": BILLING, "idle": Classic.DescribedGroup(0, None, "idle", "Empty", "consumer")}
    return Classic(groups=tuple(groups[name] for name in request.body.groups))


def held(**topics: tuple[int, ...]) -> Any:
    kind = types.ConsumerProtocolAssignment
    pieces = tuple(kind.TopicPartition(name, indexes) for name, indexes in topics.items())
    return encode_framed(kind(assigned_partitions=pieces), 1)


WISH = encode_framed(types.ConsumerProtocolSubscription(topics=("orders",)), 1)
BILLING = Classic.DescribedGroup(
    group_id="billing",
    group_state="Stable",
    protocol_type="consumer",
    protocol_data="range",
    members=(
        Classic.DescribedGroupMember("a-1", None, "a", "/10.0.0.1", WISH, held(orders=(0,))),
        Classic.DescribedGroupMember("b-1", "b", "c", "/10.0.0.2", WISH, held(orders=(1,))),
    ),
)


def assignment(*indexes: int) -> Any:
    return Consumer.Assignment((Consumer.TopicPartitions(topic_name="orders", partitions=indexes),))


NEWER = Consumer(
    groups=(
        Consumer.DescribedGroup(
            group_id="newer",
            group_state="Reconciling",
            group_epoch=6,
            assignment_epoch=5,
            assignor_name="uniform",
            members=(
                Consumer.Member("m1", None, None, 4, "c1", "/h", ("orders",), None, assignment(0), assignment(0)),
                Consumer.Member(
                    "m2", None, None, 5, "c2", "/h", ("orders",), None, assignment(), assignment(1), member_type=0
                ),
            ),
        ),
    )
)


def kept(request: frames.Request) -> types.OffsetFetchResponse:
    kind = types.OffsetFetchResponse
    part = kind.OffsetFetchResponsePartitions
    topic = kind.OffsetFetchResponseTopics("orders", partitions=(part(0, 10, 2, "note"), part(1, 20)))
    return kind(groups=tuple(kind.OffsetFetchResponseGroup(each.group_id, (topic,)) for each in request.body.groups))


def ends(request: frames.Request) -> types.ListOffsetsResponse:
    kind = types.ListOffsetsResponse
    special = {-2: START, -1: END, 777: 12, 778: -1}
    return kind(
        topics=tuple(
            kind.ListOffsetsTopicResponse(
                topic.name,
                tuple(
                    kind.ListOffsetsPartitionResponse(each.partition_index, 0, -1, special.get(each.timestamp, 13))
                    for each in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
    )


def records(request: frames.Request) -> types.FetchResponse:
    kind = types.FetchResponse
    data = bytes(build_batch([Record(10, NOW_MS - 90_000, None, b"v")], compression=Compression.NONE))
    (topic,) = request.body.topics
    parts = tuple(kind.PartitionData(each.partition, records=data) for each in topic.partitions)
    return kind(responses=(kind.FetchableTopicResponse(topic.topic, topic.topic_id, parts),))


def described(request: frames.Request) -> types.DescribeTopicPartitionsResponse:
    kind = types.DescribeTopicPartitionsResponse
    part = kind.DescribeTopicPartitionsResponsePartition
    return kind(
        topics=tuple(
            kind.DescribeTopicPartitionsResponseTopic(
                0, each.name, topic_id(each.name), False, (part(0, 0, 1), part(0, 1, 1))
            )
            for each in request.body.topics
        )
    )


ANSWERS = {
    "ListGroups": listed(billing="classic Stable", idle="classic Empty", newer="consumer Reconciling"),
    "DescribeGroups": classic_answer,
    "ConsumerGroupDescribe": NEWER,
    "OffsetFetch": kept,
    "ListOffsets": ends,
    "Fetch": records,
    "DescribeTopicPartitions": described,
}


def cluster(**others: Any) -> Any:
    return fake_cluster(topics={"orders": [1, 1]}, **(ANSWERS | others))


def to(found: FakeCluster, *words: str) -> list[str]:
    return ["groups", *words, "--bootstrap-server", found.bootstrap_servers]


def refused(capsys: Capture, *words: str, **others: Any) -> str:
    with cluster(**others) as found:
        assert run(to(found, *words)) in (1, 2, 6)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") <= 2
    return err


# --- list -------------------------------------------------------------------------------------------------------------


def test_list(capsys: Capture):
    with cluster() as found:
        assert run(to(found, "list")) == 0
        assert capsys.readouterr().out.splitlines() == [
            "GROUP    TYPE      STATE        PROTOCOL  COORDINATOR",
            "billing  classic   Stable       consumer            1",
            "idle     classic   Empty        consumer            1",
            "newer    consumer  Reconciling  consumer            1",
        ]
        assert run(to(found, "list", "--type", "classic", "--state", "empty", "--json")) == 0
        (only,) = json.loads(capsys.readouterr().out)["rows"]
        assert only == {
            "group_id": "idle",
            "type": "classic",
            "state": "Empty",
            "protocol_type": "consumer",
            "coordinator": 1,
        }


def test_list_with_lag(capsys: Capture):
    with cluster() as found:
        assert run(to(found, "list", "--lag")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0:1] + line.split()[5:] for line in lines] == [
            ["GROUP", "MEMBERS", "EPOCH", "PARTITIONS", "LAG"],
            ["billing", "2", "-", "2", "10"],
            ["idle", "0", "-", "2", "10"],
            ["newer", "2", "6", "2", "10"],
        ]
        assert run(to(found, "list", "--lag", "--json")) == 0
        shown = json.loads(capsys.readouterr().out)["rows"][2]
        assert (shown["members"], shown["epoch"], shown["partitions"], shown["lag"]) == (2, 6, 2, 10)


def test_watching_looks_again_and_outlives_a_broker(capsys: Capture):
    lists = [ANSWERS["ListGroups"], types.ListGroupsResponse(error_code=29), listed(other="share Stable")]
    with cluster(ListGroups=lists) as found:
        assert run(to(found, "list", "--watch", "--interval", "0.001", "--count", "3", "--json")) == 0
    out, err = capsys.readouterr()
    first, last = map(json.loads, out.splitlines())
    assert [len(first["rows"]), last["rows"][0]["group_id"]] == [3, "other"]
    assert err.startswith("ottla: ListGroups at broker 1")
    with cluster() as found:
        assert run(to(found, "list", "--watch", "--interval", "0.001", "--count", "2")) == 0
    assert capsys.readouterr().out.count("UTC\nGROUP ") == 2


# --- describe ---------------------------------------------------------------------------------------------------------


def test_describe_a_classic_group(capsys: Capture):
    with cluster() as found:
        assert run(to(found, "describe", "billing", "idle")) == 0
        address = found.bootstrap_servers
    assert capsys.readouterr().out.splitlines() == [
        f"billing  classic group  Stable  coordinator 1 ({address})  protocol consumer  assignor range",
        "MEMBER  INSTANCE  CLIENT  HOST      COUNT  ASSIGNMENT",
        "a-1     -         a       10.0.0.1      1  orders:0",
        "b-1     b         c       10.0.0.2      1  orders:1",
        "",
        f"idle  classic group  Empty  coordinator 1 ({address})  protocol consumer",
        "  no members",
    ]


def test_describe_says_who_holds_up_the_rebalance(capsys: Capture):
    with cluster() as found:
        assert run(to(found, "describe", "newer")) == 0
        first, *lines = capsys.readouterr().out.splitlines()
        assert first.endswith("assignor uniform  epoch 6  target of epoch 5")
        assert lines == [
            "  the target assignment for epoch 6 is not computed yet",
            "  m1 delays the rebalance: it is at epoch 4 of 5",
            "    m2 waiting for orders:1",
            "MEMBER  INSTANCE  CLIENT  HOST  EPOCH  PROTOCOL  COUNT  ASSIGNMENT  TO ASSIGN  TO REVOKE",
            "m1      -         c1      h         4  -             1  orders:0    -          -",
            "m2      -         c2      h         5  classic       0  -           orders:1   -",
        ]
        assert run(to(found, "describe", "--json", "newer")) == 0
        (shown,) = json.loads(capsys.readouterr().out)["rows"]
    assert (shown["group_epoch"], shown["assignment_epoch"]) == (6, 5)
    assert shown["held_up_by"] == [
        {"member_id": "m1", "member_epoch": 4, "awaited": [{"topic": "orders", "partition": 1}], "waiting": ["m2"]}
    ]
    assert shown["members"][1]["target"] == [{"topic": "orders", "partition": 1}]


def test_describe_tells_what_cannot_be_read(capsys: Capture):
    member = Classic.DescribedGroupMember("w-1", None, "w", "/h", b"", b"12345")
    group = Classic.DescribedGroup(0, None, "connect-1", "Stable", "connect", "sessioned", (member,))
    with cluster(
        ListGroups=listed(**{"connect-1": "classic Stable"}), DescribeGroups=Classic(groups=(group,))
    ) as found:
        assert run(to(found, "describe")) == 0
        assert "5 bytes (not a consumer assignment)" in capsys.readouterr().out
        assert run(to(found, "describe", "--json")) == 0
        assert json.loads(capsys.readouterr().out)["rows"][0]["members"][0]["assignment"] is None


def test_a_group_that_is_not_there(capsys: Capture):
    assert "group 'biling' does not exist\n  → did you mean billing?" in refused(capsys, "describe", "biling")
    assert "group 'x' does not exist\n  → 'ottla groups list' lists all groups" in refused(capsys, "offsets", "x")


def test_a_cluster_that_is_not_there(capsys: Capture):
    assert run(["groups", "list", "--bootstrap-server", "127.0.0.1:1", "--timeout", "1"]) == 3
    assert "ottla: no broker at 127.0.0.1:1" in capsys.readouterr().err


def test_partitions_are_written_shortly():
    places = [TopicPartition("b", 1), *(TopicPartition("a", index) for index in (7, 1, 0, 2, 5))]
    assert compact(places) == "a:0-2,5,7 b:1"
    assert compact([Task("0", 1), Task("0", 2, "standby")]) == "0_1 0_2 (standby)"
    assert compact([]) == "-"


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets(capsys: Capture):
    with cluster() as found:
        assert run(to(found, "offsets", "billing")) == 0
        first, *lines = capsys.readouterr().out.splitlines()
        assert re.fullmatch(r"billing  classic group  Stable  10 records behind  \d+\.\d seconds behind", first)
        words = [line.split() for line in lines]
        assert words[0] == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "SECONDS", "MEMBER", "CLIENT", "NOTE"]
        assert words[1][:5] == ["orders", "0", "10", "20", "10"]
        assert float(words[1][5]) >= 90
        assert words[2] == ["orders", "1", "20", "20", "0", "0.0", "b-1", "c", "-"]
        assert run(to(found, "offsets", "billing", "--topic", "orders:0", "--no-seconds", "--json")) == 0
        shown = json.loads(capsys.readouterr().out)
    assert shown["rows"] == [
        {
            "topic": "orders",
            "partition": 0,
            "committed_offset": 10,
            "committed_leader_epoch": 2,
            "metadata": "note",
            "start_offset": 5,
            "end_offset": 20,
            "lag": 10,
            "lag_seconds": None,
            "oldest_timestamp_ms": None,
            "member_id": "a-1",
            "client_id": "a",
            "note": "",
        }
    ]


def test_offsets_of_partitions_that_are_not_there(capsys: Capture):
    assert "topic 'orders' has no partition 7\n  → it has 2, counted from 0" in refused(
        capsys, "offsets", "billing", "--topic", "orders:7"
    )
    assert "is neither NAME nor NAME:PARTITION" in refused(capsys, "offsets", "billing", "--topic", "orders:x")


# --- reset ------------------------------------------------------------------------------------------------------------


def committed(request: frames.Request, code: int = 0) -> types.OffsetCommitResponse:
    kind = types.OffsetCommitResponse
    return kind(
        topics=tuple(
            kind.OffsetCommitResponseTopic(
                topic.name,
                partitions=tuple(
                    kind.OffsetCommitResponsePartition(each.partition_index, code * (each.partition_index == 1))
                    for each in topic.partitions
                ),
            )
            for topic in request.body.topics
        )
    )


@pytest.mark.parametrize(
    ("way", "new", "note"),
    [
        (["--to-earliest"], [5, 5], ["", ""]),
        (["--to-latest"], [20, 20], ["", ""]),
        (["--to-current"], [10, 20], ["", ""]),
        (["--to-offset", "0"], [5, 5], ["0 is not in the log"] * 2),
        (["--to-offset", "15"], [15, 15], ["", ""]),
        (["--shift-by", "-3"], [7, 17], ["", ""]),
        (["--shift-by", "0"], [10, 20], ["", ""]),
        (["--shift-by", "5"], [15, 20], ["", "25 is not in the log"]),
        (["--to-datetime", "777"], [12, 12], ["", ""]),
        (["--to-datetime", "778"], [20, 20], ["no record since then"] * 2),
        (["--by-duration", "PT2H"], [13, 13], ["", ""]),
    ],
)
def test_every_way_to_reset(capsys: Capture, way: list[str], new: list[int], note: list[str]):
    with cluster(OffsetCommit=committed) as found:
        assert run(to(found, "reset", "idle", "--all-topics", *way, "--dry-run", "--json")) == 0
        assert found.broker().asked_for("OffsetCommit") == [], "with --dry-run nothing changes"
        out, err = capsys.readouterr()
        assert err == "dry run: nothing was changed\n"
        shown = json.loads(out)
        assert shown["executed"] is False
        assert [each["new_offset"] for each in shown["rows"]] == new
        assert [each["note"] for each in shown["rows"]] == note
        assert run(to(found, "reset", "idle", "--topic", "orders", *way, "--yes")) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert [int(line.split()[3]) for line in out.splitlines()[1:]] == new
        (asked,) = found.broker().asked_for("OffsetCommit")
        assert [each.committed_offset for each in asked.topics[0].partitions] == new


def test_a_reset_takes_all_named_partitions_of_a_topic(capsys: Capture):
    with cluster() as found:
        partitions = ["--topic", "orders:1", "--topic", "orders:0"]
        assert run(to(found, "reset", "idle", *partitions, "--to-latest", "--dry-run", "--json")) == 0
        assert [each["partition"] for each in json.loads(capsys.readouterr().out)["rows"]] == [0, 1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["idle", "--all-topics"], "no target offset given\n  → choose one of --to-earliest"),
        (["idle", "--to-latest"], "give --topic or --all-topics"),
        (["idle", "--all-topics", "--topic", "orders", "--to-latest"], "give --topic or --all-topics"),
        (["idle", "--all-topics", "--to-latest", "--to-offset", "0"], "--to-latest and --to-offset exclude each other"),
        (["idle", "--all-topics", "--to-latest", "--yes", "--dry-run"], "exclude each other"),
        (["idle", "--all-topics", "--to-datetime", "soon"], "'soon' is not a time"),
        (["idle", "--all-topics", "--by-duration", "1y"], "'1y' is not a duration"),
        (["billing", "--all-topics", "--to-latest"], "group 'billing' is Stable and has 2 members (a, b)"),
        (["nobody", "--all-topics", "--to-latest"], "group 'nobody' does not exist\n  → --create creates it"),
        (["flow", "--all-topics", "--to-latest"], "is a streams group"),
    ],
)
def test_resets_that_cannot_be(capsys: Capture, words: list[str], said: str):
    groups = listed(billing="classic Stable", idle="classic Empty", flow="streams Empty")
    assert said in refused(capsys, "reset", *words, ListGroups=groups)


def test_a_reset_that_goes_wrong_in_part(capsys: Capture):
    def answer(request: frames.Request) -> Any:
        return committed(request, ErrorCode.UNKNOWN_MEMBER_ID)

    said = refused(capsys, "reset", "idle", "--all-topics", "--to-latest", "--yes", OffsetCommit=answer)
    assert "orders-1: UNKNOWN_MEMBER_ID (25)" in said
    assert "a member has joined in the meantime\n  → 1 of 2 partitions were changed" in said


def test_a_reset_can_make_a_group(capsys: Capture):
    with cluster(OffsetCommit=committed, OffsetFetch=nothing_kept) as found:
        words = ("reset", "new", "--topic", "orders:1", "--to-current", "--create", "--yes")
        assert run(to(found, *words)) == 0
        assert capsys.readouterr().out.splitlines()[1].split(maxsplit=4) == [
            "orders",
            "1",
            "-",
            "20",
            "no committed offset",
        ]
        assert run(to(found, "reset", "new", "--topic", "orders", "--shift-by", "1", "--create")) == 2
        assert "orders-0 cannot be shifted: it has no committed offset" in capsys.readouterr().err
        assert run(to(found, "reset", "idle", "--all-topics", "--to-latest", "--yes")) == 0
        assert capsys.readouterr().out == "group 'idle' has no offsets\n"


def nothing_kept(request: frames.Request) -> types.OffsetFetchResponse:
    kind = types.OffsetFetchResponse
    return kind(groups=tuple(kind.OffsetFetchResponseGroup(each.group_id) for each in request.body.groups))


def test_moments():
    assert parse_time_ms("1700000000000") == 1_700_000_000_000
    assert parse_time_ms("2023-11-14T22:13:20") == parse_time_ms("2023-11-14T23:13:20+01:00") == 1_700_000_000_000
    assert parse_time_ms("2023-11-14T22:13:20.123Z") == 1_700_000_000_123
    assert parse_time_ms("1969-12-31T23:59:59.999") == 0, "-1 would be the end of a partition"
    assert [parse_duration_ms(text) for text in ("90s", "1d12h", "1.5m", "250ms", "P1DT12H", "PT0.5S", "pt2m")] == [
        90_000,
        129_600_000,
        90_000,
        250,
        129_600_000,
        500,
        120_000,
    ]
    assert time_ago_ms("10s", 15_000) == 5_000
    for wrong in ("", "P", "10", "s", "1h x", "-5s"):
        with pytest.raises(Failure, match="is not a duration"):
            parse_duration_ms(wrong)


# --- share groups -----------------------------------------------------------------------------------------------------


def test_a_share_group_has_starts(capsys: Capture):
    share = types.ShareGroupDescribeResponse
    offsets = types.DescribeShareGroupOffsetsResponse
    part = offsets.DescribeShareGroupOffsetsResponsePartition
    topic = offsets.DescribeShareGroupOffsetsResponseTopic("orders", bytes(16), (part(0, 10, 1, 4),))
    altered = types.AlterShareGroupOffsetsResponse
    deleted = types.DeleteShareGroupOffsetsResponse
    gone = deleted.DeleteShareGroupOffsetsResponseTopic
    said = altered.AlterShareGroupOffsetsResponseTopic(
        "orders", partitions=(altered.AlterShareGroupOffsetsResponsePartition(0),)
    )
    answers = {
        "ListGroups": listed(workers="share Empty"),
        "ShareGroupDescribe": share(groups=(share.DescribedGroup(0, None, "workers", "Empty", 3, 3, "simple"),)),
        "DescribeShareGroupOffsets": offsets(
            groups=(offsets.DescribeShareGroupOffsetsResponseGroup("workers", (topic,)),)
        ),
        "AlterShareGroupOffsets": altered(responses=(said,)),
        "DeleteShareGroupOffsets": deleted(responses=(gone("orders"), gone("nope", error_code=3))),
    }
    with cluster(**answers) as found:
        assert run(to(found, "offsets", "workers", "--json")) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["committed_offset"], row["end_offset"], row["lag"]) == (10, 20, 4)
        assert run(to(found, "reset", "workers", "--all-topics", "--to-earliest", "--yes")) == 0
        (asked,) = found.broker().asked_for("AlterShareGroupOffsets")
        assert asked.topics[0].partitions[0].start_offset == START
        capsys.readouterr()
        assert run(to(found, "delete-offsets", "workers", "--topic", "orders:0", "--yes")) == 2
        assert "share groups delete the offsets of whole topics" in capsys.readouterr().err
        assert run(to(found, "delete-offsets", "workers", "--topic", "orders", "--topic", "nope", "--yes")) == 6
        told = capsys.readouterr()
        assert told.out == "orders deleted\n"
        assert "UNKNOWN_TOPIC_OR_PARTITION" in told.err


# --- delete -----------------------------------------------------------------------------------------------------------


def deletion(request: frames.Request) -> types.DeleteGroupsResponse:
    (name,) = request.body.groups_names
    codes = {"idle": 0, "billing": 68, "secret": 30}
    kind = types.DeleteGroupsResponse
    return kind(results=(kind.DeletableGroupResult(name, codes.get(name, 69)),))


def test_delete(capsys: Capture):
    with cluster(DeleteGroups=deletion) as found:
        assert run(to(found, "delete", "idle", "nobody", "--if-exists", "--yes")) == 0
        assert capsys.readouterr().out == "idle deleted\nnobody does not exist\n"
        assert run(to(found, "delete", "idle", "idl", "billing", "secret", "--yes")) == 6
        out, err = capsys.readouterr()
        assert out == "idle deleted\n"
        assert "group 'idl' does not exist; did you mean idle?" in err
        assert "group 'billing' is Stable and has 2 members (a, b), so it was not deleted; stop them first" in err
        assert "GROUP_AUTHORIZATION_FAILED (30)" in err


def test_delete_offsets(capsys: Capture):
    kind = types.OffsetDeleteResponse
    part = kind.OffsetDeleteResponsePartition
    answer = kind(topics=(kind.OffsetDeleteResponseTopic("orders", (part(0), part(1, 86))),))
    with cluster(OffsetDelete=answer) as found:
        assert run(to(found, "delete-offsets", "billing", "--topic", "orders", "--yes")) == 6
        out, err = capsys.readouterr()
        assert out == "orders-0 deleted\n"
        assert err == "ottla: orders-1 was not deleted: members of the group are subscribed to the topic\n"
    with cluster(OffsetFetch=nothing_kept) as found:
        assert run(to(found, "delete-offsets", "idle", "--topic", "orders", "--yes")) == 2
        assert "group 'idle' has no offsets of these topics" in capsys.readouterr().err


def test_a_broker_that_hangs_up_is_reported(capsys: Capture):
    with cluster(ListGroups=DROP) as found:
        assert run([*to(found, "list"), "--timeout", "0.5"]) == 3
    assert "was lost" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        (("delete", "idle"), "would delete group idle and its offsets\n"),
        (("delete-offsets", "idle", "--topic", "orders"), "would delete the offsets of group idle for orders\n"),
    ],
)
def test_without_a_terminal_nothing_goes_unless_told_so(words: tuple[str, ...], plan: str, capsys: Capture):
    with cluster() as found:
        assert run(to(found, *words)) == 2
        assert capsys.readouterr().err.startswith(f"{plan}ottla: nothing was changed")
        assert not found.broker().asked_for("DeleteGroups")
        assert not found.broker().asked_for("OffsetDelete")
