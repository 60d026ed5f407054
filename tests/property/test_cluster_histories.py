"""Brokers come, go, crash, lose disks and are fenced, controllers change, and partitions are written, led and moved.

Beside the controller runs a model of what the brokers do with it: how many records each replica has, and how many are
committed. A leader commits what all in-sync replicas have, as long as these are enough; a broker that crashes may lose
the end of its logs. Whatever happens,

- a partition has one leader in a leader epoch, and the leader is in sync, after every single record of the log;
- a member of ISR or ELR has all that is committed, unless it has crashed and the controller cannot know yet. (Before
  there was an ELR, the last in-sync replica was trusted even after a crash);
- a reassignment ends, or can be cancelled;
- the log, and any snapshot with the rest of the log, give the state that the controller has;
- after a change of controller nobody is fenced who had no time to report, and whoever is dead is fenced when its
  session is over.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.metadata import features
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import read_batch
from ottla.core.metadata.topic_image import NO_LEADER, RECOVERED, PartitionImage
from ottla.wire.batch import read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.cluster_metadata import BrokerRegistrationChangeRecord
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.core.metadata.cluster import Cluster, registration, uuid

BROKERS = (1, 2, 3, 4)
REPLICAS = ((1, 2, 3), (2, 3, 4), (3, 4), (4,))
SESSION_MS = 9_000

At = tuple[bytes, int]


class Broker:
    """A broker's process, as far as the controller can tell."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.lives = 0
        self.disks = 0
        self.is_up = False
        self.has_crashed = False
        """Since it last registered: it may lack what it had."""
        self.is_stopping = False
        self.stopped_at = -1
        """The epoch of its last life if it has stopped in order."""

    @property
    def directory(self) -> bytes:
        return uuid(10_000 + 100 * self.broker_id + self.disks)


class World:
    """A cluster, its brokers, and the records of its partitions."""

    def __init__(self, seed: int, metadata_version: int) -> None:
        self.source = random.Random(seed)
        levels = features.levels_for_format({features.METADATA_VERSION: metadata_version})
        self.cluster = Cluster(levels=levels)
        self.brokers = {broker_id: Broker(broker_id) for broker_id in BROKERS}
        self.ends: dict[tuple[At, int], int] = {}
        self.committed: dict[At, int] = {}
        self.known: dict[At, PartitionImage] = {}
        for broker in self.brokers.values():
            self.restart(broker)
        kind = CreateTopicsRequest
        for number, replicas in enumerate(REPLICAS):
            assignment = (kind.CreatableReplicaAssignment(0, replicas),)
            config = (kind.CreatableTopicConfig("min.insync.replicas", self.source.choice("12")),)
            self.cluster.submit(kind((kind.CreatableTopic(f"t{number}", -1, -1, assignment, config),)))
        assert len(self.partitions()) == len(REPLICAS)
        self.check()

    # --- what is

    def partitions(self) -> dict[At, PartitionImage]:
        return {(topic.topic_id, each.partition_id): each for topic, each in self.cluster.image.partitions()}

    def any_partition(self) -> tuple[At, PartitionImage]:
        return self.source.choice(list(self.partitions().items()))

    def any_broker(self) -> Broker:
        return self.brokers[self.source.choice(BROKERS)]

    def end(self, at: At, broker_id: int) -> int:
        return self.ends.get((at, broker_id), 0)

    def min_isr(self, at: At) -> int:
        topic = self.cluster.image.topics_by_id[at[0]]
        configured = int(self.cluster.image.configs(2, topic.name).get("min.insync.replicas", "1"))
        return min(configured, len(topic.partitions[at[1]].replicas))

    def serves(self, broker_id: int) -> bool:
        registered = self.cluster.image.brokers.get(broker_id)
        return self.brokers[broker_id].is_up and registered is not None and registered.is_active

    # --- what brokers do

    def restart(self, broker: Broker) -> None:
        if broker.is_up:
            return
        broker.lives += 1
        request = registration(
            broker.broker_id,
            incarnation_id=uuid(20_000 + 100 * broker.broker_id + broker.lives),
            previous_broker_epoch=broker.stopped_at,
            log_dirs=(broker.directory,),
        )
        if self.cluster.submit(request).error_code == 0:
            broker.is_up = True
            broker.has_crashed = False
            broker.is_stopping = False
            broker.stopped_at = -1
            self.beat(broker)

    def beat(self, broker: Broker) -> None:
        if not broker.is_up:
            return
        reply = self.cluster.heartbeat(broker.broker_id, want_shut_down=broker.is_stopping)
        if reply.should_shut_down:
            broker.stopped_at = self.cluster.image.brokers[broker.broker_id].epoch
            broker.is_up = False

    def crash(self, broker: Broker) -> None:
        if not broker.is_up:
            return
        broker.is_up = False
        broker.has_crashed = True
        for (at, broker_id), end in list(self.ends.items()):
            if broker_id == broker.broker_id:
                self.ends[at, broker_id] = max(0, end - self.source.randint(0, 3))

    def lose_disk(self, broker: Broker) -> None:
        """The process ends with its disk, and comes back with another one."""
        broker.is_up = False
        broker.has_crashed = True
        broker.stopped_at = -1
        broker.disks += 1
        for key in [key for key in self.ends if key[1] == broker.broker_id]:
            self.ends[key] = 0

    def stop(self, broker: Broker) -> None:
        broker.is_stopping = True
        for _ in range(4):
            for each in self.brokers.values():
                self.beat(each)

    def pause(self, broker: Broker) -> None:
        """It is not heard of for a whole session, and lives."""
        for _ in range(2):
            self.cluster.now_ms += SESSION_MS // 2
            for other in self.brokers.values():
                if other is not broker:
                    self.beat(other)
        self.cluster.tick()

    def wait(self) -> None:
        """Time passes; whoever is up is heard of."""
        dead = [broker.broker_id for broker in self.brokers.values() if not broker.is_up]
        for _ in range(2):
            self.cluster.now_ms += SESSION_MS // 2
            for broker in self.brokers.values():
                self.beat(broker)
        self.cluster.tick()
        unfenced = {broker_id for broker_id, broker in self.cluster.image.brokers.items() if not broker.fenced}
        assert unfenced.isdisjoint(dead), f"{unfenced.intersection(dead)} are dead for a session"

    def take_over(self) -> None:
        """Another node becomes the controller: it knows the log, and nobody has reported to it."""
        self.cluster.now_ms += self.source.randint(0, SESSION_MS)
        self.cluster.restart()
        self.cluster.activate()
        self.cluster.now_ms += SESSION_MS - 1
        fenced = [
            record for record in self.cluster.tick() if isinstance(record.message, BrokerRegistrationChangeRecord)
        ]
        assert not fenced, "fenced before its session was over"
        for broker in self.brokers.values():
            self.beat(broker)

    # --- what leaders do

    def produce(self) -> None:
        at, partition = self.any_partition()
        if self.serves(partition.leader) if partition.leader != NO_LEADER else False:
            self.ends[at, partition.leader] = self.end(at, partition.leader) + self.source.randint(1, 3)
            self.replicate(at, [each for each in partition.replicas if self.source.random() < 0.6])

    def replicate(self, at: At, replicas: list[int]) -> None:
        """Replicas fetch from the leader, and cut off what it does not have; then it commits what it may."""
        partition = self.partitions()[at]
        for broker_id in replicas:
            if broker_id != partition.leader and self.brokers[broker_id].is_up:
                self.ends[at, broker_id] = self.end(at, partition.leader)
        if len(partition.isr) >= self.min_isr(at):
            low = min(self.end(at, broker_id) for broker_id in partition.isr)
            self.committed[at] = max(self.committed.get(at, 0), low)

    def propose(self, at: At, partition: PartitionImage, *, all_of_them: bool = False) -> None:
        if partition.leader == NO_LEADER or not self.serves(partition.leader):
            return
        caught_up = self.end(at, partition.leader)
        isr = [partition.leader]
        for broker_id in partition.replicas:
            is_in_sync = self.end(at, broker_id) == caught_up and self.serves(broker_id)
            if broker_id != partition.leader and is_in_sync and (all_of_them or self.source.random() < 0.7):
                isr.append(broker_id)
        kind = AlterPartitionRequest
        brokers = self.cluster.image.brokers
        members = tuple(kind.BrokerState(each, brokers[each].epoch) for each in isr)
        data = kind.PartitionData(at[1], partition.leader_epoch, (), members, 0, partition.partition_epoch)
        request = kind(partition.leader, brokers[partition.leader].epoch, (kind.TopicData(at[0], (data,)),))
        answer = self.cluster.submit(request).topics[0].partitions[0]
        assert answer.error_code in (0, ErrorCode.NEW_LEADER_ELECTED), answer

    # --- what operators do

    def reassign(self, at: At, replicas: tuple[int, ...] | None) -> int:
        kind = AlterPartitionReassignmentsRequest
        name = self.cluster.image.topics_by_id[at[0]].name
        wanted = (kind.ReassignableTopic(name, (kind.ReassignablePartition(at[1], replicas),)),)
        reply = self.cluster.submit(kind(topics=wanted))
        return int(reply.responses[0].partitions[0].error_code)

    def move(self) -> None:
        at, _ = self.any_partition()
        self.reassign(at, tuple(self.source.sample(BROKERS, self.source.randint(1, 3))))

    def call_back(self) -> None:
        self.cancel(self.any_partition()[0])

    def cancel(self, at: At) -> bool:
        before = self.partitions()[at]
        if self.reassign(at, None) != 0:
            return False
        after = self.partitions()[at]
        assert not after.is_reassigning
        assert after.replicas == tuple(each for each in before.replicas if each not in before.adding_replicas)
        return True

    def elect(self) -> None:
        self.cluster.submit(ElectLeadersRequest(self.source.choice((0, 0, 1)), None))

    def configure(self) -> None:
        key, value = self.source.choice(
            (
                ("min.insync.replicas", "1"),
                ("min.insync.replicas", "2"),
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
            )
        )
        self.set_topic(self.any_partition()[0], key, value)

    def set_topic(self, at: At, key: str, value: str) -> None:
        kind = IncrementalAlterConfigsRequest
        name = self.cluster.image.topics_by_id[at[0]].name
        self.cluster.submit(kind((kind.AlterConfigsResource(2, name, (kind.AlterableConfig(key, 0, value),)),)))

    # --- what must hold

    def check(self) -> None:
        now = self.partitions()
        for at, partition in now.items():
            self._check_shape(partition)
            if at in self.known:
                self._check_change(at, self.known[at], partition)
            self._check_ends(at, partition)
        self.known = now
        led = Counter(partition.leader for partition in now.values())
        assert led == Counter({key: count for key, count in self.cluster.image.led_counts.items() if count})

    def _check_shape(self, partition: PartitionImage) -> None:
        replicas = set(partition.replicas)
        assert len(replicas) == len(partition.replicas) == len(partition.directories)
        assert set(partition.isr) <= replicas
        assert set(partition.elr) <= replicas
        assert not set(partition.isr) & set(partition.elr)
        assert {*partition.adding_replicas, *partition.removing_replicas} <= replicas
        assert replicas != set(partition.removing_replicas)
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr
            assert self.cluster.image.brokers[partition.leader].is_active

    def _check_change(self, at: At, before: PartitionImage, after: PartitionImage) -> None:
        assert after.partition_epoch >= before.partition_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch
        if after.leader_epoch == before.leader_epoch or after.leader == NO_LEADER:
            return
        if not self.brokers[after.leader].is_up:
            return  # nobody serves it: one that has crashed is elected only until its session has run out
        committed = self.committed.get(at, 0)
        is_clean = after.leader in (*before.isr, *before.elr) and self.cluster.image.elr_enabled
        if is_clean and after.leader_recovery_state == RECOVERED:
            assert self.end(at, after.leader) >= committed, f"{after.leader} lacks committed records: {before} {after}"
        else:
            self.committed[at] = min(committed, self.end(at, after.leader))

    def _check_ends(self, at: At, partition: PartitionImage) -> None:
        """Whoever may be elected without a loss has all that is committed."""
        if not self.cluster.image.elr_enabled:
            return
        for broker_id in (*partition.isr, *partition.elr):
            if not self.brokers[broker_id].has_crashed:
                end, committed = self.end(at, broker_id), self.committed.get(at, 0)
                assert end >= committed, f"{broker_id} has {end} of {committed} committed records: {partition}"

    def check_log(self) -> None:
        """What holds after every single record of the log."""
        image = MetadataImage()
        leaders: dict[tuple[At, int], int] = {}
        epochs: dict[At, int] = {}
        for batch in self.cluster.log:
            header = read_header(batch)
            for offset, record in enumerate(read_batch(header), header.base_offset):
                image.replay(record.message, offset, 1)
                for at in image.take_changes().partitions:
                    partition = image.topics_by_id[at[0]].partitions[at[1]]
                    assert partition.leader == NO_LEADER or partition.leader in partition.isr, partition
                    leader = leaders.setdefault((at, partition.leader_epoch), partition.leader)
                    assert leader == partition.leader, f"two leaders in one epoch: {leader} and {partition}"
                    assert partition.partition_epoch == epochs.get(at, -1) + 1, partition
                    epochs[at] = partition.partition_epoch


STEPS: dict[str, Callable[[World], object]] = {
    "beat": lambda world: world.beat(world.any_broker()),
    "restart": lambda world: world.restart(world.any_broker()),
    "crash": lambda world: world.crash(world.any_broker()),
    "lose disk": lambda world: world.lose_disk(world.any_broker()),
    "stop": lambda world: world.stop(world.any_broker()),
    "pause": lambda world: world.pause(world.any_broker()),
    "wait": World.wait,
    "take over": World.take_over,
    "produce": World.produce,
    "propose": lambda world: world.propose(*world.any_partition()),
    "move": World.move,
    "call back": World.call_back,
    "elect": World.elect,
    "configure": World.configure,
}
WEIGHTED = [*STEPS, *(["produce", "propose", "restart", "wait"] * 3)]


def calm(world: World) -> None:
    """Faults end: everybody comes back and catches up."""
    for _ in range(4):
        world.wait()
        for broker in world.brokers.values():
            world.restart(broker)
        world.check()
        for at, partition in world.partitions().items():
            if partition.leader != NO_LEADER and world.serves(partition.leader):
                world.replicate(at, list(partition.replicas))
                world.propose(at, world.partitions()[at], all_of_them=True)
        world.check()


def live(seed: int, metadata_version: int, steps: list[str]) -> World:
    world = World(seed, metadata_version)
    for name in steps:
        STEPS[name](world)
        world.check()
    calm(world)
    for at, partition in world.partitions().items():
        if partition.leader != NO_LEADER:
            assert not partition.is_reassigning, partition
            assert set(partition.isr) == set(partition.replicas), partition
        elif partition.is_reassigning and not world.cancel(at):
            # Nobody leads it, so nobody can say who is in sync; it can be cancelled at a loss.
            world.set_topic(at, "unclean.leader.election.enable", "true")
            assert world.cancel(at)
    world.check_log()
    world.cluster.check_law()
    return world


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([30, 30, 30, 25, 22]),
    st.lists(st.sampled_from(WEIGHTED), min_size=20, max_size=60),
)
def test_whatever_happens_nothing_committed_is_lost_in_clean_elections(
    seed: int, metadata_version: int, steps: list[str]
):
    live(seed, metadata_version, steps)


def test_histories_reach_what_they_are_made_for() -> None:
    """Elections from the ELR, reassignments that end, unclean leaders: a history without them would prove little."""
    source = random.Random(7)
    seen: set[str] = set()

    def note(world: World, before: dict[At, PartitionImage]) -> None:
        for at, after in world.partitions().items():
            was = before[at]
            marks: list[tuple[str, Any]] = [
                ("eligible", after.elr),
                ("from ELR", after.leader in was.elr),
                ("recovering", after.leader_recovery_state > was.leader_recovery_state),
                ("moved", was.is_reassigning and not after.is_reassigning and after.replicas != was.replicas),
                ("leaderless", after.leader == NO_LEADER),
            ]
            seen.update(name for name, is_so in marks if is_so)

    for seed in range(12):
        world = World(seed, 30)
        for name in source.choices(WEIGHTED, k=80):
            before = world.partitions()
            STEPS[name](world)
            note(world, before)
            world.check()
    assert seen == {"eligible", "from ELR", "recovering", "moved", "leaderless"}
