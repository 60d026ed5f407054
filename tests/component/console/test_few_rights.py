"""What a user with few rights sees of topics: the parts that he may see, and which right the others need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client import Client, Producer, TopicPartition, topics
from ottla.client.acls import Acl, Operation, PatternType, Permission, ResourceType, add
from ottla.client.group_offsets import commit
from ottla.client.properties import settings_of
from ottla.client.topics import NewTopic
from tests.component.broker.raw_client import running_node
from tests.component.console.served import Browser, console

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{MODULE} required username="ana" password="secret";',
}
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": f'{MODULE} required user_ana="secret";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "ottla.audit.file": "none",
}


async def _fill(servers: str) -> None:
    async with Client(servers) as client:
        await topics.create(client, NewTopic("orders", 1, 1), NewTopic("hidden", 1, 1))
        await Producer(client).send("orders", b"x", partition=0)
        right = (PatternType.LITERAL, "User:ana", "*", Operation.DESCRIBE, Permission.ALLOW)
        await commit(client, "billing", {TopicPartition("orders", 0): 1})
        await add(client, [Acl(ResourceType.TOPIC, "orders", *right), Acl(ResourceType.GROUP, "billing", *right)])


@pytest.fixture(scope="module")
def ana(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    node: Path = tmp_path_factory.mktemp("node")
    with running_node(node, **SETTINGS) as running:
        plain, login = (f"127.0.0.1:{running.node.advertised[name].port}" for name in ("PLAINTEXT", "LOGIN"))
        asyncio.run(_fill(plain))
        with console(login, **settings_of(LOGIN)) as browser:
            browser.until("/topics.json", lambda data: bool(data["rows"]))
            yield browser


def test_the_list_says_what_it_may_not_show(ana: Browser):
    twin = ana.twin("/topics.json")
    (row,) = twin["data"]["rows"]
    assert (row["name"], row["records"], row["size_bytes"]) == ("orders", 1, None)
    told = {each["what"]: each["why"] for each in twin["degraded"]}
    assert told["sizes"] == "orders-0: needs DESCRIBE on the cluster"
    assert "needs DESCRIBE on the cluster" in ana.page("/topics").words


def test_the_page_of_a_topic_shows_the_rest(ana: Browser):
    twin = ana.twin("/topics/orders.json")
    assert (twin["data"]["configs"], twin["data"]["partitions"][0]["end"]) == (None, 1)
    told = {each["what"]: each["why"] for each in twin["degraded"]}
    assert told["configs"] == 'needs DESCRIBE_CONFIGS on Topic "orders"'
    assert "They cannot be shown: needs DESCRIBE_CONFIGS" in ana.page("/topics/orders").words


@pytest.mark.parametrize("path", ["orders/records", "orders/records/0/0"])
def test_records_need_the_right_to_read(ana: Browser, path: str):
    answer = ana.ask(f"/topics/{path}.json")
    assert (answer.status, 'needs READ on Topic "orders"' in answer.json["error"]) == (403, True)


def test_a_topic_that_is_hidden_looks_like_one_that_is_not_there(ana: Browser):
    hidden, missing = (ana.ask(f"/topics/{name}.json") for name in ("hidden", "nothing"))
    assert hidden.status == missing.status == 403
    assert hidden.text.replace("hidden", "nothing") == missing.text


def test_a_timeline_without_the_right_to_read_records(ana: Browser):
    ana.until("/groups.json", lambda data: bool(data["rows"]))
    twin = ana.twin("/groups/billing/timeline.json")
    assert twin["data"]["source"] == "samples"
    assert {each["what"]: each["why"] for each in twin["degraded"]} == {
        "timeline from records": 'needs READ on Topic "__consumer_offsets"'
    }
    words = ana.page("/groups/billing/timeline").words
    assert "From samples of this console" in words
