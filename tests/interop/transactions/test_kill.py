"""`ottla serve` killed under transactions, again and again; then Apache Kafka takes the directory over, and back.

`KILLS=100 pytest -m interop tests/interop/transactions/test_kill.py` is the long version.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from tests.component.broker.raw_client import RawClient
from tests.component.broker.transactional_producer import Producer, error
from tests.interop.apache import ApacheKafka
from tests.interop.node.brokers import OTTLA
from tests.interop.transactions.atomic_load import AtomicLoad
from tests.interop.transactions.nodes import SETTINGS, new_node

KILLS = int(os.environ.get("KILLS", "8"))
PRODUCERS = 4


@pytest.mark.parametrize("txn_version", [2, 1])
def test_transactions_are_atomic_through_kills_and_a_takeover(txn_version: int, apache_jars: Path, tmp_path: Path):
    seeded = random.Random(KILLS)
    node = new_node(OTTLA, tmp_path / "ottla", txn_version)
    node.start()
    try:
        load = AtomicLoad(node.bootstrap_servers, producers=PRODUCERS, txn_version=txn_version)
        try:
            for _ in range(KILLS):
                before = load.done_count
                while load.done_count < before + PRODUCERS:
                    threading.Event().wait(0.01)
                threading.Event().wait(seeded.uniform(0.0, 0.4))
                node.kill()
                node.start()
        finally:
            load.finish()
        load_ends(load, node.bootstrap_servers)
        load.check(node.bootstrap_servers)
        node.kill()
    finally:
        if node.running:
            node.kill()
    with ApacheKafka(tmp_path / "apache", data_dir=node.data_dir, **SETTINGS) as kafka:
        load_ends(load, kafka.bootstrap_servers)
        load.check(kafka.bootstrap_servers)
    node.start()
    load_ends(load, node.bootstrap_servers)
    load.check(node.bootstrap_servers)
    node.kill()


def load_ends(load: AtomicLoad, bootstrap_servers: str) -> None:
    """A newcomer under each name aborts what the last one has left open."""
    client = RawClient.at(bootstrap_servers)
    for name in load.outcomes:
        newcomer = Producer(client, name=name)
        assert not error(newcomer.init())
        newcomer.settled()
    client.close()
