"""The commands that act on a cluster which runs in another terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.cli.cluster import Column, json_option, numbers, print_json, print_table
from ottla.cli.failure import Failure

__all__ = ["cut", "heal", "kill", "pause", "resume", "start", "status", "stop"]

T = TypeVar("T")
_COLUMNS = (*numbers("NODE"), Column("ROLES"), Column("STATE"), *numbers("PID"), Column("LISTENERS"), Column("NOTE"))

_data_option = click.option(
    "--data", type=click.Path(file_okay=False, path_type=Path), help="The directory of the cluster."
)
_nodes_argument = click.argument("nodes", type=int, nargs=-1, required=True, metavar="NODE...")


def _order(data: Path | None, command: str, **arguments: Any) -> Any:  # noqa: ANN401
    from ottla.cli.local_cluster.control import find_cluster, order

    return order(find_cluster(data), command, **arguments)


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)


def _on_nodes(name: str, text: str) -> click.Command:
    """A command that does the same to each of several nodes."""

    def run(nodes: Sequence[int], data: Path | None) -> None:
        _print(_order(data, name, nodes=nodes))

    run.__doc__ = text
    command: Callable[..., None] = _nodes_argument(_data_option(run))
    return click.command(name)(command)


kill = _on_nodes("kill", "Kill nodes, as a crash would (SIGKILL).")
pause = _on_nodes("pause", "Suspend nodes: they accept connections but do not respond (SIGSTOP).")
resume = _on_nodes("resume", "Resume suspended nodes (SIGCONT).")
stop = _on_nodes("stop", "Stop nodes cleanly (SIGTERM).")
start = _on_nodes("start", "Start nodes that were stopped or killed, on the same ports and data.")


@click.command()
@click.argument("node", type=int)
@click.argument("other", type=int, required=False)
@click.option("--one-way", is_flag=True, help="Drop only what NODE sends to OTHER.")
@_data_option
def cut(node: int, other: int | None, one_way: bool, data: Path | None) -> None:
    """Cut the link between two nodes, or between NODE and all others.

    Packets between them are dropped, not rejected. Clients still reach both.
    """
    if one_way and other is None:
        raise Failure("--one-way needs two nodes", "ottla cluster cut 1 2 --one-way: 2 no longer receives from 1")
    _print(_order(data, "cut", one=node, other=other, one_way=one_way))


@click.command()
@_data_option
def heal(data: Path | None) -> None:
    """Restore all links."""
    _print(_order(data, "heal"))


@click.command()
@json_option
@_data_option
def status(as_json: bool, data: Path | None) -> None:
    """Show the nodes, which one leads the quorum, and which links are cut."""
    found = _order(data, "status")
    if as_json:
        nodes = [{"node_id": each.pop("node"), **each} for each in found.pop("nodes")]
        print_json({**found, "rows": nodes})
        return
    rows = [
        (
            each["node"],
            tuple(each["roles"]),
            each["state"],
            each["pid"],
            " ".join(f"{name}://{address}" for name, address in each["listeners"].items()),
            f"leads the quorum in epoch {found['epoch']}" if each["node"] == found["leader"] else None,
        )
        for each in found["nodes"]
    ]
    print_table(_COLUMNS, rows)
    _print(found["cut"])
    click.echo(f"bootstrap={found['bootstrap']}")
