"""`python -m simulation cluster`: run simulated clusters from seeds, or look at one of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

import click

from ottla.testing.trace import Violation
from simulation.cluster.runner import CHAOS_S, ClusterTally, Plan, run_cluster, run_clusters
from simulation.progress import Progress
from simulation.runner import seed_numbers

__all__ = ["cluster"]

_MINUTE_MS = 60_000


@click.command(
    help="Simulate clusters of whole nodes on bad networks and bad disks, and check what nodes and clients see."
)
@click.option("--seeds", type=int, help="How many seeds to run.")
@click.option("--minutes", type=float, help="How long to go on, instead of a number of seeds.")
@click.option("--from-seed", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many processes to run them in.")
@click.option("--seconds", default=CHAOS_S, show_default=True, help="How long faults go on in a seed, simulated.")
@click.option("--keep", type=click.Path(path_type=Path), help="A file that failed seeds are added to.")
@click.option("--seed", type=int, help="Instead: run this seed, and print its story.")
def cluster(
    seeds: int | None,
    minutes: float | None,
    from_seed: int,
    jobs: int,
    seconds: float,
    keep: Path | None,
    seed: int | None,
) -> None:
    plan = Plan(chaos_s=seconds)
    if seed is not None:
        sys.exit(_show(seed, plan))
    if (seeds is None) == (minutes is None):
        raise click.UsageError("say either --seeds or --minutes, or one --seed")
    started = time.monotonic()
    tally, progress = ClusterTally(), Progress()
    for each in _run(seed_numbers(from_seed, seeds, minutes), plan, jobs):
        tally.add(each)
        progress(tally)
    _report(tally, time.monotonic() - started)
    if keep is not None and tally.failures:
        with keep.open("a") as file:
            file.writelines(f"{each.seed} {each.violation[:80]}\n" for each in tally.failures)
    sys.exit(1 if tally.failures else 0)


def _show(seed: int, plan: Plan) -> int:
    try:
        world, code = run_cluster(seed, plan), 0
    except Violation as violation:
        world, code = violation.world, 1
    click.echo("\n".join(world.trace.lines))
    return code


def _run(seeds: Iterable[int], plan: Plan, jobs: int) -> Iterator[ClusterTally]:
    """The results of seeds, one by one, as they come."""
    if jobs == 1:
        for seed in seeds:
            yield run_clusters([seed], plan)
        return
    todo = iter(seeds)
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[ClusterTally]] = set()
        while True:
            running |= {pool.submit(run_clusters, [seed], plan) for seed in islice(todo, 2 * jobs - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                yield each.result()


def _report(tally: ClusterTally, seconds: float) -> None:
    for failure in tally.failures:
        click.echo(f"\nseed {failure.seed}: {failure.violation}")
        skipped = ", ".join(sorted(failure.plan.skipped_clients)) or "none"
        click.echo(
            f"{len(failure.plan.skipped_faults)} faults are not needed and left out; so are these clients: {skipped}"
        )
        click.echo("\n".join(failure.trace))
    minutes = tally.simulated_ms / _MINUTE_MS
    click.echo(
        f"\n{tally.seeds} seeds, {minutes:.1f} simulated minutes in {seconds:.0f} s; {len(tally.failures)} failed"
    )
    click.echo(f"settled at most {tally.settled_ms_max / 1000:.1f} s after the last fault")
    for kind, count in sorted((tally.faults + tally.operations).items()):
        click.echo(f"  {count:>7} {kind}")
