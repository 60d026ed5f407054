"""The list of topics, and the page of one."""

from __future__ import annotations

import pytest

import ottla.testing
from ottla.client import Client, ProducerRecord, TopicPartition, topics
from ottla.client.group_offsets import commit
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from tests.component.console.filled import create, every_link_answers, on, produce
from tests.component.console.served import Browser, console

READER = "<script>alert(1)</script>"


@pytest.fixture(scope="module", autouse=True)
def filled(broker: Broker, browser: Browser) -> None:
    settings = {"retention.ms": "3600000"}
    create(broker, NewTopic("orders", 3, 1, settings), NewTopic("a.json", 1, 1), NewTopic("gone", 2, 1))
    produce(broker, *(ProducerRecord("orders", b"%d" % each, partition=each % 2) for each in range(10)))
    on(broker, _commit)
    browser.until("/topics.json", lambda data: {"orders", "a.json", "gone"} <= {each["name"] for each in data["rows"]})


async def _commit(client: Client) -> None:
    await commit(client, READER, {TopicPartition("orders", 0): 2, TopicPartition("orders", 1): 5})


def _row(data: dict, name: str) -> dict:
    return next(each for each in data["rows"] if each["name"] == name)


def test_the_list_has_what_was_seen_and_what_was_asked_for(browser: Browser):
    data = browser.until("/topics.json", lambda data: bool(_row(data, "orders")["readers"]))
    row = _row(data, "orders")
    assert (row["partitions"], row["replication"], row["offline"], row["under_replicated"]) == (3, 1, 0, 0)
    assert (row["records"], row["internal"], row["findings"]) == (10, False, [])
    assert row["size_bytes"] > 0
    assert row["readers"] == [{"group": READER, "kind": "classic", "lag": 3}]
    page = browser.page("/topics")
    assert "<script>alert" not in page.text
    assert READER.replace("<", "&lt;").replace(">", "&gt;") in page.text
    assert "✓ healthy" in page.words
    assert "offsets and sizes" in page.words


@pytest.mark.parametrize("sort", ["name", "rate"])
def test_rates_are_known_after_two_looks(sort: str, broker: Broker, browser: Browser):
    path = f"/topics.json?sort={sort}"
    before = _row(browser.twin(path)["data"], "gone")["rate"]
    produce(broker, *(ProducerRecord("gone", b"x", partition=0) for _ in range(50)))
    is_new = lambda data: (rate := _row(data, "gone")["rate"]) and rate != before and rate["per_s"] > 0  # noqa: E731
    data = browser.until(path, is_new)
    if sort == "rate":
        assert data["rows"][0]["name"] == "gone"
    assert "/s over " in browser.page("/topics").words


def test_topics_are_found_sorted_and_paged(browser: Browser):
    def names(query: str) -> list[str]:
        return [each["name"] for each in browser.twin(f"/topics.json?{query}")["data"]["rows"]]

    assert names("q=ORD") == ["orders"]
    assert names("unhealthy=1") == []
    assert names("sort=partitions")[0] == "orders"
    assert "__consumer_offsets" in names("internal=1")
    assert "__consumer_offsets" not in names("")
    first = browser.twin("/topics.json?sort=partitions&limit=1")
    second = browser.twin(f"/topics.json?sort=partitions&limit=1&after={first['next'].replace(' ', '%20')}")
    assert [each["data"]["rows"][0]["name"] for each in (first, second)] == ["orders", "gone"]
    assert "None of" in browser.page("/topics?q=nothing-like-this").words
    assert "More" in browser.page("/topics?limit=1").words
    for query, words in (("sort=up", "is not one of"), ("limit=0", "is not between"), ("colour=1", "known: ")):
        answer = browser.ask(f"/topics.json?{query}")
        assert (answer.status, words in answer.json["error"]) == (400, True), query


def test_the_page_of_a_topic(browser: Browser):
    data = browser.until("/topics/orders.json", lambda data: bool(data["readers"]))
    places = [(each["p"], each["leader"], each["replicas"], each["isr"]) for each in data["partitions"]]
    assert places == [(each, 1, [1], [1]) for each in range(3)]
    ends = [(each["start"], each["end"], each["stable_end"]) for each in data["partitions"]]
    assert ends == [(0, 5, 5), (0, 5, 5), (0, 0, 0)]
    first, *others = data["configs"]
    assert (first["name"], first["value"], first["source"]) == ("retention.ms", "3600000", "TOPIC")
    assert any(each["source"] == "DEFAULT" for each in others)
    words = browser.page("/topics/orders").words
    assert words.index("Partitions") < words.index("Groups that read it") < words.index("retention.ms")
    assert " configs with their default values " in words
    assert len(browser.twin("/topics/orders.json?limit=2")["data"]["partitions"]) == 2


def test_a_topic_that_is_named_like_a_twin(browser: Browser):
    assert browser.page("/topics/a~2Ejson.json").json["data"]["name"] == "a.json"
    assert "a.json" in browser.page("/topics/a~2Ejson").words
    assert browser.ask("/topics/a.json").status == 404


def test_every_link_leads_somewhere(browser: Browser):
    for path in ("/topics", "/topics?internal=1&sort=readers&limit=1", "/topics/orders", "/topics/a~2Ejson"):
        every_link_answers(browser, path)


def test_a_topic_that_is_not_there_or_not_any_more(broker: Broker, browser: Browser):
    answer = browser.ask("/topics/Ordres")
    assert (answer.status, 'Topic "Ordres" does not exist' in answer.words.replace("&quot;", '"')) == (404, True)
    assert "/topics/orders" in answer.links
    on(broker, lambda client: topics.delete(client, "gone"))
    browser.until("/topics.json?q=gone", lambda data: data["rows"] == [])
    answer = browser.ask("/topics/gone.json")
    assert (answer.status, "with 2 partitions" in answer.json["error"]) == (404, True)


def test_while_nobody_answers_the_last_that_was_seen_is_shown():
    with ottla.testing.broker() as short_lived, console(short_lived.bootstrap_servers) as browser:
        create(short_lived, NewTopic("orders", 2, 1))
        browser.until("/topics.json", lambda data: bool(data["rows"]))
        short_lived.kill()
        while browser.watcher.outage is None:
            browser.page("/")
        twin = browser.twin("/topics/orders.json")
        assert [each["p"] for each in twin["data"]["partitions"]] == [0, 1]
        assert {"topic", "offsets and sizes", "configs"} <= {each["what"] for each in twin["degraded"]}
        assert [each["name"] for each in browser.twin("/topics.json")["data"]["rows"]] == ["orders"]
        assert "The data below is from before." in browser.page("/topics/orders").words
        answer = browser.ask("/topics/orders/records.json")
        assert (answer.status, "No connection" in answer.json["error"]) == (503, True)
