"""The health rules, evaluated step by step: the facts of new steps in, changes of the table of findings out.

The rules need a cluster as a whole, so they run in the driver. The state after each batch of the stream is a file of
its own: a batch that Spark repeats begins with the state of the batch before it.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ottla.spark.jobs.ordered_fold import OrderedFold
from ottla.spark.jobs.rule_evaluation import CONFIG_RECORD
from ottla.spark.jobs.rule_fold import RECORD_RANK, SAMPLE_RANK, FactRow, RuleFold, with_names
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.jobs.stream_fold import Change, GroupFact, change_of
from ottla.spark.jobs.tables import FINDINGS
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.event_decoder import RECORDS, SAMPLES
from ottla.spark.pipeline.in_process import INPUT

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.jobs.params import Params

__all__ = ["RuleStream"]

BEFORE_ALL: Final = -1
KEPT: Final = 2
"""So many states are kept: that of the last batch, and that from which it can be repeated."""
_read_facts: Final = msgspec.msgpack.Decoder(list[GroupFact]).decode


GroupChange = tuple[bytes, bytes | None]
"""A change of the facts about a group: its key and its body."""


class _State(NamedTuple):
    step: int = BEFORE_ALL
    """The last step whose facts were taken."""
    metadata_offset: int = BEFORE_ALL
    folds: Mapping[str, bytes] = {}
    """By cluster."""
    open_facts: Mapping[str, dict[str, list[FactRow]]] = {}
    """Cluster -> group -> facts that the next ones may replace."""


class RuleStream:
    def __init__(self, directory: Path, archive: Archive, params: Params) -> None:
        self._directory = directory
        self._archive = archive
        self._params = params
        self.unseen: list[dict[str, Any]] = []
        """The rules that could not be checked, as the run file has them."""

    def advance(
        self, batch_id: int, facts: Iterable[GroupChange], metadata: pa.Table, names: Mapping[str, str]
    ) -> list[Change]:
        """Take the facts of all new steps, and those about groups that a batch has made of their records."""
        state = self._load(batch_id - 1)
        last = self._archive.last_number()
        steps = (self._archive.step_path(number) for number in range(state.step + 1, last + 1))
        configs = list(_config_rows(metadata, state.metadata_offset))
        rows: dict[str, list[FactRow]] = defaultdict(list)
        for cluster, row in chain(configs, chain.from_iterable(_facts_in(each, names) for each in steps)):
            rows[cluster].append(row)
        groups: dict[str, dict[str, list[tuple[FactRow, bool]]]] = defaultdict(dict)
        for cluster, group, told in _group_facts(facts, names):
            groups[cluster][group] = told
        watermark_ms = self._archive.step(last).newest_ms - self._params.lateness_ms if last >= 0 else 0
        changes: list[Change] = []
        folds, open_facts = dict(state.folds), dict(state.open_facts)
        self.unseen = []
        for cluster in sorted({*folds, *rows, *groups}):
            fold = OrderedFold(folds.get(cluster), partial(self._make, cluster))
            fresh, withdrawn, is_open = _fresh(fold.tip, groups[cluster], open_facts.get(cluster, {}))
            changed, deleted = fold.take([*rows[cluster], *fresh], withdrawn)
            changes += [change_of(FINDINGS, cells) for cells in changed.values()]
            changes += [_deleted(cluster, *key) for key in deleted]
            fold.forget(watermark_ms)
            folds[cluster], open_facts[cluster] = fold.kept(), is_open
            self.unseen += fold.tip.unseen()
        metadata_offset = max([state.metadata_offset, *(row.order_number for _, row in configs)])
        self._save(batch_id, _State(last, metadata_offset, folds, open_facts))
        return changes

    def _make(self, cluster: str) -> RuleFold:
        return RuleFold(cluster, self._params.thresholds, self._params.connection)

    # --- states -------------------------------------------------------------------------------------------------------

    def _load(self, batch_id: int) -> _State:
        if batch_id < 0:
            return _State()
        found: _State = pickle.loads(self._file(batch_id).read_bytes())
        return found

    def _save(self, batch_id: int, state: _State) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        new = self._directory / ".new"
        new.write_bytes(pickle.dumps(state))
        new.rename(self._file(batch_id))
        self._file(batch_id - KEPT).unlink(missing_ok=True)

    def _file(self, batch_id: int) -> Path:
        return self._directory / f"rules-{batch_id}"


def _deleted(cluster: str, since_ms: int, finding_id: str) -> Change:
    return change_of(FINDINGS, {"cluster": cluster, "since_ms": since_ms, "id": finding_id})._replace(body=None)


# --- facts ------------------------------------------------------------------------------------------------------------


def _facts_in(step: Path, names: Mapping[str, str]) -> Iterator[tuple[str, FactRow]]:
    """The samples of a step, and its records of share groups, with their clusters."""
    import pyarrow.dataset as ds

    for file in sorted(step.glob(f"{INPUT}={SAMPLES}/*.parquet")):
        rows = ds.dataset(file).to_table(columns=["cluster", "ts", "observer", "seq", "type", "error", "body"])
        for cells in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            yield cells[0], _sample_row(*cells[1:])
    for file in sorted(step.glob(f"{INPUT}={RECORDS}/*.parquet")):
        columns = ["cluster", "ts", "group", "offset", "type", "value", "key", "share_topic_id"]
        rows = ds.dataset(file).to_table(columns=columns, filter=ds.field("type").isin(STATE_TYPES))
        for cluster, ts, group, offset, kind, value, key, topic_id in zip(
            *(column.to_pylist() for column in rows.columns), strict=True
        ):
            yield cluster, FactRow(ts, RECORD_RANK, group or "", offset, kind, None, value, key, names.get(topic_id))


class _SampledRecord(msgspec.Struct):
    group: str = ""
    offset: int | None = None
    written_ms: int | None = None


_read_sampled: Final = msgspec.json.Decoder(_SampledRecord).decode


def _sample_row(
    ts: int, observer: str | None, seq: int | None, kind: str, error: str | None, body: str | None
) -> FactRow:
    encoded = None if body is None else body.encode()
    if kind == "share_state" and encoded is not None:
        # Records that an observer has sampled are put back in their order, by the time they were written.
        try:
            place = _read_sampled(encoded)
        except msgspec.MsgspecError:
            place = _SampledRecord()
        at_ms = ts if place.written_ms is None else place.written_ms
        return FactRow(at_ms, RECORD_RANK, place.group, place.offset or 0, kind, error, encoded)
    return FactRow(ts, SAMPLE_RANK, observer or "", seq or 0, kind, error, encoded)


def _config_rows(metadata: pa.Table, after: int) -> Iterator[tuple[str, FactRow]]:
    import pyarrow.compute as pc

    is_new = pc.and_(pc.equal(metadata["type"], CONFIG_RECORD), pc.greater(metadata["offset"], after))
    for row in metadata.filter(is_new).to_pylist():
        body = row["value"].encode()
        yield row["cluster"], FactRow(row["timestamp"], RECORD_RANK, "", row["offset"], CONFIG_RECORD, None, body)


def _group_facts(
    changes: Iterable[GroupChange], names: Mapping[str, str]
) -> Iterator[tuple[str, str, list[tuple[FactRow, bool]]]]:
    """Cluster, group, and its new facts, each with whether it is open."""
    for key, body in changes:
        cluster, group = msgspec.msgpack.decode(key)
        told = [
            (
                FactRow(
                    each.ts, RECORD_RANK, group, each.number, each.kind, None,
                    with_names(each.body, names) if each.kind == "group" else each.body,
                ),
                each.is_open,
            )
            for each in _read_facts(body or b"")
        ]  # fmt: skip
        yield cluster, group, told


def _fresh(
    rules: RuleFold, groups: Mapping[str, list[tuple[FactRow, bool]]], known: Mapping[str, list[FactRow]]
) -> tuple[list[FactRow], list[FactRow], dict[str, list[FactRow]]]:
    """The facts of groups to be taken, those that they replace, and those that are open then."""
    fresh: list[FactRow] = []
    withdrawn: list[FactRow] = []
    is_open = dict(known)
    for group, told in groups.items():
        rows = [row for row, _ in told if not rules.is_sampled(group, row.ts)]
        fresh += rows
        withdrawn += set(known.get(group, ())) - set(rows)
        is_open[group] = [row for row, is_last in told if is_last]
    return fresh, withdrawn, is_open
