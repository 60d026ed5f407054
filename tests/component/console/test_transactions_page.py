"""Transactions: open ones, and who blocks the last stable offset."""

from __future__ import annotations

import asyncio

from ottla.client import Client, Producer, topics, transactions
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from tests.component.console.links import check_links
from tests.component.console.served import Browser


async def work(servers: str) -> None:
    async with Client(servers) as client:
        await topics.create(client, NewTopic("ledger"))
        done = await transactions.begin(client, "done", timeout_ms=60_000)
        await Producer(client, identity=done).send("ledger", b"done", partition=0)
        await transactions.end(client, done, commit=True)
        loading = await transactions.begin(client, "loader", timeout_ms=60_000)
        await Producer(client, identity=loading).send("ledger", b"open", partition=0)


def test_open_transactions_come_first_and_block(broker: Broker, browser: Browser):
    assert "No transactions." in browser.page("/transactions").words
    asyncio.run(work(broker.bootstrap_servers))
    data = browser.until(
        "/transactions.json",
        lambda data: (
            bool(data["blocked"]) and [each["state"] for each in data["rows"]] == ["Ongoing", "CompleteCommit"]
        ),
    )
    assert [(each["id"], each["state"]) for each in data["rows"]] == [("loader", "Ongoing"), ("done", "CompleteCommit")]
    loader = data["rows"][0]
    assert (loader["timeout_ms"], loader["hanging"], loader["is_old"]) == (60_000, False, False)
    assert loader["partitions"] == [{"topic": "ledger", "p": 0, "first_offset": 2}]
    (blocked,) = data["blocked"]
    assert (blocked["topic"], blocked["p"], blocked["last_stable"], blocked["id"]) == ("ledger", 0, 2, "loader")
    assert (data["listed"], data["open"], data["hanging"]) == (2, 1, 0)
    page = browser.page("/transactions")
    done = page.text.partition("CompleteCommit</td>")[2]
    assert 'data-label="open for" class="num"><span title="unknown"' in done
    assert "1 of 2 transactions is open." in page.words
    assert "/topics/ledger" in page.links
    assert [each["id"] for each in browser.twin("/transactions.json?state=open")["data"]["rows"]] == ["loader"]
    assert [each["id"] for each in browser.twin("/transactions.json?q=DON")["data"]["rows"]] == ["done"]
    assert browser.ask("/transactions.json?state=lost").status == 400
    check_links(browser, "/transactions")
