"""The rows of consumer_lag, log by log: from what was sampled and committed, and from where the log ended.

NumPy and Arrow, without Spark. All groups that read a log are looked at together, in columns. A worker holds what there
is of one log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from ottla.health.facts import Lag
from ottla.spark.jobs.params import HOUR_MS, Isolation, Params
from ottla.spark.schemas import arrow_flags, arrow_numbers, arrow_schema, arrow_texts
from ottla.wire.lag import passed_at_ms

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = [
    "COMMIT",
    "HISTORY_MS",
    "LAG_EVENT",
    "LAG_ROW",
    "LOG",
    "POINT",
    "SAMPLE",
    "earliest_ms",
    "lag_rows",
    "sampled_lag",
]

HISTORY_MS: Final = HOUR_MS
"""End offsets that are older than this are not used, and rates are not computed over more."""
LOG: Final = ("cluster", "topic", "partition")
LAG_EVENT: Final = {
    "cluster": "string",
    "topic": "string",
    "partition": "int",
    "what": "int",
    "topic_id": "string",
    "group": "string",
    "ts": "bigint",
    "seq": "bigint",
    "committed": "bigint",
    "committed_ts": "bigint",
    "end": "bigint",
}
"""What the rows are made of. Sample: all columns. Commit: no end; a deleted one has no `committed`. Point: `ts` and
`end`."""
SAMPLE, COMMIT, POINT = range(3)
LAG_ROW: Final = {
    "cluster": "string",
    "group": "string",
    "topic": "string",
    "topic_id": "string",
    "partition": "int",
    "window_start": "bigint",
    "committed": "bigint",
    "high_watermark": "bigint",
    "lag_records": "bigint",
    "lag_seconds": "double",
    "rate_in": "double",
    "rate_out": "double",
    "eta_s": "double",
    "stuck": "boolean",
    "source": "string",
}
NONE: Final = np.iinfo(np.int64).min
"""Stands for null in a column of numbers: it comes before all others in order."""
STUCK_WINDOWS: Final = 5
POINT_MS: Final = 1_000
"""Of the end offsets within this time only the last one is used."""
ROWS: Final = 50_000
"""So many rows are in one batch, or up to twice as many."""
_Place = tuple[str, str, int]
"""Cluster, topic and partition."""
_read_lag: Final = msgspec.json.Decoder(Lag).decode


# --- events -----------------------------------------------------------------------------------------------------------


def sampled_lag(batches: Iterable[pa.RecordBatch], isolation: Isolation) -> Iterator[pa.RecordBatch]:
    """Samples of lag (`cluster`, `ts`, `seq`, `body`) as events. Those that cannot be read are left out: any client may
    write anything to a topic."""
    import pyarrow as pa

    schema = arrow_schema(LAG_EVENT)
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("cluster", "ts", "seq", "body"))
        rows = [row for row in map(_sample, *columns, [isolation] * batch.num_rows) if row is not None]
        cells = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(cells, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _sample(cluster: str, ts: int, seq: int, body: str, isolation: Isolation) -> tuple[Any, ...] | None:
    try:
        lag = _read_lag(body)
    except msgspec.MsgspecError:
        return None
    if lag.committed is None or lag.committed < 0:
        return None
    end = lag.last_stable if isolation == "read_committed" else lag.high_watermark
    place = cluster, lag.topic, lag.partition, SAMPLE, lag.topic_id, lag.group
    return *place, ts, seq, lag.committed, lag.committed_ts, end


class _Events(NamedTuple):
    """Some events of a log, in columns."""

    group: Numbers
    """The place of its name in a dictionary; -1 for points."""
    topic_id: Numbers
    """Likewise; -1 where there is none."""
    ts: Numbers
    seq: Numbers
    committed: Numbers
    committed_ts: Numbers
    end: Numbers

    def at(self, wanted: Numbers | Flags) -> _Events:
        return _Events(*(column[wanted] for column in self))

    def put(self, **columns: Numbers) -> _Events:
        return self._replace(**columns)

    def and_also(self, others: _Events) -> _Events:
        return _Events(*map(np.concatenate, zip(self, others, strict=True)))

    @property
    def hour(self) -> Numbers:
        return self.ts // HOUR_MS


class _Points(NamedTuple):
    """End offsets of a log, in the order of time."""

    ts: Numbers
    end: Numbers


# --- logs -------------------------------------------------------------------------------------------------------------


def earliest_ms(params: Params) -> int:
    """No row depends on samples and end offsets before this time, nor on commits, but for the newest one."""
    return NONE if params.from_ms is None else params.from_ms - HISTORY_MS


def lag_rows(batches: Iterable[pa.RecordBatch], params: Params) -> Iterator[pa.RecordBatch]:
    """The rows, from events in the order of their logs."""
    groups, topic_ids = _Names(), _Names()
    made: list[_Rows] = []
    count = 0
    for place, log in _logs(batches, groups, topic_ids):
        for rows in _rows_of_log(place, log, topic_ids, params):
            made.append(rows)
            count += rows.size
            if count >= ROWS:
                yield _batch(made, groups)
                made, count = [], 0
    if made:
        yield _batch(made, groups)


class _Names:
    """Texts, each with a number."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def numbers_of(self, column: pa.Array) -> Numbers:
        """The number of each text of a column, -1 where there is none."""
        encoded = column.dictionary_encode()
        numbers = [self._number(text) for text in encoded.dictionary.to_pylist()]
        found: Numbers = np.array([*numbers, -1])[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        return found

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def text(self, number: int) -> str | None:
        return None if number < 0 else self._texts[number]

    def column_of(self, numbers: Numbers) -> pa.Array:
        """The texts with these numbers."""
        known, place = np.unique(numbers, return_inverse=True)
        return _taken(arrow_texts([self._texts[number] for number in known]), place)


def _taken(column: pa.Array, place: Numbers) -> pa.Array:
    import pyarrow as pa

    return column.take(arrow_numbers(place, pa.int64()))


def _logs(
    batches: Iterable[pa.RecordBatch], groups: _Names, topic_ids: _Names
) -> Iterator[tuple[_Place, tuple[NDArray[np.int32], _Events]]]:
    """Each log, and its events, with what each of them is."""
    place, held = None, list[tuple[Any, ...]]()
    for batch in batches:
        columns = _in_columns(batch, groups, topic_ids)
        for start, end in pairwise(_cuts(batch)):
            here = tuple(batch.column(name)[start].as_py() for name in LOG)
            if place is not None and here != place:
                yield place, _joined(held)
                held = []
            place = here
            held.append(tuple(column[start:end] for column in columns))
    if place is not None:
        yield place, _joined(held)


def _in_columns(batch: pa.RecordBatch, groups: _Names, topic_ids: _Names) -> tuple[Any, ...]:
    """What the events are, and their columns."""
    names = ("ts", "seq", "committed", "committed_ts", "end")
    return (
        batch.column("what").to_numpy(),
        groups.numbers_of(batch.column("group")),
        topic_ids.numbers_of(batch.column("topic_id")),
        *(batch.column(name).fill_null(NONE).to_numpy() for name in names),
    )


def _joined(parts: list[tuple[Any, ...]]) -> tuple[NDArray[np.int32], _Events]:
    what, *columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return what, _Events(*columns)


def _cuts(batch: pa.RecordBatch) -> list[int]:
    """Where one log ends and another begins, with both ends of the batch."""
    import pyarrow.compute as pc

    count = batch.num_rows
    if not count:
        return []
    is_other = np.zeros(count - 1, np.bool_)
    for name in LOG:
        column = batch.column(name)
        is_other |= pc.not_equal(column.slice(1), column.slice(0, count - 1)).to_numpy(zero_copy_only=False)
    return [0, *(np.flatnonzero(is_other) + 1).tolist(), count]


class _Rows(NamedTuple):
    """Some rows of a log: what is the same in all of them, and the other columns."""

    same: tuple[str, str, int, str | None, str]
    """Cluster, topic, partition, topic id, source."""
    columns: dict[str, Any]

    @property
    def size(self) -> int:
        return len(self.columns["group"])


def _rows_of_log(
    place: _Place, log: tuple[NDArray[np.int32], _Events], topic_ids: _Names, params: Params
) -> Iterator[_Rows]:
    what, events = log
    since_ms = earliest_ms(params)
    samples = events.at((what == SAMPLE) & (events.ts >= since_ms))
    commits, points = events.at(what == COMMIT), events.at(what == POINT)
    del events, log
    for topic_id in np.unique(samples.topic_id) if len(samples.ts) else ():
        told = samples.at(samples.topic_id == topic_id)
        ends = told.at(told.end != NONE)
        found = _measured(told, _Points(ends.ts, ends.end), params)
        yield from _few_at_a_time((*place, topic_ids.text(topic_id), "samples"), found)
    if len(commits.ts):
        topic_id = commits.topic_id[0]  # a commit says none: it is that of the topic with this name
        ends_of_topic = _points_of(points, topic_id)
        rows = _with_last_of_hours(commits, ends_of_topic)
        rows = rows.at((rows.committed != NONE) & (rows.ts >= since_ms))
        rows = rows.at(~_is_sampled(rows, samples))
        rows = rows.put(end=_end_at(rows.ts, ends_of_topic))
        found = _measured(rows, ends_of_topic, params)
        yield from _few_at_a_time((*place, topic_ids.text(topic_id), "records"), found)


def _few_at_a_time(same: tuple[str, str, int, str | None, str], columns: dict[str, Any]) -> Iterator[_Rows]:
    """So many rows at a time that the texts of a column stay within Arrow's limits."""
    for start in range(0, len(columns["group"]), ROWS):
        yield _Rows(same, {name: values[start : start + ROWS] for name, values in columns.items()})


def _batch(made: list[_Rows], groups: _Names) -> pa.RecordBatch:
    """The rows of several logs."""
    import pyarrow as pa

    schema = arrow_schema(LAG_ROW)
    whose = np.repeat(np.arange(len(made)), [rows.size for rows in made])
    cluster, topic, partition, topic_id, source = zip(*(rows.same for rows in made), strict=True)
    texts = {"cluster": cluster, "topic": topic, "topic_id": topic_id, "source": source}
    found = {name: _taken(arrow_texts(cells), whose) for name, cells in texts.items()}
    found["partition"] = arrow_numbers(np.array(partition, np.int32)[whose], pa.int32())
    columns = {name: np.concatenate([rows.columns[name] for rows in made]) for name in made[0].columns}
    found["group"] = groups.column_of(columns.pop("group"))
    found["stuck"] = arrow_flags(columns.pop("stuck"), columns["high_watermark"] != NONE)
    for name, values in columns.items():
        is_known = ~np.isnan(values) if values.dtype == np.float64 else values != NONE
        found[name] = arrow_numbers(values, schema.field(name).type, is_known)
    return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)


# --- commits ----------------------------------------------------------------------------------------------------------


def _points_of(points: _Events, topic_id: int) -> _Points:
    """The end offsets of the log, not of an earlier topic with the same name."""
    if topic_id >= 0:
        points = points.at((points.topic_id < 0) | (points.topic_id == topic_id))
    second = points.ts // POINT_MS
    order = np.lexsort((points.end, points.ts, second, points.topic_id))
    is_last = _ends_run(points.topic_id[order], second[order])
    return _in_time(points.ts[order][is_last], points.end[order][is_last])


def _in_time(ts: Numbers, end: Numbers) -> _Points:
    order = np.lexsort((end, ts))
    return _Points(ts[order], end[order])


def _with_last_of_hours(commits: _Events, points: _Points) -> _Events:
    """Commits, and the state at the last record of each hour of the partition, though no commit came then."""
    if not len(points.ts):
        return commits
    last_ms = points.ts[_ends_run(points.ts // HOUR_MS)]
    hours = last_ms // HOUR_MS
    in_order = commits.at(np.lexsort((commits.hour, commits.group)))
    first_hour = min(in_order.hour.min(), hours[0])
    span = max(in_order.hour.max(), hours[-1]) - first_hour + 1
    known = in_order.group * span + in_order.hour - first_hour
    newest = _so_far(in_order.group, np.lexsort((in_order.committed, in_order.seq)))
    told_ms = in_order.ts[_so_far(in_order.group, np.argsort(in_order.ts, kind="stable"))]
    groups = in_order.group[_ends_run(in_order.group)]
    asked, at_ms = np.repeat(groups, len(hours)), np.tile(last_ms, len(groups))
    place = np.searchsorted(known, asked * span + np.tile(hours, len(groups)) - first_hour, "right") - 1
    is_later = (place >= 0) & (in_order.group[place] == asked) & (at_ms > told_ms[place])
    states = in_order.at(newest[place[is_later]])
    nothing = np.full(len(states.ts), NONE)
    return commits.and_also(states.put(ts=at_ms[is_later], seq=nothing))


def _so_far(group: Numbers, order: Numbers) -> Numbers:
    """For each row the place of the greatest one so far of its group, by an order of all rows. Groups are together."""
    count = len(group)
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    greatest = np.maximum.accumulate(group * count + rank)
    found: Numbers = order[greatest % count]
    return found


def _is_sampled(rows: _Events, samples: _Events) -> Flags:
    """Whether samples tell of the group in the hour of each row."""
    if not len(samples.ts):
        return np.zeros(len(rows.ts), np.bool_)
    first_hour, last_hour = samples.hour.min(), samples.hour.max()
    span = last_hour - first_hour + 1
    is_between = (rows.hour >= first_hour) & (rows.hour <= last_hour)
    told = samples.group * span + samples.hour - first_hour
    found: Flags = is_between & np.isin(rows.group * span + rows.hour - first_hour, told)
    return found


def _end_at(ts: Numbers, points: _Points) -> Numbers:
    """Where the log ended at some times: at the last point that is not newer."""
    place = np.searchsorted(points.ts, ts, "right")
    return np.append(NONE, points.end)[place]


# --- both -------------------------------------------------------------------------------------------------------------


def _measured(rows: _Events, points: _Points, params: Params) -> dict[str, Any]:
    """The columns of the table, one row for each group and window: as it was at the end of the window."""
    window_ms = params.lag_window_ms
    order = np.lexsort((rows.end, rows.committed_ts, rows.committed, rows.seq, rows.ts, rows.group))
    rows = rows.at(order)
    rows = rows.at(_ends_run(rows.group, rows.ts // window_ms))
    start = rows.ts // window_ms * window_ms
    has_end = rows.end != NONE
    lag = np.where(has_end, np.maximum(np.where(has_end, rows.end, 0) - rows.committed, 0), NONE)
    passed_s = _since_last(rows.ts, rows.group) / 1_000
    passed_s[~((passed_s > 0) & (passed_s <= HISTORY_MS / 1_000))] = np.nan
    rate_in = _since_last(np.where(has_end, rows.end, np.nan), rows.group) / passed_s
    rate_out = _since_last(rows.committed, rows.group) / passed_s
    gain = rate_out - rate_in
    with np.errstate(divide="ignore", invalid="ignore"):
        eta = np.where(gain > 0, np.where(has_end, lag, np.nan) / gain, np.nan)
    return {
        "group": rows.group,
        "window_start": start,
        "committed": rows.committed,
        "high_watermark": rows.end,
        "lag_records": lag,
        "lag_seconds": _seconds(rows, points),
        "rate_in": rate_in,
        "rate_out": rate_out,
        "eta_s": np.where(lag == 0, 0.0, eta),
        "stuck": _is_stuck(rows, start, lag, window_ms),
    }


def _ends_run(*columns: Numbers) -> Flags:
    """Whether each row is the last one of a run of equal rows."""
    count = len(columns[0])
    is_last = np.ones(count, np.bool_)
    if count:
        is_last[:-1] = False
        for column in columns:
            is_last[:-1] |= column[1:] != column[:-1]
    return is_last


def _since_last(values: Any, group: Numbers) -> NDArray[np.float64]:
    """The difference from the row before, if that is of the same group."""
    found = np.full(len(values), np.nan)
    found[1:] = np.where(group[1:] == group[:-1], values[1:] - values[:-1], np.nan)
    return found


def _is_stuck(rows: _Events, start: Numbers, lag: Numbers, window_ms: int) -> Flags:
    """Whether lag has grown in each of the last windows, and nothing was committed since."""
    grows = np.zeros(len(start), np.bool_)
    is_next = (rows.group[1:] == rows.group[:-1]) & (start[1:] - start[:-1] == window_ms)
    is_more = (lag[1:] > lag[:-1]) & (lag[:-1] != NONE)
    grows[1:] = is_next & is_more & (rows.committed[1:] == rows.committed[:-1])
    stuck = grows.copy()
    for back in range(1, STUCK_WINDOWS):
        stuck[:back] = False
        stuck[back:] &= grows[:-back]
    return stuck


def _seconds(rows: _Events, points: _Points) -> NDArray[np.float64]:
    """For how long the first record that a group has not processed has been waiting: see `ottla.wire.lag`.

    End offsets only grow. So the two points between which the log passed a committed offset are its neighbours in the
    order of values.
    """
    order = np.lexsort((points.ts, points.end))
    ts = np.concatenate(([np.nan], points.ts[order], [np.nan]))
    end = np.concatenate(([np.nan], points.end[order], [np.nan]))
    after = np.searchsorted(points.end[order], rows.committed, "right") + 1
    before = after - 1
    passed = passed_at_ms(rows.committed, (ts[before], end[before]), (ts[after], end[after]))
    waited = np.where(ts[before] >= rows.ts - HISTORY_MS, rows.ts - passed, np.nan)
    known_ms = np.where(rows.committed_ts != NONE, rows.committed_ts, np.nan)
    waited = np.where(np.isnan(waited), rows.ts - known_ms, waited)
    seconds = np.where(rows.end != NONE, np.maximum(waited, 0.0) / 1_000, np.nan)
    return np.where((rows.end != NONE) & (rows.end <= rows.committed), 0.0, seconds)
