"""Groups of which something outside holds a part: it is cleared away before they are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from ottla.core.coordinator.contract import Context, Outcome
from ottla.core.groups.admin import DeleteGroup
from ottla.core.groups.table import GroupKind, Preparation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import OffsetCommitKey
from tests.unit.core.groups.classic.bench import Bench, OtherGroup


class Clear(NamedTuple):
    family: str
    group_id: str


class HeldGroup(OtherGroup):
    """A group whose marks are tombstones of offsets that nobody has committed."""

    is_held = True

    def before_removal(self, family: str, context: Context) -> Preparation | None:
        return Preparation([_mark(self.group_id, "marked")], Clear(family, self.group_id)) if self.is_held else None

    def prepared(self, effect: Any, context: Context) -> Sequence[KeyedRecord]:
        self.is_held = False
        return [_mark(self.group_id, "noted")]


def _mark(group_id: str, text: str) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group_id, text, 0), 0, None, -1)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    for group_id in ("a", "b"):
        bench.table.put(HeldGroup(group_id, GroupKind.SHARE, is_empty=True))
    return bench


def written(bench: Bench) -> list[tuple[str, str]]:
    return [(each.key.group, each.key.topic) for each in bench.log]


def perform(bench: Bench, outcome: Outcome | None = None) -> None:
    effect = bench.effects.pop(0)
    bench.take(bench.core.settled(effect, outcome or Outcome(), bench.context()))


def test_effect_is_performed_between_mark_and_note_and_the_group_goes_last(bench: Bench) -> None:
    assert bench.ask(DeleteGroup("a")) is None
    assert (written(bench), bench.effects) == ([("a", "marked")], [Clear("admin", "a")])
    perform(bench)
    assert written(bench) == [("a", "marked"), ("a", "noted"), ("a", "t"), ("a", "of another kind")]
    assert bench.replies["caller"].error_code == 0


def test_effect_waits_for_the_mark_to_be_committed(bench: Bench) -> None:
    bench.holds = True
    bench.ask(DeleteGroup("a"))
    assert bench.effects == []
    bench.settle()
    assert bench.effects == [Clear("admin", "a")]


def test_group_stays_where_the_effect_fails_and_the_other_goes(bench: Bench) -> None:
    bench.ask(DeleteGroup("a"), token="first")
    bench.ask(DeleteGroup("b"), token="second")
    perform(bench, Outcome(ErrorCode.GROUP_DELETION_FAILED, message="no"))
    perform(bench)
    failed, gone = bench.replies["first"], bench.replies["second"]
    assert (failed.error_code, failed.error_message, gone.error_code) == (ErrorCode.GROUP_DELETION_FAILED, "no", 0)
    assert ("a", "of another kind") not in written(bench)
    bench.ask(DeleteGroup("a"), token="again")
    perform(bench)
    assert bench.replies["again"].error_code == 0


def test_second_request_waits_with_the_first(bench: Bench) -> None:
    bench.ask(DeleteGroup("a"), token="first")
    bench.ask(DeleteGroup("a"), token="second")
    assert len(bench.effects) == 1
    perform(bench)
    assert [bench.replies[each].error_code for each in ("first", "second")] == [0, 0]


def test_group_with_members_is_not_prepared(bench: Bench) -> None:
    bench.table.put(HeldGroup("c", GroupKind.SHARE, is_empty=False))
    assert bench.ask(DeleteGroup("c")) == ErrorCode.NON_EMPTY_GROUP
    assert bench.log == []


@pytest.mark.parametrize("step", ["marked", "performed"])
def test_group_that_gets_members_meanwhile_stays(bench: Bench, step: str) -> None:
    bench.holds = step == "marked"
    bench.ask(DeleteGroup("a"))
    bench.table.put(HeldGroup("a", GroupKind.SHARE, is_empty=False))
    if step == "marked":
        bench.settle()
        assert bench.effects == []
    else:
        perform(bench)
        assert written(bench)[-1] == ("a", "noted")
    assert bench.replies["caller"].error_code == ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize("step", ["marked", "performed"])
def test_group_that_is_gone_meanwhile_is_not_found(bench: Bench, step: str) -> None:
    bench.holds = step == "marked"
    bench.ask(DeleteGroup("a"))
    bench.table.remove("a")
    if step == "marked":
        bench.settle()
    else:
        perform(bench)
    assert (bench.replies["caller"].error_code, bench.effects) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_group_that_holds_something_again_stays(bench: Bench) -> None:
    bench.ask(DeleteGroup("a"))
    group = bench.table.get("a")
    assert isinstance(group, HeldGroup)
    group.prepared = lambda effect, context: []  # type: ignore[method-assign]
    perform(bench)
    assert bench.replies["caller"].error_code == ErrorCode.GROUP_DELETION_FAILED


def test_refused_mark_is_answered_with_its_error(bench: Bench) -> None:
    assert bench.refuse_write(DeleteGroup("a"), ErrorCode.COORDINATOR_NOT_AVAILABLE).error_code == 15
    assert (bench.log, bench.effects) == ([], [])


def test_parked_requests_are_told_when_leadership_is_lost(bench: Bench) -> None:
    bench.ask(DeleteGroup("a"))
    assert list(bench.core.unloaded()) == ["caller"]
