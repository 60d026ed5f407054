"""The core of one partition of `__consumer_offsets`: routes what comes in to the family that knows it.

A family says which requests and which record keys it understands. Its timers and subjects are tuples (or named tuples)
whose first entry is the family's name, so that what comes due or is settled finds its way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Result, TopicsChange
from ottla.wire.keyed import KeyedRecord

__all__ = ["Family", "GroupCoordinator", "PlainFamily", "join_results"]

Handler = Callable[[Any, Context], Result]
Replay = Callable[[KeyedRecord, int, int, int], None]
"""Record, offset, producer id, producer epoch."""


class Family(Protocol):
    """One kind of group, or the offsets of all kinds."""

    @property
    def name(self) -> str:
        """The first entry of its timers' keys and of its subjects."""
        ...

    @property
    def handlers(self) -> Mapping[type, Handler]:
        """By class of request; requests of our own stand beside Kafka's."""
        ...

    @property
    def replays(self) -> Mapping[type, Replay]:
        """By class of record key."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None: ...
    def loaded(self, context: Context) -> Result: ...
    def unloaded(self) -> Iterable[Any]: ...
    def expire(self, key: Any, context: Context) -> Result: ...  # noqa: ANN401
    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result: ...  # noqa: ANN401
    def topics_changed(self, change: TopicsChange, context: Context) -> Result: ...
    def hard_state(self) -> Mapping[Any, Any]: ...


class PlainFamily:
    """What most families need not do: deadlines, effects, parked requests, transactions, watching topics."""

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No record belongs to a transaction."""

    def loaded(self, context: Context) -> Result:
        return NOTHING

    def unloaded(self) -> Iterable[Any]:
        return ()

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        return NOTHING

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return NOTHING

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return NOTHING


class GroupCoordinator:
    """A `Core` made of families."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = {family.name: family for family in families}
        self._handlers = {each: handler for family in families for each, handler in family.handlers.items()}
        self._replays = {each: replay for family in families for each, replay in family.replays.items()}

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        return self._handlers[type(request)](request, context)

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        replay = self._replays.get(type(record.key))
        if replay is not None:  # else it is of a kind that this release does not know, and stays in the log
            replay(record, offset, producer_id, producer_epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        for family in self.families.values():
            family.replay_marker(producer_id, producer_epoch, committed)

    def loaded(self, context: Context) -> Result:
        return join_results([family.loaded(context) for family in self.families.values()])

    def unloaded(self) -> Iterable[Any]:
        return [token for family in self.families.values() for token in family.unloaded()]

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        return self.families[key[0]].expire(key, context)

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self.families[subject[0]].settled(subject, outcome, context)

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        return join_results([family.topics_changed(change, context) for family in self.families.values()])

    def hard_state(self) -> Mapping[Any, Any]:
        return {
            (name, key): value for name, family in self.families.items() for key, value in family.hard_state().items()
        }


def join_results(results: Sequence[Result]) -> Result:
    """Several independent results as one. None of them may have `after` or a producer."""
    results = [each for each in results if each is not NOTHING]
    if not results:
        return NOTHING
    assert all(each.after is None and each.producer is None for each in results)
    return Result(
        records=[record for each in results for record in each.records],
        replies=[reply for each in results for reply in each.replies],
        timers=[timer for each in results for timer in each.timers],
        effects=[effect for each in results for effect in each.effects],
        is_atomic=False,
    )
