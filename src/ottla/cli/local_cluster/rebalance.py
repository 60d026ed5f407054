"""`ottla cluster rebalance`: spread the replicas and leaders of any cluster over its brokers."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.confirm import confirm, yes_option
from ottla.cli.topics.reassign import begin_moves, plan_moves, show_moves, summary, write_plan


@click.command()
@click.option("--plan", "only_plan", is_flag=True, help="Only show the moves.")
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the plan.")
@yes_option
@target_options
def rebalance(target: Target, only_plan: bool, path: Path | None, yes: bool) -> None:
    """Spread replicas and leaders over the brokers of any cluster, by count and size, with few moves.

    'ottla topics reassign' can run, verify and undo a plan that was written to a file.
    """
    moves = on_cluster(target, lambda client: plan_moves(client, (), None, None))
    show_moves(moves)
    if path is not None:
        write_plan(path, moves)
    if moves and not only_plan:
        confirm([summary(moves)], yes)
        begin_moves(target, moves)
