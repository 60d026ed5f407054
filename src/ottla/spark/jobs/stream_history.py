"""The events of a stream as rows for its folds: which fold takes an event, and what it needs of it.

Plain Python, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ottla.spark.jobs.folds.records import GROUP_RECORDS
from ottla.spark.jobs.share_partition import OFFSETS, SAMPLED_STATE
from ottla.spark.jobs.share_state import STATE_TYPES

__all__ = [
    "COUNTERS",
    "GROUP",
    "HISTORY_COLUMNS",
    "NO_OFFSET",
    "QUORUM",
    "RECORD",
    "SAMPLE",
    "SHARE",
    "TYPES",
    "FoldKey",
    "HistoryRow",
    "history_of",
]

GROUP: Final = "group"
SHARE: Final = "share"
COUNTERS: Final = "share_counters"
QUORUM: Final = "quorum"
RECORD, SAMPLE = 0, 1
NO_OFFSET: Final = -1
"""The place of a sampled record whose offset the observer did not tell."""

_STATE_TYPES: Final = frozenset(STATE_TYPES)


class FoldKey(NamedTuple):
    """What a fold is about."""

    fold: str
    cluster: str
    group: str = ""
    topic_id: str = ""
    partition: int = -1


class HistoryRow(NamedTuple):
    """A row of a fold's history. Its order: records before samples, by offset or time."""

    rank: int
    log_partition: int
    place: int
    """The offset of a record, the time of a sample."""
    seq: int
    ts: int
    type: str
    topic: str | None
    key: bytes | None
    value: bytes | None


HISTORY_COLUMNS: Final = {
    "fold": "string",
    "cluster": "string",
    "group": "string",
    "topic_id": "string",
    "partition": "int",
    "rank": "int",
    "log_partition": "int",
    "place": "bigint",
    "seq": "bigint",
    "ts": "bigint",
    "type": "string",
    "topic": "string",
    "key": "binary",
    "value": "binary",
}
"""The fields of both, with Spark's types."""


class _Gone(msgspec.Struct):
    what: str = ""
    name: str = ""


class _SharePlace(msgspec.Struct):
    """Of a sample of a share group."""

    group: str
    topic: str | None = None
    topic_id: str | None = None
    partition: int = -1
    offset: int | None = None
    written_ms: int | None = None


_read_gone: Final = msgspec.json.Decoder(_Gone).decode
_read_place: Final = msgspec.json.Decoder(_SharePlace).decode

Event = Mapping[str, Any]
Found = tuple[FoldKey, HistoryRow]


def _group_sample(event: Event) -> Iterator[Found]:
    body = event["body"].encode()
    name = event["entity"]
    if event["type"] == "gone":
        gone = _read_gone(body)
        if gone.what != "group":
            return
        name = gone.name
    yield FoldKey(GROUP, event["cluster"], name), _sample(event)


def _sample(event: Event) -> HistoryRow:
    seq, ts = event["seq"] or 0, event["ts"]
    return HistoryRow(SAMPLE, -1, ts, seq, ts, event["type"], None, None, event["body"].encode())


def _share_sample(event: Event) -> Iterator[Found]:
    place = _read_place(event["body"])
    key = FoldKey(SHARE, event["cluster"], place.group, place.topic_id or place.topic or "", place.partition)
    row = _sample(event)._replace(topic=place.topic)
    if event["type"] == "share_offsets":
        yield key, row._replace(type=OFFSETS, place=row.seq)
        return
    ts = row.ts if place.written_ms is None else place.written_ms
    offset = NO_OFFSET if place.offset is None else place.offset
    yield key, row._replace(type=SAMPLED_STATE, ts=ts, place=offset)


def _counters(event: Event) -> Iterator[Found]:
    yield FoldKey(COUNTERS, event["cluster"], _read_place(event["body"]).group), _sample(event)


def _quorum(event: Event) -> Iterator[Found]:
    yield FoldKey(QUORUM, event["cluster"]), _sample(event)


_SAMPLES: Final = {
    "group": _group_sample,
    "gone": _group_sample,
    "share_state": _share_sample,
    "share_offsets": _share_sample,
    "share_metrics": _counters,
    "quorum": _quorum,
}
TYPES: Final = frozenset((*GROUP_RECORDS, *STATE_TYPES, *_SAMPLES))
"""The types of records and the kinds of samples that the folds take."""


def history_of(events: Iterable[Event]) -> Iterator[Found]:
    """The rows of the folds, from records and samples of these types. What cannot be read is left out."""
    for event in events:
        if event["input"] == "records":
            yield from _record(event)
        elif event["body"] is not None and event["error"] is None:
            try:
                yield from _SAMPLES[event["type"]](event)
            except msgspec.MsgspecError:
                continue


def _record(event: Event) -> Iterator[Found]:
    if event["group"] is None:
        return
    key = FoldKey(GROUP, event["cluster"], event["group"])
    if event["type"] in _STATE_TYPES:
        key = key._replace(fold=SHARE, topic_id=event["share_topic_id"], partition=event["share_partition"])
    yield (
        key,
        HistoryRow(
            RECORD, event["partition"], event["offset"], 0, event["ts"], event["type"], None, event["key"],
            event["value"],
        ),
    )  # fmt: skip
