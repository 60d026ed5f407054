"""`python -m tools.readme_figures` writes the README's table of figures from the kept results of the benchmarks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
README: Final = ROOT / "README.md"
RESULTS: Final = ROOT / "benchmarks" / "results"
SUBJECTS: Final = ("ottla", "Apache Kafka")
HEAD: Final = f"| | {' | '.join(SUBJECTS)} |\n|---|---|---|\n"


class Figure(NamedTuple):
    title: str
    results: str
    """The file, without its suffix."""
    case: str
    unit: str
    """`/s` is one over the time, `MiB` a size; others are times."""


FIGURES: Final = (
    Figure("start, to the first acknowledged record", "broker", "start: exec to first acknowledged produce", "s"),
    Figure("processor time of the start", "broker", "start: processor time", "s"),
    Figure("one produce at a time, median", "broker", "one produce at a time: p50", "ms"),
    Figure("one produce at a time, 99th percentile", "broker", "one produce at a time: p99", "ms"),
    Figure(
        "produce with librdkafka, 100 B records, 16 KiB batches",
        "broker",
        "librdkafka produce, 100 B records, 16 KiB batches",
        "/s",
    ),
    Figure(
        "produce with Java, 100 B records, 128 KiB batches",
        "broker",
        "Java produce, 100 B records, 128 KiB batches",
        "/s",
    ),
    Figure(
        "fetch with librdkafka, 100 B records, 16 KiB batches",
        "broker",
        "librdkafka fetch, 100 B records, 16 KiB batches",
        "/s",
    ),
    Figure("share group, one Java consumer", "share", "record, 1 consumer, 1 partition, Java", "/s"),
    Figure("three nodes: start", "replication", "start: three nodes, formatted and serving", "s"),
    Figure("three nodes: memory after load", "replication", "after the load: memory of all nodes", "MiB"),
    Figure(
        "three nodes: produce with acks=all, 100 B records, 16 KiB batches",
        "replication",
        "produce, 100 B records, 16 KiB batches",
        "/s",
    ),
    Figure(
        "three nodes: produce with acks=all after the loss of the partition's leader, which led the quorum, too",
        "failover",
        "a produce after the loss of the leader of partition and quorum",
        "s",
    ),
    Figure(
        "three nodes: heartbeat of a member after the loss of its coordinator",
        "failover",
        "a member's heartbeat after the loss of its coordinator",
        "s",
    ),
    Figure(
        "three nodes: processor time of a node with 3,000 idle partitions, in a second",
        "quiet",
        "idle: processor time of a node in a second",
        "ms",
    ),
)


def table() -> str:
    return HEAD + "".join(_row(each) for each in FIGURES)


def _row(figure: Figure) -> str:
    kept = json.loads((RESULTS / f"{figure.results}.json").read_text(encoding="utf-8"))
    found = {each["subject"]: each["median_s"] for each in kept["results"] if each["case"] == figure.case}
    sizes = {each["subject"]: median(each["bytes"]) for each in kept.get("memory", ()) if each["case"] == figure.case}
    values = found | sizes
    return f"| {figure.title} | {' | '.join(_shown(values[subject], figure.unit) for subject in SUBJECTS)} |\n"


def _shown(value: float, unit: str) -> str:
    match unit:
        case "/s":
            return f"{round(1 / value, -3):,.0f}/s"
        case "MiB":
            return f"{value / (1 << 20):,.0f} MiB"
        case "ms":
            return f"{value * 1000:.2f} ms"
    return f"{value:.2f} {unit}"


def updated(readme: str) -> str:
    """The README with the present table."""
    before, head, rest = readme.partition(HEAD)
    if not head:
        sys.exit(f"{README} has no table that begins with {HEAD.splitlines()[0]}")
    return before + table() + "\n" + rest.partition("\n\n")[2]


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
