"""Clears away what something outside a group holds of it, before the group is removed.

Some groups are more than their records: a plugin holds the description of a topology, the share coordinator holds how
far a group has come. An administrator who deletes such a group, the check that removes what has expired, and a group of
another kind that takes the name all go the same way:

1. `Group.before_removal` says what is to be done. If that is nothing, the group may go at once.
2. Its records are committed: they say that the outside may hold something or nothing from now on.
3. Its effect is performed, unless somebody has joined the group meanwhile.
4. If that went well, `Group.prepared` says what the group notes, and that is committed.
5. `finish` is told. It looks at the group anew: with time gone by it may have members, be another one, or not exist.

A second wish to remove a group that is being prepared waits with the first. Soft: `_waiting`; what was under way at a
restart is begun again by whoever asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Result
from ottla.core.groups.table import Group, GroupTable, Preparation
from ottla.wire.reject import Reject

__all__ = ["Preparations"]

Waiter = TypeVar("Waiter")


class _Marked(NamedTuple):
    """The records of a preparation are committed, or cannot be."""

    family: str
    group_id: str
    preparation: Preparation


class _Noted(NamedTuple):
    """What a group notes after its effect is committed, or cannot be."""

    family: str
    group_id: str


class Preparations(Generic[Waiter]):
    """The preparations of one family. Whatever comes to the family's `settled` and is not its own belongs here."""

    def __init__(
        self,
        family: str,
        table: GroupTable,
        finish: Callable[[str, list[Waiter], Outcome, Context], Result],
    ) -> None:
        self._family = family
        self._table = table
        self._finish = finish
        self._waiting: dict[str, list[Waiter]] = {}

    def begin(self, group: Group, waiter: Waiter, context: Context) -> Result | None:
        """Prepare a group that may be removed otherwise; None if there is nothing to prepare."""
        waiting = self._waiting.get(group.group_id)
        if waiting is not None:
            waiting.append(waiter)
            return NOTHING
        preparation = group.before_removal(self._family, context)
        if preparation is None:
            return None
        self._waiting[group.group_id] = [waiter]
        if preparation.begun is not None:
            preparation.begun()
        return Result(preparation.records, after=_Marked(self._family, group.group_id, preparation))

    def waiters(self) -> Iterable[Waiter]:
        return [waiter for waiting in self._waiting.values() for waiter in waiting]

    def is_under_way(self, group_id: str) -> bool:
        return group_id in self._waiting

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        if isinstance(subject, _Marked):
            return self._perform(subject, outcome, context)
        if isinstance(subject, _Noted):
            return self._end(subject.group_id, outcome, context)
        group = self._table.get(subject.group_id)
        if not outcome.is_ok:
            if group is not None:
                group.not_prepared(self._family, subject, context)
            return self._end(subject.group_id, outcome, context)
        noted = () if group is None else group.prepared(subject, context)
        return Result(noted, after=_Noted(self._family, subject.group_id))

    def _perform(self, marked: _Marked, outcome: Outcome, context: Context) -> Result:
        try:
            if outcome.is_ok:
                self._table.deletable(marked.group_id)
                return Result(effects=(marked.preparation.effect,))
        except Reject as reject:
            outcome = Outcome(reject.code, message=reject.message)
        return self._end(marked.group_id, outcome, context)

    def _end(self, group_id: str, outcome: Outcome, context: Context) -> Result:
        return self._finish(group_id, self._waiting.pop(group_id, []), outcome, context)
