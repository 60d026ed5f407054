"""Crashes under load, a few of them: nothing acknowledged is lost. tests/interop/test_kill.py has more of them."""

import random
import threading

import ottla.testing
from ottla.testing import Broker
from ottla.wire import uuid_text
from tests.component.broker.kill_load import Load, check, read_log
from tests.component.testing.caller import Caller

KILLS = 4
WAIT_S = 60


def test_what_was_acknowledged_survives_kills():
    seeded = random.Random(4)
    with ottla.testing.broker(process=True) as broker:
        load = Load(broker.bootstrap_servers)
        for _ in range(KILLS):
            load.wait_for(1)
            threading.Event().wait(seeded.uniform(0.05, 0.5))
            broker.kill()
            broker.start()
        load.wait_for(1)
        load.finish()
        check(load, read_log(broker.bootstrap_servers))
        broker.kill()
        broker.start()
        check(load, read_log(broker.bootstrap_servers))


def make_and_delete(broker: Broker, start: int, topics: dict[str, bool | None], is_at_work: threading.Event) -> None:
    """Create topics and delete every other one until the broker is gone; None stands for what is not certain."""
    caller = Caller(broker)
    for number in range(start, start + 1_000_000):
        name = f"topic-{number}"
        try:
            topics[name] = None
            caller.create_topic(name)
            topics[name] = True
            is_at_work.set()
            if number % 2:
                topics[name] = None
                caller.delete_topic(name)
                topics[name] = False
        except (ConnectionError, TimeoutError):
            return


def test_topics_that_were_acknowledged_survive_kills():
    seeded = random.Random(5)
    topics: dict[str, bool | None] = {}
    with ottla.testing.broker(process=True) as broker:
        for turn in range(KILLS):
            is_at_work = threading.Event()
            thread = threading.Thread(target=make_and_delete, args=(broker, turn * 1_000_000, topics, is_at_work))
            thread.start()
            assert is_at_work.wait(WAIT_S)
            threading.Event().wait(seeded.uniform(0.05, 0.5))
            broker.kill()
            thread.join()
            broker.start()
            found = Caller(broker).topic_names()
            certain = {name for name, exists in topics.items() if exists is not None}
            assert found & certain == {name for name, exists in topics.items() if exists}
            assert len(certain) > turn
            assert not any(path.name.endswith("-stray") for path in broker.data_dir.iterdir())


def test_a_directory_of_an_earlier_topic_is_set_aside():
    with ottla.testing.broker(process=True) as broker:
        load = Load(broker.bootstrap_servers)
        load.wait_for(10)
        load.finish()
        broker.kill()
        metadata = broker.data_dir / "load-1" / "partition.metadata"
        metadata.write_text(f"version: 0\ntopic_id: {uuid_text(bytes(range(1, 17)))}\n")
        (broker.data_dir / "load-2" / "partition.metadata").unlink()
        broker.start()
        assert {each.partition for each in read_log(broker.bootstrap_servers)} == {0}
        strays = {path.name[:6] for path in broker.data_dir.iterdir() if path.name.endswith("-stray")}
        assert strays == {"load-1", "load-2"}
        assert Caller(broker).topic_error("load") == 0
