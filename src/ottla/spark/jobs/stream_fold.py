"""The folds of a stream: one stateful operator of Spark, whose state store keeps what each fold remembers.

`advance` is the operator for one key, in plain Python: from the state of a fold and the next rows of its history to the
next state, and to changes of tables. A change is a row that replaces the row with the same key, or the key alone if
there is no such row any more. The same state and rows give the same changes, so a repeated batch changes nothing.

Records of groups come in the order of their offsets. Samples may come late: those that are newer than the watermark are
kept, and folded again together with those that come before the watermark has passed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import msgspec

from ottla.spark.jobs.folds.fold import Fold
from ottla.spark.jobs.folds.rows import Event, Movement, Out, Rebalance, Window
from ottla.spark.jobs.ordered_fold import Advanced, TimedSample, advance
from ottla.spark.jobs.params import HOUR_MS, Params
from ottla.spark.jobs.quorum_fold import QuorumFold
from ottla.spark.jobs.share_counters import WHOLE_GROUP, ShareCounters
from ottla.spark.jobs.share_fold import limits_of
from ottla.spark.jobs.share_partition import SharePartition, ShareRow
from ottla.spark.jobs.stream_history import COUNTERS, GROUP, NO_OFFSET, QUORUM, RECORD, SHARE, FoldKey, HistoryRow
from ottla.spark.jobs.tables import (
    GROUP_FACTS,
    GROUP_TIMELINE,
    QUORUM_LAG,
    REBALANCES,
    SHARE_DELIVERY,
    STABILITY,
    TASK_MOVEMENT,
    Table,
)

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

__all__ = [
    "ALL_OF_GROUP",
    "CHANGE_DDL",
    "STATE_VERSION",
    "Change",
    "GroupFact",
    "advance_fold",
    "change_of",
    "changes_of",
    "row_key",
]

STATE_VERSION: Final = 3
"""Another version of the state of any fold needs another number: then all is computed from the archive again."""
CHANGE_DDL: Final = "`table` string, hour bigint, key binary, body binary"
ALL_OF_GROUP: Final = ""
"""Instead of a table: all rows from samples of a group are deleted; the key is its cluster and its name."""
_OF_ROW: Final[Mapping[type, Table]] = {
    Event: GROUP_TIMELINE,
    Rebalance: REBALANCES,
    Window: STABILITY,
    Movement: TASK_MOVEMENT,
}
_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder().decode


class Change(NamedTuple):
    """A change of a table: a row to write, or to delete if there is no body."""

    table: str
    hour: int
    """Of the row's event time, in hours since 1970."""
    key: bytes
    """The values of `row_key`."""
    body: bytes | None
    """The values of all columns but `run_date`, in the table's order."""


class GroupFact(NamedTuple):
    """A fact about a group from its records, for the health rules."""

    number: int
    ts: int
    kind: str
    body: bytes
    is_open: bool
    """Whether the next facts about the group may replace it."""


def row_key(table: Table) -> tuple[str, ...]:
    """The columns that tell one row of a table from all others: its key, and the time to which it belongs."""
    return table.key if table.event_time in table.key else (*table.key, table.event_time)


def change_of(table: Table, cells: Mapping[str, Any]) -> Change:
    """The change that writes a row."""
    key = _pack([cells[name] for name in row_key(table)])
    body = _pack([cells.get(name) for name in table.names if name != "run_date"])
    return Change(table.name, cells[table.event_time] // HOUR_MS, key, body)


# --- groups -----------------------------------------------------------------------------------------------------------


class _Sampled(msgspec.Struct, array_like=True):
    """What is known of a group that has only samples."""

    pending: list[HistoryRow] = []
    """Samples that are not older than the watermark, in order: others may still come between them."""
    told: dict[bytes, int] = {}
    """The rows that may still change: table, hour and key -> a digest of the row."""


class _GroupState(msgspec.Struct, array_like=True):
    fold: bytes
    """After all records; without records, after the samples that are older than the watermark."""
    sampled: _Sampled | None = None
    facts: int = 0
    """How many facts about the group are final."""


_decode_group: Final = msgspec.msgpack.Decoder(_GroupState).decode


def _advance_group(
    key: FoldKey, kept: bytes | None, rows: Iterable[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    """The next state of a group, and changes of the tables about groups."""
    state = _decode_group(kept) if kept else _GroupState(b"", _Sampled())
    whose = {"cluster": key.cluster, "group": key.group}
    in_order = sorted(set(rows))
    records = [each for each in in_order if each.rank == RECORD]
    if records:
        return _advance_records(whose, state, records, params)
    if state.sampled is None:  # its records say more
        return kept or b"", []
    return _advance_samples(whose, state.fold, state.sampled, in_order, watermark_ms, params)


def _advance_records(
    whose: Mapping[str, str], state: _GroupState, records: list[HistoryRow], params: Params
) -> tuple[bytes, list[Change]]:
    was_sampled = state.sampled is not None and bool(state.fold or state.sampled.told)
    fold = Fold(params, None if state.sampled is not None else state.fold, facts_of=whose["group"])
    fold.take_records((row.log_partition, row.place, row.ts, row.type, row.key or b"", row.value) for row in records)
    kept, out = fold.cut()
    changes = [Change(ALL_OF_GROUP, 0, _pack(list(whose.values())), None)] if was_sampled else []
    changes += _group_changes(whose, "records", out)
    changes.append(_facts_change(whose, out, state.facts))
    return _pack(_GroupState(kept, None, state.facts + len(out.facts))), changes


def _facts_change(whose: Mapping[str, str], out: Out, number: int) -> Change:
    """The facts about a group, numbered. Those that are open may be replaced by the next ones."""
    facts = [
        GroupFact(at, ts, fact.kind, msgspec.json.encode(fact), at >= number + len(out.facts))
        for at, (ts, fact) in enumerate([*out.facts, *out.open_facts], number)
    ]
    return Change(GROUP_FACTS.name, 0, _pack(list(whose.values())), _pack(facts))


def _advance_samples(
    whose: Mapping[str, str], base: bytes, known: _Sampled, new: list[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    pending = sorted({*known.pending, *new})
    now = {_identity(each): each for each in _group_changes(whose, "samples", _fold_samples(base, pending, params)[1])}
    digests = {identity: crc32(change.body or b"") for identity, change in now.items()}
    changes = [change for identity, change in now.items() if known.told.get(identity) != digests[identity]]
    changes += [Change(*_place(identity), None) for identity in known.told if identity not in now]
    past = [each for each in pending if each.ts < watermark_ms]
    if past:
        base, _, finished = _fold_samples(base, past, params)
        for each in _group_changes(whose, "samples", finished):
            digests.pop(_identity(each), None)
    told = _Sampled([each for each in pending if each.ts >= watermark_ms], digests)
    return _pack(_GroupState(base, told)), changes


def _fold_samples(base: bytes, samples: list[HistoryRow], params: Params) -> tuple[bytes, Out, Out]:
    """The state after some samples, all rows since the base, and those of them that cannot change any more."""
    fold = Fold(params, base or None, tells_all=True)
    for row in samples:
        fold.take_sample(row.ts, row.type, row.value)
    finished = fold.finished()
    kept, out = fold.cut()
    return kept, out, finished


def _group_changes(whose: Mapping[str, str], source: str, out: Out) -> Iterator[Change]:
    for row in out.rows():
        cells = {**whose, "source": source, **{name: getattr(row, name) for name in row.__struct_fields__}}
        change = change_of(_OF_ROW[type(row)], cells)
        yield change._replace(body=None) if isinstance(row, Event) and row.is_taken_back else change


def _identity(change: Change) -> bytes:
    return _pack([change.table, change.hour, change.key])


def _place(identity: bytes) -> tuple[str, int, bytes]:
    table, hour, key = _unpack(identity)
    return table, hour, key


# --- windows ----------------------------------------------------------------------------------------------------------


def _advance_share(
    key: FoldKey, kept: bytes | None, rows: Iterable[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    limits = limits_of(params, key.cluster, key.group)
    history = (
        ShareRow(each.type, each.ts, None if each.place == NO_OFFSET else each.place, each.topic, each.value)
        for each in rows
    )
    found = advance(kept, history, watermark_ms, lambda: SharePartition(params.share_window_ms, limits))
    common = {name: getattr(key, name) for name in ("cluster", "group", "topic_id", "partition")}
    return found.kept, list(_window_changes(SHARE_DELIVERY, common, found))


def _advance_counters(
    key: FoldKey, kept: bytes | None, rows: Iterable[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    history = (TimedSample(each.ts, each.seq, each.value or b"") for each in rows)
    found = advance(kept, history, watermark_ms, lambda: ShareCounters(params.share_window_ms))
    common = {"cluster": key.cluster, "group": key.group, **WHOLE_GROUP}
    return found.kept, list(_window_changes(SHARE_DELIVERY, common, found))


def _advance_quorum(
    key: FoldKey, kept: bytes | None, rows: Iterable[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    history = (TimedSample(each.ts, each.seq, each.value or b"") for each in rows)
    found = advance(kept, history, watermark_ms, lambda: QuorumFold(params.quorum_window_ms))
    return found.kept, list(_window_changes(QUORUM_LAG, {"cluster": key.cluster}, found))


def _window_changes(table: Table, common: Mapping[str, Any], found: Advanced) -> Iterator[Change]:
    for cells in found.changed.values():
        yield change_of(table, {**common, **cells})
    for key in found.deleted:
        names = [name for name in row_key(table) if name not in common]
        yield change_of(table, {**common, **dict(zip(names, key, strict=True))})._replace(body=None)


_ADVANCE: Final = {
    GROUP: _advance_group,
    SHARE: _advance_share,
    COUNTERS: _advance_counters,
    QUORUM: _advance_quorum,
}


# --- the operator -----------------------------------------------------------------------------------------------------


def advance_fold(
    key: FoldKey, kept: bytes | None, rows: Iterable[HistoryRow], watermark_ms: int, params: Params
) -> tuple[bytes, list[Change]]:
    """The next state of a fold, and changes of tables."""
    return _ADVANCE[key.fold](key, kept, rows, watermark_ms, params)


def changes_of(history: DataFrame, params: Params) -> DataFrame:
    """The changes of all tables, from a stream of history rows that have the column `newest_ms`: the newest time that
    the stream has seen."""
    return history.groupBy(*FoldKey._fields).applyInPandasWithState(
        partial(_advance, params=params), CHANGE_DDL, "kept binary", "update", "NoTimeout"
    )


def _advance(
    key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState, params: Params
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    rows: list[HistoryRow] = []
    newest_ms = 0
    for frame in frames:
        columns = [frame[name].tolist() for name in HistoryRow._fields]
        rows += map(HistoryRow._make, zip(*columns, strict=True))
        newest_ms = max(newest_ms, int(frame["newest_ms"].max()))
    kept = bytes(state.get[0]) if state.exists else None
    *names, partition = key
    fold = FoldKey._make((*names, int(partition)))  # a number of NumPy's
    now, changes = advance_fold(fold, kept, rows, newest_ms - params.lateness_ms, params)
    state.update((now,))
    if changes:
        cells = dict(zip(Change._fields, zip(*changes, strict=True), strict=True))
        yield pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})
