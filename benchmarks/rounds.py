"""Rounds of a benchmark of brokers: each starts ottla and its rivals anew, one after the other, and asks for figures.

Every broker gets an empty directory; the order turns from round to round. A figure is a time, unless its case names
memory or files; a ratio says how many times ottla's figure a rival's is, so above 1 ottla does better. The rival is
Apache Kafka unless a benchmark names more.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import changed_settings, runner
from benchmarks.broker import raw
from benchmarks.broker.brokers import Apache, Broker, Ottla
from benchmarks.runner import Case, Measurement, Size
from tests.interop.apache import free_ports

__all__ = ["SUBJECTS", "Figures", "Found", "boot", "make_broker", "read_options", "run", "run_parts", "save", "table"]

SUBJECTS = (Ottla.name, Apache.name)
ROUNDS = {Size.FULL: 3, Size.QUICK: 1, Size.SMOKE: 1}
UNITS = {"memory": "bytes", "files": "count", "records written": "count"}
"""What is no time, by a word in the name of its case."""

Figures = Iterator[tuple[str, float]]
"""Cases and figures of one broker in one round."""
Found = dict[str, dict[str, list[float]]]
"""Case -> broker -> one figure of each round."""
Changed = dict[str, dict[str, str]]
"""Broker -> its settings that are not defaults."""
Measure = Callable[[Broker, Path], Figures]
"""Of one broker, which is not started yet; the directory is its own."""
NewBroker = Callable[[str, Path, Mapping[str, str] | None, Path | None], Broker]
"""A broker by its name, with its directory, its settings, and a folder for bytecode."""
IsRate = Callable[[str], bool]
"""Whether a case is shown as so many in a second."""


def read_options(
    description: str | None, parts: str, arguments: Sequence[str] | None, scales: Mapping[Size, object]
) -> argparse.Namespace:
    """`options.scale` is that of the chosen size."""
    parser = runner.parser(description, parts)
    parser.add_argument("--brokers", default="", help="only the broker whose name contains this text")
    return runner.read_options(parser, arguments, rounds=ROUNDS, scale=scales)


def run(
    name: str,
    options: argparse.Namespace,
    measures: Iterable[Measure],
    packages: Sequence[str],
    *,
    settings: Mapping[str, str] | None = None,
    is_rate: IsRate = lambda _: False,
    new_broker: NewBroker | None = None,
    subjects: Sequence[str] = SUBJECTS,
) -> int:
    """Everything between the options and the exit code. Each measure gets brokers of its own.

    `subjects` are the names that `new_broker` is asked for; the first is ours.
    """
    chosen = [each for each in subjects if options.brokers in each and not (options.no_java and each == Apache.name)]
    found: Found = {}
    changed: Changed = {}
    for measure in measures:
        found |= _run_rounds(options, measure, settings, new_broker or make_broker, chosen, changed)
    print("\n".join([*table(found, is_rate, subjects), *changed_settings.told(changed)]), flush=True)
    save(name, found, options, packages, subjects, changed)
    return 0


def _run_rounds(
    options: argparse.Namespace,
    measure: Measure,
    settings: Mapping[str, str] | None,
    new_broker: NewBroker,
    subjects: Sequence[str],
    changed: Changed,
) -> Found:
    found: Found = {}
    turn = deque(subjects)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base:
        for number in range(options.rounds):
            for name in turn:
                print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
                directory = Path(base) / f"{number}-{name.split()[0]}"
                bytecode = None if options.size is Size.SMOKE else Path(base) / "bytecode"
                broker = new_broker(name, directory, settings, bytecode)
                for case, figure in _run_round(broker, directory, measure, settings or {}, changed).items():
                    found.setdefault(case, {}).setdefault(name, []).append(figure)
            turn.rotate(-1)
    return found


def make_broker(name: str, directory: Path, settings: Mapping[str, str] | None, bytecode: Path | None) -> Broker:
    """ottla or Apache Kafka, with its directory, its settings, and a folder for bytecode; not started yet."""
    if name == Apache.name:
        return Apache(directory, settings)
    return Ottla(directory, free_ports(1)[0], settings, bytecode)


def _run_round(
    broker: Broker, directory: Path, measure: Measure, given: Mapping[str, str], changed: Changed
) -> dict[str, float]:
    """The figures, and beside them what the broker says of its settings in the end, or what it was given."""
    try:
        figures = dict(measure(broker, directory))
        told = changed_settings.changed_settings(broker.port, broker.pid)
        changed.setdefault(broker.name, {}).update(given if told is None else told)
        return figures
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)


def boot(broker: Broker) -> None:
    """Start a broker for the first time, until it has taken a record."""
    broker.prepare()
    broker.exec()
    raw.first_produce(broker.port, "first")


def run_parts(
    parts: Mapping[str, Callable[..., Figures]],
    options: argparse.Namespace,
    *given: object,
    with_java: Collection[str] = (),
) -> Figures:
    """The figures of the chosen parts; those of `with_java` have Java clients."""
    for name, part in parts.items():
        if options.only in name and not (options.no_java and name in with_java):
            print(f"  {name}", file=sys.stderr, flush=True)
            yield from part(*given)


def table(found: Found, is_rate: IsRate = lambda _: False, subjects: Sequence[str] = SUBJECTS) -> list[str]:
    """A line for each case: our figure, and that of each rival with its ratio to ours."""
    width = max([*map(len, found), len("median of the rounds")]) + 2
    ours, *rivals = subjects
    lines = [f"{'median of the rounds':{width}}{ours:>12}" + "".join(f"{each:>14}{'ratio':>8}" for each in rivals)]
    for case, by_broker in found.items():
        medians = {name: statistics.median(figures) for name, figures in by_broker.items()}
        cells = {name: _shown(case, median, is_rate) for name, median in medians.items()}
        ratios = {name: f"{median / medians[ours]:.2f}x" for name, median in medians.items() if ours in medians}
        beside = "".join(f"{cells.get(each, ''):>14}{ratios.get(each, ''):>8}" for each in rivals)
        lines.append(f"{case:{width}}{cells.get(ours, ''):>12}{beside}")
    return lines


def _shown(case: str, figure: float, is_rate: IsRate) -> str:
    match _unit(case):
        case "bytes":
            return f"{figure / (1 << 20):,.0f} MiB"
        case "count":
            return f"{figure:,.0f}"
    return f"{1 / figure:,.0f}/s" if is_rate(case) else runner.duration(figure)


def _unit(case: str) -> str:
    return next((unit for word, unit in UNITS.items() if word in case), "seconds")


def save(
    name: str,
    found: Found,
    options: argparse.Namespace,
    packages: Sequence[str],
    subjects: Sequence[str] = SUBJECTS,
    changed: Changed | None = None,
) -> None:
    """Write times in the form that every benchmark has, and what is no time beside them."""
    done = []
    beside: dict[str, list[dict[str, object]]] = {}
    for case, by_broker in found.items():
        ours_first = sorted(by_broker.items(), key=lambda item: subjects.index(item[0]))
        if (unit := _unit(case)) == "seconds":
            measured = [Measurement(case, each, 1, tuple(figures)) for each, figures in ours_first]
            done.append((Case(case, []), measured))
            continue
        for each, figures in ours_first:
            row: dict[str, object] = {"case": case, "subject": each, unit: [int(figure) for figure in figures]}
            beside.setdefault(next(word for word in UNITS if word in case), []).append(row)
    runner.save(name, done, options, packages, beside | {"settings that are not defaults": changed or {}})
