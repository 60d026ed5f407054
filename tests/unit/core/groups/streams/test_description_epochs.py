"""What a group knows of the plugin: its transitions, however calls of the plugin overlap."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.groups.streams.description_epochs import NONE, UNCERTAIN, Calls, DescriptionEpochs


def test_push() -> None:
    marked = DescriptionEpochs().marked()
    assert marked == (UNCERTAIN, NONE)
    assert marked.held(3) == (3, NONE)
    assert marked.refused(3) == (UNCERTAIN, 3)


def test_epochs_only_move_forward() -> None:
    assert DescriptionEpochs(5, 4).held(3) == (5, 4)
    assert DescriptionEpochs(5, 4).refused(3) == (5, 4)


def test_delete() -> None:
    assert DescriptionEpochs(UNCERTAIN, 2).cleared() == (NONE, 2)


def test_uncertain_is_to_be_deleted_and_nothing_is_not() -> None:
    assert [DescriptionEpochs(each).may_be_held for each in (UNCERTAIN, NONE, 0, 4)] == [True, False, True, True]


# --- calls that overlap -----------------------------------------------------------------------------------------------


class GroupAndPlugin:
    """A group, and a plugin with one place. Calls are decided on at any time; the plugin works on one after the other,
    in that order. A call that fails has done its work or not."""

    def __init__(self) -> None:
        self.group = DescriptionEpochs()
        self.calls = Calls()
        self.is_full = False
        self._numbers = count(1)
        self._asked: deque[Iterator[None]] = deque()

    def decide(self, kind: str, works: bool, fails: bool) -> None:
        call = self._push(works, fails) if kind == "push" else self._delete(works, fails)
        if next(call, "over") != "over":
            self._asked.append(call)

    def go_on(self) -> None:
        """The plugin does the work of its present call, or ends the call."""
        if next(self._asked[0], "over") == "over":
            self._asked.popleft()

    @property
    def is_at_work(self) -> bool:
        return bool(self._asked)

    def _push(self, works: bool, fails: bool) -> Iterator[None]:
        self.group = self.group.marked()
        begun = self.calls.begin_push(next(self._numbers))
        yield
        self.is_full = self.is_full or works or not fails
        yield
        if not fails and self.calls.is_push_last(begun):
            self.group = self.group.held(0)

    def _delete(self, works: bool, fails: bool) -> Iterator[None]:
        if not self.group.may_be_held:
            return
        self.group = self.group.marked()
        last_push = self.calls.last_push
        self.calls.begin_delete()
        yield
        self.is_full = self.is_full and not works and fails
        yield
        if not fails and self.calls.is_delete_last(last_push):
            self.group = self.group.cleared()

    def check(self) -> None:
        assert self.group.stored < 0 or self.is_full, "what is stored is held"
        assert self.group.stored != NONE or not self.is_full, "nothing is held that nobody would delete"


CALLS = st.lists(st.tuples(st.sampled_from(["push", "delete"]), st.booleans(), st.booleans()), max_size=6)


@settings(max_examples=400)
@given(CALLS, st.data())
def test_group_is_never_wrong_about_the_plugin(calls: list[tuple[str, bool, bool]], data: st.DataObject) -> None:
    both = GroupAndPlugin()
    while calls or both.is_at_work:
        if calls and (not both.is_at_work or data.draw(st.booleans())):
            both.decide(*calls.pop())
        else:
            both.go_on()
        both.check()


def test_calls_that_do_not_overlap_are_known() -> None:
    both = GroupAndPlugin()
    for kind, stored in (("push", 0), ("push", 0), ("delete", NONE), ("push", 0), ("delete", NONE)):
        both.decide(kind, works=True, fails=False)
        while both.is_at_work:
            both.go_on()
        assert both.group.stored == stored


@pytest.mark.parametrize(
    ("kinds", "stored"),
    [
        (("push", "push"), 0),
        (("push", "delete"), NONE),
        (("push", "delete", "push"), 0),
        (("push", "delete") * 2, NONE),
    ],
)
def test_the_last_of_calls_that_overlap_is_known(kinds: tuple[str, ...], stored: int) -> None:
    both = GroupAndPlugin()
    for kind in kinds:
        both.decide(kind, works=True, fails=False)
    while both.is_at_work:
        both.go_on()
    assert both.group.stored == stored
