"""The fold over the history of a group: from its state and more of its history to the next state, and rows.

A history may be cut anywhere, even in the middle of one write. The rows are the same, except that some come twice: the
later one replaces the earlier. At a cut, unfinished rows are returned as they are: the rebalance under way, the current
hour, and the state of the group as if no more records came at that time. Digests of these rows are kept, so that they
are not returned again unchanged; a change of state that turns out to be none is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple, cast
from zlib import crc32

import msgspec

from ottla.health.facts import Gone, Group
from ottla.spark.jobs.folds.facts import FactState, GroupFacts
from ottla.spark.jobs.folds.records import Record, follow_records
from ottla.spark.jobs.folds.rows import STATE_CHANGED, Event, Out, Row
from ottla.spark.jobs.folds.samples import follow_sample
from ottla.spark.jobs.folds.state import NOBODY, State
from ottla.spark.jobs.folds.tracker import GroupTracker
from ottla.spark.jobs.folds.windows import Limits, window_rows
from ottla.spark.jobs.params import Params

__all__ = ["Fold", "RecordRow", "SampleRow", "fold"]

MOMENT_MAX: Final = 10_000
"""So many records of one time are taken together, at most, and what comes with the last of them."""
_TIME: Final = itemgetter(2)


class RecordRow(NamedTuple):
    """A coordinator record, as the topic holds it; no value is a tombstone."""

    partition: int
    offset: int
    timestamp: int
    type: str
    key: bytes
    value: bytes | None


class SampleRow(NamedTuple):
    """A sample of a group: its kind and its body, as JSON."""

    ts: int
    kind: str
    body: bytes | str | None


class _Told(msgspec.Struct, array_like=True):
    digest: int
    event: Event | None
    """A change of state, which may have to be taken back."""


class _Kept(msgspec.Struct, array_like=True):
    state: msgspec.Raw
    told: list[_Told]
    facts: FactState


_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(_Kept).decode
_unpack_state: Final = msgspec.msgpack.Decoder(State).decode


class Fold:
    """The fold of one group. `kept` is the state after the history so far."""

    __slots__ = ("_facts", "_group", "_moment", "_moment_ms", "_told")

    def __init__(
        self, params: Params, kept: bytes | None = None, facts_of: str | None = None, *, tells_all: bool = False
    ) -> None:
        """`facts_of` is the name of the group, if there shall be facts about it. `tells_all`: unfinished rows are
        returned even if the fold before has returned the same."""
        self._moment: list[Record] = []
        """Records of one time, which are taken together."""
        self._moment_ms = NOBODY
        found = _unpack(kept) if kept else None
        self._told = found.told if found and not tells_all else []
        state = _unpack_state(found.state) if found else State()
        self._facts = None if facts_of is None else GroupFacts(facts_of, params, found.facts if found else None)
        self._group = GroupTracker(state, Limits.of(params), _namer(params))

    @property
    def state(self) -> State:
        return self._group.state

    @property
    def source(self) -> str:
        return self._group.state.source

    def take_records(self, records: Iterable[Record]) -> None:
        """The next records of the group. Records up to the last offset are skipped."""
        for ts, alike in groupby(records, _TIME):
            if ts != self._moment_ms:
                self._take_moment()
                self._moment, self._moment_ms = [*alike], ts
                continue
            self._moment += alike
            if len(self._moment) > MOMENT_MAX:
                self._take_moment(is_over=False)

    def _take_moment(self, *, is_over: bool = True) -> None:
        """Take the records that wait. Their time is not over if more of them may follow."""
        moment, ts, group, facts = self._moment, self._moment_ms, self._group, self._facts
        self._moment = []
        if not moment or _is_repeated(moment[-1], group.state):
            return
        if group.state.source != "records":
            group = self._begin_anew()
        if facts is not None:
            facts.before(group, ts, moment, is_over=is_over)
        group.at(ts)
        follow_records(group, moment)
        if facts is not None:
            facts.kept.is_open = not is_over
            if is_over:
                group.settle()
                facts.after(group)

    def take_sample(self, ts: int, kind: str, body: bytes | str | None) -> None:
        """The next sample of the group. Once there are records, samples are skipped."""
        self._take_moment()
        state = self._group.state
        if (state.source == "records" and state.offset != NOBODY) or ts < state.ts:
            return
        state.source = "samples"
        self._group.at(ts)
        follow_sample(self._group, kind, body)

    def _begin_anew(self) -> GroupTracker:
        """Start over with records, which are more exact than the samples so far."""
        before = self._group
        self._group = group = GroupTracker(State(), before.limits, before.name_of)
        group.out = before.out
        return group

    def finished(self) -> Out:
        """The rows so far that are finished. They stay part of those that `cut` returns."""
        out = self._group.out
        return Out(list(out.events), list(out.rebalances), list(out.windows), list(out.movements))

    def rows(self) -> Out:
        """The rows so far, for a history that is read in one go; `end` returns the unfinished ones."""
        return self._group.out.take()

    def end(self) -> Out:
        """The remaining rows of a history that is read in one go, with unfinished rows as they are."""
        self._take_moment()
        if self._facts is not None:
            self._facts.end(self._group)
        return _joined(self._group.out.take(), self._open_rows())

    def cut(self) -> tuple[bytes, Out]:
        """The state with which another fold goes on, and the rows of this part, with unfinished rows as they are. This
        fold is over."""
        self._take_moment(is_over=False)
        before = self._group.out.take()
        state = msgspec.Raw(_pack(self._group.state))  # before `close` ends the current time
        facts = msgspec.structs.replace(self._facts.kept) if self._facts is not None else FactState()
        now = self._open_rows()
        now.open_facts, now.facts = self._open_facts(), []
        open_now = [_Told(_digest(row), row if isinstance(row, Event) else None) for row in now.rows()]
        told = {each.digest for each in self._told}
        out = _joined(_without(before, told), _without(now, told))
        if told:
            still = {_digest(each) for each in before.events + now.events if each.event == STATE_CHANGED}
            out.events += [_taken_back(each.event) for each in self._told if each.event and each.digest not in still]
        return _pack(_Kept(state, open_now, facts)), out

    def _open_facts(self) -> list[tuple[int, Group | Gone]]:
        """The facts that would follow if the history ended here."""
        if self._facts is None or self._group.state.source != "records":
            return []
        self._facts.end(self._group)
        return self._group.out.take().facts

    def _open_rows(self) -> Out:
        """The rows that would follow if the history ended here."""
        group = self._group
        state = group.state
        if state.ts == NOBODY:
            return Out()
        group.close()
        found = group.out.take()
        if state.rebalance is not None:
            found.rebalances.append(state.rebalance)
        if state.counted is not None:
            found.windows += window_rows(state, state.counted, group.limits.window_ms, at_ms=state.ts)
        return found


def _is_repeated(record: Record, state: State) -> bool:
    return record[1] <= state.offset and record[0] == state.partition


def _namer(params: Params) -> Callable[[frozenset[str]], Iterable[str]] | None:
    names = params.topic_names
    if not names:
        return None

    def named(things: frozenset[str]) -> Iterator[str]:
        for each in things:
            topic, dash, partition = each.rpartition("-")
            yield f"{names.get(topic, topic)}{dash}{partition}"

    return named


def _digest(row: Row) -> int:
    return crc32(_pack((row.key, row)))


def _without(out: Out, told: set[int]) -> Out:
    """The rows but for those that were told. Of events, only changes of state are told before they are certain, and
    movements never are."""
    if not told:
        return out

    return Out(
        [each for each in out.events if each.event != STATE_CHANGED or _digest(each) not in told],
        [each for each in out.rebalances if _digest(each) not in told],
        [each for each in out.windows if _digest(each) not in told],
        out.movements,
        out.faults,
        out.facts,
        out.open_facts,
    )


def _joined(first: Out, second: Out) -> Out:
    return Out(
        first.events + second.events,
        first.rebalances + second.rebalances,
        first.windows + second.windows,
        first.movements + second.movements,
        first.faults + second.faults,
        first.facts + second.facts,
        first.open_facts + second.open_facts,
    )


def _taken_back(event: Event) -> Event:
    return msgspec.structs.replace(event, new=event.old)


def fold(
    kept: bytes | None,
    rows: Iterable[RecordRow | SampleRow],
    params: Params | None = None,
    facts_of: str | None = None,
) -> tuple[bytes, Out]:
    """From the kept state of a group and the next rows of its history, in order, to the next state and output rows."""
    following = Fold(params or Params(), kept, facts_of)
    for kind, alike in groupby(rows, key=type):
        if kind is RecordRow:
            following.take_records(cast("Iterator[RecordRow]", alike))
        else:
            for row in alike:
                following.take_sample(*row)
    return following.cut()
