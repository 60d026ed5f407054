"""Writes records that share groups give up to their dead-letter queues (KIP-1191).

A queue is a topic that the group names. The rules are looked at with every attempt:

* its name begins with `errors.deadletterqueue.topic.name.prefix`, and not with two underscores;
* it says that share groups may write to it (`errors.deadletterqueue.group.enable`); or it is not there, and
  `errors.deadletterqueue.auto.create.topics.enable` lets it be made.

A letter goes to the partition with the number of the source's, counted around. It has headers that tell where the
record was and why it was given up, and key and value of the record if the group wants that. What cannot be written now
is tried again, five times at most; then, and when a rule forbids it, the log of the node says so and the record is
given up all the same: a queue that fails does not stop the group.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.replicas.record_writer import write_batches
from ottla.broker.share.backoff import ATTEMPTS_MAX, pause_ms
from ottla.broker.share.dead_letter_records import letters_for
from ottla.broker.share.edge import Source
from ottla.broker.share.ports import DeadLetterPorts
from ottla.core.share.partition.events import DeadLetters
from ottla.core.share.state.kept import Key
from ottla.log.errors import LogError
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse

__all__ = ["DeadLetterQueues"]

log = logging.getLogger(__name__)

TOPIC: Final = "errors.deadletterqueue.topic.name"
COPIES: Final = "errors.deadletterqueue.copy.record.enable"
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
CREATES: Final = "errors.deadletterqueue.auto.create.topics.enable"
IS_QUEUE: Final = "errors.deadletterqueue.group.enable"

_CREATE_VERSION: Final = 7
_DEFAULT: Final = -1
_INTERNAL: Final = "__"

Done = Callable[[], None]


class _Forbidden(Exception):
    """A rule forbids the queue; a retry would not help."""


class DeadLetterQueues:
    def __init__(self, node: DeadLetterPorts) -> None:
        self._node = node
        self.sent: Counter[str] = Counter()
        """Records, by group."""
        self.lost: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        """Attempts to write, by group."""
        self.failures: Counter[str] = Counter()

    def samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        """Numbers for the page of metrics."""
        counted = {
            "records": self.sent,
            "lost_records": self.lost,
            "produce_requests": self.requests,
            "failed_produce_requests": self.failures,
        }
        for name, counts in counted.items():
            for group_id, count in counts.items():
                yield f"ottla_share_dead_letter_{name}_total", {"group": group_id}, count

    def send(self, key: Key, source: Source, letters: DeadLetters, done: Done) -> None:
        """Write records of a group to its queue; `done` is called when they are written or given up."""
        _DeadLetterWrite(self._node, self, key, source, letters, done).attempt()


class _DeadLetterWrite:
    """The write of one range of records, with its retries."""

    def __init__(
        self,
        node: DeadLetterPorts,
        queues: DeadLetterQueues,
        key: Key,
        source: Source,
        letters: DeadLetters,
        done: Done,
    ) -> None:
        self._node = node
        self._queues = queues
        self._group_id = key.group_id
        self._partition = key.partition
        self._source = source
        self._letters = letters
        self._done = done
        self._attempts = 0
        self._batches: list[bytes] | None = None
        """What is not in the queue yet; None before it is known."""

    def attempt(self) -> None:
        self._attempts += 1
        try:
            topic = self._queue()
            if topic is None:
                self._create()
            else:
                self._write(topic)
        except _Forbidden as error:
            self._give_up(str(error))
        except LogError as error:  # the records cannot be read
            self._try_again(str(error))

    # --- the topic ----------------------------------------------------------------------------------------------------

    def _queue(self) -> str | None:
        """The name of the topic, if it is there. Raises _Forbidden."""
        node, name = self._node, self._name
        prefix = node.settings[PREFIX]
        if not name:
            raise _Forbidden("the group no longer has a dead-letter queue")
        if name.startswith(_INTERNAL) or not name.startswith(prefix):
            raise _Forbidden(
                f"{name} is not a valid dead-letter queue: the name must start with {prefix!r} and not with __"
            )
        if node.image.topic(name) is None:
            if not node.settings[CREATES]:
                raise _Forbidden(f"the topic {name} does not exist, and {CREATES} is false")
            return None
        if not node.settings.topic_value(name, IS_QUEUE):
            raise _Forbidden(f"the topic {name} is not a dead-letter queue: its {IS_QUEUE} is false")
        return name

    @property
    def _name(self) -> str:
        name: str = self._node.world.group_setting(self._group_id, TOPIC) or ""
        return name.strip()

    def _create(self) -> None:
        kind = CreateTopicsRequest
        configs = {IS_QUEUE: "true", "message.timestamp.type": "CreateTime"}
        topic = kind.CreatableTopic(
            self._name,
            num_partitions=_DEFAULT,
            replication_factor=_DEFAULT,
            configs=tuple(kind.CreatableTopicConfig(*each) for each in configs.items()),
        )
        self._node.controller_channel.send(kind(topics=(topic,)), _CREATE_VERSION, self._created)

    def _created(self, reply: CreateTopicsResponse) -> None:
        code = ErrorCode(reply.topics[0].error_code)
        if self._node.image.topic(self._name) is None:
            self._try_again(f"its topic cannot be created: {reply.topics[0].error_message or code.name}")
            return
        self._attempts -= 1
        self.attempt()

    # --- writing ------------------------------------------------------------------------------------------------------

    def _write(self, name: str) -> None:
        topic = self._node.image.topic(name)
        assert topic is not None
        if self._batches is None:
            self._batches = self._build(name)
        self._queues.requests[self._group_id] += 1
        write_batches(self._node, name, self._partition % len(topic.partitions), self._batches, self._written)

    def _written(self, code: ErrorCode, message: str) -> None:
        if code:
            self._try_again(message)
        else:
            self._queues.sent[self._group_id] += self._count
            self._done()

    def _build(self, name: str) -> list[bytes]:
        return letters_for(
            self._group_id,
            self._source,
            self._letters,
            now_ms=self._node.clock.wall_ms(),
            batch_max_bytes=self._node.settings.topic_value(name, "max.message.bytes"),
            copies=self._node.world.group_setting(self._group_id, COPIES),
        )

    @property
    def _count(self) -> int:
        return self._letters.last_offset - self._letters.first_offset + 1

    # --- trouble ------------------------------------------------------------------------------------------------------

    def _try_again(self, reason: str) -> None:
        self._queues.failures[self._group_id] += 1
        if self._attempts < ATTEMPTS_MAX:
            resume_at_ms = self._node.clock.monotonic_ms() + pause_ms(self._attempts)
            if self._node.purgatory.park(DelayedOperation(self._resume, (), resume_at_ms)):
                return
        self._give_up(reason)

    def _resume(self, _: bool) -> bool:
        if self._node.purgatory.is_open:
            self.attempt()
        return True

    def _give_up(self, reason: str) -> None:
        self._queues.lost[self._group_id] += self._count
        log.error(
            "share group %s: no dead letters for %s offsets %d to %d: %s",
            self._group_id,
            self._source.topic_partition,
            self._letters.first_offset,
            self._letters.last_offset,
            reason,
        )
        self._done()
