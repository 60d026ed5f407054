"""Ours beside Apache Kafka's storage tool, and Apache Kafka on metadata that ours wrote."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.context import Context, ControllerSettings, Result
from ottla.core.metadata.controller import Controller
from ottla.core.metadata.format import METADATA_DIR, format_files
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import build_batches
from ottla.core.metadata.snapshot import snapshot_id, snapshot_records, write_snapshot
from ottla.core.quorum.events import AppendControl, Start, StateStored, StoreState, Synced
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ControlHistory, Listener, Voter, VoterSet, voters_record
from ottla.wire import uuid_text
from ottla.wire.properties import MetaProperties, read_meta_properties
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.control_records import KRaftVersionRecord
from ottla.wire.types.create_topics import CreateTopicsRequest
from simulation.quorum.virtual_log import VirtualLog
from tests.interop.apache import CLUSTER_ID, ApacheKafka, dump_log
from tests.interop.storage_golden import VARIANTS, VOTERS_CHECKPOINT, format_with_apache
from tests.unit.core.metadata.cluster import counter, registration, uuid
from tests.unit.core.metadata.formatted import levels_of, voters_of
from tests.unit.core.metadata.simple_rules import SimpleRules
from tests.unit.core.metadata.stamps import restamped, timeless

NOW_MS = 1_790_000_000_000
TOPICS = "org.apache.kafka.tools.TopicCommand"
DIRECTORY_ID = uuid(4711)


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_formatting(apache_jars: Path, tmp_path: Path, variant: str):
    directory = format_with_apache(tmp_path, variant)
    apaches = {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    meta = read_meta_properties(apaches["meta.properties"])
    voters = voters_of(directory / METADATA_DIR)
    ours = format_files(meta, levels_of(variant), NOW_MS, voters=voters)
    files = {Path(name).name: data for name, data in ours.items()}
    assert files.keys() == apaches.keys()
    assert files["bootstrap.checkpoint"] == restamped(apaches["bootstrap.checkpoint"], NOW_MS)
    if VOTERS_CHECKPOINT in apaches:
        assert timeless(files[VOTERS_CHECKPOINT]) == timeless(apaches[VOTERS_CHECKPOINT])
    own, others = (data["meta.properties"].splitlines() for data in (files, apaches))
    assert own[:1] + own[2:] == others[:1] + others[2:]


class Written:
    """A directory as ours would leave it after a crash: formatted, a metadata log, nothing else."""

    def __init__(self, directory: Path, controller_port: int) -> None:
        self.directory = directory
        self.node = Voter(1, DIRECTORY_ID, (Listener("CONTROLLER", "127.0.0.1", controller_port),))
        self.voters = voters_record(VoterSet((self.node,)))
        self.image = MetadataImage()
        self.new_uuid = counter()
        self.end_offset = 0
        self.log = b""
        self.controller = Controller(self.image, SimpleRules(), ControllerSettings(1, CLUSTER_ID))
        meta = MetaProperties(CLUSTER_ID, 1, DIRECTORY_ID)
        for name, data in format_files(meta, features.levels_for_format(), NOW_MS, voters=self.voters).items():
            self.write(name, data)

    def write(self, name: str, data: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def lead(self) -> None:
        control = ControlHistory()
        control.replay(KRaftVersionRecord(k_raft_version=1), BOOTSTRAP_OFFSET)
        control.replay(self.voters, BOOTSTRAP_OFFSET)
        self.quorum = Quorum(
            self.node, control, VirtualLog(), stored=None, cluster_id=CLUSTER_ID, random=lambda below: 0
        )
        (store,) = self.quorum.step(Start(), 0, NOW_MS).writes
        assert isinstance(store, StoreState)
        self.write(f"{METADATA_DIR}/quorum-state", store.content)
        (append,) = self.quorum.step(StateStored(), 0, NOW_MS).writes
        assert isinstance(append, AppendControl)
        self.log, self.end_offset = append.batch, append.end_offset
        self.quorum.step(Synced(append.end_offset), 0, NOW_MS)

    def append(self, result: Result) -> None:
        for batch in build_batches(result, base_offset=self.end_offset, epoch=1, timestamp_ms=NOW_MS):
            self.log += batch
        self.image.replay_all(result.records, self.end_offset, 1)
        self.end_offset += len(result.records)

    def submit(self, request: Any) -> Any:
        result = self.controller.handle(request, Context(NOW_MS, self.end_offset, self.new_uuid, 7))
        self.append(result)
        return result.reply

    def live(self) -> None:
        self.lead()
        self.append(self.controller.activate(bootstrap_records(features.levels_for_format()), NOW_MS, own_broker_id=1))
        epoch = self.submit(registration(1, log_dirs=(DIRECTORY_ID,))).broker_epoch
        assert epoch > 0
        self.unfence(epoch)
        kind = CreateTopicsRequest
        config = (kind.CreatableTopicConfig("retention.ms", "123456789"),)
        topics = (kind.CreatableTopic("orders", 3, 1, configs=config), kind.CreatableTopic("pay.ments", 1, 1))
        assert [topic.error_code for topic in self.submit(kind(topics)).topics] == [0, 0]
        self.write(f"{METADATA_DIR}/00000000000000000000.log", self.log)

    def unfence(self, epoch: int) -> None:
        assert self.submit(BrokerHeartbeatRequest(1, epoch, self.end_offset)).is_fenced is False

    def snapshot(self) -> Path:
        identity = snapshot_id(self.image)
        batches = write_snapshot(
            snapshot_records(self.image),
            epoch=identity.epoch,
            timestamp_ms=NOW_MS,
            last_contained_log_timestamp=NOW_MS,
            kraft_version=1,
            voters=self.voters,
        )
        self.write(f"{METADATA_DIR}/{identity.file_name}", b"".join(batches))
        return self.directory / METADATA_DIR / identity.file_name


@pytest.fixture
def apache(apache_jars: Path, tmp_path: Path) -> Iterator[ApacheKafka]:
    kafka = ApacheKafka(tmp_path / "apache", data_dir=tmp_path / "data")
    yield kafka
    if kafka.running:
        kafka.kill()


def controller_port(kafka: ApacheKafka) -> int:
    return int(kafka.controller_servers.rpartition(":")[2])


def described(kafka: ApacheKafka) -> dict[str, str]:
    text = kafka.tool(TOPICS, "--bootstrap-server", kafka.bootstrap_servers, "--describe")
    heads = [line for line in text.splitlines() if line.startswith("Topic:")]
    return {head.split()[1]: head for head in heads}


def test_apache_boots_from_a_directory_that_ours_formatted(apache: ApacheKafka):
    Written(apache.data_dir, controller_port(apache))
    apache.start()
    apache.create_topic("orders")
    assert set(described(apache)) == {"orders"}


def test_apache_boots_from_a_log_that_ours_wrote(apache: ApacheKafka):
    ours = Written(apache.data_dir, controller_port(apache))
    ours.live()
    apache.start()
    topics = described(apache)
    assert set(topics) == {"orders", "pay.ments"}
    for name, head in topics.items():
        assert uuid_text(ours.image.topics_by_name[name].topic_id) in head
    assert "retention.ms=123456789" in topics["orders"]
    assert "PartitionCount: 3" in topics["orders"]


def test_apache_boots_from_a_snapshot_that_ours_wrote(apache: ApacheKafka):
    ours = Written(apache.data_dir, controller_port(apache))
    ours.live()
    ours.snapshot()
    (apache.data_dir / METADATA_DIR / "00000000000000000000.log").unlink()
    apache.start()
    assert set(described(apache)) == {"orders", "pay.ments"}


def test_apaches_dump_reads_log_and_snapshot(apache_jars: Path, tmp_path: Path):
    ours = Written(tmp_path, 9093)
    ours.live()
    snapshot = ours.snapshot()
    log = tmp_path / METADATA_DIR / "00000000000000000000.log"
    for path, count in ((log, ours.end_offset), (snapshot, None)):
        text = dump_log(path, "--cluster-metadata-decoder")
        assert "isvalid: false" not in text
        assert "Exception" not in text
        assert '"name":"orders"' in text
        if count is not None:
            assert text.count("| offset:") == count
