"""`python -m simulation quorum`: run worlds of quorum nodes from seeds, or look at one of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from ottla.testing.trace import Violation
from simulation.quorum.picture import draw_quorum
from simulation.quorum.runner import QuorumTally, run_quorum, run_quorums
from simulation.runner import seed_numbers

__all__ = ["quorum"]

_HOUR_MS = 3_600_000


@click.command(help="Simulate quorums on bad networks and bad disks, and check Raft's invariants after every step.")
@click.option("--seeds", type=int, help="How many seeds to run.")
@click.option("--minutes", type=float, help="How long to go on, instead of a number of seeds.")
@click.option("--from-seed", default=0, show_default=True, help="The first seed.")
@click.option("--keep", type=click.Path(path_type=Path), help="A file that failed seeds are added to.")
@click.option("--seed", type=int, help="Instead: run this seed, and print its conversation.")
@click.option("--svg", type=click.Path(path_type=Path), help="With --seed: draw it into this file instead.")
def quorum(
    seeds: int | None, minutes: float | None, from_seed: int, keep: Path | None, seed: int | None, svg: Path | None
) -> None:
    if seed is not None:
        sys.exit(_show(seed, svg))
    if svg is not None:
        raise click.UsageError("--svg draws one run: say which with --seed")
    if (seeds is None) == (minutes is None):
        raise click.UsageError("say either --seeds or --minutes, or one --seed")
    started = time.monotonic()
    tally = run_quorums(seed_numbers(from_seed, seeds, minutes), _Progress())
    _report(tally, time.monotonic() - started)
    if keep is not None and tally.failures:
        with keep.open("a") as file:
            file.writelines(f"{each.seed} {each.violation[:80]}\n" for each in tally.failures)
    sys.exit(1 if tally.failures else 0)


def _show(seed: int, svg: Path | None) -> int:
    try:
        world, code = run_quorum(seed), 0
    except Violation as violation:
        world, code = violation.world, 1
    if svg is None:
        click.echo("\n".join(world.trace.lines))
    else:
        svg.write_text(draw_quorum(world))
        click.echo(f"{svg}: {world.now_ms() / 1000:.0f} s of seed {seed}", err=True)
    return code


class _Progress:
    """Prints a line once in a while."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 10

    def __call__(self, tally: QuorumTally) -> None:
        if time.monotonic() > self._next:
            self._next = time.monotonic() + 10
            click.echo(f"{tally.seeds} seeds, {len(tally.failures)} failed", err=True)


def _report(tally: QuorumTally, seconds: float) -> None:
    for failure in tally.failures:
        click.echo(f"\nseed {failure.seed}: {failure.violation}")
        click.echo(f"{len(failure.skipped)} of its faults are not needed and left out:")
        click.echo("\n".join(failure.trace))
    hours = tally.simulated_ms / _HOUR_MS
    click.echo(f"\n{tally.seeds} seeds, {hours:.1f} simulated hours in {seconds:.0f} s; {len(tally.failures)} failed")
    click.echo(f"settled at most {tally.settled_ms_max / 1000:.1f} s after the last fault")
    for kind, count in sorted((tally.counts + tally.faults).items()):
        click.echo(f"  {count:>7} {kind}")
