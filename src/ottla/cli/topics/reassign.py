"""`ottla topics reassign`: move partitions to other brokers, by a plan that can be read, kept, run and taken back.

The plan is a file in the form of kafka-reassign-partitions, which can run it, too. Beside the replicas that a partition
shall have it says which it had.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.cluster import (
    PARTITION_COLUMNS,
    ClusterGroup,
    Column,
    Target,
    help_alone,
    json_option,
    numbers,
    on_cluster,
    print_table,
    target_options,
)
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.failure import EXIT_IN_PART, EXIT_REFUSED, Failure
from ottla.cli.refusal import one_line
from ottla.cli.topics.find import found_topics
from ottla.cli.verbosity import note
from ottla.health.phrases import plural, size

if TYPE_CHECKING:
    from ottla.client import Client, TopicPartition
    from ottla.client.reassignments import Reassignment
    from ottla.client.replica_plan import Move
    from ottla.client.topics import TopicDescription

COLUMNS = (*PARTITION_COLUMNS, Column("FROM"), Column("TO"), *numbers("COPIES"))
STATE_COLUMNS = (*PARTITION_COLUMNS, Column("REPLICAS"), Column("WANTED"), Column("STATE"))
WAIT_SECONDS = 1.0
IDLE_LOOKS_MAX = 10
"""So often in a row nothing may be moving, while brokers learn that a move is done."""


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def reassign(context: click.Context) -> None:
    """Move partitions to other brokers: plan, run, verify, cancel.

    A plan is a file in the format of kafka-reassign-partitions.
    """
    help_alone(context)


# --- planning ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--to", "brokers", metavar="ID,ID...", help="The brokers to place replicas on; by default all.")
@click.option(
    "--copies",
    "--replication-factor",
    "copies",
    type=click.IntRange(1, 32767),
    help="Number of replicas of each partition; by default unchanged.",
)
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the plan.")
@json_option
@target_options
def plan(
    target: Target, names: tuple[str, ...], brokers: str | None, copies: int | None, path: Path | None, as_json: bool
) -> None:
    """Plan how to spread topics over brokers with few moves. Nothing is changed.

    Takes all topics if none is named.
    """
    chosen = None if brokers is None else _broker_ids(brokers)
    moves = on_cluster(target, lambda client: plan_moves(client, names, chosen, copies))
    if path is not None:
        write_plan(path, moves)
    if as_json:
        click.echo(json.dumps(_plan_json(moves), indent=2))
        return
    show_moves(moves)
    if path is not None and moves:
        click.echo(f"'ottla topics reassign run {path}' does it")


def _broker_ids(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise Failure(f"--to {text} is not a list of broker ids", "for example --to 1,2,3") from None


async def plan_moves(
    client: Client, names: Iterable[str], broker_ids: Sequence[int] | None, replication_factor: int | None
) -> list[Move]:
    """How to spread topics over brokers, which are all that run if none are given."""
    from ottla.client.metadata import TopicPartition
    from ottla.client.replica_plan import PlacedPartition, PlanError, spread
    from ottla.client.sizes import leader_sizes

    found = await found_topics(client, names)
    sizes = await leader_sizes(client, found)
    known = client.metadata.brokers
    missing = [each for each in broker_ids or () if each not in known]
    if missing:
        raise Failure(
            f"the cluster has no broker {', '.join(map(str, missing))}",
            f"its brokers are {', '.join(map(str, sorted(known)))}",
            code=EXIT_REFUSED,
        )
    racks = {each: known[each].rack for each in broker_ids or known}
    placed = [
        PlacedPartition(at, each.replicas, sizes.get(at, 0))
        for topic in found
        for each in topic.partitions
        for at in [TopicPartition(topic.name, each.partition)]
    ]
    try:
        return spread(placed, racks, replication_factor=replication_factor)
    except PlanError as error:
        raise Failure(str(error), code=EXIT_REFUSED) from None


def show_moves(moves: Sequence[Move]) -> None:
    if not moves:
        click.echo("nothing to move")
        return
    print_table(
        COLUMNS, ((*each.at, _ids(each.before), _ids(each.after), _copies(each.copied_bytes)) for each in moves)
    )
    click.echo(summary(moves))


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _copies(count_bytes: int) -> str | None:
    return size(count_bytes) if count_bytes else None


def summary(moves: Sequence[Move]) -> str:
    added = sum(len(each.added) for each in moves)
    copied = sum(each.copied_bytes for each in moves)
    leaders = sum(each.before[:1] != each.after[:1] for each in moves)
    return (
        f"{plural(len(moves), 'partition')} change: {plural(added, 'replica')} move, {size(copied)} are copied, "
        f"{plural(leaders, 'preferred leader')} change"
    )


# --- the file ---------------------------------------------------------------------------------------------------------


def _plan_json(moves: Iterable[Move]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {
                "topic": each.at.topic,
                "partition": each.at.partition,
                "replicas": list(each.after),
                "before": list(each.before),
                "size_bytes": each.size_bytes,
            }
            for each in moves
        ],
    }


def write_plan(path: Path, moves: Iterable[Move]) -> None:
    try:
        path.write_text(json.dumps(_plan_json(moves), indent=2) + "\n")
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from None


def read_plan(path: Path) -> list[Move]:
    """Also one of kafka-reassign-partitions, which does not say where partitions are now."""
    from ottla.client.metadata import TopicPartition
    from ottla.client.replica_plan import Move

    try:
        entries = json.loads(path.read_text())["partitions"]
        return [
            Move(
                TopicPartition(str(each["topic"]), int(each["partition"])),
                tuple(map(int, each.get("before", ()))),
                tuple(map(int, each["replicas"])),
                int(each.get("size_bytes", 0)),
            )
            for each in entries
        ]
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(
            f"{path} is not a plan: {type(error).__name__}: {error}", "'ottla topics reassign plan --file' writes one"
        ) from None


_plan_argument = click.argument("path", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path))


# --- doing it ---------------------------------------------------------------------------------------------------------


@click.command()
@_plan_argument
@click.option("--undo", is_flag=True, help="Move everything back to where it was when the plan was made.")
@click.option("--wait", is_flag=True, help="Wait until everything has moved, and show progress.")
@click.option(
    "--throttle",
    "bytes_per_second",
    type=click.IntRange(1),
    metavar="BYTES",
    help="Limit replication per broker, in bytes per second; removed by --wait or verify.",
)
@yes_option
@target_options
def run(target: Target, path: Path, undo: bool, wait: bool, bytes_per_second: int | None, yes: bool) -> None:
    """Run a plan. Brokers copy the records while clients continue."""
    from ottla.client.replication_throttles import end_throttle, throttle

    moves = [_undone(each, path) for each in read_plan(path)] if undo else read_plan(path)
    if bytes_per_second is not None:
        _check_before(moves, path)
    confirm([summary(moves)], yes)
    if bytes_per_second is not None:
        on_cluster(target, lambda client: throttle(client, moves, bytes_per_second))
    begin_moves(target, moves)
    if wait:
        left = on_cluster(target, lambda client: _wait(client, moves))
        if bytes_per_second is not None:
            on_cluster(target, lambda client: end_throttle(client, moves))
        if left:
            raise Failure(
                f"{plural(left, 'partition')} of {len(moves)} have not moved, and nothing is moving any more",
                "'ottla topics reassign verify PLAN' shows which",
                code=EXIT_IN_PART if left < len(moves) else EXIT_REFUSED,
            )
        click.echo("everything has moved")


def _check_before(moves: Iterable[Move], path: Path) -> None:
    for move in moves:
        if not move.before:
            raise Failure(
                f"{path} does not contain the current replicas of {move.at}", "plans of 'ottla topics reassign plan' do"
            )


def _undone(move: Move, path: Path) -> Move:
    _check_before([move], path)
    return move._replace(before=move.after, after=move.before)


def begin_moves(target: Target, moves: Sequence[Move]) -> None:
    from ottla.client.reassignments import try_reassign

    outcomes = on_cluster(target, lambda client: try_reassign(client, {each.at: each.after for each in moves}))
    failures = [error for error in outcomes.values() if error is not None]
    click.echo(f"{plural(len(outcomes) - len(failures), 'partition')} began to move")
    if failures:
        code = EXIT_REFUSED if len(failures) == len(outcomes) else EXIT_IN_PART
        raise Failure("; ".join(map(one_line, failures)), code=code)


async def _wait(client: Client, moves: Sequence[Move]) -> int:
    """Wait until nothing is moving any more. Gives the number of partitions that have not moved."""
    told, idle = -1, 0
    while left := [state for _, _, state in await _states(client, moves) if state is not MoveState.DONE]:
        if len(left) != told:
            told = len(left)
            note(f"{len(moves) - told} of {plural(len(moves), 'partition')} have moved")
        idle = 0 if MoveState.MOVING in left else idle + 1
        if idle == IDLE_LOOKS_MAX:
            break
        await asyncio.sleep(WAIT_SECONDS)
    return len(left)


# --- how far it is ----------------------------------------------------------------------------------------------------


class MoveState(Enum):
    DONE = "done"
    MOVING = "moving"
    NOT_MOVING = "not moving"
    MISSING = "no such partition"


async def _states(client: Client, moves: Sequence[Move]) -> list[tuple[Move, tuple[int, ...], MoveState]]:
    """Each move with the replicas that the partition has now."""
    from ottla.client.reassignments import list_reassignments
    from ottla.client.topics import TopicDescription, try_describe

    names = dict.fromkeys(each.at.topic for each in moves)
    topics = {
        name: found
        for name, found in (await try_describe(client, *names)).items()
        if isinstance(found, TopicDescription)
    }
    under_way = await list_reassignments(client)
    return [_state(move, topics.get(move.at.topic), under_way) for move in moves]


def _state(
    move: Move, topic: TopicDescription | None, under_way: dict[TopicPartition, Reassignment]
) -> tuple[Move, tuple[int, ...], MoveState]:
    found = next((each for each in topic.partitions if each.partition == move.at.partition), None) if topic else None
    if found is None:
        return move, (), MoveState.MISSING
    if move.at in under_way:
        return move, found.replicas, MoveState.MOVING
    return move, found.replicas, MoveState.DONE if found.replicas == move.after else MoveState.NOT_MOVING


@click.command()
@_plan_argument
@click.option(
    "--keep-throttles", is_flag=True, help="Keep throttles; by default, they are removed once nothing is moving."
)
@json_option
@target_options
def verify(target: Target, path: Path, keep_throttles: bool, as_json: bool) -> None:
    """Show the progress of a plan. Exits with 1 unless everything has moved."""
    from ottla.client.replication_throttles import end_throttle

    moves = read_plan(path)
    states = on_cluster(target, lambda client: _states(client, moves))
    if as_json:
        rows = [
            {
                "topic": move.at.topic,
                "partition": move.at.partition,
                "replicas": list(replicas),
                "wanted": list(move.after),
                "state": state.value,
            }
            for move, replicas, state in states
        ]
        click.echo(json.dumps({"rows": rows}, indent=2))
    else:
        print_table(
            STATE_COLUMNS,
            ((*move.at, _ids(replicas), _ids(move.after), state.value) for move, replicas, state in states),
        )
    if not keep_throttles and all(state is not MoveState.MOVING for _, _, state in states):
        on_cluster(target, lambda client: end_throttle(client, moves))
    left = sum(state is not MoveState.DONE for _, _, state in states)
    if left:
        raise Failure(f"{plural(left, 'partition')} of {len(states)} have not moved", code=EXIT_REFUSED)


@click.command()
@click.argument("path", metavar="[PLAN]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@yes_option
@target_options
def cancel(target: Target, path: Path | None, yes: bool) -> None:
    """Cancel all moves, or those of a plan. Partitions return to where they were."""
    from ottla.client.reassignments import list_reassignments, try_reassign

    named = None if path is None else {each.at for each in read_plan(path)}
    under_way = on_cluster(target, list_reassignments)
    wanted = [at for at in sorted(under_way) if named is None or at in named]
    if not wanted:
        click.echo("nothing is being moved")
        return
    confirm([f"would cancel the move of {at}" for at in wanted], yes)
    outcomes = on_cluster(target, lambda client: try_reassign(client, dict.fromkeys(wanted)))
    failures = [error for error in outcomes.values() if error is not None]
    click.echo(f"{plural(len(outcomes) - len(failures), 'partition')} stay where they were")
    if failures:
        raise Failure("; ".join(map(one_line, failures)), code=EXIT_IN_PART)


for command in (plan, run, verify, cancel):
    reassign.add_command(command)
