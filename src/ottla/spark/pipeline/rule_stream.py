"""The health rules, evaluated step by step: the facts of new steps in, changes of the table of findings out.

The rules need a cluster as a whole, so they run in the driver, which keeps their state in memory. The facts of each
batch of the stream are a file. Now and then the state is one, too: whenever the facts since the last one have become
as large. So a batch costs what it brings, and another process finds the state after any of the last batches: it takes
the facts since the last state again.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
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
STATE, FACTS = "state", "facts"
_read_facts: Final = msgspec.msgpack.Decoder(list[GroupFact]).decode


GroupChange = tuple[bytes, bytes | None]
"""A change of the facts about a group: its key and its body."""


class _BatchFacts(NamedTuple):
    """What a batch brings."""

    step: int
    """The last step whose facts are in it."""
    metadata_offset: int
    watermark_ms: int
    rows: Mapping[str, list[FactRow]]
    """By cluster."""
    groups: Mapping[str, Mapping[str, list[tuple[FactRow, bool]]]]
    """Cluster -> group -> facts from its records, each with whether the next ones may replace it."""


class _State(NamedTuple):
    step: int = BEFORE_ALL
    metadata_offset: int = BEFORE_ALL
    folds: Mapping[str, bytes] = {}
    """By cluster."""
    open_facts: Mapping[str, Mapping[str, list[FactRow]]] = {}
    """Cluster -> group -> facts that the next ones may replace."""


class _Rules:
    """The rules of all clusters, in memory."""

    def __init__(self, state: _State, make: Callable[[str], RuleFold]) -> None:
        self._make = make
        self.step = state.step
        self.metadata_offset = state.metadata_offset
        self._folds = {cluster: OrderedFold(kept, partial(make, cluster)) for cluster, kept in state.folds.items()}
        self._open_facts = {cluster: dict(groups) for cluster, groups in state.open_facts.items()}

    def take(self, batch: _BatchFacts) -> list[Change]:
        """Take the facts of a batch. Returns the changes of the table."""
        self.step, self.metadata_offset = batch.step, batch.metadata_offset
        changes: list[Change] = []
        for cluster in sorted({*self._folds, *batch.rows, *batch.groups}):
            fold = self._folds.get(cluster)
            if fold is None:
                fold = self._folds[cluster] = OrderedFold(None, partial(self._make, cluster))
            open_facts = self._open_facts.setdefault(cluster, {})
            fresh, withdrawn = _fresh(fold.tip, batch.groups.get(cluster, {}), open_facts)
            changed, deleted = fold.take([*batch.rows.get(cluster, ()), *fresh], withdrawn)
            changes += [change_of(FINDINGS, cells) for cells in changed.values()]
            changes += [_deleted(cluster, *key) for key in deleted]
            fold.forget(batch.watermark_ms)
        return changes

    def unseen(self) -> list[dict[str, Any]]:
        """The rules that could not be checked, as the run file has them."""
        return [each for _, fold in sorted(self._folds.items()) for each in fold.tip.unseen()]

    def state(self) -> _State:
        folds = {cluster: fold.kept() for cluster, fold in self._folds.items()}
        return _State(self.step, self.metadata_offset, folds, self._open_facts)


class RuleStream:
    def __init__(self, directory: Path, archive: Archive, params: Params) -> None:
        self._directory = directory
        self._archive = archive
        self._params = params
        self._rules: _Rules | None = None
        self._batch_id = BEFORE_ALL
        """The batch after which the rules are as they are in memory."""
        self._facts_bytes = self._state_bytes = 0
        """The size of the last state, and of the facts since then."""

    @property
    def unseen(self) -> list[dict[str, Any]]:
        """The rules that could not be checked, as the run file has them."""
        if self._rules is None:  # a process before this one has taken all facts
            return self._load(max(self._numbers(FACTS), default=BEFORE_ALL)).unseen()
        return self._rules.unseen()

    def advance(
        self, batch_id: int, facts: Iterable[GroupChange], metadata: pa.Table, names: Mapping[str, str]
    ) -> list[Change]:
        """Take the facts of all new steps, and those about groups that a batch has made of their records. Spark may
        repeat a batch."""
        rules = self._rules if self._batch_id == batch_id - 1 else None
        self._rules = None  # until this batch is done
        if rules is None:
            rules = self._load(batch_id - 1)
        batch = self._facts_of_batch(rules, facts, metadata, names)
        self._facts_bytes += self._write(FACTS, batch_id, batch)
        changes = rules.take(batch)
        if self._facts_bytes >= self._state_bytes:
            self._state_bytes, self._facts_bytes = self._write(STATE, batch_id, rules.state()), 0
            self._delete_old(batch_id)
        self._rules, self._batch_id = rules, batch_id
        return changes

    def _facts_of_batch(
        self, rules: _Rules, facts: Iterable[GroupChange], metadata: pa.Table, names: Mapping[str, str]
    ) -> _BatchFacts:
        last = self._archive.last_number()
        steps = (self._archive.step_path(number) for number in range(rules.step + 1, last + 1))
        configs = list(_config_rows(metadata, rules.metadata_offset))
        rows: dict[str, list[FactRow]] = defaultdict(list)
        for cluster, row in chain(configs, chain.from_iterable(_facts_in(each, names) for each in steps)):
            rows[cluster].append(row)
        groups: dict[str, dict[str, list[tuple[FactRow, bool]]]] = defaultdict(dict)
        for cluster, group, told in _group_facts(facts, names):
            groups[cluster][group] = told
        metadata_offset = max([rules.metadata_offset, *(row.order_number for _, row in configs)])
        watermark_ms = self._archive.step(last).newest_ms - self._params.lateness_ms if last >= 0 else 0
        return _BatchFacts(last, metadata_offset, watermark_ms, dict(rows), dict(groups))

    # --- files --------------------------------------------------------------------------------------------------------

    def _load(self, batch_id: int) -> _Rules:
        """The rules as they were after a batch."""
        states = [each for each in self._numbers(STATE) if each <= batch_id]
        last = max(states, default=BEFORE_ALL)
        packed = self._file(STATE, last).read_bytes() if states else b""
        rules = _Rules(pickle.loads(packed) if states else _State(), self._make)
        self._state_bytes, self._facts_bytes = len(packed), 0
        for number in range(last + 1, batch_id + 1):
            packed = self._file(FACTS, number).read_bytes()
            self._facts_bytes += len(packed)
            rules.take(pickle.loads(packed))
        return rules

    def _make(self, cluster: str) -> RuleFold:
        return RuleFold(cluster, self._params.thresholds, self._params.connection)

    def _write(self, what: str, batch_id: int, content: _BatchFacts | _State) -> int:
        """Write a file, and return its size."""
        self._directory.mkdir(parents=True, exist_ok=True)
        new = self._directory / ".new"
        size = new.write_bytes(pickle.dumps(content))
        new.rename(self._file(what, batch_id))
        return size

    def _delete_old(self, batch_id: int) -> None:
        """Delete what is not needed any more, now that there is a state after this batch. Spark may repeat the batch:
        that needs the state before, and the facts since then."""
        before = max((each for each in self._numbers(STATE) if each < batch_id), default=BEFORE_ALL)
        for number in self._numbers(STATE):
            if number < before:
                self._file(STATE, number).unlink()
        for number in self._numbers(FACTS):
            if number <= before:
                self._file(FACTS, number).unlink()

    def _numbers(self, what: str) -> list[int]:
        """The batches after which there is such a file."""
        return [int(each.name.rpartition("-")[2]) for each in self._directory.glob(f"{what}-*")]

    def _file(self, what: str, batch_id: int) -> Path:
        return self._directory / f"{what}-{batch_id}"


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
    rules: RuleFold, groups: Mapping[str, list[tuple[FactRow, bool]]], open_facts: dict[str, list[FactRow]]
) -> tuple[list[FactRow], list[FactRow]]:
    """The facts of groups to be taken, and those that they replace. `open_facts` are those that the next ones may
    replace, before and after this."""
    fresh: list[FactRow] = []
    withdrawn: list[FactRow] = []
    for group, told in groups.items():
        rows = [row for row, _ in told if not rules.is_sampled(group, row.ts)]
        fresh += rows
        withdrawn += set(open_facts.get(group, ())) - set(rows)
        open_facts[group] = [row for row, is_open in told if is_open]
    return fresh, withdrawn
