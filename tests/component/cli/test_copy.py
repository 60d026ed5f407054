"""`ottla topics copy`: what is copied, where it continues, and how it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from ottla.client import Client, Producer, ProducerRecord, transactions
from ottla.client.copy import writers
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.live import Live, live_node

PARTITIONS = 3
_serial = count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("another"))


@pytest.fixture
def ottla(running: RunningNode, capsys: pytest.CaptureFixture[str]) -> Live:
    return Live(running, capsys)


@pytest.fixture
def elsewhere(another: RunningNode, capsys: pytest.CaptureFixture[str]) -> Live:
    return Live(another, capsys)


def new_name(prefix: str) -> str:
    return f"{prefix}-{next(_serial)}"


def filled(ottla: Live, size: int = 12) -> str:
    """A topic with records in all of its partitions."""
    name = new_name("orders")
    ottla("topics", "create", name, "--partitions", str(PARTITIONS))

    async def fill() -> None:
        async with Client(ottla.bootstrap) as client:
            records = [
                ProducerRecord(
                    name, b'{"n": %d}' % number, b"k%d" % number, [("h", b"%d" % number)], number % PARTITIONS,
                    1_700_000_000_000 + number,
                )
                for number in range(size)
            ]  # fmt: skip
            await Producer(client).send_all(records)

    asyncio.run(fill())
    return name


def records(ottla: Live, name: str) -> list[tuple[Any, ...]]:
    """The committed records of a topic, but for their offsets."""
    lines = ottla.lines("topics", "consume", name, "--committed", "--json")
    rows = [json.loads(line) for line in lines]
    return sorted(
        (row["partition"], row["ts_ms"], row["key"]["text"], row["value"]["text"], str(row["headers"])) for row in rows
    )


def values(ottla: Live, name: str) -> list[int]:
    return sorted(json.loads(row[3])["n"] for row in records(ottla, name))


# --- what is copied ---------------------------------------------------------------------------------------------------


def test_everything_stays_the_same(ottla: Live):
    source, target = filled(ottla), new_name("copy")
    ottla("topics", "alter", source, "retention.ms=86400000")
    said = ottla.lines("topics", "copy", source, target, "--create")
    assert said[0].startswith("12 records (")
    assert said[0].endswith(f" copied from {source} to {target}")
    assert [line.split() for line in said[1:]] == [["PARTITION", "FROM", "TO"], *([str(p), "0", "4"] for p in range(3))]
    assert records(ottla, target) == records(ottla, source)
    assert "86400000" in ottla("configs", "get", "topic", target, "retention.ms")


def test_some_records(ottla: Live):
    source, target = filled(ottla), new_name("copy")
    done = ottla.json("topics", "copy", source, target, "--create", "--filter", "value.n >= 6", "--partition", "1")
    assert values(ottla, target) == [7, 10]
    assert (done["copied"], done["skipped"]) == (2, 2)
    assert done["rows"] == [{"partition": 1, "start_offset": 0, "end_offset": 4}]
    ottla("topics", "copy", source, target, "--from", "-1")
    assert values(ottla, target) == [7, 9, 10, 10, 11]


def test_keys_choose_the_partition(ottla: Live):
    source, target = filled(ottla), new_name("copy")
    ottla("topics", "create", target, "--partitions", "2")
    assert "'topic" not in ottla.refused(2, "topics", "copy", source, target)
    ottla("topics", "copy", source, target, "--by-key")
    assert values(ottla, target) == list(range(12))


def test_an_empty_topic(ottla: Live):
    source, target = filled(ottla, 0), new_name("copy")
    done = ottla.json("topics", "copy", source, target, "--create")
    assert done["copied"] == 0
    assert [row["end_offset"] for row in done["rows"]] == [0, 0, 0]


def test_what_was_aborted_is_not_copied(ottla: Live):
    source, target = filled(ottla), new_name("copy")

    async def abort() -> None:
        async with Client(ottla.bootstrap) as client:
            identity = await transactions.begin(client, new_name("aborting"), timeout_ms=60_000)
            await Producer(client, identity=identity).send(source, b'{"n": 99}', partition=0)
            await transactions.end(client, identity, commit=False)

    asyncio.run(abort())
    done = ottla.json("topics", "copy", source, target, "--create")
    assert done["rows"][0] == {"partition": 0, "start_offset": 0, "end_offset": 6}  # with the record and its marker
    assert values(ottla, target) == list(range(12))


# --- where it continues -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("--exactly-once",)], ids=["at-least-once", "exactly-once"])
def test_a_group_keeps_the_progress(ottla: Live, how: tuple[str, ...]):
    source, target, group = filled(ottla), new_name("copy"), new_name("copier")
    copy = ("topics", "copy", source, target, "--create", "--group", group, *how)
    for done in (5, 10, 12, 12):
        ottla(*copy, "--max", "5")
        assert len(values(ottla, target)) == done
    assert values(ottla, target) == list(range(12))
    assert {row["lag"] for row in ottla.json("groups", "offsets", group)["rows"]} == {0}
    assert "progress of an earlier run" in ottla.refused(2, *copy, "--from", "beginning")


def test_a_group_is_for_one_copy(ottla: Live):
    source, group = filled(ottla), new_name("copier")
    ottla("topics", "copy", source, new_name("copy"), "--create", "--group", group)
    said = ottla.refused(2, "topics", "copy", source, new_name("copy"), "--create", "--group", group)
    assert f"group {group} has an offset for {source}-0 that this copy did not save" in said


@pytest.mark.parametrize("step", ["commit_offsets", "end"])
def test_what_fails_in_a_transaction_is_copied_once(ottla: Live, monkeypatch: pytest.MonkeyPatch, step: str):
    source, target, group = filled(ottla), new_name("copy"), new_name("copier")
    copy = ("topics", "copy", source, target, "--create", "--group", group, "--exactly-once", "--max", "5")

    async def fail(*_: Any, **given: Any) -> None:
        if given.get("commit", True):
            raise KeyboardInterrupt

    ottla(*copy)
    with monkeypatch.context() as patch:
        patch.setattr(writers, step, fail)
        assert ottla.code(*copy) == 130
        assert len(values(ottla, target)) == 5
    for _ in range(2):
        ottla(*copy)
    assert values(ottla, target) == list(range(12))


def test_without_a_group_it_says_that_nothing_was_saved(ottla: Live, monkeypatch: pytest.MonkeyPatch):
    source, target = filled(ottla), new_name("copy")

    async def fail(*_: Any) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(writers.PlainWriter, "write", fail)
    ottla.capture.readouterr()
    with pytest.raises(asyncio.CancelledError):
        ottla.code("topics", "copy", source, target, "--create")
    assert "interrupted after 0 records; the progress was not saved" in ottla.capture.readouterr().err


# --- to another cluster -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), ("--exactly-once",)], ids=["at-least-once", "exactly-once"])
def test_another_cluster(ottla: Live, elsewhere: Live, how: tuple[str, ...]):
    source, group = filled(ottla), new_name("copier")
    copy = ("topics", "copy", source, source, "--create", "--to-bootstrap", elsewhere.bootstrap, "--group", group)
    for _ in range(3):
        ottla(*copy, *how, "--max", "5")
    assert records(elsewhere, source) == records(ottla, source)
    with_progress, without = (elsewhere, ottla) if how else (ottla, elsewhere)
    assert group in with_progress("groups", "list")
    assert group not in without("groups", "list")


def test_between_clusters_partitions_keep_the_progress(ottla: Live, elsewhere: Live):
    source = filled(ottla)
    elsewhere("topics", "create", source, "--partitions", "1")
    said = ottla.refused(
        2, "topics", "copy", source, source, "--to-bootstrap", elsewhere.bootstrap, "--by-key",
        "--group", new_name("copier"), "--exactly-once",
    )  # fmt: skip
    assert "needs 3 partitions" in said
    assert f"ottla topics grow {source} 3" in said


# --- dead letters -----------------------------------------------------------------------------------------------------


def letter(topic: str, partition: int, offset: int) -> list[str]:
    told = {"topic": topic, "partition": partition, "offset": offset, "message": "given up"}
    return [word for key, value in told.items() for word in ("--header", f"__dlq.errors.{key}={value}")]


def test_dead_letters_go_back_to_where_they_come_from(ottla: Live):
    source, queue = filled(ottla), new_name("dlq")
    ottla("topics", "create", queue, "--partitions", "1")
    for partition, offset in ((0, 1), (2, 3), (0, 3)):
        ottla("topics", "produce", queue, "", *letter(source, partition, offset))
    before = records(ottla, source)
    done = ottla.json("topics", "copy", queue, "--redrive")
    assert (done["copied"], done["skipped"]) == (3, 0)
    again = sorted([*before, *(row for row in before if json.loads(row[3])["n"] in (3, 11, 9))])
    assert records(ottla, source) == again


def test_a_letter_whose_record_is_gone(ottla: Live):
    source, queue, target = filled(ottla), new_name("dlq"), new_name("again")
    ottla("topics", "create", queue, "--partitions", "1")
    ottla("topics", "produce", queue, '{"n": 77}', "--key", "k", "--header", "mine=1", *letter(source, 0, 400))
    ottla("topics", "produce", queue, "--key", "k", "--tombstone", *letter("nowhere", 0, 0))
    ottla("topics", "produce", queue, "no letter")
    done = ottla.json("topics", "copy", queue, target, "--redrive", "--create")
    assert (done["copied"], done["skipped"]) == (2, 1)
    first, second = records(ottla, target)
    assert {first[3], second[3]} == {'{"n": 77}', None}
    assert all("__dlq" not in row[4] for row in (first, second))


def test_a_letter_whose_partition_is_gone_is_skipped(ottla: Live):
    source, queue = filled(ottla), new_name("dlq")
    ottla("topics", "create", queue, "--partitions", "1")
    for partition in (PARTITIONS, 0):
        ottla("topics", "produce", queue, "", *letter(source, partition, 1))
    done = ottla.json("topics", "copy", queue, "--redrive")
    assert (done["copied"], done["skipped"]) == (1, 1)


def test_a_letter_that_names_no_valid_topic_is_skipped(ottla: Live):
    source, queue = filled(ottla), new_name("dlq")
    ottla("topics", "create", queue, "--partitions", "1")
    for name in ("no topic", source):
        ottla("topics", "produce", queue, "", *letter(name, 0, 1))
    done = ottla.json("topics", "copy", queue, "--redrive")
    assert (done["copied"], done["skipped"]) == (1, 1)


def test_records_that_nothing_is_made_of_do_not_count(ottla: Live):
    source, queue = filled(ottla), new_name("dlq")
    ottla("topics", "create", queue, "--partitions", "1")
    ottla("topics", "produce", queue, "no letter", "nor this")
    for offset in (1, 2):
        ottla("topics", "produce", queue, "", *letter(source, 0, offset))
    done = ottla.json("topics", "copy", queue, "--redrive", "--max", "1")
    assert (done["copied"], done["skipped"]) == (1, 2)
    assert done["rows"] == [{"partition": 0, "start_offset": 0, "end_offset": 3}]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no TARGET given"),
        (("orders",), "cannot be copied to itself"),
        (("copy", "--exactly-once"), "--exactly-once needs a group"),
        (("--redrive", "--create"), "name a TARGET"),
        (("copy", "--filter", "value >"), "--filter: "),
        (("copy", "--to-command-config", __file__), "--to-command-config needs --to-bootstrap"),
        (("copy", "--to-bootstrap", "x:1", "--to-profile", "x"), "exclude each other"),
        (("copy", "--to-profile", "nowhere"), "there is no profile 'nowhere'"),
    ],
)
def test_bad_input(ottla: Live, words: tuple[str, ...], said: str):
    assert said in ottla.refused(2, "topics", "copy", "orders", *words)


def test_topics_that_do_not_exist(ottla: Live):
    source = filled(ottla)
    assert "topic 'nowhere' does not exist" in ottla.refused(1, "topics", "copy", "nowhere", "x")
    said = ottla.refused(1, "topics", "copy", source, "nowhere")
    assert "topic 'nowhere' does not exist" in said
    assert "--create creates it" in said
