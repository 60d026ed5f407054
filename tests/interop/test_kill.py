"""`ottla serve` killed under load, again and again; then Apache Kafka takes the directory over.

`KILLS=200 pytest -m interop tests/interop/test_kill.py` is the long version.
"""

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.component.broker.kill_load import Load, check, read_log
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

KILLS = int(os.environ.get("KILLS", "8"))
CHECK_EVERY = 10
ACKNOWLEDGED_MIN = 1000


@pytest.fixture
def ottla(tmp_path: Path) -> Iterator[OttlaServe]:
    node = OttlaServe(tmp_path / "ottla", data_dir=tmp_path / "data")
    yield node
    if node.running:
        node.kill()


def kill_under_load(node: OttlaServe, load: Load, seeded: random.Random) -> None:
    load.wait_for(1)
    threading.Event().wait(seeded.uniform(0.05, 0.5))
    node.kill()


def acknowledged(load: Load) -> set[object]:
    return {each for of_one in load.acknowledged.values() for each in list(of_one)}


def test_nothing_acknowledged_is_lost_in_kills(ottla: OttlaServe, apache_jars: Path, tmp_path: Path):
    seeded = random.Random(KILLS)
    ottla.start()
    load = Load(ottla.bootstrap_servers)
    for number in range(1, KILLS + 1):
        kill_under_load(ottla, load, seeded)
        before = acknowledged(load)
        ottla.start()
        if number % CHECK_EVERY == 0:
            assert before <= set(read_log(ottla.bootstrap_servers)), f"lost in kill {number}"
    load.wait_for(ACKNOWLEDGED_MIN)
    load.finish()
    check(load, read_log(ottla.bootstrap_servers))
    ottla.kill()
    with ApacheKafka(tmp_path / "apache", data_dir=ottla.data_dir) as kafka:
        check(load, read_log(kafka.bootstrap_servers))


def test_apache_takes_over_in_the_middle_of_a_load(ottla: OttlaServe, apache_jars: Path, tmp_path: Path):
    ottla.start()
    load = Load(ottla.bootstrap_servers)
    load.wait_for(ACKNOWLEDGED_MIN)
    kill_under_load(ottla, load, random.Random(1))
    before = acknowledged(load)
    with ApacheKafka(tmp_path / "apache", data_dir=ottla.data_dir) as kafka:
        assert before <= set(read_log(kafka.bootstrap_servers))
        kafka.stop()
    ottla.start()
    load.finish()
    check(load, read_log(ottla.bootstrap_servers))
