"""The metadata log of an origin: as a whole for a run, and step by step for a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.pipeline.event_lookup import configs_in, elections_in, metadata_table, topic_names
from ottla.spark.pipeline.in_process import GrowingSource, plan_of, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.jobs.share_configs import ConfigValues
    from ottla.spark.pipeline.origins import Origin

__all__ = ["MetadataFacts", "MetadataLog", "read_metadata"]

FORMAT: Final = "ottla-records"
TYPES: Final = ("TopicRecord", "ConfigRecord", "LeaderChange")
"""The types of records that anything is made of. There are far more of others: a controller of Apache Kafka writes a
NoOpRecord twice a second."""


@dataclass(frozen=True)
class MetadataFacts:
    """Records of the metadata log, and what they say."""

    cluster: str
    table: pa.Table

    @cached_property
    def topic_names(self) -> Mapping[str, str]:
        """By id, including deleted topics."""
        return topic_names(self.table)

    @cached_property
    def topic_ids(self) -> Mapping[str, str]:
        """The last known id of each topic."""
        return {name: topic_id for topic_id, name in self.topic_names.items()}

    def topic_id_table(self) -> pa.Table:
        """The same as a table."""
        import pyarrow as pa

        rows = [{"cluster": self.cluster, "topic": name, "topic_id": each} for name, each in self.topic_ids.items()]
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in ("cluster", "topic", "topic_id")]))

    @cached_property
    def configs(self) -> tuple[ConfigValues, ...]:
        return tuple(configs_in(self.cluster, self.table))

    @cached_property
    def elections(self) -> list[tuple[str, int, int, int]]:
        return elections_in(self.table)


def read_metadata(origin: Origin | None) -> MetadataFacts:
    """The metadata log, as far as the origin can read it."""
    options = None if origin is None else origin.metadata_options
    if origin is None or options is None:
        return _of_topics(origin)
    return MetadataFacts(origin.cluster, metadata_table(origin.cluster, rows_of(plan_of(FORMAT, options)), origin.ids))


def _of_topics(origin: Origin | None) -> MetadataFacts:
    cluster, ids = ("", {}) if origin is None else (origin.cluster, origin.ids)
    return MetadataFacts(cluster, metadata_table(cluster, None, ids))


class MetadataLog:
    """Reads what is new in the metadata log."""

    def __init__(self) -> None:
        self._source = GrowingSource()
        self._offsets: dict[str, Any] | None = None
        self._ids: Mapping[str, str] | None = None
        """The topics of an origin whose log cannot be read."""
        self._facts: MetadataFacts | None = None

    def read(self, origin: Origin | None) -> MetadataFacts:
        """All that is known now: the same object as before, if nothing that matters is new."""
        options = None if origin is None else origin.metadata_options
        if origin is None or options is None:
            ids = {} if origin is None else dict(origin.ids)
            if self._facts is None or self._ids != ids:
                self._facts, self._ids = _of_topics(origin), ids
            return self._facts
        try:
            return self._read_new(origin.cluster, options)
        except OttlaSparkError:
            if self._offsets is None:
                raise
            # Controllers have cut the log, or replaced its beginning by a snapshot.
            self._offsets, self._facts = None, None
            return self._read_new(origin.cluster, options)

    def _read_new(self, cluster: str, options: Mapping[str, str]) -> MetadataFacts:
        import pyarrow as pa
        import pyarrow.compute as pc

        may_fail = {**options, "failOnDataLoss": str(self._offsets is not None).lower()}
        plan, offsets = self._source.plan_after(FORMAT, may_fail, self._offsets)
        rows = metadata_table(cluster, rows_of(plan), {})
        rows = rows.filter(pc.is_in(rows["type"], pa.array(TYPES)))
        if self._facts is None or self._offsets is None:
            self._facts = MetadataFacts(cluster, rows)
        elif rows.num_rows:
            self._facts = MetadataFacts(cluster, pa.concat_tables([self._facts.table, rows]).combine_chunks())
        self._offsets = offsets
        return self._facts
