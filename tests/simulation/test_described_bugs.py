"""Bugs planted in what streams groups know of their descriptions: the simulation must find each within a few worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.broker.descriptions.call_order import CallOrder
from ottla.core.groups.streams import description_request, family
from ottla.core.groups.streams.description_epochs import UNCERTAIN, Calls, DescriptionEpochs
from ottla.core.groups.streams.description_update import DescriptionUpdates
from ottla.core.groups.streams.group import StreamsGroup
from ottla.wire.keyed import KeyedRecord
from simulation.runner import run_seeds

SEEDS = range(30)

pytestmark = pytest.mark.usefixtures("quiet")


def violated() -> str | None:
    """The name of the first invariant that is broken."""
    for seed in SEEDS:
        tally = run_seeds([seed], ["streams-described"])
        if tally.failures:
            return tally.failures[0].violation.partition(":")[0]
    return None


def test_nothing_is_found_where_nothing_is_planted() -> None:
    assert run_seeds(SEEDS[:4], ["streams-described"]).failures == []


def test_a_fenced_member_takes_the_description_s_epochs_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fence = family.fence

    def forgetful(group: StreamsGroup, member_id: str) -> Sequence[KeyedRecord]:
        known, group.description_epochs = group.description_epochs, DescriptionEpochs()
        try:
            return fence(group, member_id)
        finally:
            group.description_epochs = known

    monkeypatch.setattr(family, "fence", forgetful)
    assert violated() == "described"


def test_the_mark_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = StreamsGroup.description_records

    def unmarked(self: StreamsGroup, epochs: DescriptionEpochs) -> Sequence[KeyedRecord]:
        return () if epochs.stored == UNCERTAIN else written(self, epochs)

    monkeypatch.setattr(StreamsGroup, "description_records", unmarked)
    assert violated() == "described"


def test_success_is_noted_before_the_plugin_has_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    push = DescriptionUpdates.update

    def hasty(self: DescriptionUpdates, request: Any, context: Any) -> Any:
        result = push(self, request, context)
        group = self._table.get(request.group_id)
        assert isinstance(group, StreamsGroup)
        return result._replace(records=group.description_records(DescriptionEpochs(0)))

    monkeypatch.setattr(DescriptionUpdates, "update", hasty)
    assert violated() == "described"


def test_a_delete_does_not_wait_for_the_push_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallOrder, "add", lambda self, key, begin: begin())
    monkeypatch.setattr(CallOrder, "end", lambda self, key: None)
    assert violated() == "described"


def test_a_push_forgets_the_delete_that_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Calls, "is_push_last", lambda self, begun: True)
    assert violated() == "described"


def test_nobody_is_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    should_request = description_request.should_request_description

    def once(group: StreamsGroup, *rest: Any, **named: Any) -> bool:
        if group.group_id in asked:
            return False
        found = should_request(group, *rest, **named)
        asked.update({group.group_id} if found else ())
        return found

    monkeypatch.setattr(family, "should_request_description", once)
    assert violated() == "converges"
