"""`ottla streams`: the groups of Kafka Streams applications, their members and tasks, on any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    ClusterGroup,
    Column,
    Target,
    help_alone,
    json_option,
    on_cluster,
    print_json,
    print_table,
    target_options,
)
from ottla.cli.printable import printable
from ottla.cli.topology import topology
from ottla.cli.watch import Watch, find_and_show, watching_options

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.groups import ListedGroup
    from ottla.client.streams import GroupSnapshot, TaskRow

LIST_COLUMNS = (Column("GROUP"), Column("STATE"), Column("COORDINATOR", is_number=True))
SUBTOPOLOGY_COLUMNS = (Column("SUBTOPOLOGY"), Column("READS"), Column("WRITES"), Column("STATE IN"))
MEMBER_COLUMNS = (
    Column("MEMBER"),
    Column("PROCESS"),
    Column("CLIENT"),
    Column("HOST"),
    Column("EPOCH", is_number=True),
    Column("TOPOLOGY", is_number=True),
    Column("ACTIVE", is_number=True),
    Column("STANDBY", is_number=True),
    Column("WARM-UP", is_number=True),
    Column("ENDPOINT"),
)
TASK_COLUMNS = (
    Column("TASK"),
    Column("ROLE"),
    Column("IS"),
    Column("CLIENT"),
    Column("PROCESS"),
    Column("LAG", is_number=True),
    Column("RESTORING", is_number=True),
)


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def streams(context: click.Context) -> None:
    """Inspect Kafka Streams groups, on any cluster."""
    help_alone(context)


streams.add_command(topology)


@streams.command("list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state; repeatable.")
@json_option
@target_options
def list_groups(target: Target, states: tuple[str, ...], as_json: bool) -> None:
    """List the streams groups."""

    async def work(client: Client) -> list[ListedGroup]:
        from ottla.client.groups import list_groups

        # Apache Kafka's brokers do not filter by NotReady, so the filter is applied here.
        wanted = {_state(each) for each in states}
        found = await list_groups(client, types=("streams",))
        return [each for each in found if not wanted or _state(each.state) in wanted]

    found = on_cluster(target, work)
    if as_json:
        rows = [{"group_id": each.group_id, "state": each.state, "coordinator": each.coordinator} for each in found]
        print_json({"rows": rows})
    else:
        print_table(LIST_COLUMNS, [(each.group_id, each.state, each.coordinator) for each in found])


def _state(name: str) -> str:
    return name.replace("_", "").lower()


@streams.command("describe")
@click.argument("group")
@json_option
@target_options
def describe(target: Target, group: str, as_json: bool) -> None:
    """Show a group: epochs, topology, members, and which members delay a rebalance."""
    find_and_show(target, Watch(), _finder(group), _json if as_json else None, _show)


@streams.command("tasks")
@click.argument("group")
@json_option
@target_options
def tasks(target: Target, group: str, as_json: bool) -> None:
    """Show all tasks of a group: active and standby members, and lag."""
    find_and_show(target, Watch(), _finder(group), _tasks_json if as_json else None, _show_tasks)


@streams.command("watch")
@click.argument("group")
@watching_options
@json_option
@target_options
def watch(target: Target, group: str, watch: Watch, as_json: bool) -> None:
    """Show a group, keep refreshing, and warn if its epoch increases for no visible reason."""
    from ottla.client.streams import EpochWatch

    epochs = EpochWatch()

    def show(seen: GroupSnapshot) -> None:
        _show(seen)
        warning = epochs.take(seen.group)
        if warning is not None:
            click.secho(f"warning: {warning}", fg="yellow")

    def as_object(seen: GroupSnapshot) -> object:
        return {**_json(seen), "warning": epochs.take(seen.group)}

    find_and_show(target, watch, _finder(group), as_object if as_json else None, show)


def _finder(group_id: str) -> Any:  # noqa: ANN401 - a coroutine function over a client
    async def find(client: Client) -> GroupSnapshot:
        from ottla.client.streams import snapshot

        return await snapshot(client, group_id)

    return find


# --- text -------------------------------------------------------------------------------------------------------------


def _show(seen: GroupSnapshot) -> None:
    from ottla.client.streams import blockers

    group = seen.group
    click.echo(
        f"{group.group_id} is {group.group_state}: group epoch {group.group_epoch}, "
        f"assignment epoch {group.assignment_epoch}, topology epoch {group.topology.epoch if group.topology else '-'}"
    )
    subtopologies = (group.topology.subtopologies if group.topology is not None else ()) or ()
    print_table(SUBTOPOLOGY_COLUMNS, map(_subtopology_row, subtopologies))
    print_table(MEMBER_COLUMNS, map(_member_row, group.members))
    for each in blockers(group):
        text = " ".join((each.member.client_id, each.reason, *each.tasks))
        click.secho(f"waiting: {printable(text)}", fg="yellow")


def _subtopology_row(each: Any) -> tuple[object, ...]:  # noqa: ANN401
    repartition = tuple(topic.name for topic in each.repartition_source_topics)
    changelogs = tuple(topic.name for topic in each.state_changelog_topics)
    return each.subtopology_id, (*each.source_topics, *repartition), tuple(each.repartition_sink_topics), changelogs


def _member_row(each: Any) -> tuple[object, ...]:  # noqa: ANN401
    from ottla.client.streams import ROLES, task_count

    endpoint = f"{each.user_endpoint.host}:{each.user_endpoint.port}" if each.user_endpoint is not None else None
    counts = (task_count(each, role) for role in ROLES)
    epochs = (each.member_epoch, each.topology_epoch)
    return each.member_id, each.process_id, each.client_id, each.client_host, *epochs, *counts, endpoint


def _show_tasks(seen: GroupSnapshot) -> None:
    from ottla.client.streams import task_rows

    print_table(TASK_COLUMNS, [_task_row(row) for row in task_rows(seen)])


def _task_row(row: TaskRow) -> tuple[object, ...]:
    return row.task, row.role, row.standing, row.member.client_id, row.member.process_id, row.lag, row.restoring


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(seen: GroupSnapshot) -> dict[str, object]:
    from ottla.client.streams import ROLES, blockers, task_count

    group = seen.group
    row = {
        "group_id": group.group_id,
        "state": group.group_state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology.epoch if group.topology is not None else None,
        "members": [
            {
                "member_id": each.member_id,
                "process_id": each.process_id,
                "client_id": each.client_id,
                "host": each.client_host,
                "member_epoch": each.member_epoch,
                "topology_epoch": each.topology_epoch,
                **{role: task_count(each, role) for role in ROLES},
            }
            for each in group.members
        ],
        "blockers": [
            {"member_id": each.member.member_id, "reason": each.reason, "tasks": list(each.tasks)}
            for each in blockers(group)
        ],
    }
    return {"rows": [row]}


def _tasks_json(seen: GroupSnapshot) -> dict[str, object]:
    from ottla.client.streams import task_rows

    rows = [
        {
            "task": row.task,
            "role": row.role,
            "standing": row.standing,
            "member_id": row.member.member_id,
            "process_id": row.member.process_id,
            "lag": row.lag,
            "restoring": row.restoring,
        }
        for row in task_rows(seen)
    ]
    return {"group_id": seen.group.group_id, "rows": rows}
