"""Bad situations: a node says in one clear line what is wrong, and harms nothing."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import ottla.testing
from ottla.testing import BrokerError
from tests.interop.serving import OttlaServe

TIME_LIMIT_S = 30
DISK_BYTES = 3 << 20
VALUE = b"v" * 10_000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[OttlaServe]:
    node = OttlaServe(tmp_path / "ottla", data_dir=tmp_path / "data")
    yield node
    if node.running:
        node.kill()


def refusal(*options: str, prefix: tuple[str, ...] = ()) -> str:
    """What `ottla serve` says when it refuses to start: one line, and at most one with advice."""
    command = [*prefix, sys.executable, "-m", "ottla", "serve", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert run.returncode != 0
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert len(run.stderr.splitlines()) <= 2, run.stderr
    return run.stderr


def snapshot_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}


def formatted(directory: Path) -> Path:
    with ottla.testing.broker(directory=directory) as broker:
        broker.stop()
    return directory


def create_topic(servers: str, *, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    [created] = admin.create_topics([NewTopic("orders", partitions, 1)]).values()
    created.result(TIME_LIMIT_S)


def produce(servers: str, count: int, partition: int = 0, **settings: Any) -> tuple[list[int], list[str]]:
    """Send records one batch each; gives the offsets that were acknowledged and the errors."""
    offsets: list[int] = []
    errors: list[str] = []

    def report(error: Any, message: Any) -> None:
        if error is None:
            offsets.append(message.offset())
        else:
            errors.append(error.name())

    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 1, "log_level": 0, **settings})
    for _ in range(count):
        producer.produce("orders", VALUE, partition=partition, on_delivery=report)
    assert producer.flush(TIME_LIMIT_S) == 0
    return offsets, errors


def read_offsets(servers: str, partition: int = 0, *, start: int = 0) -> list[int]:
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer(settings)
    _, high = consumer.get_watermark_offsets(TopicPartition("orders", partition), TIME_LIMIT_S)
    consumer.assign([TopicPartition("orders", partition, start)])
    offsets: list[int] = []
    while not offsets or offsets[-1] < high - 1:
        message = consumer.poll(TIME_LIMIT_S)
        assert message is not None
        if message.error() is not None:
            raise KafkaException(message.error())
        assert message.value() == VALUE
        offsets.append(message.offset())
    consumer.close()
    return offsets


# --- starting ---------------------------------------------------------------------------------------------------------


def test_a_port_in_use(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal("--port", str(port), "--data", str(tmp_path / "data"))
    assert f"port {port} is taken" in said
    assert "--port 0 picks a free one" in said
    assert not (tmp_path / "data" / "meta.properties").exists()


def test_a_second_process_on_the_same_directory(tmp_path: Path):
    seldom = 600_000  # the first process writes no checkpoint meanwhile, however long the second takes
    with ottla.testing.broker(
        process=True, directory=tmp_path, replica_high_watermark_checkpoint_interval_ms=seldom
    ) as first:
        before = snapshot_of(tmp_path)
        said = refusal("--port", "0", "--data", str(tmp_path))
        assert str(tmp_path) in said
        assert "in use by another process" in said
        assert snapshot_of(tmp_path) == before
        create_topic(first.bootstrap_servers)


def test_a_second_broker_in_the_same_process(tmp_path: Path):
    with (
        ottla.testing.broker(directory=tmp_path),
        pytest.raises(BrokerError, match="in use by this process"),
        ottla.testing.broker(directory=tmp_path),
    ):
        pass


def test_a_directory_of_another_node(tmp_path: Path):
    formatted(tmp_path)
    before = snapshot_of(tmp_path)
    said = refusal("--port", "0", "--data", str(tmp_path), "--node-id", "2")
    assert str(tmp_path) in said
    assert "1" in said
    assert "2" in said
    assert "node" in said
    assert snapshot_of(tmp_path) == before


def test_directories_of_two_clusters(tmp_path: Path):
    first, second = formatted(tmp_path / "first"), formatted(tmp_path / "second")
    before = snapshot_of(tmp_path)
    said = refusal("--port", "0", "--set", f"log.dirs={first},{second}")
    assert "cluster" in said
    assert str(second) in said
    assert snapshot_of(tmp_path) == before


def test_a_directory_that_is_something_else(tmp_path: Path):
    (tmp_path / "letter.txt").write_text("Dear Ottla")
    said = refusal("--port", "0", "--data", str(tmp_path))
    assert "neither empty nor a log directory" in said
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["letter.txt"]


def without_overrides() -> tuple[str, ...]:
    """Root may write anywhere: have that right taken away."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("runs as root, and there is no setpriv to drop its rights")
    return (setpriv, "--bounding-set=-dac_override", "--inh-caps=-dac_override")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
@pytest.mark.parametrize("is_formatted", [False, True])
def test_a_read_only_directory(tmp_path: Path, is_formatted: bool):
    data = tmp_path / "data"
    data.mkdir()
    if is_formatted:
        formatted(data)
    before = snapshot_of(data)
    data.chmod(0o555)
    try:
        said = refusal("--port", "0", "--data", str(data), prefix=without_overrides())
    finally:
        data.chmod(0o755)
    assert str(data) in said
    assert "Permission denied" in said
    assert snapshot_of(data) == before


# --- running ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path):
    node = OttlaServe(tmp_path / "ottla", data_dir=small_disk / "data")
    (small_disk / "ballast").write_bytes(bytes(1 << 20))
    node.start()
    create_topic(node.bootstrap_servers)
    offsets, errors = produce(node.bootstrap_servers, DISK_BYTES // len(VALUE), **{"message.timeout.ms": 3000})
    assert offsets
    assert errors
    assert offsets == list(range(len(offsets)))
    assert node.wait_for_end() != 0
    assert os.strerror(errno.ENOSPC) in node.log
    assert str(node.data_dir) in node.log
    assert "Traceback" not in node.log
    (small_disk / "ballast").unlink()
    node.start()
    assert read_offsets(node.bootstrap_servers)[: len(offsets)] == offsets
    again, _ = produce(node.bootstrap_servers, 1)
    assert again[0] >= len(offsets)
    node.stop()


def test_one_of_two_disks_is_full(small_disk: Path, tmp_path: Path):
    """The partitions on the other one are served as before, and nothing acknowledged is lost on either."""
    full, roomy = small_disk / "data", tmp_path / "roomy"
    node = OttlaServe(tmp_path / "ottla", data_dir=roomy, **{"log.dirs": f"{roomy},{full}"})
    (small_disk / "ballast").write_bytes(bytes(1 << 20))
    node.start()
    create_topic(node.bootstrap_servers, partitions=2)
    for partition in (0, 1):
        produce(node.bootstrap_servers, 1, partition)
    on_full = next(partition for partition in (0, 1) if (full / f"orders-{partition}").exists())
    offsets, errors = produce(node.bootstrap_servers, DISK_BYTES // len(VALUE), on_full, **{"message.timeout.ms": 3000})
    assert offsets == list(range(1, len(offsets) + 1))
    assert errors
    assert produce(node.bootstrap_servers, 2, 1 - on_full) == ([1, 2], [])
    assert node.running
    assert os.strerror(errno.ENOSPC) in node.log
    assert str(full) in node.log
    node.stop()
    (small_disk / "ballast").unlink()
    node.start()
    assert read_offsets(node.bootstrap_servers, on_full)[: len(offsets) + 1] == [0, *offsets]
    assert read_offsets(node.bootstrap_servers, 1 - on_full) == [0, 1, 2]
    node.stop()


def flip(path: Path, position: int) -> None:
    """Damage one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_a_corrupt_segment_after_a_crash(served: OttlaServe):
    served.start()
    create_topic(served.bootstrap_servers)
    produce(served.bootstrap_servers, 10)
    served.kill()
    segment = served.data_dir / "orders-0" / "00000000000000000000.log"
    flip(segment, segment.stat().st_size // 2 + 1000)  # in the sixth of ten batches
    served.start()
    warned = [line for line in served.log.splitlines() if "WARNING" in line and "orders-0" in line]
    assert "segment 0 was truncated at byte" in warned[0]
    assert "computed" in warned[0]  # both checksums are shown
    assert read_offsets(served.bootstrap_servers) == [0, 1, 2, 3, 4]
    kept = segment.with_name("00000000000000000005.log.cut")
    assert "orders-0: 4 sound batches (4 records, offsets 6 to 9, " in warned[1]
    assert f"kept in {kept} (" in warned[1]
    shown = subprocess.run([sys.executable, "-m", "ottla", "dump", kept], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [line["offset"] for line in lines if line["kind"] == "record"] == [6, 7, 8, 9]
    offsets, _ = produce(served.bootstrap_servers, 1)
    assert offsets == [5]
    assert read_offsets(served.bootstrap_servers) == [0, 1, 2, 3, 4, 5]


def test_a_corrupt_segment_behind_the_recovery_point(served: OttlaServe):
    """Nobody looks at old data at a clean start. The client sees it by the checksum; all else is served."""
    served.start()
    create_topic(served.bootstrap_servers)
    produce(served.bootstrap_servers, 10)
    served.stop()
    segment = served.data_dir / "orders-0" / "00000000000000000000.log"
    flip(segment, segment.stat().st_size // 2 + 1000)  # in the sixth of ten batches
    before = segment.read_bytes()
    served.start()
    with pytest.raises(KafkaException, match=r"(?i)crc|checksum"):
        read_offsets(served.bootstrap_servers)
    assert read_offsets(served.bootstrap_servers, start=6) == [6, 7, 8, 9]
    assert segment.read_bytes() == before


def test_a_corrupt_metadata_log(served: OttlaServe):
    """What lies behind the damage must not be thrown away in silence: it may be every topic there is."""
    served.start()
    create_topic(served.bootstrap_servers)
    produce(served.bootstrap_servers, 1)
    served.stop()
    log = served.data_dir / "__cluster_metadata-0" / "00000000000000000000.log"
    flip(log, 300)
    before = {path: path.read_bytes() for path in served.data_dir.rglob("*.log")}
    said = refusal("--port", "0", "--data", str(served.data_dir))
    assert "__cluster_metadata-0" in said
    assert "corrupt at byte" in said
    assert {path: path.read_bytes() for path in served.data_dir.rglob("*.log")} == before
