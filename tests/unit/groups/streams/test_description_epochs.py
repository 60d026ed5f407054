"""What a group knows of the plugin: its transitions, however calls of the plugin overlap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.streams.description_epochs import NONE, UNCERTAIN, Calls, DescriptionEpochs


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


class World:
    """A group, and a plugin with one place. A call goes on step by step between the steps of others; at any step it may
    have failed, with its work done or not."""

    def __init__(self) -> None:
        self.group = DescriptionEpochs()
        self.calls = Calls()
        self.is_full = False
        self.pushes_under_way = 0
        self._stamps = count(1)

    def push(self, works: bool, fails: bool) -> Iterator[None]:
        self.group = self.group.marked()
        self.pushes_under_way += 1
        begun = self.calls.begin_push(next(self._stamps))
        yield
        self.is_full = self.is_full or works or not fails
        yield
        is_known = self.calls.end_push(begun, next(self._stamps)) and self.group.may_be_held
        self.pushes_under_way -= 1
        if not is_known:
            self.group = self.group.marked()
        elif not fails:
            self.group = self.group.held(0)

    def delete(self, works: bool, fails: bool) -> Iterator[None]:
        if not self.group.may_be_held:
            return
        self.group = self.group.marked()
        pushes = self.calls.pushes
        self.calls.begin_delete()
        yield
        self.is_full = self.is_full and not works and fails
        yield
        is_alone = self.calls.end_delete(pushes)
        if not fails and self.group.may_be_held:
            self.group = self.group.cleared() if is_alone else self.group.marked()

    def check(self) -> None:
        assert self.group.stored < 0 or self.is_full, "what is stored is held"
        is_left_behind = self.group.stored == NONE and self.is_full
        assert not is_left_behind or self.pushes_under_way, "nothing is held that nobody would delete"


CALLS = st.lists(st.tuples(st.sampled_from(["push", "delete"]), st.booleans(), st.booleans()), max_size=6)


@settings(max_examples=400)
@given(CALLS, st.data())
def test_group_is_never_wrong_about_the_plugin(calls: list[tuple[str, bool, bool]], data: st.DataObject) -> None:
    world = World()
    waiting = [getattr(world, kind)(works, fails) for kind, works, fails in calls]
    while waiting:
        call = data.draw(st.sampled_from(waiting))
        if next(call, "over") == "over":
            waiting.remove(call)
        world.check()


def test_calls_that_do_not_overlap_are_known() -> None:
    world = World()
    for kind, stored in (("push", 0), ("push", 0), ("delete", NONE), ("push", 0), ("delete", NONE)):
        for _ in getattr(world, kind)(works=True, fails=False):
            pass
        assert world.group.stored == stored


def test_pushes_that_overlap_each_other_are_known() -> None:
    world = World()
    first, second = world.push(works=True, fails=False), world.push(works=True, fails=False)
    for call in (first, second, first, second, first, second):
        next(call, None)
    assert world.group.stored == 0
