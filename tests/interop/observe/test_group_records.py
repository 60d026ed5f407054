"""What the records of groups say, folded without Spark, agrees with what the cluster says when it is asked.

An observer has asked it: its samples are the Admin API's answers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import pytest

from ottla.health.facts import Group, GroupMember, TopicPartitions
from ottla.health.samples import OBSERVATIONS
from ottla.spark.jobs.folds.fold import RecordRow, SampleRow, fold
from ottla.spark.jobs.folds.records import GROUP_RECORDS
from ottla.spark.pipeline.event_decoder import EventDecoder
from ottla.spark.pipeline.in_process import plan_of, rows_of
from ottla.spark.pipeline.origins import Origin, cluster_origin, directory_origin
from ottla.wire.keyed import GROUP_TOPIC
from tests.interop.node.brokers import Node
from tests.interop.observe.watching import Watched
from tests.interop.spark import group_history as history
from tests.unit.spark.jobs.histories import group_facts

COLUMNS = ("partition", "offset", "ts", "type", "key", "value")
Histories = dict[str, list[RecordRow]]


def read(origin: Origin) -> Histories:
    """The records of groups by group, in order."""
    found: Histories = defaultdict(list)
    plan = plan_of(origin.format, origin.options([GROUP_TOPIC]))
    for batch in EventDecoder("")(rows_of(plan)):
        for row in batch.to_pylist():
            if row["type"] in GROUP_RECORDS:
                found[row["group"]].append(RecordRow(*(row[name] for name in COLUMNS)))
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.fixture(scope="module")
def records(broker: Node, watched: Watched) -> Histories:
    """Read when the observer has ended: nothing happens any more."""
    return read(cluster_origin(broker.bootstrap_servers, {}, OBSERVATIONS))


@pytest.fixture(scope="module")
def told(watched: Watched) -> dict[str, Group]:
    """The last that the cluster said of each group."""
    return {each.group: each for each in watched.facts(Group)}


def folded(records: Histories, group: str) -> Group:
    *_, (_, fact) = group_facts(group, records[group])
    assert isinstance(fact, Group)
    return fact


def partitions(assignment: tuple[TopicPartitions, ...]) -> set[tuple[str | None, int]]:
    return {(each.topic_id, number) for each in assignment for number in each.partitions}


def plain(member: GroupMember, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"epoch": member.epoch, "client": member.client, "host": member.host}
    if kind == "streams":
        tasks, target = member.tasks, member.target_tasks
        assert tasks is not None
        assert target is not None
        return found | {"tasks": tasks.active, "target": target.active, "process": member.process}
    return found | {"assigned": partitions(member.assigned), "target": partitions(member.target)}


@pytest.mark.parametrize("group", [history.CONSUMER, history.SHARE, history.STREAMS])
def test_groups_with_members_are_as_the_cluster_describes_them(
    group: str, records: Histories, told: dict[str, Group]
) -> None:
    seen, wanted = folded(records, group), told[group]

    assert (seen.type, seen.state) == (wanted.type, wanted.state)
    assert (seen.group_epoch, seen.assignment_epoch) == (wanted.group_epoch, wanted.assignment_epoch)
    assert seen.topology_epoch == wanted.topology_epoch
    kind = wanted.type
    described = {each.member: plain(each, kind) for each in wanted.members}
    if kind == "share":  # the cluster does not tell the target of share members
        for each in described.values():
            each["target"] = each["assigned"]
    assert {each.member: plain(each, kind) for each in seen.members} == described


def test_the_classic_group_is_empty_and_had_one_generation(records: Histories, told: dict[str, Group]) -> None:
    seen = folded(records, history.CLASSIC)
    _, out = fold(None, records[history.CLASSIC])

    assert (seen.type, seen.state, seen.members) == ("classic", "Empty", ())
    assert told[history.CLASSIC].state == "Empty"
    assert [(each.ended_by, each.trigger) for each in out.rebalances] == [
        ("converged", "member_joined"),
        ("emptied", "left_or_expired"),
    ]


def test_groups_that_only_have_offsets_have_no_history(records: Histories, told: dict[str, Group]) -> None:
    assert history.SIMPLE in told
    assert history.SIMPLE not in records
    assert folded(records, history.IDLE_SHARE).type == told[history.IDLE_SHARE].type == "share"


@pytest.mark.parametrize("group", [history.CONSUMER, history.SHARE, history.STREAMS])
def test_rebalances_end_where_the_cluster_stands(group: str, records: Histories, told: dict[str, Group]) -> None:
    _, out = fold(None, records[group])

    assert out.faults == []
    last = out.rebalances[-1]
    assert (last.group_epoch, last.ended_by) == (told[group].group_epoch, "converged")
    assert (last.type, last.members_after) == (told[group].type, len(told[group].members))
    assert [each.group_epoch for each in out.rebalances] == list(range(2, last.group_epoch + 1))


def test_the_log_directory_says_the_same_as_the_cluster(broker: Node, records: Histories) -> None:
    assert read(directory_origin([str(broker.data_dir)], OBSERVATIONS)) == records


def test_samples_fold_to_the_same_end_as_records(watched: Watched, records: Histories) -> None:
    for group in (history.CONSUMER, history.SHARE, history.STREAMS):
        samples = [each for each in watched.samples if each.kind == "group" and each.entity == group and each.body]
        rows = [SampleRow(each.ts, each.kind, msgspec.json.encode(each.body).decode()) for each in samples]
        _, seen = fold(None, rows)
        _, recorded = fold(None, records[group])
        assert seen.faults == []
        states = [[each.new for each in out.events if each.event == "state_changed"][-1] for out in (seen, recorded)]
        assert states[0] == states[1]
