"""The tables about groups agree with what the cluster answers when it is asked about them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.client import groups
from ottla.client.group_view import GroupView
from tests.interop.pipeline.conftest import Cluster, Output
from tests.interop.spark.group_history import CLASSIC, CONSUMER, SHARE, SIMPLE, STREAMS

MODERN = (CONSUMER, SHARE, STREAMS)


def described(cluster: Cluster, group: str) -> GroupView:
    found: GroupView = cluster.topics.client.call(groups.view, group)
    return found


def rows_of(output: Output, table: str, group: str) -> list[dict[str, Any]]:
    return [row for row in output.rows(table) if row["group"] == group]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["ts"], row["seq"]))


@pytest.mark.parametrize("group", MODERN)
def test_the_last_rebalance_led_to_where_the_group_is(group: str, cluster: Cluster, output: Output) -> None:
    view = described(cluster, group)
    rows = sorted(rows_of(output, "rebalances", group), key=lambda row: int(row["group_epoch"]))

    assert [row["group_epoch"] for row in rows] == list(range(2, (view.epoch or 0) + 1))
    last = rows[-1]
    assert (last["type"], last["ended_by"], last["source"]) == (view.type, "converged", "records")
    assert last["members_after"] == len(view.members)
    assert last["target_at"] <= last["ended"]


@pytest.mark.parametrize("group", MODERN)
def test_the_timeline_ends_where_the_group_is(group: str, cluster: Cluster, output: Output) -> None:
    view = described(cluster, group)
    events = in_order(rows_of(output, "group_timeline", group))
    last = {event["event"]: event for event in events}

    assert last["state_changed"]["new"] == view.state
    assert (last["epoch_bumped"]["new"], last["target_computed"]["new"]) == (
        str(view.epoch),
        str(view.assignment_epoch),
    )
    joined = {event["member"] for event in events if event["event"] == "member_joined"}
    assert joined == {member.member_id for member in view.members}
    epochs = {event["member"]: int(event["new"]) for event in events if event["event"] == "member_epoch"}
    assert epochs == {member.member_id: member.epoch for member in view.members}
    gained = [name for event in events if event["event"] == "partition_gained" for name in json.loads(event["new"])]
    assert len(gained) == sum(len(member.assignment) for member in view.members)


def test_a_classic_group_that_was_left_is_empty(cluster: Cluster, output: Output) -> None:
    rows = sorted(rows_of(output, "rebalances", CLASSIC), key=lambda row: int(row["group_epoch"]))

    assert described(cluster, CLASSIC).state == "Empty"
    assert [(row["ended_by"], row["duration_ms"]) for row in rows] == [("converged", None), ("emptied", None)]


def test_a_group_of_offsets_alone_has_no_rebalances(output: Output) -> None:
    assert rows_of(output, "rebalances", SIMPLE) == []


@pytest.mark.parametrize("group", MODERN)
def test_a_group_at_rest_is_steady(group: str, output: Output) -> None:
    for row in rows_of(output, "stability", group):
        assert row["alarm"] is None
        assert row["leaves"] == row["fences"] == 0
        assert row["distinct_members"] == 1
