"""Events: who is told what, what a slow viewer gets, and how many viewers there may be."""

import asyncio
from collections.abc import AsyncIterator

from ottla.console.events import EVERYTHING, KEYS_MAX, EventHub, Viewer

LONG_S = 3600.0


def run_with(viewer: Viewer, wanted: int) -> list[list[str]]:
    async def collect() -> list[list[str]]:
        found = []
        changes: AsyncIterator[list[str]] = viewer.changes(LONG_S)
        async for each in changes:
            found.append(each)
            if len(found) == wanted:
                break
        return found

    return asyncio.run(collect())


def test_a_viewer_is_told_what_it_wants_once():
    hub = EventHub()
    with hub.viewer(["group:billing", "finding"]) as viewer:
        hub.publish({"group", "group:billing"})
        hub.publish({"group:billing", "topic"})
        hub.publish({"finding"})
        hub.publish(set())
        assert run_with(viewer, 1) == [["finding", "group:billing"]]
    hub.publish({"finding"})
    assert len(hub) == 0


def test_a_viewer_who_missed_too_much_is_told_to_begin_anew():
    names = [f"group:{number}" for number in range(KEYS_MAX + 1)]
    hub = EventHub()
    with hub.viewer(names) as viewer:
        for name in names:
            hub.publish({name})
        assert run_with(viewer, 1) == [[EVERYTHING]]


def test_nothing_for_a_while_is_told_too():
    viewer = Viewer(frozenset({"group"}))

    async def first() -> list[str]:
        async for each in viewer.changes(0.0):
            return each
        raise AssertionError

    assert asyncio.run(first()) == []


def test_there_are_only_so_many_viewers():
    hub = EventHub(viewers_max=1)
    with hub.viewer(["group"]):
        assert hub.is_full
    assert not hub.is_full


def test_viewers_are_let_go_at_the_end():
    hub = EventHub()
    with hub.viewer(["finding"]) as viewer:
        hub.publish({"finding"})
        hub.end()
        assert run_with(viewer, 2) == []
