"""The image: the cluster's state as the metadata log tells it.

`replay` reads one record and is the only thing that changes the state. Between BeginTransaction and EndTransaction
records are kept back; they take effect at the end, or never if the transaction is aborted. A record that does not fit
raises MetadataFault and changes nothing; one that cannot be understood raises UnsupportedMetadataError.

Hard state, equal in any two images that have read the same log or a snapshot of it: topics, brokers, controllers,
configs, features, quotas, ACLs, SCRAM credentials, delegation tokens, the next producer id, the open transaction, and
the offset and epoch of the last record.

Soft fields, which a snapshot does not hold: `registered_at` and `shutdown_at`, the offsets at which a broker was last
registered and began its controlled shutdown (from a snapshot: its last offset, which is never too low), and `changes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from itertools import count
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ottla.core.access.acls import Acl
from ottla.core.metadata import features as feature_levels
from ottla.core.metadata.cluster_image import (
    FENCE,
    UNFENCE,
    BrokerImage,
    ControllerImage,
    broker_from_record,
    change_broker,
    controller_from_record,
)
from ottla.core.metadata.fault import MetadataFault, UnsupportedMetadataError
from ottla.core.metadata.topic_image import PartitionImage, TopicImage, merge, partition_from_record
from ottla.core.metadata.topic_names import has_collision_chars, unified
from ottla.wire.keyed import Versioned
from ottla.wire.types import cluster_metadata as log

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Resource types of configs."""

CLUSTER_DEFAULT: Final = ""
"""The broker resource whose configs hold for all brokers."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""(entity type, name or None for the default), sorted by type."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_GENERATIONS: Final = count(1)
"""An image copies a topic of another generation than its own before it changes it: another image may have it, too."""


class Changes(msgspec.Struct):
    """What replaying has changed since the last time somebody asked."""

    topics_created: dict[bytes, TopicImage] = {}
    topics_deleted: dict[bytes, TopicImage] = {}
    partitions: set[tuple[bytes, int]] = set()
    configs: set[tuple[int, str]] = set()
    brokers: set[int] = set()
    controllers: set[int] = set()
    features: bool = False
    quotas: set[QuotaEntity] = set()
    acls: set[bytes] = set()
    scram: set[tuple[int, str]] = set()
    tokens: set[str] = set()


class MetadataImage:
    """The state, its lookups, and `replay`."""

    __slots__ = (
        "_collisions",
        "_configs",
        "_generation",
        "_pending",
        "acl_rules",
        "acls",
        "brokers",
        "changes",
        "controllers",
        "features",
        "last_epoch",
        "last_offset",
        "led_counts",
        "next_producer_id",
        "quotas",
        "registered_at",
        "scram",
        "shutdown_at",
        "tokens",
        "topics_by_id",
        "topics_by_name",
        "transaction_start_offset",
    )

    def __init__(self) -> None:
        self.topics_by_name: dict[str, TopicImage] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.features: dict[str, int] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[bytes, log.AccessControlEntryRecord] = {}
        self.acl_rules: Counter[Acl] = Counter()
        """What the records of ACLs say, to find out quickly whether a rule is there."""
        self.scram: dict[tuple[int, str], log.UserScramCredentialRecord] = {}
        self.tokens: dict[str, log.DelegationTokenRecord] = {}
        self.led_counts: dict[int, int] = {}
        """How many partitions each broker leads, which follows from the topics. Nobody has to walk through them."""
        self.next_producer_id = -1
        self.last_offset = -1
        self.last_epoch = -1
        self.transaction_start_offset = -1
        self.registered_at: dict[int, int] = {}
        self.shutdown_at: dict[int, int] = {}
        self.changes = Changes()
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._collisions: dict[str, set[str]] = {}
        self._pending: list[tuple[Any, int]] = []
        self._generation = next(_GENERATIONS)

    # --- reading

    def __eq__(self, other: object) -> bool:
        return self.state() == other.state() if isinstance(other, MetadataImage) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def state(self) -> dict[str, object]:
        """The hard state by name, to compare."""
        return {
            "topics": self.topics_by_id,
            "topic names": {name: topic.topic_id for name, topic in self.topics_by_name.items()},
            "brokers": self.brokers,
            "controllers": self.controllers,
            "configs": self._configs,
            "features": self.features,
            "quotas": self.quotas,
            "acls": self.acls,
            "scram": self.scram,
            "tokens": self.tokens,
            "next producer id": self.next_producer_id,
            "transaction": (self.transaction_start_offset, self._pending),
            "position": (self.last_offset, self.last_epoch),
        }

    @property
    def metadata_version(self) -> int:
        """The finalized level; 0 before the first record of a new cluster."""
        return self.features.get(feature_levels.METADATA_VERSION, 0)

    def all_support(self, feature: str, level: int) -> bool:
        """Whether every broker that is registered, fenced or not, supports a level of a feature."""
        return all(each.features.get(feature, (0, 0))[1] >= level for each in self.brokers.values())

    @property
    def elr_enabled(self) -> bool:
        return feature_levels.elr_enabled(self.features)

    @property
    def in_transaction(self) -> bool:
        return self.transaction_start_offset >= 0

    def topic(self, name: str) -> TopicImage | None:
        return self.topics_by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def partition(self, name: str, partition_id: int) -> PartitionImage | None:
        topic = self.topics_by_name.get(name)
        return None if topic is None else topic.partitions.get(partition_id)

    def partitions(self) -> Iterator[tuple[TopicImage, PartitionImage]]:
        """Every partition of the cluster."""
        for topic in self.topics_by_id.values():
            for partition in topic.partitions.values():
                yield topic, partition

    def configs(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What was set dynamically on one resource; later changes do not show in what was given out."""
        return self._configs.get((resource_type, name), _NOTHING)

    def all_configs(self) -> Iterator[tuple[tuple[int, str], Mapping[str, str]]]:
        """(resource type, name) and what was set there, for every resource."""
        return iter(self._configs.items())

    def config_resources(self, resource_type: int) -> list[str]:
        """The resources of a type on which something was set."""
        return [name for kind, name in self._configs if kind == resource_type]

    def collisions(self, name: str) -> frozenset[str]:
        """Topics whose names are the same once dots and underscores are."""
        return frozenset(self._collisions.get(unified(name), ()))

    def fork(self) -> MetadataImage:
        """The same state in an image of its own; from now on each changes alone.

        Costs a copy of the tables, not of what is in them. Snapshots are written from a fork, slice by slice; the
        active controller works on one that is ahead of what is committed.
        """
        fork = MetadataImage()
        for name in self.__slots__:
            setattr(fork, name, copy(getattr(self, name)))
        fork.changes = Changes()
        fork._collisions = {key: set(names) for key, names in self._collisions.items()}
        fork._generation, self._generation = next(_GENERATIONS), next(_GENERATIONS)
        return fork

    def become(self, other: MetadataImage) -> dict[bytes, TopicImage]:
        """Take over the state of another image, which is not used any more; `changes` tells how it differs.

        Returns the topics as they were. To free thousands of them takes milliseconds: let go of a few at a time.
        """
        former = self.topics_by_id
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
        self._generation = next(_GENERATIONS)
        return former

    def take_changes(self) -> Changes:
        """What has changed since the last call."""
        changes, self.changes = self.changes, Changes()
        return changes

    # --- replaying

    def replay(self, record: Any, offset: int, epoch: int) -> None:  # noqa: ANN401 - any of 26 record classes
        """Apply one data record of the metadata log, which lies at `offset` and was written in `epoch`."""
        try:
            self._replay(record, offset)
        except UnsupportedMetadataError as fault:
            raise UnsupportedMetadataError(f"offset {offset}, {type(record).__name__}: {fault}") from None
        except MetadataFault as fault:
            raise MetadataFault(f"offset {offset}, {type(record).__name__}: {fault}") from None
        finally:
            self.last_offset, self.last_epoch = offset, epoch

    def replay_all(self, records: Iterable[Versioned], base_offset: int, epoch: int) -> None:
        """Apply the records of one batch."""
        for offset, record in enumerate(records, base_offset):
            self.replay(record.message, offset, epoch)

    def _replay(self, record: Any, offset: int) -> None:  # noqa: ANN401
        kind = type(record)
        boundary = _TRANSACTIONS.get(kind)
        if boundary is not None:
            boundary(self, record, offset)
        elif kind not in _APPLY:
            raise UnsupportedMetadataError("is no record of the metadata log that ottla knows")
        elif self.in_transaction:
            self._pending.append((record, offset))
        else:
            _APPLY[kind](self, record, offset)

    def _begin_transaction(self, record: log.BeginTransactionRecord, offset: int) -> None:
        if self.in_transaction:
            raise MetadataFault(f"the transaction of offset {self.transaction_start_offset} is still open")
        self.transaction_start_offset = offset

    def _end_transaction(self, record: log.EndTransactionRecord, offset: int) -> None:
        pending = self._close_transaction()
        faults: list[str] = []
        for kept_back, at in pending:
            try:
                _APPLY[type(kept_back)](self, kept_back, at)
            except UnsupportedMetadataError:
                raise
            except MetadataFault as fault:
                # The others are as good as they would be outside of a transaction.
                faults.append(f"offset {at}, {type(kept_back).__name__}: {fault}")
        if faults:
            raise MetadataFault("; ".join(faults))

    def _abort_transaction(self, record: log.AbortTransactionRecord, offset: int) -> None:
        self._close_transaction()

    def _close_transaction(self) -> list[tuple[Any, int]]:
        if not self.in_transaction:
            raise MetadataFault("no transaction is open")
        pending, self._pending = self._pending, []
        self.transaction_start_offset = -1
        return pending

    # --- topics

    def _topic_record(self, record: log.TopicRecord, offset: int) -> None:
        if record.name in self.topics_by_name or record.topic_id in self.topics_by_id:
            raise MetadataFault(f"topic {record.name!r} or its id exists already")
        topic = TopicImage(record.name, record.topic_id, generation=self._generation)
        self.topics_by_name[record.name] = self.topics_by_id[record.topic_id] = topic
        if has_collision_chars(record.name):
            self._collisions.setdefault(unified(record.name), set()).add(record.name)
        self.changes.topics_created[record.topic_id] = topic

    def _remove_topic(self, record: log.RemoveTopicRecord, offset: int) -> None:
        topic = self._known_topic(record.topic_id)
        del self.topics_by_id[topic.topic_id], self.topics_by_name[topic.name]
        for partition in topic.partitions.values():
            self._count_led(partition, -1)
        colliding = self._collisions.get(unified(topic.name), set())
        colliding.discard(topic.name)
        if not colliding:
            self._collisions.pop(unified(topic.name), None)
        if self._configs.pop((TOPIC, topic.name), None) is not None:
            self.changes.configs.add((TOPIC, topic.name))
        if self.changes.topics_created.pop(topic.topic_id, None) is None:
            self.changes.topics_deleted[topic.topic_id] = topic

    def _partition(self, record: log.PartitionRecord, offset: int) -> None:
        self._known_topic(record.topic_id)
        if record.partition_id < 0:
            raise MetadataFault(f"there is no partition {record.partition_id}")
        self._put_partition(record.topic_id, partition_from_record(record))

    def _partition_change(self, record: log.PartitionChangeRecord, offset: int) -> None:
        partition = self._known_topic(record.topic_id).partitions.get(record.partition_id)
        if partition is None:
            raise MetadataFault(f"there is no partition {record.partition_id}")
        self._put_partition(record.topic_id, merge(partition, record))

    def _clear_elr(self, record: log.ClearElrRecord, offset: int) -> None:
        if record.topic_name and record.topic_name not in self.topics_by_name:
            raise MetadataFault(f"there is no topic {record.topic_name!r}")
        names = [record.topic_name] if record.topic_name else list(self.topics_by_name)
        for topic in [self.topics_by_name[name] for name in names]:
            for partition in [each for each in topic.partitions.values() if each.elr or each.last_known_elr]:
                cleared = log.PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
                self._put_partition(topic.topic_id, merge(partition, cleared))

    def _known_topic(self, topic_id: bytes) -> TopicImage:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MetadataFault(f"there is no topic with the id {topic_id.hex()}")
        return topic

    def _put_partition(self, topic_id: bytes, partition: PartitionImage) -> None:
        topic = self.topics_by_id[topic_id]
        if topic.generation != self._generation:
            topic = topic.copy(self._generation)
            self.topics_by_id[topic_id] = self.topics_by_name[topic.name] = topic
            if topic_id in self.changes.topics_created:
                self.changes.topics_created[topic_id] = topic
        former = topic.partitions.get(partition.partition_id)
        topic.partitions[partition.partition_id] = partition
        if former is None or former.leader != partition.leader:
            self._count_led(partition, 1)
            if former is not None:
                self._count_led(former, -1)
        self.changes.partitions.add((topic_id, partition.partition_id))

    def _count_led(self, partition: PartitionImage, step: int) -> None:
        self.led_counts[partition.leader] = self.led_counts.get(partition.leader, 0) + step

    # --- brokers and controllers

    def _register_broker(self, record: log.RegisterBrokerRecord, offset: int) -> None:
        self.registered_at[record.broker_id] = offset
        self._put_broker(broker_from_record(record), offset)

    def _unregister_broker(self, record: log.UnregisterBrokerRecord, offset: int) -> None:
        self._known_broker(record.broker_id, record.broker_epoch)
        del self.brokers[record.broker_id]
        self.registered_at.pop(record.broker_id, None)
        self.shutdown_at.pop(record.broker_id, None)
        self.changes.brokers.add(record.broker_id)

    def _change_broker(self, record: log.BrokerRegistrationChangeRecord, offset: int) -> None:
        broker = self._known_broker(record.broker_id, record.broker_epoch)
        self._put_broker(change_broker(broker, record), offset)

    def _fence_broker(self, record: log.FenceBrokerRecord, offset: int) -> None:
        self._change_broker(log.BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=FENCE), offset)

    def _unfence_broker(self, record: log.UnfenceBrokerRecord, offset: int) -> None:
        self._change_broker(log.BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=UNFENCE), offset)

    def _known_broker(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataFault(f"broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise MetadataFault(f"broker {broker_id} has the epoch {broker.epoch}, not {epoch}")
        return broker

    def _put_broker(self, broker: BrokerImage, offset: int) -> None:
        if not broker.in_controlled_shutdown:
            self.shutdown_at.pop(broker.broker_id, None)
        else:
            self.shutdown_at.setdefault(broker.broker_id, offset)
        self.brokers[broker.broker_id] = broker
        self.changes.brokers.add(broker.broker_id)

    def _register_controller(self, record: log.RegisterControllerRecord, offset: int) -> None:
        self.controllers[record.controller_id] = controller_from_record(record)
        self.changes.controllers.add(record.controller_id)

    # --- the rest

    def _feature_level(self, record: log.FeatureLevelRecord, offset: int) -> None:
        if record.name == feature_levels.KRAFT_VERSION:
            return  # the quorum keeps it; some old logs have it by mistake
        if not feature_levels.is_known(record.name, record.feature_level):
            low, high = feature_levels.supported(is_unstable=True).get(record.name, (0, 0))
            raise UnsupportedMetadataError(
                f"{record.name} is at level {record.feature_level}; this software runs with {low} to {high}"
            )
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        self.changes.features = True

    def _config(self, record: log.ConfigRecord, offset: int) -> None:
        resource = (record.resource_type, record.resource_name)
        # A new table each time: who was given the old one keeps what he was given.
        configs = dict(self._configs.get(resource, ()))
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if configs:
            self._configs[resource] = configs
        else:
            self._configs.pop(resource, None)
        self.changes.configs.add(resource)

    def _client_quota(self, record: log.ClientQuotaRecord, offset: int) -> None:
        entity = tuple(sorted({part.entity_type: part.entity_name for part in record.entity}.items()))
        quotas = dict(self.quotas.get(entity, ()))
        if record.remove:
            quotas.pop(record.key, None)
        else:
            quotas[record.key] = record.value
        if quotas:
            self.quotas[entity] = quotas
        else:
            self.quotas.pop(entity, None)
        self.changes.quotas.add(entity)

    def _producer_ids(self, record: log.ProducerIdsRecord, offset: int) -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise MetadataFault(f"the next producer id falls from {self.next_producer_id} to {record.next_producer_id}")
        self.next_producer_id = record.next_producer_id

    def _acl(self, record: log.AccessControlEntryRecord, offset: int) -> None:
        former = self.acls.get(record.id)
        if former is not None:
            self._forget_rule(former)
        self.acls[record.id] = record
        self.acl_rules[Acl.of(record)] += 1
        self.changes.acls.add(record.id)

    def _remove_acl(self, record: log.RemoveAccessControlEntryRecord, offset: int) -> None:
        former = self.acls.pop(record.id, None)
        if former is None:
            raise MetadataFault(f"there is no ACL with the id {record.id.hex()}")
        self._forget_rule(former)
        self.changes.acls.add(record.id)

    def _forget_rule(self, record: log.AccessControlEntryRecord) -> None:
        rule = Acl.of(record)
        self.acl_rules[rule] -= 1
        if not self.acl_rules[rule]:
            del self.acl_rules[rule]

    def _scram(self, record: log.UserScramCredentialRecord, offset: int) -> None:
        self.scram[record.mechanism, record.name] = record
        self.changes.scram.add((record.mechanism, record.name))

    def _remove_scram(self, record: log.RemoveUserScramCredentialRecord, offset: int) -> None:
        if self.scram.pop((record.mechanism, record.name), None) is None:
            raise MetadataFault(f"user {record.name!r} has no credential of mechanism {record.mechanism}")
        self.changes.scram.add((record.mechanism, record.name))

    def _token(self, record: log.DelegationTokenRecord, offset: int) -> None:
        self.tokens[record.token_id] = record
        self.changes.tokens.add(record.token_id)

    def _remove_token(self, record: log.RemoveDelegationTokenRecord, offset: int) -> None:
        if self.tokens.pop(record.token_id, None) is None:
            raise MetadataFault(f"there is no delegation token {record.token_id!r}")
        self.changes.tokens.add(record.token_id)

    def _nothing(self, record: object, offset: int) -> None:
        """Read and left: NoOp, and the state of migrations that 4.x no longer has."""


_Apply = Callable[[MetadataImage, Any, int], None]

_TRANSACTIONS: Final[dict[type, _Apply]] = {
    log.BeginTransactionRecord: MetadataImage._begin_transaction,
    log.EndTransactionRecord: MetadataImage._end_transaction,
    log.AbortTransactionRecord: MetadataImage._abort_transaction,
}
_APPLY: Final[dict[type, _Apply]] = {
    log.RegisterBrokerRecord: MetadataImage._register_broker,
    log.UnregisterBrokerRecord: MetadataImage._unregister_broker,
    log.TopicRecord: MetadataImage._topic_record,
    log.PartitionRecord: MetadataImage._partition,
    log.ConfigRecord: MetadataImage._config,
    log.PartitionChangeRecord: MetadataImage._partition_change,
    log.FenceBrokerRecord: MetadataImage._fence_broker,
    log.UnfenceBrokerRecord: MetadataImage._unfence_broker,
    log.RemoveTopicRecord: MetadataImage._remove_topic,
    log.DelegationTokenRecord: MetadataImage._token,
    log.UserScramCredentialRecord: MetadataImage._scram,
    log.FeatureLevelRecord: MetadataImage._feature_level,
    log.ClientQuotaRecord: MetadataImage._client_quota,
    log.ProducerIdsRecord: MetadataImage._producer_ids,
    log.BrokerRegistrationChangeRecord: MetadataImage._change_broker,
    log.AccessControlEntryRecord: MetadataImage._acl,
    log.RemoveAccessControlEntryRecord: MetadataImage._remove_acl,
    log.NoOpRecord: MetadataImage._nothing,
    log.ZkMigrationStateRecord: MetadataImage._nothing,
    log.RemoveUserScramCredentialRecord: MetadataImage._remove_scram,
    log.RemoveDelegationTokenRecord: MetadataImage._remove_token,
    log.RegisterControllerRecord: MetadataImage._register_controller,
    log.ClearElrRecord: MetadataImage._clear_elr,
}
