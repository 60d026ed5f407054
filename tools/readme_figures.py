"""`python -m tools.readme_figures` writes the README's table of figures from the kept results of the benchmarks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
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
    """`/s` is one over the time; others are times."""


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
)


def table() -> str:
    return HEAD + "".join(_row(each) for each in FIGURES)


def _row(figure: Figure) -> str:
    kept = json.loads((RESULTS / f"{figure.results}.json").read_text(encoding="utf-8"))["results"]
    times = {each["subject"]: each["median_s"] for each in kept if each["case"] == figure.case}
    return f"| {figure.title} | {' | '.join(_shown(times[subject], figure.unit) for subject in SUBJECTS)} |\n"


def _shown(seconds: float, unit: str) -> str:
    if unit == "/s":
        return f"{round(1 / seconds, -3):,.0f}/s"
    return f"{seconds * (1000 if unit == 'ms' else 1):.2f} {unit}"


def updated(readme: str) -> str:
    """The README with the present table."""
    before, head, rest = readme.partition(HEAD)
    if not head:
        sys.exit(f"{README} has no table that begins with {HEAD.splitlines()[0]}")
    return before + table() + "\n" + rest.partition("\n\n")[2]


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
