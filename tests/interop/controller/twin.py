"""The same history for two controllers: an Apache Kafka node that is only a controller, and our own core.

    twin = Twin(apache)
    twin.register(1)
    twin.ask(CreateTopicsRequest(...), 7)

Each request goes as a frame to Apache's listener and then, unchanged, to our core at the same log offset. The reply and
the records that Apache wrote are compared with ours. Ids that Apache has drawn are given to ours. What is left out: the
words of error messages, settings in replies, and the order of partitions and topics where it is that of a hash table.
Where ours differs (docs/reference/differences.md: fenced-again, elr-removed-replica), Apache's records are taken as
ours would be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import Any

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.cluster_image import FENCE
from ottla.core.metadata.config_rules import Rules
from ottla.core.metadata.context import Context, ControllerSettings, Result
from ottla.core.metadata.controller import Controller
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import read_batch
from ottla.core.metadata.topic_image import PartitionImage
from ottla.wire import frames, uuid_bytes
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.keyed import Versioned, encode_framed
from ottla.wire.types.alter_client_quotas import AlterClientQuotasResponse
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
)
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.elect_leaders import ElectLeadersResponse
from ottla.wire.types.envelope import EnvelopeRequest
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsResponse
from ottla.wire.types.principal import DefaultPrincipalData
from tests.component.broker.raw_client import RawClient, key_of
from tests.interop.apache import CLUSTER_ID, NODE_ID, ApacheKafka

PERIOD_S = 0.05
SLACK_MS = 1_000
TOKEN_CHECK_MS = 2_000
ATTEMPTS = 400
SETTLE_S = 120
EPOCH = 1


class ControllerOnly(ApacheKafka):
    """An Apache Kafka node that is a controller and no broker. Nothing but requests and sessions make it write."""

    def _properties(self) -> dict[str, str]:
        listener = f"CONTROLLER://{self.controller_servers}"
        return super()._properties() | {
            "process.roles": "controller",
            "listeners": listener,
            "advertised.listeners": listener,
            "metadata.max.idle.interval.ms": "0",
        }


class Difference(AssertionError):
    """Ours has answered or written something else."""


class Twin:
    def __init__(
        self,
        apache: ApacheKafka,
        session_timeout_ms: int,
        leader_interval_ms: int = 300_000,
        *,
        kraft_version: int = 1,
        **settings: Any,
    ) -> None:
        self.client = RawClient.at(apache.controller_servers)
        self._path = apache.data_dir / "__cluster_metadata-0" / "00000000000000000000.log"
        self.image = MetadataImage()
        self.end_offset = 0
        self._settle()
        settings = ControllerSettings(
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            broker_session_timeout_ms=session_timeout_ms,
            leader_imbalance_check_interval_ms=leader_interval_ms,
            unclean_election_interval_ms=leader_interval_ms,
            **settings,
        )
        self.kraft_version = kraft_version
        self.controller = Controller(self.image, Rules({}), settings)
        assert self.controller.activate((), self.now_ms).records == ()
        self.request_count = 0
        self.record_count = 0
        self.codes: set[int] = set()

    @property
    def now_ms(self) -> int:
        return int(time.monotonic() * 1000)

    # --- Apache's log

    def _batches(self) -> Iterator[BatchView]:
        """What it has written since the last look."""
        for batch in split_batches(self._path.read_bytes()):
            if isinstance(batch, BatchView) and batch.base_offset >= self.end_offset:
                yield batch

    def _settle(self) -> None:
        """Take over what it writes by itself while it starts; its own registration comes last."""
        deadline = time.monotonic() + SETTLE_S
        before = -1
        while before != self.end_offset or not self.image.controllers:
            assert time.monotonic() < deadline, "the controller has not registered"
            before = self.end_offset
            for batch in self._batches():
                if not batch.is_control:
                    self.image.replay_all(read_batch(batch), batch.base_offset, batch.partition_leader_epoch)
                self.end_offset = batch.last_offset + 1
            time.sleep(1)
        self.image.take_changes()

    def _theirs(self) -> list[Versioned]:
        records: list[Versioned] = []
        for batch in self._batches():
            if batch.is_control:
                # What the quorum writes is in its own comparison; here it only moves the log's end.
                assert not records
                self.end_offset = batch.next_offset
            else:
                records += read_batch(batch)
        return records

    # --- asking both

    def ask(self, request: Any, version: int) -> Any:
        """The reply, if both give the same and write the same. Difference if not."""
        early = self._theirs()
        assert not early, f"written without a request: {early}"
        return self._compare(request, version, self.client.ask(request, version))

    def ask_as(self, principal: str, request: Any, version: int, wall_ms: Callable[[Any], int]) -> Any:
        """The same for a request that a broker passes on for its client; the reply tells the time at Apache's."""
        assert not self._theirs()
        reply = self.pass_on(principal, request, version)
        return self._compare(request, version, reply, principal=principal, wall_ms=wall_ms(reply))

    def pass_on(self, principal: str, request: Any, version: int) -> Any:
        """Apache's reply alone to a request that a broker passes on."""
        kind, _, name = principal.partition(":")
        envelope = EnvelopeRequest(
            frames.write_request(request, version, correlation_id=1, client_id="test")[frames.SIZE_BYTES :],
            encode_framed(DefaultPrincipalData(kind, name), 0),
            bytes((127, 0, 0, 1)),
        )
        answer = self.client.ask(envelope, 0)
        assert answer.error_code == 0, answer
        return frames.read_response(bytes(answer.response_data), key_of(request), version).body

    def _compare(self, request: Any, version: int, reply: Any, **circumstances: Any) -> Any:
        result = self._compare_answers(request, version, reply, **circumstances)
        self._compare_records(request, result, self._theirs())
        self.request_count += 1
        self.codes |= set(codes(reply))
        return reply

    def _compare_answers(self, request: Any, version: int, reply: Any, **circumstances: Any) -> Result:
        ids = iter(drawn(reply))
        context = Context(
            now_ms=self.now_ms,
            log_end_offset=self.end_offset,
            new_uuid=lambda: next(ids),
            api_version=version,
            kraft_version=self.kraft_version,
            **circumstances,
        )
        result = self.controller.handle(request, context)
        if result.kraft_upgrade is not None and not result.kraft_upgrade.validate_only:
            self.kraft_version = result.kraft_upgrade.level
        ours, theirs = comparable(result.reply), comparable(reply)
        if ours != theirs:
            raise Difference(f"{request}\nours answers   {ours}\nApache answers {theirs}")
        return result

    def _compare_records(self, cause: object, result: Result, theirs: list[Versioned]) -> None:
        end_offset = self.end_offset + len(theirs)
        theirs = [self._without_strangers(record) for record in theirs if not self._fences_again(record)]
        written: list[Versioned] = []
        for records in chain((result.records,), result.rest):
            self.image.replay_all(records, self.end_offset + len(written), EPOCH)
            written += records
        if in_order(written) != in_order(theirs):
            ours_text = "\n  ".join(map(said, in_order(written)))
            theirs_text = "\n  ".join(map(said, in_order(theirs)))
            raise Difference(f"{cause}\nours writes\n  {ours_text}\nApache writes\n  {theirs_text}")
        self.record_count += len(theirs)
        self.end_offset = end_offset

    def _fences_again(self, record: Versioned) -> bool:
        """Apache writes once more that a fenced broker is fenced when it stops or falls silent; ours does not."""
        fencing = BrokerRegistrationChangeRecord(
            getattr(record.message, "broker_id", -1), getattr(record.message, "broker_epoch", -1), fenced=FENCE
        )
        return record.message == fencing and self.image.brokers[fencing.broker_id].fenced

    def _without_strangers(self, record: Versioned) -> Versioned:
        """Apache keeps replicas that were taken away eligible to lead; ours does not."""
        change = record.message
        if not isinstance(change, PartitionChangeRecord) or change.eligible_leader_replicas is None:
            return record
        partition = self.image.topics_by_id[change.topic_id].partitions[change.partition_id]
        replicas = partition.replicas if change.replicas is None else change.replicas
        elr = tuple(each for each in change.eligible_leader_replicas if each in replicas)
        new = None if elr == partition.elr else elr
        return Versioned(msgspec.structs.replace(change, eligible_leader_replicas=new), record.version)

    def wait_for_change(self, *alive: int, phase_ms: int = SLACK_MS) -> None:
        """Time passes, in which only these brokers are heard of, until Apache does something; ours does the same.

        What both do on an interval, they do up to `phase_ms` apart.
        """
        for attempt in range(ATTEMPTS):
            theirs = self._theirs()
            if theirs:
                self._compare_records("time has passed", self._tick(theirs, phase_ms), theirs)
                return
            if attempt % 10 == 0:
                for broker_id in alive:
                    self._stay(broker_id)
            time.sleep(PERIOD_S)
        raise AssertionError("Apache does nothing")

    def _stay(self, broker_id: int) -> None:
        """A heartbeat without effect. What Apache writes meanwhile comes of the time that has passed."""
        broker = self.image.brokers[broker_id]
        request = BrokerHeartbeatRequest(broker_id, broker.epoch, self.end_offset - 1, want_fence=broker.fenced)
        result = self._compare_answers(request, 2, self.client.ask(request, 2))
        assert not result.records, f"ours writes {result.records}"

    def _tick(self, theirs: list[Versioned], phase_ms: int) -> Result:
        """The first thing that is due in our controller and is not without effect."""
        while (result := self.controller.tick(self.now_ms + phase_ms, int(time.time() * 1000))) is not None:
            if result.records:
                return result
        raise Difference(f"Apache writes {theirs}, ours nothing")

    def check_state(self) -> None:
        """What Apache's whole log says is what ours has become by its own records."""
        image = MetadataImage()
        for batch in split_batches(self._path.read_bytes()):
            assert isinstance(batch, BatchView)
            if not batch.is_control:
                image.replay_all(read_batch(batch), batch.base_offset, EPOCH)
        for topic, partition in list(image.partitions()):
            elr = tuple(each for each in partition.elr if each in partition.replicas)
            topic.partitions[partition.partition_id] = msgspec.structs.replace(partition, elr=elr)
        ours, theirs = self.image.state(), image.state()
        del ours["position"], theirs["position"]
        assert ours == theirs

    # --- shortcuts

    def register(self, broker_id: int, version: int = 4, **fields: Any) -> Any:
        return self.ask(registration(broker_id, **fields), version)

    def heartbeat(self, broker_id: int, version: int = 2, **fields: Any) -> Any:
        fields.setdefault("broker_epoch", self.image.brokers[broker_id].epoch)
        fields.setdefault("current_metadata_offset", self.end_offset - 1)
        return self.ask(BrokerHeartbeatRequest(broker_id, **fields), version)

    def start(self, *broker_ids: int, **fields: Any) -> None:
        """Brokers register and are unfenced."""
        for broker_id in broker_ids:
            assert self.register(broker_id, **fields).error_code == 0
            self.heartbeat(broker_id, want_fence=True, cordoned_log_dirs=())
            assert not self.heartbeat(broker_id).is_fenced

    def create(self, name: str, *replicas: tuple[int, ...], **configs: str) -> Any:
        """A topic with these replicas for its partitions."""
        kind = CreateTopicsRequest
        assignments = tuple(kind.CreatableReplicaAssignment(number, each) for number, each in enumerate(replicas))
        settings = tuple(kind.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
        topic = kind.CreatableTopic(name, -1, -1, assignments, settings)
        return self.ask(kind((topic,)), 7)

    def partition(self, name: str, number: int = 0) -> PartitionImage:
        found = self.image.partition(name, number)
        assert found is not None
        return found

    def alter(self, name: str, isr: tuple[int, ...], number: int = 0, version: int = 3, **fields: Any) -> Any:
        """AlterPartition as the leader would send it, but for the fields given."""
        kind = AlterPartitionRequest
        now = self.partition(name, number)
        brokers = self.image.brokers
        sender = fields.pop("sender", now.leader)
        epoch = fields.pop("broker_epoch", brokers[sender].epoch if sender in brokers else 0)
        topic_id = fields.pop("topic_id", self.image.topics_by_name[name].topic_id)
        wrong = fields.pop("epochs", {})
        members = tuple(
            kind.BrokerState(each, wrong.get(each, brokers[each].epoch if each in brokers else -1)) for each in isr
        )
        given = {
            "partition_index": number,
            "leader_epoch": now.leader_epoch,
            "partition_epoch": now.partition_epoch,
            **({"new_isr": isr} if version < 3 else {"new_isr_with_epochs": members}),
            **fields,
        }
        topic = kind.TopicData(topic_id, (kind.PartitionData(**given),))
        return self.ask(kind(sender, epoch, (topic,)), version)


def uuid(number: int) -> bytes:
    return number.to_bytes(8, "big") + bytes(8)


def registration(broker_id: int, **fields: Any) -> BrokerRegistrationRequest:
    kind = BrokerRegistrationRequest
    given: dict[str, Any] = {
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid(1000 + broker_id),
        "listeners": (kind.Listener("PLAINTEXT", "127.0.0.1", 9000 + broker_id),),
        "features": tuple(kind.Feature(name, low, high) for name, (low, high) in features.SUPPORTED.items()),
        "rack": None,
        "log_dirs": (uuid(2000 + broker_id),),
        **fields,
    }
    return kind(broker_id, **given)


# --- what is compared

_OF_HASH_TABLES = (
    AlterClientQuotasResponse,
    AlterClientQuotasResponse.EntryData,
    ElectLeadersResponse,
    ElectLeadersResponse.ReplicaElectionResult,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse.OngoingTopicReassignment,
)
_SORTED = (PartitionChangeRecord, ConfigRecord, ClientQuotaRecord)
_LEFT_OUT = frozenset({"error_message", "configs", "throttle_time_ms", "topic_config_error_code", "unknown_tags"})


def comparable(reply: object) -> object:
    """A reply as plain values, without what is left out."""
    if isinstance(reply, msgspec.Struct):
        fields = {name: getattr(reply, name) for name in reply.__struct_fields__ if name not in _LEFT_OUT}
        if isinstance(reply, _OF_HASH_TABLES):
            for name in [name for name, value in fields.items() if isinstance(value, tuple)]:
                fields[name] = sorted(fields[name], key=lambda each: repr(comparable(each)))
        return {name: comparable(value) for name, value in fields.items()}
    if isinstance(reply, tuple | list):
        return [comparable(each) for each in reply]
    return int(reply) if isinstance(reply, int) else reply


def codes(reply: object) -> Iterator[int]:
    """All error codes in a reply."""
    if isinstance(reply, msgspec.Struct):
        for name in reply.__struct_fields__:
            value = getattr(reply, name)
            if name == "error_code":
                yield int(value)
            else:
                yield from codes(value)
    elif isinstance(reply, tuple | list):
        for each in reply:
            yield from codes(each)


def drawn(reply: Any) -> list[bytes]:
    """The ids that Apache has drawn for new topics, or for a delegation token."""
    if getattr(reply, "token_id", ""):
        return [uuid_bytes(reply.token_id)]
    return [topic.topic_id for topic in getattr(reply, "topics", ()) if any(getattr(topic, "topic_id", b""))]


def in_order(records: list[Versioned]) -> list[Versioned]:
    """Records with runs of changes to partitions, settings and quotas sorted: those come from hash tables."""
    ordered: list[Versioned] = []
    for kind, run in groupby(records, key=lambda record: type(record.message)):
        ordered += sorted(run, key=lambda record: repr(record.message) if kind in _SORTED else "")
    return ordered


def said(record: Versioned) -> str:
    """A record with the fields that are not at their defaults."""
    message = record.message
    default = type(message)()
    fields = {
        name: getattr(message, name)
        for name in message.__struct_fields__
        if getattr(message, name) != getattr(default, name)
    }
    return f"{type(message).__name__} v{record.version} {fields}"
