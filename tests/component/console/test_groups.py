"""Groups of all kinds: the list, one group, its offsets, its timeline, and what is said when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import ottla.testing
from ottla.client import Client, Producer, ProducerRecord, TopicPartition, groups, topics
from ottla.client.group_offsets import Committed, commit
from ottla.console.addresses import href
from ottla.testing import Broker
from ottla.wire.types import ConsumerGroupHeartbeatRequest
from tests.component.broker.raw_client import RawClient
from tests.component.console.served import Browser

STRANGE = "x/y ü ~"
ORDERS = "orders.v1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Without a pause between assignments."""
    with ottla.testing.broker(group_consumer_assignment_interval_ms=0) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def groups_of(broker: Broker) -> Iterator[None]:
    """`x/y ü ~` and `reader` have committed offsets; `movers` has a member with all partitions, and one that waits."""
    asyncio.run(_prepare(broker.bootstrap_servers))
    raw = RawClient.at(broker.bootstrap_servers)
    answer = raw.ask(_heartbeat("first", 0, topic_partitions=()), 1)
    partitions = tuple(
        ConsumerGroupHeartbeatRequest.TopicPartitions(each.topic_id, tuple(each.partitions))
        for each in answer.assignment.topic_partitions
    )
    raw.ask(_heartbeat("first", answer.member_epoch, topic_partitions=partitions), 1)
    raw.ask(_heartbeat("second", 0, topic_partitions=()), 1)
    yield
    raw.close_all()


async def _prepare(bootstrap_servers: str) -> None:
    async with Client(bootstrap_servers) as client:
        await topics.create(client, topics.NewTopic(ORDERS, partitions=2))
        await Producer(client).send_all([ProducerRecord(ORDERS, b"v", partition=0) for _ in range(5)])
        first, second = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)
        await commit(client, STRANGE, {first: Committed(2, metadata="<half>"), second: 0})
        await commit(client, "reader", {first: 5})


def _heartbeat(member: str, epoch: int, **fields: object) -> ConsumerGroupHeartbeatRequest:
    given = {"subscribed_topic_names": (ORDERS,), "rebalance_timeout_ms": 60_000} if epoch == 0 else {}
    return ConsumerGroupHeartbeatRequest(group_id="movers", member_id=member, member_epoch=epoch, **given, **fields)  # type: ignore[arg-type]


def _is_listed(data: Any) -> bool:
    return {STRANGE, "reader"} <= {each["id"] for each in data["rows"] if each["lag"] is not None}


def _listed(browser: Browser) -> dict[str, Any]:
    data = browser.until("/groups.json", _is_listed)
    return {each["id"]: each for each in data["rows"]}


def test_the_list_has_all_kinds_with_their_lag(browser: Browser):
    rows = _listed(browser)
    assert (rows[STRANGE]["kind"], rows[STRANGE]["state"], rows[STRANGE]["lag"]) == ("classic", "Empty", 3)
    assert (rows["reader"]["lag"], rows["reader"]["epoch"]) == (0, None)
    assert rows["movers"]["kind"] == "consumer"
    page = browser.page("/groups")
    assert "classic 2" in page.words
    assert "share 0" in page.words
    assert href("groups", STRANGE) in page.links


def test_the_list_can_be_narrowed_and_paged(browser: Browser):
    _listed(browser)
    narrowed = browser.twin("/groups.json?kind=classic&state=Empty&q=READ")["data"]
    assert [each["id"] for each in narrowed["rows"]] == ["reader"]
    assert browser.twin("/groups.json?limit=1")["next"] == "movers"
    assert browser.twin("/groups.json?limit=1&after=movers")["data"]["rows"][0]["id"] == "reader"
    assert "groups match." in browser.page("/groups?q=zzz").words
    assert (
        "No share groups. A share group appears when its first consumer joins"
        in browser.page("/groups?kind=share").words
    )
    assert browser.ask("/groups.json?kind=none").status == 400


def test_a_group_names_who_waits_for_whom(browser: Browser):
    path = href("groups", "movers")
    data = browser.until(f"{path}.json", lambda data: any(each["waiting_for"] for each in data["members"]))
    members = {each["id"]: each for each in data["members"]}
    assert members["first"]["state"] == "moving"
    (awaited,) = members["second"]["waiting_for"]
    assert (members["second"]["state"], awaited["holders"]) == ("waiting", ["first"])
    page = browser.page(path)
    assert "waiting for orders.v1-" in page.words
    assert "History starts at" in page.words
    assert browser.page(f"{path}/offsets").words.count(ORDERS) >= 2


def test_a_group_without_members_and_with_a_strange_name(browser: Browser):
    _listed(browser)
    path = href("groups", STRANGE)
    page = browser.page(path)
    assert "The group has no members." in page.words
    assert f"{path}/timeline" in page.links
    data = browser.twin(f"{path}.json")["data"]
    assert (data["id"], data["kind"], data["epoch"], data["lag"]["records"]) == (STRANGE, "classic", None, 3)


def test_offsets_by_partition(browser: Browser):
    _listed(browser)
    path = href("groups", STRANGE, "offsets")
    envelope = browser.twin(f"{path}.json")
    first, second = envelope["data"]["rows"]
    assert [first[name] for name in ("committed", "start", "end", "lag", "metadata")] == [2, 0, 5, 3, "<half>"]
    assert first["lag_ms"] is not None
    assert (second["committed"], second["lag"], second["lag_ms"]) == (0, 0, 0)
    assert "&lt;half&gt;" in browser.page(path).text
    one = browser.twin(f"{path}.json?limit=1")
    assert [each["partition"] for each in one["data"]["rows"]] == [0]
    after = one["next"]
    assert [each["partition"] for each in browser.twin(f"{path}.json?limit=1&after={after}")["data"]["rows"]] == [1]


def test_the_timeline_comes_from_the_records_of_the_coordinator(browser: Browser):
    path = href("groups", "movers", "timeline")
    data = browser.until(f"{path}.json", lambda data: any(each["members"] == 2 for each in data["history"]))
    assert (data["source"], data["has_epochs"]) == ("records", True)
    assert data["known_since_ms"] < browser.watcher.history_since_ms
    # Two that join within one millisecond are one step.
    assert sum(len(each["joined"]) for each in data["history"]) == 2
    assert (data["history"][-1]["members"], [each["left"] for each in data["history"] if each["left"]]) == (2, [])
    assert "__consumer_offsets" in data["records"]
    words = browser.page(path).words
    assert "From the records of its coordinator" in words
    assert "History starts at" in words


def test_the_timeline_goes_on_where_it_has_stopped(broker: Broker, browser: Browser):
    path = href("groups", "leavers", "timeline")
    raw = RawClient.at(broker.bootstrap_servers)
    fields = {"subscribed_topic_names": (ORDERS,), "rebalance_timeout_ms": 60_000, "topic_partitions": ()}
    raw.ask(ConsumerGroupHeartbeatRequest("leavers", "one", member_epoch=0, **fields), 1)
    browser.until(f"{path}.json", lambda data: bool(data) and bool(data["history"]))
    raw.ask(ConsumerGroupHeartbeatRequest("leavers", "one", member_epoch=-1), 1)
    data = browser.until(f"{path}.json", lambda data: data["history"][-1]["members"] == 0)
    assert [len(each["joined"]) - len(each["left"]) for each in data["history"] if each["joined"] or each["left"]] == [
        1,
        -1,
    ]
    raw.close_all()


def test_without_records_the_timeline_comes_from_samples(browser: Browser):
    _listed(browser)
    path = href("groups", STRANGE, "timeline")
    data = browser.twin(f"{path}.json")["data"]
    assert (data["source"], data["known_since_ms"]) == ("samples", browser.watcher.history_since_ms)
    assert "were not read: its coordinator has written none" in browser.page(path).words


def test_a_group_that_is_gone_is_remembered(broker: Broker, browser: Browser):
    async def make() -> None:
        async with Client(broker.bootstrap_servers) as client:
            await commit(client, "short-lived", {TopicPartition(ORDERS, 0): 1})

    async def delete() -> None:
        async with Client(broker.bootstrap_servers) as client:
            await groups.delete(client, "short-lived")

    asyncio.run(make())
    browser.until("/groups.json?q=short", lambda data: data["matching"] == 1)
    asyncio.run(delete())
    browser.until("/groups.json?q=short", lambda data: data["matching"] == 0)
    answer = browser.ask("/groups/short-lived")
    assert answer.status == 404
    assert "It existed at" in answer.words
    assert "last seen as a classic group, Empty, with 0 members." in answer.words


def test_an_unknown_group_gets_the_nearest_name(browser: Browser):
    _listed(browser)
    answer = browser.ask("/groups/readers")
    assert (answer.status, "/groups/reader" in answer.links) == (404, True)
    assert browser.ask("/groups/readers.json").json["status"] == 404


def test_a_group_that_no_sample_has_shown_yet_is_asked_for(broker: Broker, browser: Browser):
    async def make() -> None:
        async with Client(broker.bootstrap_servers) as client:
            await commit(client, "brand-new", {TopicPartition(ORDERS, 0): 1})

    asyncio.run(make())
    assert browser.twin("/groups/brand-new.json")["data"]["kind"] == "classic"
