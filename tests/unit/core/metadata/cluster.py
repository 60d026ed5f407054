"""A cluster for tests: a controller, its image, and a log of batches in memory.

Everything that is submitted goes through bytes, as on a real node. `check_law` holds the state against what the log,
and any snapshot of it with the rest of the log, gives.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.context import Context, ControllerSettings, Result, allow_all, unlimited
from ottla.core.metadata.controller import Controller
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import build_batches, read_batch
from ottla.core.metadata.snapshot import load_snapshot, read_snapshot, snapshot_id, snapshot_records, write_snapshot
from ottla.wire import encode, versions
from ottla.wire.batch import read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.create_topics import CreateTopicsRequest
from tests.unit.core.metadata.simple_rules import SimpleRules

CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
NOW_MS = 1_800_000_000_000
EPOCH = 1
FIRST_OFFSET = 3  # the quorum's control records come before
SNAPSHOTS_PER_CHECK = 12


def uuid(number: int) -> bytes:
    """A usable id that is easy to tell."""
    return number.to_bytes(8, "big") + bytes(8)


def counter(start: int = 1000) -> Callable[[], bytes]:
    drawn = start

    def draw() -> bytes:
        nonlocal drawn
        drawn += 1
        return drawn.to_bytes(8, "big") + (drawn * 2654435761 % 2**64).to_bytes(8, "big")

    return draw


def newest_version(request: object) -> int:
    return max(versions(type(request).__name__))


class Cluster:
    def __init__(
        self, *, levels: dict[str, int] | None = None, settings: dict[str, Any] | None = None, bootstrap: bool = True
    ) -> None:
        self.image = MetadataImage()
        self.settings = ControllerSettings(node_id=1, cluster_id=CLUSTER_ID, **(settings or {}))
        self.controller = Controller(self.image, SimpleRules(), self.settings)
        self.log: list[bytes] = []
        self.end_offset = FIRST_OFFSET
        self.now_ms = NOW_MS
        self.new_uuid = counter()
        self.levels = levels or features.levels_for_format()
        if bootstrap:
            self.activate()

    def activate(self, **arguments: Any) -> Result:
        result = self.controller.activate(bootstrap_records(self.levels), self.now_ms, **arguments)
        self.append(result)
        return result

    def restart(self) -> None:
        """The node comes up again: state from the log, sessions from nothing."""
        self.image = replayed(self.log)
        self.controller = Controller(self.image, SimpleRules(), self.settings)

    def context(self, request: object, **overrides: Any) -> Context:
        context = Context(
            now_ms=self.now_ms,
            log_end_offset=self.end_offset,
            new_uuid=self.new_uuid,
            api_version=newest_version(request),
            wall_ms=self.now_ms,
            authorize=allow_all,
            charge=unlimited,
        )
        return msgspec.structs.replace(context, **overrides)

    def ask(self, request: Any, **overrides: Any) -> Result:
        """Handle without appending; that must leave the state as it is."""
        before = MetadataImage() if not self.log else replayed(self.log)
        result = self._handle(request, overrides)
        assert self.image == before, "handle has changed the state"
        return result

    def submit(self, request: Any, **overrides: Any) -> Any:
        """Handle, append, replay; gives the reply."""
        result = self._handle(request, overrides)
        self.append(result)
        return result.reply

    def _handle(self, request: Any, overrides: dict[str, Any]) -> Result:
        context = self.context(request, **overrides)
        result = self.controller.handle(request, context)
        assert encode(result.reply, context.api_version)
        return result

    def append(self, result: Result) -> list[Versioned]:
        appended = list(result.records)
        self._append(result)
        for records in result.rest:
            self._append(Result(records, None))
            appended += records
        return appended

    def _append(self, result: Result) -> None:
        batches = build_batches(result, base_offset=self.end_offset, epoch=EPOCH, timestamp_ms=self.now_ms)
        for batch in batches:
            records = read_batch(read_header(batch))
            self.image.replay_all(records, self.end_offset, EPOCH)
            self.end_offset += len(records)
        self.log += batches

    def tick(self) -> list[Versioned]:
        """Do everything that is due; gives the records."""
        records: list[Versioned] = []
        while (result := self.controller.tick(self.now_ms, self.now_ms)) is not None:
            records += self.append(result)
        return records

    # --- shortcuts

    def register(self, broker_id: int = 1, **fields: Any) -> int:
        """A broker registers; gives its epoch."""
        reply = self.submit(registration(broker_id, **fields))
        assert reply.error_code == 0, reply
        return int(reply.broker_epoch)

    def heartbeat(self, broker_id: int = 1, **fields: Any) -> Any:
        fields.setdefault("broker_epoch", self.image.brokers[broker_id].epoch)
        fields.setdefault("current_metadata_offset", self.end_offset - 1)
        return self.submit(BrokerHeartbeatRequest(broker_id, **fields))

    def with_brokers(self, *broker_ids: int, **fields: Any) -> "Cluster":
        """Registers brokers and unfences them."""
        for broker_id in broker_ids:
            self.register(broker_id, **fields)
            self.heartbeat(broker_id)
        return self

    def create(self, name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> bytes:
        """A topic; gives its id."""
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(
            name,
            partitions,
            replicas,
            configs=tuple(kind.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()),
        )
        reply = self.submit(kind((topic,)))
        assert reply.topics[0].error_code == 0, reply
        return bytes(reply.topics[0].topic_id)

    def in_sync(self, name: str, *isr: int) -> None:
        """The leader of a topic's only partition says who is in sync with it."""
        kind = AlterPartitionRequest
        topic = self.image.topics_by_name[name]
        (now,) = topic.partitions.values()
        members = tuple(map(kind.BrokerState, isr))
        data = kind.PartitionData(0, now.leader_epoch, (), members, 0, now.partition_epoch)
        asked = kind(now.leader, self.image.brokers[now.leader].epoch, (kind.TopicData(topic.topic_id, (data,)),))
        answer = self.submit(asked).topics[0].partitions[0]
        assert answer.error_code in (0, ErrorCode.NEW_LEADER_ELECTED), answer

    # --- the law

    def check_law(self) -> None:
        """state(live) == state(replayed log) == state(replayed from any snapshot + rest)"""
        assert self.image.state() == replayed(self.log).state()
        step = max(1, len(self.log) // SNAPSHOTS_PER_CHECK)
        for cut in range(0, len(self.log) + 1, step):
            resumed = through_snapshot(replayed(self.log[:cut]))
            if resumed is None:
                continue  # never in the middle of a transaction
            for batch in self.log[cut:]:
                replay_batch(resumed, batch)
            assert resumed.state() == self.image.state(), f"snapshot after batch {cut}"
            assert resumed.collisions("a.b") == self.image.collisions("a.b")


def replay_batch(image: MetadataImage, batch: bytes) -> None:
    header = read_header(batch)
    image.replay_all(read_batch(header), header.base_offset, header.partition_leader_epoch)


def replayed(log: Sequence[bytes]) -> MetadataImage:
    image = MetadataImage()
    for batch in log:
        replay_batch(image, batch)
    return image


def through_snapshot(image: MetadataImage) -> MetadataImage | None:
    """The image after a way through the bytes of a snapshot; None inside a transaction."""
    if image.in_transaction:
        return None
    identity = snapshot_id(image)
    data = b"".join(
        write_snapshot(
            snapshot_records(image),
            epoch=identity.epoch,
            timestamp_ms=NOW_MS,
            last_contained_log_timestamp=NOW_MS,
            kraft_version=0,
            voters=None,
        )
    )
    return load_snapshot(read_snapshot(data), identity)


def registration(broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
    """A registration that is fine."""
    kind = BrokerRegistrationRequest
    defaults: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid(100 + broker_id),
        "listeners": (kind.Listener("PLAINTEXT", "127.0.0.1", 9092),),
        "features": tuple(kind.Feature(name, low, high) for name, (low, high) in features.SUPPORTED.items()),
        "rack": None,
        "log_dirs": (uuid(200 + broker_id),),
    }
    return BrokerRegistrationRequest(broker_id, **{**defaults, **fields})
