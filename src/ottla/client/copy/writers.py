"""Writers of a copy. They differ in how its progress is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ottla.client.client import Client
from ottla.client.errors import ClientError, ConfigurationError
from ottla.client.group_offsets import Committed, commit, committed
from ottla.client.metadata import TopicPartition
from ottla.client.producer import Producer, ProducerRecord
from ottla.client.transactions import Identity, Mark, begin, commit_offsets, end

TRANSACTION_TIMEOUT_MS: Final = 60_000


class Progress:
    """The progress of a copy: offsets of a group in the topic that is read.

    In a transaction on another cluster than that of the records, the group has them in the topic that is written to,
    since only a cluster's own topics can have offsets. Partition N stands for partition N of the topic that is read.
    """

    def __init__(self, client: Client, group_id: str, *, source: str, saved_in: str | None = None) -> None:
        """`source` names what is copied; a group with offsets of something else is refused."""
        self.client = client
        self.group_id = group_id
        self._source = source
        self._saved_in = saved_in

    def marks(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, Mark]:
        return {self._place(at): Mark(offset, self._source) for at, offset in positions.items()}

    async def saved(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that were saved, without those of partitions that were not reached yet."""
        places = {self._place(at): at for at in partitions}
        found = await committed(self.client, self.group_id, places, require_stable=True)
        for place, each in found.items():
            if each.metadata != self._source:
                raise ConfigurationError(
                    f"group {self.group_id} has an offset for {place} that this copy did not save; choose another group"
                )
        return {places[place]: each.offset for place, each in found.items()}

    def _place(self, at: TopicPartition) -> TopicPartition:
        return at if self._saved_in is None else TopicPartition(self._saved_in, at.partition)


class PlainWriter:
    """Writes records, then saves the progress, if it is to be saved: at least once."""

    def __init__(self, client: Client, progress: Progress | None = None, *, compression: str = "none") -> None:
        self._producer = Producer(client, compression=compression, idempotent=True)
        self._progress = progress

    async def write(self, records: Sequence[ProducerRecord], positions: Mapping[TopicPartition, int]) -> None:
        if records:
            await self._producer.send_all(records)
        if self._progress is None:
            return
        marks = self._progress.marks(positions)
        offsets = {at: Committed(each.offset, metadata=each.metadata) for at, each in marks.items()}
        outcomes = await commit(self._progress.client, self._progress.group_id, offsets)
        for error in outcomes.values():
            if error is not None:
                raise error


class TransactionalWriter:
    """Writes records and saves the progress in one transaction: exactly once."""

    def __init__(self, client: Client, progress: Progress, *, compression: str = "none") -> None:
        self._client = client
        self._progress = progress
        self._compression = compression

    async def fence(self) -> None:
        """End what an earlier run of the same copy may have left open; it can write nothing from now on."""
        await self._begin()

    async def write(self, records: Sequence[ProducerRecord], positions: Mapping[TopicPartition, int]) -> None:
        identity = await self._begin()
        try:
            if records:
                await Producer(self._client, compression=self._compression, identity=identity).send_all(records)
            await commit_offsets(self._client, identity, self._progress.group_id, self._progress.marks(positions))
            await end(self._client, identity, commit=True)
        except BaseException:
            # Readers of committed records need not wait for the timeout. If the outcome of the commit is not known, the
            # next run finds out from the offsets.
            with suppress(ClientError):
                await end(self._client, identity, commit=False)
            raise

    async def _begin(self) -> Identity:
        transactional_id = f"ottla-copy-{self._progress.group_id}"
        return await begin(self._client, transactional_id, timeout_ms=TRANSACTION_TIMEOUT_MS)
