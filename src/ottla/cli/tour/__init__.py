"""`ottla tour`: a guided tour. Each area has a module here with its steps; append yours to `TOUR`."""

import click
from rich.console import Console

from ottla.cli.tour import broker, explain, groups, log, share, wire
from ottla.cli.tour.step import Stage, Step

TOUR: tuple[Step, ...] = (*wire.STEPS, *explain.STEPS, *log.STEPS, *broker.STEPS, *groups.STEPS, *share.STEPS)


@click.command()
def tour() -> None:
    """Take a guided tour of ottla. It needs no network and leaves no files."""
    take(TOUR, Console(highlight=False))


def take(tour: tuple[Step, ...], console: Console) -> None:
    """Show every step. Each claim of a step is checked; a false one ends the tour with an error."""
    stage = Stage(console)
    for number, step in enumerate(tour, 1):
        console.rule(f"[bold]{number} of {len(tour)}: {step.title}", align="left")
        console.print(step.text, style="dim")
        step.show(stage)
        console.print()
    console.print(f"The end: {len(tour)} steps, {stage.checked} claims checked.", style="bold green")
