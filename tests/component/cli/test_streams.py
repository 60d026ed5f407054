"""`ottla streams`: what it asks, what it prints, and what it makes of a group."""

import json
from typing import Any

import pytest

from ottla.cli import run
from ottla.client.streams import EpochWatch, GroupSnapshot, blockers, task_rows
from ottla.wire import types
from tests.component.cli.cluster_thread import fake_cluster
from tests.component.client.fake import FakeCluster

Capture = pytest.CaptureFixture[str]
Described = types.StreamsGroupDescribeResponse


def tasks(*numbers: int) -> tuple[Any, ...]:
    return (Described.TaskIds("0", numbers),) if numbers else ()


def member(name: str, epoch: int, has: tuple[int, ...], target: tuple[int, ...], **fields: Any) -> Any:
    return Described.Member(
        member_id=name,
        member_epoch=epoch,
        client_id=f"client-{name}",
        client_host="/10.0.0.1",
        process_id=f"process-{name}",
        assignment=Described.Assignment(tasks(*has)),
        target_assignment=Described.Assignment(tasks(*target)),
        **fields,
    )


def group(*members: Any, epoch: int = 4) -> Any:
    topology = Described.Topology(0, (Described.Subtopology("0", ("t",), ("app-repartition",)),))
    return Described.DescribedGroup(0, None, "app", "Reconciling", epoch, 4, topology, members)


def to(cluster: FakeCluster, *words: str) -> list[str]:
    return ["streams", *words, "--bootstrap-server", cluster.bootstrap_servers]


LISTED = types.ListGroupsResponse(
    groups=(
        types.ListGroupsResponse.ListedGroup("app", "streams", "NotReady", "streams"),
        types.ListGroupsResponse.ListedGroup("readers", "consumer", "Stable", "consumer"),
    )
)


def answers(*members: Any) -> dict[str, Any]:
    row = types.OffsetFetchResponse.OffsetFetchResponseGroup("app")
    return {
        "StreamsGroupDescribe": Described(groups=(group(*members),)),
        "OffsetFetch": types.OffsetFetchResponse(groups=(row,)),
    }


def test_list(capsys: Capture):
    with fake_cluster(ListGroups=LISTED) as cluster:
        assert run(to(cluster, "list")) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["app", "NotReady"]
        assert run(to(cluster, "list", "--state", "not_ready", "--json")) == 0
        assert [each["group_id"] for each in json.loads(capsys.readouterr().out)["rows"]] == ["app"]
        assert run(to(cluster, "list", "--state", "Stable", "--json")) == 0
        assert json.loads(capsys.readouterr().out) == {"rows": []}


def test_describe_names_who_holds_up_the_rebalance(capsys: Capture):
    members = (member("a", 3, (0, 1), (0,)), member("b", 4, (), (1,)))
    with fake_cluster(**answers(*members)) as cluster:
        assert run(to(cluster, "describe", "app")) == 0
        shown = capsys.readouterr().out
        assert "app is Reconciling: group epoch 4, assignment epoch 4, topology epoch 0" in shown
        assert "waiting: client-a has not yet learned that it must revoke 0_1" in shown
        assert run(to(cluster, "describe", "app", "--json")) == 0
        assert json.loads(capsys.readouterr().out)["rows"][0]["blockers"][0]["tasks"] == ["0_1"]


def test_tasks(capsys: Capture):
    with fake_cluster(**answers(member("a", 4, (0,), (0,)))) as cluster:
        assert run(to(cluster, "tasks", "app", "--json")) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert (row["task"], row["role"], row["standing"], row["lag"]) == ("0_0", "active", "running", None)


def test_watch(capsys: Capture):
    with fake_cluster(**answers(member("a", 4, (0,), (0,)))) as cluster:
        assert run(to(cluster, "watch", "app", "--count", "2", "--interval", "0.01", "--json")) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2


@pytest.mark.parametrize(
    ("members", "reasons"),
    [
        ((member("a", 4, (0,), (0,)), member("b", 4, (1,), (1,))), []),
        (
            (member("a", 3, (0,), (0,)), member("b", 4, (), (1,))),
            ["has not confirmed that it revoked tasks; awaited:"],
        ),
        (
            (member("a", 3, (0,), (0,)), member("b", 4, (1,), (1,))),
            ["has not sent a heartbeat since the last assignment"],
        ),
        ((member("a", -2, (0,), (0,)),), ["has left temporarily, and keeps its tasks until its session expires"]),
    ],
)
def test_blockers(members: tuple[Any, ...], reasons: list[str]):
    assert [each.reason for each in blockers(group(*members))] == reasons


def test_a_task_is_shown_with_who_has_it_and_who_waits_for_it():
    reported = {
        "task_offsets": (Described.TaskOffset("0", 1, 5),),
        "task_end_offsets": (Described.TaskOffset("0", 1, 9),),
    }
    seen = GroupSnapshot(group(member("a", 3, (0, 1), (0,)), member("b", 4, (), (1,), **reported)), {("t", 0): 7})  # type: ignore[dict-item]
    assert [(row.task, row.member.member_id, row.standing, row.lag, row.restoring) for row in task_rows(seen)] == [
        ("0_0", "a", "running", 7, None),
        ("0_1", "a", "leaving", None, None),
        ("0_1", "b", "waiting", None, 4),
    ]


def test_an_epoch_that_climbs_while_members_stay_is_worth_a_warning():
    watch = EpochWatch()
    one = member("a", 4, (), ())
    assert [watch.take(group(one, epoch=epoch)) for epoch in (4, 5, 5, 6)] == [None] * 4
    assert watch.take(group(one, epoch=7)) == "the group epoch rose to 7 although the 1 members are the same"
    assert watch.take(group(one, member("b", 4, (), ()), epoch=8)) is None
