"""The runtime of one kind of coordinator: the shards of an internal topic, found by key, loaded and unloaded.

Theory of operation. The partitions of the topic that this node leads have a shard each. Before the node listens, all of
them are loaded; one that it comes to lead later is loaded in a cooperative task, between requests, and a client that
asks meanwhile is told to retry (COORDINATOR_LOAD_IN_PROGRESS). When leadership goes, or the log fails, the shard is
discarded, and requests that wait at it get NOT_COORDINATOR. So does everybody who asks after the node has stood still
for as long as its session, until the controller has heard from it: another may have gone on with what it knows.

=====================================  ===============================
a request for                          is answered
=====================================  ===============================
a topic that does not exist            after it was created
a shard that is there                  by its core
one that is being loaded               COORDINATOR_LOAD_IN_PROGRESS
a partition that another node leads    NOT_COORDINATOR
a kind without a core                  COORDINATOR_NOT_AVAILABLE
=====================================  ===============================

Handlers call `answer`; those that ask several coordinators, or go on with what they hear, `ask` and `ask_all`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

from ottla.broker.coordinators.core_factory import CORES, CorePartition
from ottla.broker.coordinators.counts import RuntimeCounts
from ottla.broker.coordinators.edge import CoordinatorRequest, Perform, Refuse, RuntimeEdge
from ottla.broker.coordinators.internal_topics import InternalTopic, InternalTopics
from ottla.broker.coordinators.loader import load_steps
from ottla.broker.coordinators.partition_writer import ReplicaWriter
from ottla.broker.coordinators.ports import CoordinatorPorts
from ottla.broker.coordinators.replay import Replay
from ottla.broker.coordinators.shard import Shard
from ottla.broker.network.request import AfterWrite, Answer, Request
from ottla.broker.replicas.replicas import Replica
from ottla.core.coordinator.contract import Context, Core, Producer, TopicsChange, World
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.log.errors import StorageError
from ottla.wire.batch import Compression
from ottla.wire.errors import ErrorCode

__all__ = ["Runtime"]

log = logging.getLogger(__name__)

_SLICE_SECONDS: Final = 0.02
_PROGRESS_SECONDS: Final = 1.0

MakeRefusal = Callable[[ErrorCode, str | None], Any]


class Runtime:
    def __init__(
        self,
        node: CoordinatorPorts,
        topic: InternalTopic,
        topics: InternalTopics,
        world: World,
        performers: Callable[[], Mapping[type, Perform]],
    ) -> None:
        """`performers` returns the performers of the cores' effects; it is called when the first core is made."""
        self.topic = topic
        self.world = world
        self.shards: dict[int, Shard] = {}
        """By partition: those that are loaded."""
        self.loading: set[int] = set()
        self.partition_count = 0
        """0 until the topic is there."""
        self.counts = RuntimeCounts()
        self._node = node
        self._unit_of_work = node.unit_of_work
        self._topics = topics
        self._make_core = CORES.get(topic.name)
        self._load_performers: Callable[[], Mapping[type, Perform]] | None = performers
        self._edge = RuntimeEdge(self, node.unit_of_work)
        self._is_started = False
        node.unit_of_work.follow(topic.name, self.advance)

    @property
    def performers(self) -> dict[type, Perform]:
        """Class of effect -> its performer, a function of the effect and of `done(outcome)`."""
        return self._edge.performers

    # --- asking -------------------------------------------------------------------------------------------------------

    def answer(self, request: Request, key: str, body: object = None, *, refuse: Refuse) -> Answer:
        """A handler's answer: what the coordinator of `key` says to the request, or to `body` in its place.

        `refuse` is the handler module's own.
        """
        later = CoordinatorRequest(request, refuse)
        shard = self._shard_of(key)
        if shard is None:
            self._ask_absent(request, key, request.body if body is None else body, later)
            return later
        context = Context(
            request.received_at_ms,
            self._edge.wall_ms(),
            self.world,
            later,
            request.version,
            request.client_id,
            "/" + request.connection.peer.host,
            self._node.authorizer_of(request),
        )
        unit_of_work = self._unit_of_work
        unit_of_work.is_attended = True
        try:
            result = shard.handle(request.body if body is None else body, context)
        finally:
            unit_of_work.is_attended = False
        if later.is_complete:
            return later.message
        for token, _ in result.replies:
            if token is later:  # it is decided, and waits for its records only
                return AfterWrite(lambda: later)
        return later

    def ask(
        self, request: Request | None, key: str, body: object, done: Callable[[Any], None], *, refuse: MakeRefusal
    ) -> None:
        """Ask the coordinator of `key`; `done` gets its answer, or what `refuse(code, message)` makes of an error.

        `request` is the client's request, if there is one; without it the node itself asks. If the answer depends on
        no uncommitted record, `done` is called before this returns; otherwise at the end of a turn.
        """
        later = CoordinatorRequest(request, _without_request(refuse))
        shard = self._shard_of(key)
        if shard is None:
            self._ask_absent(request, key, body, later)
        else:
            shard.handle(body, self._context(request, later))
        later.deliver_to(done)

    def ask_all(
        self, request: Request | None, body: object, done: Callable[[list[Any]], None], *, refuse: MakeRefusal
    ) -> None:
        """Ask all coordinators of this node; `done` gets their answers in the order of partitions.

        One that is being loaded answers with what `refuse` makes of COORDINATOR_LOAD_IN_PROGRESS.
        """
        partitions = sorted([*self.shards, *self.loading])
        if not partitions:
            done([])
            return
        answers: dict[int, Any] = {}

        def take(partition: int, answer: object) -> None:
            answers[partition] = answer
            if len(answers) == len(partitions):
                done([answers[each] for each in partitions])

        for partition in partitions:
            later = CoordinatorRequest(request, _without_request(refuse))
            shard = self.shards.get(partition)
            if shard is None:
                self._edge.refuse(later, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None)
            else:
                shard.handle(body, self._context(request, later))
            later.deliver_to(partial(take, partition))

    def _context(self, request: Request | None, token: CoordinatorRequest) -> Context:
        now_ms, wall_ms = self._edge.monotonic_ms(), self._edge.wall_ms()
        if request is None:
            return Context(now_ms, wall_ms, self.world, token)
        return Context(
            now_ms,
            wall_ms,
            self.world,
            token,
            request.version,
            request.client_id,
            "/" + request.connection.peer.host,
            self._node.authorizer_of(request),
        )

    def _shard_of(self, key: str) -> Shard | None:
        """None if another node coordinates the key, or may do so by now."""
        if not self.partition_count or self._node.broker_lifecycle.may_be_replaced():
            return None
        return self.shards.get(partition_for(key, self.partition_count))

    def _ask_absent(self, request: Request | None, key: str, body: object, later: CoordinatorRequest) -> None:
        """There is no shard: create the topic first, or refuse."""
        if self._make_core is None:
            self._edge.refuse(later, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        elif self.partition_count:
            self._edge.refuse(later, self._why_absent(partition_for(key, self.partition_count)), None)
        else:
            self.ensure_topic(lambda code: self._ask_created(request, key, body, later, code))

    def _ask_created(
        self, request: Request | None, key: str, body: object, later: CoordinatorRequest, code: ErrorCode
    ) -> None:
        shard = None if code else self.shards.get(partition_for(key, self.partition_count))
        if shard is not None:
            shard.handle(body, self._context(request, later))
        else:
            self._edge.refuse(later, code or self._why_absent(partition_for(key, self.partition_count)), None)

    def ensure_topic(self, done: Callable[[ErrorCode], None]) -> None:
        """Create the topic if there is none; `done` gets NONE once this node knows its partitions."""

        def created(_: ErrorCode) -> None:
            done(ErrorCode.NONE if self.partition_count else ErrorCode.COORDINATOR_NOT_AVAILABLE)

        if self.partition_count:
            done(ErrorCode.NONE)
        else:
            self._topics.ensure(self.topic, created)

    def _why_absent(self, partition: int) -> ErrorCode:
        is_loading = partition in self.loading
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR

    def coordinator_of(self, key: str) -> int:
        """The broker that coordinates a key, or NO_LEADER if there is none now."""
        topic = self._node.image.topic(self.topic.name)
        if topic is None or not topic.partitions:
            return NO_LEADER
        return topic.partitions[partition_for(key, len(topic.partitions))].leader

    # --- transactions -------------------------------------------------------------------------------------------------

    def verification_guard(self, key: str, producer_id: int) -> int:
        """To be taken before a transaction's coordinator is asked, for `Producer.guard`."""
        replica = self._replica(partition_for(key, self.partition_count)) if self.partition_count else None
        return replica.log.producers.verification_guard(producer_id) if replica is not None and replica.has_log else 0

    def end_transaction(
        self,
        partition: int,
        producer: Producer,
        done: Callable[[ErrorCode], None],
        *,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> None:
        """Write a transaction's marker to a partition of the topic; `done` gets NONE when it is committed."""
        later = CoordinatorRequest(None, lambda _, code, __: code)
        shard = self.shards.get(partition)
        if shard is None:
            is_known = partition < self.partition_count
            code = self._why_absent(partition) if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._edge.refuse(later, code, None)
        else:
            shard.end_transaction(
                producer,
                later,
                ErrorCode.NONE,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
        later.deliver_to(done)

    def prune(self, partition: int, offset: int) -> None:
        """Delete the records of a partition below an offset, which are no longer needed."""
        replica = self._replica(partition)
        if replica is not None and replica.has_log:
            replica.log.delete_records(min(offset, replica.high_watermark))

    # --- loading and unloading ----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Load all partitions that this node leads, before the node listens."""
        self._is_started = True
        self._count_partitions()
        clock = self._node.clock
        began = paused = told = clock.precise_s()
        for partition in range(self.partition_count):
            if self._is_known(partition):
                continue  # the metadata log has told of it since
            for _ in self._load(partition):
                now = clock.precise_s()
                if now - told >= _PROGRESS_SECONDS:
                    told = now
                    log.info(
                        "loading %s done=%d of=%d seconds=%.1f",
                        self.topic.name,
                        partition,
                        self.partition_count,
                        now - began,
                    )
                if now - paused >= _SLICE_SECONDS:
                    await asyncio.sleep(0)
                    paused = clock.precise_s()

    def leader_changed(self, partition: int) -> None:
        """A partition has another leader or leader epoch: what its shard knows is out of date from now on."""
        shard = self.shards.get(partition)
        if shard is not None and not self._is_led(shard):
            self._unload(partition, shard)

    def follow(self, partitions: set[int]) -> None:
        """The cluster has changed partitions of the topic: who leads them, or whether they are there."""
        if not self._is_started:
            return
        self._count_partitions()
        for partition in sorted(partitions):
            self._follow(partition)

    def _count_partitions(self) -> None:
        topic = self._node.image.topic(self.topic.name)
        self.partition_count = 0 if topic is None else len(topic.partitions)

    def _follow(self, partition: int) -> None:
        self.leader_changed(partition)
        if not self._is_started or self._is_known(partition):
            return
        replica = self._replica(partition)
        if replica is not None and _can_lead(replica):
            self._load_soon(partition, replica)

    def _is_known(self, partition: int) -> bool:
        """Whether a partition is loaded, or will be."""
        return partition in self.shards or partition in self.loading

    def _replica(self, partition: int) -> Replica | None:
        return self._node.replicas.get(self.topic.name, partition)

    def _is_led(self, shard: Shard) -> bool:
        assert isinstance(shard.writer, ReplicaWriter)
        return shard.writer.is_led

    def _load_soon(self, partition: int, replica: Replica) -> None:
        """Load a partition between requests; at once, if there is nothing to read."""
        if not replica.has_log:
            for _ in self._load(partition):
                pass
            return
        self.loading.add(partition)
        name = f"loading {replica.topic_partition}"
        self._node.cooperative_tasks.add_once(name, self._load(partition), is_urgent=True)

    def _load(self, partition: int) -> Generator[None, None, None]:
        """Load a partition, if it can be, in steps."""
        replica = self._replica(partition)
        if self._make_core is None or replica is None or not _can_lead(replica):
            self.loading.discard(partition)
            return
        self.loading.add(partition)
        writer = self._writer(replica)
        self._attach()
        core = self._make_core(CorePartition(partition, replica.leader_epoch, self._leads, self._node.settings))
        try:
            yield from self._replay(writer, core)
        except StorageError as error:
            self._node.replicas.directory_failed(replica.directory, error)
        except Exception:
            log.exception("%s cannot be loaded; its coordinator is unavailable", replica.topic_partition)
        else:
            if writer.is_led:
                self._begin(partition, core, writer)
            else:  # it went while it was loaded, and may have come back
                self._node.loop.call_soon(self._follow, partition)
        finally:
            self.loading.discard(partition)

    def _replay(self, writer: ReplicaWriter, core: Core) -> Generator[None, None, None]:
        began_ms, replica = self._edge.monotonic_ms(), writer.replica
        if not replica.has_log:
            return
        replay = Replay(core, self.topic.name, str(replica.topic_partition))
        for _ in load_steps(replica.log, replay):
            yield
            if not writer.is_led:
                return
        self.counts.loaded(self._edge.monotonic_ms() - began_ms, replay.record_count)

    def _attach(self) -> None:
        """Set the performers of effects, with the first core."""
        load, self._load_performers = self._load_performers, None
        if load is not None:
            self._edge.performers.update(load())

    def _leads(self, topic: str, partition: int) -> bool:
        replica = self._node.replicas.get(topic, partition)
        return replica is not None and _can_lead(replica)

    def _writer(self, replica: Replica) -> ReplicaWriter:
        codec = self.topic.compression
        compression = Compression(self._node.settings[codec]) if codec else Compression.NONE
        return ReplicaWriter(replica, replica.leader_epoch, self._edge.wall_ms, self.counts, compression)

    def _begin(self, partition: int, core: Core, writer: ReplicaWriter) -> None:
        timeout_ms = self._node.settings[self.topic.write_timeout]
        shard = self.shards[partition] = Shard(core, writer, self.world, self._edge, write_timeout_ms=timeout_ms)
        shard.start()

    def advance(self, partition: int) -> None:
        """The log of a partition has moved."""
        shard = self.shards.get(partition)
        if shard is None:
            return
        if self._is_led(shard):
            shard.advance()
        else:
            self._unload(partition, shard)

    def _unload(self, partition: int, shard: Shard) -> None:
        del self.shards[partition]
        self._unit_of_work.forget(shard)
        shard.unload()

    def lost(self, shard: Shard, error: Exception) -> None:
        """A shard's state and its log differ: discard it and load it again."""
        for partition, each in list(self.shards.items()):
            if each is shard:
                self.counts.lost += 1
                log.error("reloading the coordinator of %s-%d: %s", self.topic.name, partition, error)
                self._unload(partition, shard)
                self._node.loop.call_soon(self._follow, partition)

    def topics_changed(self, change: TopicsChange) -> None:
        for shard in list(self.shards.values()):
            shard.topics_changed(change)

    def stop(self) -> None:
        """The node stops: answer all waiting requests with NOT_COORDINATOR."""
        self._is_started = False
        for partition, shard in list(self.shards.items()):
            self._unload(partition, shard)


def _can_lead(replica: Replica) -> bool:
    return replica.is_leader and not replica.is_offline


def _without_request(refuse: MakeRefusal) -> Refuse:
    return lambda _, code, message: refuse(code, message)
