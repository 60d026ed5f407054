"""The broker that tests of other programs start: in a thread and in a process, killed, restarted, moved in time."""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla.testing
from ottla.testing import Broker, BrokerError
from tests.component.testing.caller import Caller


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def running(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with ottla.testing.broker(process=request.param) as made:
        yield made


def test_it_serves_until_the_end():
    with ottla.testing.broker() as made:
        assert Caller(made).api_keys() >= {0, 1, 3, 18}
        directory = made.data_dir
        assert (directory / "meta.properties").exists()
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", made.port), 1)


def test_nothing_is_left_in_the_process():
    before = threading.active_count()
    with ottla.testing.broker() as made:
        Caller(made).create_topic("orders")
    assert threading.active_count() == before


def test_it_is_the_same_after_a_restart(running: Broker):
    topic_id = Caller(running).create_topic("orders")
    before = running.bootstrap_servers, running.controller_servers, running.cluster_id
    running.restart()
    assert (running.bootstrap_servers, running.controller_servers, running.cluster_id) == before
    assert Caller(running).topic_id("orders") == topic_id


def test_it_is_the_same_after_a_kill(running: Broker):
    topic_id = Caller(running).create_topic("orders")
    running.kill()
    assert not (running.data_dir / ".kafka_cleanshutdown").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.port), 1)
    running.start()
    assert Caller(running).topic_id("orders") == topic_id


def test_its_ports_are_kept_while_it_is_down():
    with ottla.testing.broker() as made:
        made.stop()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", made.port))
        made.start()


def test_orders_out_of_turn_are_refused():
    with ottla.testing.broker() as made:
        with pytest.raises(BrokerError, match="is already running"):
            made.start()
        made.stop()
        for order in (made.stop, made.kill, made.close_connections, lambda: made.faults.drop("Fetch")):
            with pytest.raises(BrokerError, match="does not run"):
                order()


def test_settings_have_kafkas_names():
    with ottla.testing.broker(num_partitions=3, **{"auto.create.topics.enable": False}) as made:
        Caller(made).create_topic("orders", partitions=-1)
        assert Caller(made).partition_count("orders") == 3


@pytest.mark.parametrize("process", [False, True])
def test_an_unknown_setting_is_told(process: bool):
    with pytest.raises(BrokerError, match=r"num\.partitions"), ottla.testing.broker(process=process, num_partition=3):
        pass


def test_what_it_chooses_itself_cannot_be_set():
    with pytest.raises(ValueError, match="directory"), ottla.testing.broker(log_dirs="elsewhere"):
        pass


def test_a_directory_of_the_tests_own_stays(tmp_path: Path):
    with ottla.testing.broker(directory=tmp_path) as made:
        topic_id = Caller(made).create_topic("orders")
    with ottla.testing.broker(directory=tmp_path) as made:
        assert Caller(made).topic_id("orders") == topic_id


def test_all_connections_can_be_closed(running: Broker):
    callers = [Caller(running), Caller(running)]
    for caller in callers:
        caller.api_keys()
    assert running.close_connections() == 2
    for caller in callers:
        assert caller.is_closed()


def test_a_long_poll_ends_when_the_clock_is_moved(running: Broker):
    caller = Caller(running)
    caller.create_topic("orders")
    caller.begin_fetch("orders", max_wait_ms=3_600_000)
    Caller(running).api_keys()  # whoever comes later is answered later: the fetch waits by now
    running.advance(3_600_000)
    assert caller.end_fetch() == 0


def test_the_clock_does_not_go_back():
    with ottla.testing.broker() as made, pytest.raises(ValueError, match="back"):
        made.advance(-1)


@pytest.mark.ottla(num_partitions=2)
class TestTheFixture:
    def test_it_has_the_markers_settings(self, ottla_broker: Broker):
        Caller(ottla_broker).create_topic("orders", partitions=-1)
        assert Caller(ottla_broker).partition_count("orders") == 2

    @pytest.mark.ottla(num_partitions=4)
    def test_the_nearest_marker_has_the_last_word(self, ottla_broker: Broker):
        Caller(ottla_broker).create_topic("orders", partitions=-1)
        assert Caller(ottla_broker).partition_count("orders") == 4


def test_importing_it_loads_no_broker():
    code = (
        "import ottla.testing, ottla.testing.pytest_plugin, sys;"
        "print([n for n in sys.modules if n.startswith(('ottla.broker', 'ottla.wire', 'ottla.log', 'msgspec'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_broker_that_cannot_go_on_is_gone(running: Broker):
    """Its disk has failed: where its directory was, there is a file."""
    Caller(running).create_topic("orders")
    shutil.rmtree(running.data_dir)
    running.data_dir.write_bytes(b"")
    caller = Caller(running)
    caller.begin_produce("orders", b"value")
    caller.read_to_the_end()
    for _ in range(1000):
        if not running.is_running:
            break
        threading.Event().wait(0.01)
    assert not running.is_running
    running.data_dir.unlink()
