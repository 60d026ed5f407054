"""What administrators ask about groups of any kind."""

from __future__ import annotations

import pytest

from ottla.core.groups.admin import DeleteGroup, DescribeGroup
from ottla.core.groups.table import GroupKind
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_groups import ListGroupsRequest
from tests.unit.core.groups.classic.bench import Bench, OtherGroup


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.stable_group()
    bench.table.put(OtherGroup("c", GroupKind.CONSUMER, is_empty=False))
    bench.table.put(OtherGroup("s", GroupKind.STREAMS, is_empty=True))
    return bench


def listed(bench: Bench, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[str]:
    return [each.group_id for each in bench.ask(ListGroupsRequest(states, types), version=5)]


def test_all_kinds_are_listed(bench: Bench) -> None:
    shown = bench.ask(ListGroupsRequest(), version=5)
    assert [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in shown] == [
        ("g", "consumer", "Stable", "classic"),
        ("c", "consumer", "Stable", "consumer"),
        ("s", "consumer", "Empty", "streams"),
    ]


def test_filters(bench: Bench) -> None:
    assert listed(bench, ("EMPTY",)) == ["s"]
    assert listed(bench, ("emp_ty", "stable"), ("Classic", "streams")) == ["g", "s"]
    assert listed(bench, types=("nonsense",)) == []
    assert listed(bench, ("Dead",)) == []


def test_only_classic_groups_are_described(bench: Bench) -> None:
    assert bench.ask(DescribeGroup("g"), version=6).error_code == 0
    assert bench.ask(DescribeGroup("c"), version=6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    shown = bench.ask(DescribeGroup("c"), version=5)
    assert (shown.error_code, shown.group_state, shown.error_message) == (0, "Dead", None)


def test_groups_are_deleted_behind_their_offsets(bench: Bench) -> None:
    assert bench.ask(DeleteGroup("none")) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.ask(DeleteGroup("g")) == bench.ask(DeleteGroup("c")) == ErrorCode.NON_EMPTY_GROUP
    bench.advance(10_000)
    bench.log.clear()
    assert bench.ask(DeleteGroup("g")).group_id == "g"
    assert [type(each.key).__name__ for each in bench.log] == ["OffsetCommitKey", "GroupMetadataKey"]
    assert all(each.value is None for each in bench.log)
    assert bench.table.get("g") is None
    assert bench.ask(DeleteGroup("g")) == ErrorCode.GROUP_ID_NOT_FOUND
