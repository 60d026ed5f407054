"""Drivers and workers that are killed while they read a share group."""

from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.spark.drivers import Drivers
from tests.interop.spark.queries import until
from tests.interop.spark.share_groups import ShareGroup
from tests.interop.spark.topics import Topics

RECORDS, PER_BATCH = 600, 200
Broker = ApacheKafka | OttlaServe


def new_drivers(broker: Broker, topics: Topics, directory: Path) -> tuple[Drivers, ShareGroup]:
    topic = topics.create(partitions=2)
    for partition in range(2):
        topics.fill(topic, partition, RECORDS // 2)
    group = ShareGroup(broker.bootstrap_servers)
    options = group.options(topic, maxRecordsPerTrigger=PER_BATCH)
    return Drivers(directory, "share", options), group


def each_once(drivers: Drivers) -> bool:
    found = sorted(tuple(row[:2]) for rows in drivers.batches().values() for row in rows)
    return found == [(partition, offset) for partition in range(2) for offset in range(RECORDS // 2)]


@pytest.mark.parametrize("place", ["acquired", "offsets", "written", "commits"])
def test_the_driver_is_killed(broker: Broker, topics: Topics, tmp_path: Path, place: str):
    """And 45: a batch that runs again has the same rows."""
    drivers, group = new_drivers(broker, topics, tmp_path)
    drivers.run(batches=3, die=place, at=1)
    before = drivers.batches()
    drivers.run(batches=3, linger_s=3)
    after = drivers.batches()
    assert each_once(drivers)
    until(lambda: group.lag() == 0, "the end of the lag", timeout_s=30)
    counts = {batch: {row[2] for row in rows} for batch, rows in after.items()}
    if place == "acquired":  # its rows come again, in this batch or in a later one
        assert 2 in counts[1] | counts[2]
    elif place == "offsets":
        assert counts[1] == {1}, "the same rows by the offset log, with the count of that time"
    else:
        assert after[1] == before[1]
    assert drivers.runs() == {"written": [0, 1, 1, 2]}.get(place, [0, 1, 2])


def test_a_sink_that_skips_batches_it_knows(broker: Broker, topics: Topics, tmp_path: Path):
    drivers, group = new_drivers(broker, topics, tmp_path)
    drivers.run(batches=3, die="written", at=1, skips_known=True)
    drivers.run(batches=3, linger_s=3, skips_known=True)
    assert drivers.runs() == [0, 1, 2]
    assert each_once(drivers)
    until(lambda: group.lag() == 0, "the end of the lag", timeout_s=30)


def test_a_worker_is_killed(broker: Broker, topics: Topics, tmp_path: Path):
    drivers, group = new_drivers(broker, topics, tmp_path)
    mark = tmp_path / "crashed"
    drivers.run(batches=3, master="local[2,3]", crash_mark=str(mark), linger_s=3)
    assert mark.exists()
    assert each_once(drivers)
    assert {row[2] for rows in drivers.batches().values() for row in rows} == {1}
    until(lambda: group.lag() == 0, "the end of the lag", timeout_s=30)


def test_another_checkpoint_gets_what_was_not_acknowledged(broker: Broker, topics: Topics, tmp_path: Path):
    drivers, group = new_drivers(broker, topics, tmp_path)
    drivers.run(batches=1, die="written", at=0)
    (tmp_path / "other").mkdir()
    other = Drivers(tmp_path / "other", "share", drivers.options)
    other.run(batches=3, linger_s=3)
    assert each_once(other)
    assert {row[2] for row in other.batches()[0]} == {2}
    until(lambda: group.lag() == 0, "the end of the lag", timeout_s=30)
