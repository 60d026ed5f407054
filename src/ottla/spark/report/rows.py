"""Reads tables in pieces, never as a whole, so that a month of a large cluster needs no more memory.

A table may be missing: then there are no rows. It may lack columns that a newer run has: then they are null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset

Row: TypeAlias = dict[str, Any]
Source: TypeAlias = Any
"""A pyarrow Table or Dataset; pyarrow has no type hints."""

PIECE_ROWS: Final = 1 << 17
ROWS_AT_ONCE: Final = 1 << 13
MERGE_ROWS: Final = 1 << 18
_MERGED_BY: Final = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""How the results of pieces are combined."""


class Derived(NamedTuple):
    """A column that is made from others."""

    name: str
    sources: tuple[str, ...]
    values: Callable[[Source], Any]
    """Makes the column of a table that has the sources."""


class Rows:
    """Rows of one table, possibly filtered."""

    def __init__(self, source: Source | None, derived: Derived | None = None, keep: Any = None) -> None:
        """`keep`: a pyarrow expression that is true of the rows."""
        self._data = dataset.dataset(source) if isinstance(source, pa.Table) else source
        self._derived = derived
        self._keep = keep
        self.columns: frozenset[str] = frozenset(self._data.schema.names if self._data is not None else ())

    @property
    def count(self) -> int:
        return self._data.count_rows(filter=self._keep) if self._data is not None else 0

    def where(self, keep: Any) -> Rows:
        """Rows for which a pyarrow expression is true."""
        return Rows(self._data, self._derived, keep if self._keep is None else self._keep & keep)

    def deriving(self, column: Derived) -> Rows:
        """The same rows with a column more; filters do not know it."""
        return Rows(self._data, column, self._keep)

    def among(self, keys: Sequence[tuple[Any, ...]], names: Sequence[str] = ("cluster", "group")) -> Rows:
        """Rows that may belong to the keys. Each column is filtered on its own, so there may be some more rows."""
        rows = self
        for at, name in enumerate(names):
            if name in self.columns:
                rows = rows.where(pc.field(name).isin(sorted({key[at] for key in keys})))
        return rows

    def pieces(self, columns: Sequence[str]) -> Iterator[Any]:
        """The named columns as tables of a bounded number of rows; a missing column is null."""
        if self._data is None:
            return
        derived = self._derived if self._derived is not None and self._derived.name in columns else None
        there = [name for name in dict.fromkeys([*columns, *(derived.sources if derived else ())])
                 if name in self.columns]  # fmt: skip
        # A scan of the whole would read on while its rows are looked at, and hold all of them in the end.
        for fragment in self._data.get_fragments(self._keep):
            for batch in fragment.to_batches(self._data.schema, there, filter=self._keep, batch_size=PIECE_ROWS):
                if batch.num_rows:
                    piece = pa.Table.from_batches([batch])
                    yield _with_all(piece if derived is None else _with_derived(piece, derived), columns)

    def each(self, columns: Sequence[str]) -> Iterator[Row]:
        for piece in self.pieces(columns):
            for batch in piece.to_batches(max_chunksize=ROWS_AT_ONCE):
                yield from batch.to_pylist()

    def days(self) -> Iterator[Rows]:
        """The same rows, day by day."""
        if "run_date" not in self.columns:
            yield self
            return
        for day in self.grouped(["run_date"], {}):
            yield self.where(pc.field("run_date") == day["run_date"])

    def aggregated(self, keys: Sequence[str], wanted: Mapping[str, tuple[str, str]]) -> Any | None:
        """A table of keys and results, unordered; `wanted` maps the name of a result to its column and function."""
        columns = list(dict.fromkeys([*keys, *(column for column, _ in wanted.values())]))
        found: list[Any] = []
        unmerged = 0
        for piece in self.pieces(columns):
            found.append(_aggregated(piece, keys, wanted))
            unmerged += found[-1].num_rows
            if unmerged > max(MERGE_ROWS, found[0].num_rows):
                found, unmerged = [_merged(found, keys, wanted)], 0
        return _merged(found, keys, wanted) if found else None

    def grouped(self, keys: Sequence[str], wanted: Mapping[str, tuple[str, str]]) -> list[Row]:
        """The same as `aggregated`, as rows sorted by the keys."""
        found = self.aggregated(keys, wanted)
        return [] if found is None else _by_key(found.to_pylist(), keys)

    def newest(self, keys: Sequence[str], order: str, columns: Sequence[str]) -> list[Row]:
        """For each key the row with the greatest `order`."""
        best: dict[tuple[Any, ...], Row] = {}
        for piece in self.pieces([*keys, order, *columns]):
            for row in last_of_each(piece.sort_by([(order, "ascending")]), keys).to_pylist():
                key = tuple(row[name] for name in keys)
                if key not in best or row[order] >= best[key][order]:
                    best[key] = row
        return _by_key(list(best.values()), keys)

    def top(self, columns: Sequence[str], count: int, by: Sequence[tuple[str, str]]) -> list[Row]:
        """The first rows in an order of columns, each `ascending` or `descending`."""
        best = None
        for piece in self.pieces(columns):
            both = piece if best is None else pa.concat_tables([best, piece], promote_options="permissive")
            best = both.take(pc.sort_indices(both, sort_keys=list(by))[:count])
        return [] if best is None else best.to_pylist()


def _with_all(piece: Any, columns: Sequence[str]) -> Any:
    for name in columns:
        if name not in piece.column_names:
            piece = piece.append_column(name, pa.nulls(piece.num_rows))
    return piece.select(list(columns))


def _with_derived(piece: Any, derived: Derived) -> Any:
    return piece.append_column(derived.name, derived.values(_with_all(piece, derived.sources)))


def _aggregated(piece: Any, keys: Sequence[str], wanted: Mapping[str, tuple[str, str]]) -> Any:
    there = {name: pair for name, pair in wanted.items() if not pa.types.is_null(piece.schema.field(pair[0]).type)}
    found = _grouped_by(piece, keys).aggregate(list(there.values()))
    found = found.select([*keys, *(f"{column}_{how}" for column, how in there.values())])
    return _with_all(found.rename_columns([*keys, *there]), [*keys, *wanted])


def last_of_each(ordered: Any, keys: Sequence[str]) -> Any:
    """The last row of a table for each key."""
    numbered = ordered.select(list(keys)).append_column("at", pa.array(np.arange(ordered.num_rows)))
    return ordered.take(_grouped_by(numbered, keys).aggregate([("at", "max")])["at_max"])


def _grouped_by(table: Any, keys: Sequence[str]) -> Any:
    """Threads would take some hundred megabytes, and gain nothing with pieces of this size."""
    return table.group_by(list(keys), use_threads=False)


def _merged(parts: list[Any], keys: Sequence[str], wanted: Mapping[str, tuple[str, str]]) -> Any:
    merging = {name: (name, _MERGED_BY[how]) for name, (_, how) in wanted.items()}
    return _aggregated(pa.concat_tables(parts, promote_options="permissive"), keys, merging)


def _by_key(rows: list[Row], keys: Sequence[str]) -> list[Row]:
    return sorted(rows, key=lambda row: tuple((row[name] is None, str(type(row[name])), row[name]) for name in keys))
