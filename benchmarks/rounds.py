"""Rounds of a benchmark of brokers: each starts ottla and Apache Kafka anew, one after the other, and asks for figures.

Every broker gets an empty directory; the order turns from round to round. A figure is a time, unless the benchmark says
otherwise; a ratio says how many times ottla's figure Apache Kafka's is, so above 1 ottla does better.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import runner
from benchmarks.broker.brokers import Apache, Broker, Ottla
from benchmarks.runner import Case, Measurement
from tests.interop.apache import free_ports

__all__ = ["SUBJECTS", "Found", "read_options", "run_rounds", "save", "table"]

SUBJECTS = ("ottla", "Apache Kafka")

Found = dict[str, dict[str, list[float]]]
"""Case -> broker -> one figure of each round."""
Measure = Callable[[Broker, Path], Iterable[tuple[str, float]]]
"""Cases and figures of one broker, which is not started yet; the directory is its own."""


def read_options(name: str, description: str | None, parts: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="how often each broker is measured (3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="less of everything: a look, not a claim")
    parser.add_argument("--only", default="", help=parts)
    parser.add_argument("--brokers", default="", help="only the broker whose name contains this text")
    parser.add_argument("--out", type=Path, help=f"file for the results (benchmarks/results/{name}.json)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def run_rounds(options: argparse.Namespace, measure: Measure, settings: Mapping[str, str] | None = None) -> Found:
    found: Found = {}
    turn = deque(name for name in SUBJECTS if options.brokers in name)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base:
        for number in range(options.rounds):
            for name in turn:
                print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
                directory = Path(base) / f"{number}-{name.split()[0]}"
                for case, figure in _run_round(name, directory, measure, settings).items():
                    found.setdefault(case, {}).setdefault(name, []).append(figure)
            turn.rotate(-1)
    return found


def _run_round(name: str, directory: Path, measure: Measure, settings: Mapping[str, str] | None) -> dict[str, float]:
    is_ours = name == "ottla"
    broker: Broker = Ottla(directory, free_ports(1)[0], settings) if is_ours else Apache(directory, settings)
    try:
        return dict(measure(broker, directory))
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)


def table(found: Found, shown: Callable[[str, float], str]) -> list[str]:
    width = max([*map(len, found), len("median of the rounds")]) + 2
    lines = [f"{'median of the rounds':{width}}{'ottla':>12}{'Apache Kafka':>14}{'ratio':>8}"]
    for case, by_broker in found.items():
        medians = {name: statistics.median(figures) for name, figures in by_broker.items()}
        cells = [shown(case, medians[name]) if name in medians else "" for name in SUBJECTS]
        ratio = f"{medians[SUBJECTS[1]] / medians[SUBJECTS[0]]:.2f}x" if len(medians) == len(SUBJECTS) else ""
        lines.append(f"{case:{width}}{cells[0]:>12}{cells[1]:>14}{ratio:>8}")
    return lines


def save(name: str, found: Found, options: argparse.Namespace, packages: Sequence[str]) -> Path:
    """Write times in the form that every benchmark has."""
    options.window = 0.0
    done = []
    for case, by_broker in found.items():
        ours_first = sorted(by_broker.items(), key=lambda item: SUBJECTS.index(item[0]))
        done.append((Case(case, []), [Measurement(case, each, 1, tuple(figures)) for each, figures in ours_first]))
    return runner.save(name, done, options, packages)
