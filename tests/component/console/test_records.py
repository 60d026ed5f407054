"""The record browser, and the page of one record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from ottla.client import Client, Producer, ProducerRecord, TopicPartition, delete_records, transactions
from ottla.client.group_offsets import commit
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from tests.component.console.filled import create, every_link_answers, on, produce
from tests.component.console.served import Browser

SCRIPT = '<script>alert("1")</script>'
ANSI = "\x1b[31mred"
BIDI = "a\u202eb"
SINCE_MS = 1_700_000_000_000
SETTINGS = {"retention.ms": "-1", "message.timestamp.after.max.ms": str((1 << 63) - 1)}
"""Records may have any time, and stay."""


@pytest.fixture(scope="module", autouse=True)
def filled(broker: Broker) -> None:
    create(broker, *(NewTopic(name, 1, 1, SETTINGS) for name in ("rows", "odd", "ledger", "a.json", "empty")))
    create(broker, NewTopic("wide", 3, 1, SETTINGS))
    produce(broker, *map(_row, range(6)), codec="gzip")
    produce(broker, *(ProducerRecord("wide", b"%d" % each, b"k", (), each % 3, SINCE_MS + each) for each in range(9)))
    produce(broker, *_odd())
    produce(broker, ProducerRecord("a.json", b"x", partition=0))
    on(broker, _ledger)
    on(broker, lambda client: commit(client, "billing", {TopicPartition("rows", 0): 2}))


def _row(number: int) -> ProducerRecord:
    value = b'{"amount": %d, "name": "\\u00fc"}' % (50 * number)
    return ProducerRecord("rows", value, b"eu-%d" % number, [("trace", b"7f")], 0, SINCE_MS + 1000 * number)


def _odd() -> Iterator[ProducerRecord]:
    for text in (SCRIPT, ANSI, BIDI, '["\\ud800"]', "[" * 100_000, '{"a": 1', "x" * 10_000):
        yield ProducerRecord("odd", text.encode(), text[:20].encode(), [(text[:20], text.encode())], 0)
    yield ProducerRecord("odd", b"\xff\xfe", None, [("", None)], 0)
    yield ProducerRecord("odd", None, b"\x00\x00\x00\x07", (), 0, 1 << 61)
    yield ProducerRecord("odd", b"", b"", (), 0, -1)


async def _ledger(client: Client) -> None:
    """A committed, an aborted and an open transaction."""
    for name, ends_well in (("well", True), ("badly", False)):
        identity = await transactions.begin(client, name, timeout_ms=60_000)
        await Producer(client, identity=identity).send("ledger", name.encode(), partition=0)
        await transactions.end(client, identity, commit=ends_well)
    identity = await transactions.begin(client, "open", timeout_ms=60_000)
    await Producer(client, identity=identity).send("ledger", b"open", partition=0)


def _records(browser: Browser, topic: str, **query: object) -> dict[str, Any]:
    twin = browser.twin(f"/topics/{topic}/records.json?{urlencode(query)}")
    data: dict[str, Any] = twin["data"]
    return data


def _offsets(data: dict[str, Any]) -> list[int]:
    return [each["offset"] for each in data["rows"]]


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"from": "beginning"}, [0, 1, 2, 3, 4, 5]),
        ({"from": "end"}, []),
        ({"from": "4"}, [4, 5]),
        ({"from": "-2"}, [4, 5]),
        ({"from": "0:3"}, [3, 4, 5]),
        ({"from": "2023-11-14T22:13:23Z"}, [3, 4, 5]),
        ({"from": "2100-01-01T00:00:00"}, []),
        ({"from": "0001-01-01"}, [0, 1, 2, 3, 4, 5]),
        ({"limit": "2"}, [0, 1]),
        ({"filter": "value.amount >= 100 and key != 'eu-3'"}, [2, 4, 5]),
        ({"filter": 'headers.trace == "7f" and offset in [1, 5]', "committed": "1"}, [1, 5]),
        ({"filter": 'key ~ "^us-"'}, []),
        ({"partition": "0", "decode": "json"}, [0, 1, 2, 3, 4, 5]),
        ({"follow": "1", "limit": "2"}, [5, 4]),
    ],
)
def test_records_are_read_from_a_place_on_through_a_filter(browser: Browser, query: dict[str, str], offsets: list[int]):
    assert _offsets(_records(browser, "rows", **query)) == offsets


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ({"from": "77"}, "no partition has the offset 77; rows-0 has 0 to 6"),
        ({"from": "9" * 5000}, "is not a time"),
        ({"from": "yesterday"}, "'yesterday' is not a time"),
        ({"from": "9" * 400 + "d"}, "is not a duration"),
        ({"filter": "amount > 1"}, "filter: character 1, 'amount'"),
        ({"filter": "__import__('os')"}, "filter: character 1"),
        ({"partition": "9"}, "topic rows has no partition 9; it has 1 partition, counted from 0"),
        ({"value": "avro"}, "is not one of auto, utf8, json, int, hex"),
        ({"limit": "201"}, "is not between 1 and 200"),
    ],
)
def test_what_cannot_be_read_is_explained(browser: Browser, query: dict[str, str], complaint: str):
    answer = browser.ask(f"/topics/rows/records.json?{urlencode(query)}")
    assert (answer.status, complaint in answer.json["error"]) == (400, True), answer.text[:500]
    assert browser.ask(f"/topics/rows/records?{urlencode(query)}").status == 400


def test_a_scan_goes_on_where_it_stopped(browser: Browser):
    seen: list[tuple[int, int]] = []
    query = {"limit": "4"}
    while True:
        data = _records(browser, "wide", **query)
        seen += [(each["p"], each["offset"]) for each in data["rows"]]
        if data["cursor"] is None:
            break
        assert data["stopped"] == "limit"
        query["from"] = data["cursor"]
    assert data["stopped"] == "end"
    assert seen == [(each % 3, each // 3) for each in range(9)], "records of all partitions come by their time"
    page = browser.page("/topics/wide/records?limit=4")
    assert "Continue" in page.words
    assert "4 records of 3 partitions read" in page.words


def test_a_filter_that_finds_nothing_says_how_far_it_got(browser: Browser):
    words = browser.page(f"/topics/rows/records?{urlencode({'filter': 'value.amount > 9999'})}").words
    assert "0 of 6 records scanned match. Scanned 1 of 1 partition to their end." in words
    assert "No records from there on" in browser.page("/topics/empty/records").words


def test_values_are_text_whatever_they_say(browser: Browser):
    for path in ("/topics/odd/records", "/topics/odd/records?value=json", "/topics/odd/records?decode=utf8"):
        page = browser.page(path)
        assert "<script>alert" not in page.text
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text
    page = browser.page("/topics/odd/records?decode=utf8")
    assert "&lt;script&gt;" in page.text
    assert "␛[31mred" in page.text
    rows = _records(browser, "odd", decode="utf8")["rows"]
    assert [each["value"]["text"] for each in rows[:3]] == [SCRIPT, ANSI, BIDI]
    assert (rows[6]["value"]["bytes_len"], rows[6]["value"]["truncated"]) == (10_000, True)
    assert len(rows[6]["value"]["text"]) == 4096
    assert "truncated: 10,000 bytes in all" in page.words


def test_decoders_say_when_they_do_not_fit(browser: Browser):
    rows = _records(browser, "odd", key="int", value="json")["rows"]
    assert rows[3]["value"] == {"as": "json", "text": '["\\ud800"]', "bytes_len": 10, "truncated": False}
    assert rows[4]["value"]["error"].startswith("is not read as JSON")
    assert rows[5]["value"]["error"].startswith("is not JSON: at byte 7")
    assert (rows[7]["value"]["as"], rows[7]["value"]["text"]) == ("hex", "fffe")
    assert (rows[8]["key"]["as"], rows[8]["key"]["text"], rows[8]["value"]["as"]) == ("int", "7", "null")
    assert rows[9]["key"]["error"] == "is not an integer: it has 0 bytes"


def test_following_reloads_the_page_and_shows_new_records_first(broker: Broker, browser: Browser):
    page = browser.page("/topics/empty/records?follow=1")
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page.text
    assert 'data-reload="2"' in page.text
    assert "Following" in page.words
    produce(broker, ProducerRecord("empty", b"fresh", partition=0))
    data = browser.until("/topics/empty/records.json?follow=1", lambda data: bool(data["rows"]))
    assert data["rows"][0]["value"]["text"] == "fresh"
    assert "http-equiv" not in browser.page("/topics/empty/records").text


def test_transactions_are_told_apart(browser: Browser):
    rows = _records(browser, "ledger")["rows"]
    assert [(each["value"]["text"], each.get("control")) for each in rows] == [
        ("well", None),
        (rows[1]["value"]["text"], "COMMIT"),
        ("badly", None),
        (rows[3]["value"]["text"], "ABORT"),
        ("open", None),
    ]
    assert [each["value"]["text"] for each in _records(browser, "ledger", committed=1)["rows"]] == ["well"]
    assert "control: ABORT" in browser.page("/topics/ledger/records").words
    told = [browser.twin(f"/topics/ledger/records/0/{at}.json")["data"]["transaction"] for at in range(5)]
    assert told == ["committed", None, "aborted", None, "open"]
    marker = browser.page("/topics/ledger/records/0/3")
    assert "EndTxnMarker" in marker.words


def test_internal_topics_are_decoded(browser: Browser):
    data = _records(browser, "__consumer_offsets", filter="key.group == 'billing'")
    (row,) = [each for each in data["rows"] if each["value"]["record"]["type"] == "OffsetCommit"]
    record = row["value"]["record"]
    assert (record["key"]["topic"], record["json"]["offset"]) == ("rows", 2)
    path = f"/topics/__consumer_offsets/records/{row['p']}/{row['offset']}"
    assert any("OffsetCommitValue" in line for line in browser.twin(f"{path}.json")["data"]["tree"])
    page = browser.page(path)
    assert "Field by field" in page.words
    assert "billing" in page.words


def test_one_record_with_its_bytes_and_its_batch(browser: Browser):
    data = browser.twin("/topics/rows/records/0/2.json")["data"]
    assert (data["before"], data["after"], data["transaction"]) == (1, 3, None)
    assert bytes.fromhex(data["key_hex"]) == b"eu-2"
    assert data["record"]["headers"][0]["k"] == "trace"
    batch = data["batch"]
    assert (batch["codec"], batch["base_offset"], batch["last_offset"], batch["records"]) == ("gzip", 0, 5, 6)
    assert (batch["crc_fits"], batch["magic"], batch["transactional"], batch["control"]) == (True, 2, False, False)
    assert (data["sequence"], batch["base_sequence"], batch["producer_epoch"]) == (2, 0, 0)
    page = browser.page("/topics/rows/records/0/2")
    assert "000000  65 75 2d 32" in page.text
    assert "✓ fits" in page.words
    assert browser.twin("/topics/rows/records/0/5.json")["data"]["after"] is None
    assert browser.twin("/topics/rows/records/0/0.json")["data"]["before"] is None


def test_a_record_that_was_deleted_is_not_the_one_before(broker: Broker, browser: Browser):
    create(broker, NewTopic("begun", 1, 1))
    produce(broker, *(ProducerRecord("begun", b"%d" % each, partition=0) for each in range(4)))
    on(broker, lambda client: delete_records(client, {TopicPartition("begun", 0): 2}))
    data = browser.twin("/topics/begun/records/0/2.json")["data"]
    assert data["batch"]["base_offset"] == 0
    assert (data["before"], data["after"]) == (None, 3)


def test_a_long_value_is_cut_until_all_of_it_is_wanted(browser: Browser):
    data = browser.twin("/topics/odd/records/0/6.json")["data"]
    assert (data["truncated"], len(data["value_hex"])) == (True, 2 * 4096)
    assert "Only the first 4,096 bytes are shown" in browser.page("/topics/odd/records/0/6").words
    data = browser.twin("/topics/odd/records/0/6.json?whole=1")["data"]
    assert (data["truncated"], len(data["value_hex"])) == (False, 2 * 10_000)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("rows/records/0/77", "The partition has the offsets 0 to 5."),
        ("rows/records/7/0", 'Partition "rows-7" does not exist'),
        ("rows/records/0/first", 'Offset "first" does not exist'),
        ("rows/records/0/" + "9" * 5000, "does not exist"),
        ("nothing/records", 'Topic "nothing" does not exist'),
        ("nothing/records/0/0", 'Topic "nothing" does not exist'),
    ],
)
def test_records_that_are_not_there(browser: Browser, path: str, words: str):
    answer = browser.ask(f"/topics/{path}.json")
    assert (answer.status, words in answer.json["error"]) == (404, True), answer.text[:500]


def test_every_link_leads_somewhere(browser: Browser):
    for path in ("rows/records", "wide/records?limit=4", "odd/records?value=json", "a~2Ejson/records", "empty/records"):
        every_link_answers(browser, f"/topics/{path}")
    for path in ("rows/records/0/0", "odd/records/0/6", "odd/records/0/8", "a~2Ejson/records/0/0"):
        every_link_answers(browser, f"/topics/{path}")
    searched = quote(f"value ~ '{SCRIPT}'")
    page = browser.page(f"/topics/odd/records?filter={searched}")
    assert "<script>alert" not in page.text
    every_link_answers(browser, f"/topics/odd/records?filter={searched}")
