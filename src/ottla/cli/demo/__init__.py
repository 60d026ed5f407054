"""`ottla demo`: a small cluster with real workloads, three incidents, and a report that explains them."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["demo"]


@click.command()
@click.option("--seed", default=1, show_default=True, help="Another seed gives other records.")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory for data and report.",
)
@click.option("--no-spark", is_flag=True, help="Evaluate without Spark: the same rules, but no tables.")
@click.option("--no-java", is_flag=True, help="No Kafka Streams application, and no Spark.")
@click.option("--stay", is_flag=True, help="Keep the nodes running at the end, and the console, until Ctrl-C.")
@click.option("--speed", default=1.0, hidden=True, type=click.FloatRange(min=0.1), help="Tell the story faster.")
def demo(seed: int, out: Path, no_spark: bool, no_java: bool, stay: bool, speed: float) -> int:
    """Start three nodes, run real workloads, break things three times, and find out why.

    Takes about five minutes and ends by itself, with a report in --out.
    """
    from ottla.cli.demo.command import DemoOptions, run

    return run(DemoOptions(seed, out, not (no_spark or no_java), not no_java, stay, speed))
