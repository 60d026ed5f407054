"""`python -m simulation`: run worlds from seeds, for a number of seeds or for a time."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import click

from ottla.testing.trace import Violation
from simulation.cluster.command import cluster
from simulation.crash_points import all_plans, run_plan
from simulation.progress import Progress
from simulation.quorum.command import quorum
from simulation.runner import FAMILY_NAMES, Failure, Tally, run_seeds, seed_numbers

_HOUR_MS = 3_600_000
_TRACE_LINES = 60
_TEARS = 3


@click.group(
    invoke_without_command=True,
    help="Simulate coordinators on bad networks and bad disks, and check the invariants after every step.",
)
@click.option("--families", default=",".join(FAMILY_NAMES), show_default=True, help="What lives there, with commas.")
@click.option("--seeds", type=int, help="How many seeds to run.")
@click.option("--minutes", type=float, help="How long to go on, instead of a number of seeds.")
@click.option("--from-seed", default=0, show_default=True, help="The first seed.")
@click.option("--keep", type=click.Path(path_type=Path), help="A file that failed seeds are added to.")
@click.option("--crash-points", is_flag=True, help="Instead: kill the broker at every write of a transaction.")
@click.option("--trace", is_flag=True, help="Show the whole trace of a failure, not only its end.")
@click.pass_context
def main(
    context: click.Context,
    families: str,
    seeds: int | None,
    minutes: float | None,
    from_seed: int,
    keep: Path | None,
    crash_points: bool,
    trace: bool,
) -> None:
    logging.disable(logging.CRITICAL)  # the coordinator warns of each injected fault
    if context.invoked_subcommand is not None:
        return
    if crash_points:
        _run_crash_points(trace)
        return
    chosen = families.split(",")
    unknown = [each for each in chosen if each not in FAMILY_NAMES]
    if unknown:
        raise click.BadParameter(f"no family {unknown[0]!r}; there are {', '.join(FAMILY_NAMES)}")
    if (seeds is None) == (minutes is None):
        raise click.UsageError("say either --seeds or --minutes")
    started = time.monotonic()
    tally = run_seeds(seed_numbers(from_seed, seeds, minutes), chosen, Progress())
    _report(tally, time.monotonic() - started, trace)
    if keep is not None and tally.failures:
        with keep.open("a") as file:
            file.writelines(f"{','.join(each.families)} {each.seed} {each.violation[:80]}\n" for each in tally.failures)
    sys.exit(1 if tally.failures else 0)


def _run_crash_points(whole_trace: bool) -> None:
    """Run each plan three times; each time other bytes remain of the interrupted write."""
    points = runs = 0
    for plan in all_plans():
        try:
            ran = run_plan(plan, tears=_TEARS)
        except Violation as violation:
            lines = violation.world.trace.lines
            click.echo(f"{plan.name}: {violation}")
            click.echo("\n".join(lines if whole_trace else lines[-_TRACE_LINES:]))
            sys.exit(1)
        click.echo(f"{ran.points:>4} crash points, {ran.runs} runs: {plan.name}")
        points, runs = points + ran.points, runs + ran.runs
    click.echo(f"{points} crash points, {runs} runs, nothing half applied")


def _report(tally: Tally, seconds: float, whole_trace: bool) -> None:
    for failure in tally.failures:
        click.echo(f"\nseed {failure.seed}, {','.join(failure.families)}: {failure.violation}")
        click.echo("\n".join(_lines(failure, whole_trace)))
    hours = tally.simulated_ms / _HOUR_MS
    click.echo(f"\n{tally.seeds} seeds, {hours:.1f} simulated hours in {seconds:.0f} s; {len(tally.failures)} failed")
    click.echo(f"settled at most {tally.settled_ms_max / 1000:.1f} s after the last fault")
    for kind, count in sorted(tally.faults.items()):
        click.echo(f"  {count:>7} {kind}")


def _lines(failure: Failure, whole_trace: bool) -> Iterable[str]:
    return failure.trace if whole_trace else failure.trace[-_TRACE_LINES:]


main.add_command(quorum)
main.add_command(cluster)


if __name__ == "__main__":
    main()
