"""The table of replays of each family: whatever a record says, its group forgets the heartbeats that it remembered."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.coordinator.records import tombstone
from ottla.core.groups.consumer.family import ConsumerFamily
from ottla.core.groups.streams.family import StreamsFamily
from ottla.core.groups.table import GroupTable
from ottla.core.share.group.family import ShareFamily
from ottla.wire.keyed import KeyedRecord

FAMILIES = (ConsumerFamily, StreamsFamily, ShareFamily)
CASES = [(family, key) for family in FAMILIES for key in family(GroupTable()).replays]


def tombstone_of(key: Any) -> KeyedRecord:
    """Of the group `g`, or of its member or pattern `a`."""
    return tombstone(key(*("g", "a")[: len(key.__struct_fields__)]))


@pytest.mark.parametrize(("family_type", "key"), CASES, ids=lambda each: each.__name__)
def test_a_steady_heartbeat_is_forgotten_with_every_record(family_type: Any, key: type) -> None:
    table = GroupTable()
    family = family_type(table)
    group: Any = family._group_type("g")
    table.put(group)
    group.steady["a"] = None
    family.replays[key](tombstone_of(key), 0, -1, -1)
    assert not group.steady
