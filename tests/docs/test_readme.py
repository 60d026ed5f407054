"""What the README shows has to happen."""

import doctest
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GAPS.md")


FIGURES = {
    "start, to the first acknowledged record": ("broker", "start: exec to first acknowledged produce", "s"),
    "processor time of the start": ("broker", "start: processor time", "s"),
    "one produce at a time, median": ("broker", "one produce at a time: p50", "ms"),
    "one produce at a time, 99th percentile": ("broker", "one produce at a time: p99", "ms"),
    "produce with librdkafka, 100 B records, 16 KiB batches": (
        "broker",
        "librdkafka produce, 100 B records, 16 KiB batches",
        "/s",
    ),
    "produce with Java, 100 B records, 128 KiB batches": (
        "broker",
        "Java produce, 100 B records, 128 KiB batches",
        "/s",
    ),
    "fetch with librdkafka, 100 B records, 16 KiB batches": (
        "broker",
        "librdkafka fetch, 100 B records, 16 KiB batches",
        "/s",
    ),
    "share group, one Java consumer": ("share", "record, 1 consumer, 1 partition, Java", "/s"),
}
"""Row of the table -> where its figures are kept, and their unit."""


def shown(seconds: float, unit: str) -> str:
    if unit == "/s":
        return f"{round(1 / seconds, -3):,.0f}/s"
    return f"{seconds * (1000 if unit == 'ms' else 1):.2f} {unit}"


def test_every_figure_of_the_readme_is_kept():
    table = (ROOT / "README.md").read_text().partition("| | ottla | Apache Kafka |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    assert {title for title, *_ in rows} == set(FIGURES)
    for title, *figures in rows:
        file, case, unit = FIGURES[title]
        kept = json.loads((ROOT / "benchmarks" / "results" / f"{file}.json").read_text())["results"]
        of = {each["subject"]: each["median_s"] for each in kept if each["case"] == case}
        assert figures == [shown(of["ottla"], unit), shown(of["Apache Kafka"], unit)], title


def test_the_examples_of_the_readme_run():
    outcome = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_every_make_target_that_the_pages_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target for page in PAGES for target in re.findall(r"make ([a-z-]+)(?=`| +#|\)|$)", (ROOT / page).read_text())
    }
    assert {"demo", "test", "generate"} <= named
    assert named <= targets
