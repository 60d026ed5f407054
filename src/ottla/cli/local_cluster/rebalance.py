"""`ottla cluster rebalance`: spread the replicas and leaders of any cluster over its brokers."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.confirm import confirm, dry_run_option, yes_option
from ottla.cli.topics.reassign import begin_moves, plan_moves, show_moves, summary, write_plan


@click.command()
@dry_run_option
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the plan.")
@yes_option
@target_options
def rebalance(target: Target, dry_run: bool, path: Path | None, yes: bool) -> None:
    """Spread replicas and leaders over the brokers of any cluster, by count and size, with few moves.

    'ottla topics reassign' can run, verify and undo a plan that was written to a file.
    """
    moves = on_cluster(target, lambda client: plan_moves(client, (), None, None))
    show_moves(moves)
    if path is not None:
        write_plan(path, moves)
    if moves and not dry_run:
        confirm([summary(moves)], yes)
        begin_moves(target, moves)
