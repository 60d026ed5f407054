"""The window of a share group: live from the broker, from records, and what is said when neither is there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest

import ottla.testing
from ottla.client import Client
from ottla.console.addresses import href
from ottla.observe import Options
from ottla.observe.kinds import intervals
from ottla.testing.ports import PortReservation
from tests.component.console.served import EVERY_S, Browser, console
from tests.component.share_scene import JOBS, begin_with, worker

GROUP = "x/y ü ~"
TIME_LIMIT_S = 60
WINDOW = href("groups", GROUP, "window", JOBS, 0)
GROUP_PAGE = href("groups", GROUP)


class Scene(NamedTuple):
    browser: Browser
    member_id: str


@pytest.fixture(scope="module")
def live() -> Iterator[Scene]:
    with closing(PortReservation()) as inspect, closing(PortReservation()) as metrics:
        inspect.release()
        metrics.release()
        settings = {
            "ottla.inspect.listeners": f"http://127.0.0.1:{inspect.port}",
            "ottla.metrics.port": str(metrics.port),
        }
        yield from _scene(settings, f"http://127.0.0.1:{metrics.port}/metrics")


@pytest.fixture(scope="module")
def stored() -> Iterator[Scene]:
    yield from _scene({})


def _scene(settings: dict[str, str], *metrics: str) -> Iterator[Scene]:
    with ottla.testing.broker(**settings) as broker:
        loop = asyncio.new_event_loop()
        client = loop.run_until_complete(Client(broker.bootstrap_servers).__aenter__())
        consumer = loop.run_until_complete(asyncio.wait_for(_prepare(client), TIME_LIMIT_S))
        with console(broker.bootstrap_servers, Options(intervals(EVERY_S), metrics=metrics)) as browser:
            browser.until(f"{GROUP_PAGE}.json", lambda data: bool(data["partitions"]))
            yield Scene(browser, consumer.member_id)
        loop.run_until_complete(client.close())
        loop.close()


async def _prepare(client: Client):
    await begin_with(client, GROUP)
    return await worker(client, GROUP)


def test_an_ottla_broker_tells_everything(live: Scene):
    data = live.browser.twin(f"{WINDOW}.json")["data"]
    found = {(each["first"], each["last"]): each for each in data["ranges"]}
    assert (data["tier"], data["high_watermark"], data["lag"], data["max_locks"]) == ("O", 10, 6, 2000)
    assert (found[2, 2]["state"], found[2, 2]["count"], found[2, 2]["member"]) == ("acquired", 2, live.member_id)
    assert (found[5, 8]["state"], found[5, 8]["count"]) == ("acquired", 1)
    assert (found[3, 3]["state"], found[4, 4]["state"]) == ("archived", "acknowledged")
    assert 0 < found[5, 8]["lock_ms"] <= 30_000
    assert data["deliveries"] == {"0": 1, "1": 4, "2": 1}
    assert (data["delivery_limit"], data["lock_ms"]) == (5, 30_000)


def test_the_drawing_has_a_table_beside_it(live: Scene):
    page = live.browser.page(WINDOW)
    assert "Live, from the leader of the partition." in page.words
    assert page.text.count("url(#window-") == 5 + 4, "five ranges, and a legend of four states"
    assert "5–8 A acquired 1" in page.words
    assert "Not finished: 1 not delivered yet, 4 delivered 1×, 1 delivered 2×." in page.words
    assert "style=" not in page.text


def test_each_range_leads_to_its_records(live: Scene):
    page = live.browser.page(WINDOW)
    target = f"/topics/{JOBS}/records?partition=0&amp;from=5&amp;limit=4"
    assert page.links.count(target) == 2, "from the drawing and from the table"
    rows = live.browser.twin(f"/topics/{JOBS}/records.json?partition=0&from=5&limit=4")["data"]["rows"]
    assert [each["offset"] for each in rows] == [5, 6, 7, 8]
    assert f"/topics/{JOBS}/records/0/2" in page.links


def test_locks_are_clocks(live: Scene):
    page = live.browser.page(WINDOW)
    (left, whole) = re.findall(r'data-left="(\d+)" data-whole="(\d+)"', page.text)[0]
    assert 0 < int(left) <= int(whole) == 30_000
    assert "5 records in 2 ranges" in page.words


def test_redeliveries_are_counted(live: Scene):
    data = live.browser.until(f"{WINDOW}.json", lambda data: data["expired_per_min"] is not None)
    assert data["redelivered_per_min"] >= 0
    words = live.browser.page(WINDOW).words
    assert "redelivered per minute" in words
    assert "locks expired per minute" in words


def test_records_tell_what_ended(stored: Scene):
    data = stored.browser.twin(f"{WINDOW}.json")["data"]
    found = {(each["first"], each["last"]): each["state"] for each in data["ranges"]}
    assert data["tier"] == "R"
    assert found[2, 2] == "available"
    assert found[3, 3] == "archived"
    words = stored.browser.page(WINDOW).words
    assert "From records of __share_group_state" in words
    assert "2 V available or acquired 1" in words
    assert "Last written at" in words


def test_the_page_of_the_group_leads_to_its_windows(live: Scene):
    page = live.browser.page(GROUP_PAGE)
    assert WINDOW in page.links
    data = live.browser.twin(f"{GROUP_PAGE}.json")["data"]
    (partition,) = data["partitions"]
    assert partition["end"] - partition["start"] - partition["delivery_complete"] == partition["lag"] == 6
    assert data["members"][0]["state"] == "stable"
    assert {each["name"] for each in data["configs"]} >= {"share.auto.offset.reset"}


def test_start_offsets_and_lag_are_told_by_partition(live: Scene):
    data = live.browser.twin(f"{GROUP_PAGE}/offsets.json")["data"]
    (row,) = data["rows"]
    assert (row["topic"], row["end"], row["lag"], row["members"]) == (JOBS, 10, 6, [live.member_id])
    assert "start of the group" in live.browser.page(f"{GROUP_PAGE}/offsets").words


def test_a_partition_that_the_group_does_not_have(live: Scene):
    answer = live.browser.ask(href("groups", GROUP, "window", JOBS, 7))
    assert (answer.status, "The group has jobs-0." in answer.words) == (404, True)
    for partition in ("x", "1" * 5_000):
        assert live.browser.ask(href("groups", GROUP, "window", JOBS, partition) + ".json").status == 404


def test_other_kinds_of_pages_are_refused_with_the_kind(live: Scene):
    answer = live.browser.ask(f"{GROUP_PAGE}/topology.json")
    assert (answer.status, "only streams groups have a topology" in answer.json["error"]) == (400, True)
