"""`ottla share` on either broker: what its coordinator tells, and what its records have kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.cli import run
from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import DeliveredRecord, OttlaWorker, closing, settled, until

Capture = pytest.CaptureFixture[str]
EXPLICIT = {"share.acknowledgement.mode": "explicit", "share.acquire.mode": "record_limit", "max.poll.records": "6"}


def told(cluster: Cluster, capsys: Capture, *words: str) -> Any:
    assert run(["share", *words, "--json", "--bootstrap-server", cluster.bootstrap_servers]) == 0
    return json.loads(capsys.readouterr().out)


def test_commands(cluster: Cluster, name: str, capsys: Capture):
    cluster.topic(name)
    cluster.configure(name, {"share.auto.offset.reset": "earliest"})
    cluster.produce(name, *(f"v{number}" for number in range(12)))
    worker = OttlaWorker(cluster.bootstrap_servers, name, name, EXPLICIT)
    with closing(worker):
        given: list[DeliveredRecord] = []
        until("six records", lambda: given.extend(worker.poll()) or len(given) == 6)
        for each in given:
            worker.acknowledge(each, {2: "RELEASE", 3: "REJECT"}.get(each.offset, "ACCEPT"))
        assert worker.commit() == {0: "NONE"}
        listed = {each["group_id"]: each for each in told(cluster, capsys, "list")["rows"]}
        assert (listed[name]["state"], listed[name]["members"], listed[name]["lag"]) == ("Stable", 1, 7)
        (described,) = told(cluster, capsys, "describe", name)["rows"]
        assert described["members"][0]["assignment"] == [{"topic": name, "partition": 0}]
        (partition,) = told(cluster, capsys, "offsets", name)["rows"]
        assert (partition["end_offset"], partition["lag"]) == (12, 7)
        (window,) = told(cluster, capsys, "inflight", name)["rows"]
        found = {
            offset: each for each in window["ranges"] for offset in range(each["first_offset"], each["last_offset"] + 1)
        }
        assert window["source"] == "records"
        assert {offset: found[offset]["state"] for offset in range(2, 6)} == {
            2: "AVAILABLE",
            3: "ARCHIVED",
            4: "ACKNOWLEDGED",
            5: "ACKNOWLEDGED",
        }
        assert run(["share", "reset", name, "--all-topics", "--to-latest", "--yes", *at(cluster)]) == 1
        again = until("the rest", worker.poll)
        settled(worker, again, "ACCEPT")
    until("it is empty", lambda: told(cluster, capsys, "offsets", name)["state"] == "Empty")
    told(cluster, capsys, "reset", name, "--all-topics", "--to-latest", "--yes")
    assert told(cluster, capsys, "offsets", name)["lag"] == 0
    told(cluster, capsys, "reset", name, "--topic", name, "--by-duration", "1h", "--yes")
    assert told(cluster, capsys, "offsets", name)["lag"] == 12


def at(cluster: Cluster) -> list[str]:
    return ["--bootstrap-server", cluster.bootstrap_servers]
