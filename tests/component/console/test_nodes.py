"""Nodes and features of a real broker."""

from __future__ import annotations

from ottla.client import topics
from ottla.client.blocking import BlockingClient
from ottla.client.topics import NewTopic
from ottla.testing import Broker
from tests.component.console.links import check_links
from tests.component.console.served import Browser


def test_a_node_that_is_broker_and_controller(broker: Broker, browser: Browser):
    with BlockingClient(broker.bootstrap_servers) as client:
        client.call(topics.create, NewTopic("orders", 3))
    (row,) = browser.until(
        "/nodes.json", lambda data: bool(data["rows"]) and data["rows"][0]["led"] >= 3 and data["rows"][0]["log_dirs"]
    )["rows"]
    host, _, port = broker.bootstrap_servers.partition(":")
    assert (row["id"], row["roles"], row["leads_quorum"]) == (1, ["broker", "controller"], True)
    assert (row["host"], row["port"], row["fenced"], row["reachable"]) == (host, int(port), False, True)
    assert row["replicas"] >= 3
    words = browser.page("/nodes").words
    assert "leads the quorum" in words
    assert "serves" in words


def test_one_node(browser: Browser):
    data = browser.until("/nodes/1.json", lambda data: bool(data["node"]["log_dirs"]))
    (directory,) = data["node"]["log_dirs"]
    assert directory["total_bytes"] >= directory["usable_bytes"] > 0
    listeners = {each["name"]: each for each in data["listeners"]}
    assert set(listeners) == {"PLAINTEXT", "CONTROLLER"}
    assert listeners["CONTROLLER"]["port"] > 0
    configs = {each["name"]: each for each in data["configs"]}
    assert configs["node.id"]["source"] == "STATIC_BROKER"
    assert configs["log.retention.hours"]["source"] == "DEFAULT"
    assert all(each["value"] is None for each in configs.values() if each["sensitive"])
    page = browser.page("/nodes/1")
    assert page.words.index("node.id") < page.words.index("log.retention.hours")
    assert "default" in page.words
    assert directory["path"] in page.words


def test_a_node_that_does_not_exist(browser: Browser):
    answer = browser.ask("/nodes/7")
    assert (answer.status, "Node &quot;7&quot; does not exist." in answer.words) == (404, True)
    assert browser.ask("/nodes.json?role=voter").status == 400


def test_nodes_are_narrowed(browser: Browser):
    assert [each["id"] for each in browser.twin("/nodes.json?role=controller&q=127.0.0.1")["data"]["rows"]] == [1]
    assert browser.twin("/nodes.json?q=elsewhere")["data"]["rows"] == []
    assert "No nodes match." in browser.page("/nodes?q=elsewhere").words


def test_features_and_their_levels(browser: Browser):
    rows = {each["name"]: each for each in browser.twin("/features.json")["data"]["rows"]}
    level = rows["metadata.version"]
    assert level["nodes"] == [{"id": 1, "min": level["nodes"][0]["min"], "max": level["nodes"][0]["max"]}]
    assert level["nodes"][0]["min"] <= level["finalized"] <= level["nodes"][0]["max"]
    assert rows["share.version"]["default"] == 1
    assert "metadata.version" in browser.page("/features").words


def test_links_lead_somewhere(browser: Browser):
    for path in ("/nodes", "/nodes/1", "/features"):
        check_links(browser, path)
