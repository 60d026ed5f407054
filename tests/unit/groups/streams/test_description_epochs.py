"""What a group knows of the plugin: its transitions, whatever happens in which order."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.streams.description_epochs import NONE, UNCERTAIN, DescriptionEpochs


def test_push() -> None:
    marked = DescriptionEpochs().marked()
    assert marked == (UNCERTAIN, NONE)
    assert marked.held(3) == (3, NONE)
    assert marked.refused(3) == (UNCERTAIN, 3)
    assert DescriptionEpochs(NONE, 1).held(3) == (UNCERTAIN, 1)


def test_epochs_only_move_forward() -> None:
    assert DescriptionEpochs(5, 4).held(3) == (5, 4)
    assert DescriptionEpochs(5, 4).refused(3) == (5, 4)


def test_delete() -> None:
    assert DescriptionEpochs(UNCERTAIN, 2).cleared(is_pushed_since=False) == (NONE, 2)
    assert DescriptionEpochs(UNCERTAIN, 2).cleared(is_pushed_since=True) == (UNCERTAIN, 2)
    assert DescriptionEpochs(7, 2).cleared(is_pushed_since=False) == (UNCERTAIN, 2)
    assert DescriptionEpochs(NONE, 2).cleared(is_pushed_since=True) == (NONE, 2)


def test_uncertain_is_to_be_deleted_and_nothing_is_not() -> None:
    assert [DescriptionEpochs(each).may_be_held for each in (UNCERTAIN, NONE, 0, 4)] == [True, False, True, True]


# A plugin with one place, and calls of it whose mark, work and note come in any order with those of others.


def calls(kinds: list[str], world: dict[str, object]) -> list[Iterator[None]]:
    def run(number: int, kind: str) -> Iterator[None]:
        world["group"] = world["group"].marked()  # type: ignore[attr-defined]
        world["last_push"] = number if kind == "push" else world["last_push"]
        last_push = world["last_push"]
        yield
        world["plugin"] = 0 if kind == "push" else None
        yield
        group = world["group"]
        is_pushed_since = world["last_push"] != last_push
        world["group"] = (
            group.held(0)  # type: ignore[attr-defined]
            if kind == "push"
            else group.cleared(is_pushed_since=is_pushed_since)  # type: ignore[attr-defined]
        )
        yield

    return [run(number, kind) for number, kind in enumerate(kinds, 1)]


@given(st.lists(st.sampled_from(["push", "delete"]), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_group_never_says_that_a_full_plugin_holds_nothing(kinds: list[str], random: object) -> None:
    """However calls overlap, nothing is left behind in the plugin that nobody would delete."""
    world: dict[str, object] = {"group": DescriptionEpochs(), "plugin": None, "last_push": 0}
    running = calls(kinds, world)
    while running:
        call = random.choice(running)  # type: ignore[attr-defined]
        if next(call, "over") == "over":
            running.remove(call)
    group = world["group"]
    assert isinstance(group, DescriptionEpochs)
    assert group.may_be_held or world["plugin"] is None
