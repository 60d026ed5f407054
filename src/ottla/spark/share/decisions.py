"""The rows that a query rejects or releases, kept until their batch is acknowledged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ottla.spark.share.offsets import ShareOffset, TopicIdPartition
from ottla.spark.share.ranges import subtract

__all__ = ["Decisions"]


class Decisions:
    """Decisions by batch and partition. With a directory they are written to disk, and outlive the process."""

    def __init__(self, directory: str = "") -> None:
        self._directory = Path(directory) if directory else None
        self._batches: dict[int, ShareOffset] = {}
        self._by_seq: dict[int, dict[TopicIdPartition, dict[int, int]]] = {}

    def expect(self, end: ShareOffset) -> None:
        """The batch that ends here is going to run, so decisions on its rows are allowed."""
        self._batches[end.seq] = end

    def add(self, seq: int, topic: str, partition: int, offsets: Iterable[int], kind: int) -> bool:
        """Returns False if no current batch has these rows."""
        batch = self._batches.get(seq)
        wanted = sorted(set(offsets))
        tp = None if batch is None else _place(batch, topic, partition)
        if batch is None or tp is None:
            return False
        if subtract([(each, each) for each in wanted], [each[:2] for each in batch.acquired[tp]]):
            return False
        self._write(seq, tp, wanted, kind)
        self._keep(seq, tp, wanted, kind)
        return True

    def take(self, seq: int) -> Mapping[TopicIdPartition, Mapping[int, int]]:
        """The decisions on a finished batch: offset -> kind."""
        self._read(seq)
        self._batches.pop(seq, None)
        return self._by_seq.pop(seq, {})

    def _keep(self, seq: int, tp: TopicIdPartition, offsets: Iterable[int], kind: int) -> None:
        self._by_seq.setdefault(seq, {}).setdefault(tp, {}).update(dict.fromkeys(offsets, kind))

    # --- on disk ------------------------------------------------------------------------------------------------------

    def _write(self, seq: int, tp: TopicIdPartition, offsets: list[int], kind: int) -> None:
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            with self._path(self._directory, seq).open("a") as file:
                file.write(json.dumps([*tp, kind, offsets]) + "\n")

    def _read(self, seq: int) -> None:
        """Read the file that this process or an earlier one has written, and remove it."""
        if self._directory is None or not (path := self._path(self._directory, seq)).exists():
            return
        for line in path.read_text().splitlines():
            topic_id, partition, kind, offsets = json.loads(line)
            self._keep(seq, TopicIdPartition(topic_id, partition), offsets, kind)
        path.unlink()

    def _path(self, directory: Path, seq: int) -> Path:
        return directory / f"batch-{seq}.jsonl"


def _place(batch: ShareOffset, topic: str, partition: int) -> TopicIdPartition | None:
    places = (each for each in batch.acquired if each.partition == partition)
    return next((each for each in places if batch.names[each.topic_id] == topic), None)
