"""The overview: counts, findings, and what cannot be seen."""

import asyncio
import time

import ottla.testing
from ottla.client import Client
from ottla.health.samples import OBSERVATIONS
from ottla.observe import QUIET, Observer, Options, TopicSink, prepare_topic
from tests.component.console.served import Browser, console


def test_findings_come_first_and_the_rest_is_counted(browser: Browser):
    data = browser.until("/overview.json", lambda data: data["quorum"] is not None and bool(data["findings"]))
    assert [each["rule"] for each in data["findings"]] == ["single-voter"]
    assert data["quorum"] == {"leader": 1, "epoch": data["quorum"]["epoch"], "voters": 1}
    words = browser.page("/").words
    assert words.index("No problems found") < words.index("The cluster") < words.index("Groups by kind")
    assert "is the only voter" in words
    assert "cannot be checked here" in words


def test_history_begins_with_the_observer():
    with ottla.testing.broker() as broker:
        ended_ms = asyncio.run(observe(broker.bootstrap_servers))
        with console(broker.bootstrap_servers) as browser:
            assert recalled(browser).endswith("samples of the topic ottla.observations")
            since_ms = browser.watcher.history_since_ms
            assert since_ms is not None
            assert since_ms < ended_ms


def test_without_an_observer_history_begins_with_the_console(browser: Browser):
    assert recalled(browser).startswith("the topic ottla.observations cannot be read")


def recalled(browser: Browser) -> str:
    """Where the console has its history from, as soon as it has looked."""
    browser.until("/overview.json", lambda _: browser.watcher.recalled is not None)
    return browser.watcher.recalled or ""


async def observe(bootstrap_servers: str) -> int:
    """Observe a cluster once, and return when that was over."""
    async with Client(bootstrap_servers, **QUIET) as client:
        await prepare_topic(client, OBSERVATIONS)
        observer = Observer(client, "before", Options(), sink=TopicSink(client, OBSERVATIONS))
        await observer.run(is_enough=lambda: observer.probed_all)
    return time.time_ns() // 1_000_000
