"""`ottla demo`: a small cluster with real workloads, three incidents, and a report that explains them."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["demo"]


@click.command()
@click.option("--seed", default=1, show_default=True, help="The seed for the records.")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory for data and report.",
)
@click.option("--no-spark", is_flag=True, help="Evaluate without Spark: the same rules, but no tables.")
@click.option("--no-java", is_flag=True, help="Run without Kafka Streams and Spark.")
@click.option("--stay", is_flag=True, help="Keep the nodes and the console running until Ctrl-C.")
@click.option("--speed", default=1.0, hidden=True, type=click.FloatRange(min=0.1), help="Run faster, by this factor.")
def demo(seed: int, out: Path, no_spark: bool, no_java: bool, stay: bool, speed: float) -> int:
    """Run real workloads on three nodes, cause three incidents, and explain them.

    Takes about five minutes and writes a report to --out.
    """
    from ottla.cli.demo.command import DemoOptions, run

    return run(DemoOptions(seed, out, not (no_spark or no_java), not no_java, stay, speed))
