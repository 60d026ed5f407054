"""Times several subjects at the same task in alternating windows and keeps every window.

A window is a run of calls long enough to be timed well. In each round every subject gets one window, and the order
turns by one from round to round, so that a slow second of the machine hits all of them alike and a ratio within a round
is worth more than either figure. The garbage collector stays on, as in a live process, and runs before each window.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib import metadata
from itertools import cycle, islice, starmap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"

Clock = Callable[[], float]


class Size(StrEnum):
    """How much a benchmark does. Each has a table of these for whatever makes it long."""

    FULL = "full"
    """What a claim needs."""
    QUICK = "quick"
    """A look, of a minute or two."""
    SMOKE = "smoke"
    """The least that goes through all of the code: only shows that it runs, so nothing is written."""


ROUNDS = {Size.FULL: 15, Size.QUICK: 3, Size.SMOKE: 1}
QUARTERS = 4
WINDOWS_S = {Size.FULL: 0.05, Size.QUICK: 0.05, Size.SMOKE: 0.0}


@dataclass(frozen=True)
class Subject:
    """One way of doing the task. `call` is given each tuple of arguments in turn: no two calls in a row are alike."""

    name: str
    call: Callable[..., object]
    arguments: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """One task. The first subject is ours, the one that the others are compared with."""

    name: str
    subjects: Sequence[Subject]
    facts: dict[str, int | str] | None = None


@dataclass(frozen=True)
class Measurement:
    """Seconds per call of one subject at one task, one figure per window."""

    case: str
    subject: str
    calls_per_window: int
    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Distance between the quartiles as a share of the median: how far the windows disagree."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / self.median


@dataclass(frozen=True)
class Settings:
    rounds: int = 15
    window_s: float = 0.05


def run_window(subject: Subject, calls: int, clock: Clock = time.perf_counter) -> float:
    """Seconds per call over one window."""
    arguments = islice(cycle(subject.arguments), calls)
    gc.collect()
    start = clock()
    deque(starmap(subject.call, arguments), maxlen=0)  # the shortest loop there is; each result is dropped at once
    return (clock() - start) / calls


def calls_for(subject: Subject, window_s: float, clock: Clock = time.perf_counter) -> int:
    """How many calls fill a window; also warms the subject up. At least every argument is used once."""
    calls = len(subject.arguments)
    while (seconds := run_window(subject, calls, clock) * calls) < window_s / 4:
        calls *= 4
    return max(len(subject.arguments), round(calls * window_s / max(seconds, 1e-9)))


def measure(case: Case, settings: Settings, clock: Clock = time.perf_counter) -> list[Measurement]:
    calls = {subject.name: calls_for(subject, settings.window_s, clock) for subject in case.subjects}
    seconds: dict[str, list[float]] = {subject.name: [] for subject in case.subjects}
    turn = deque(case.subjects)
    for _ in range(settings.rounds):
        for subject in turn:
            seconds[subject.name].append(run_window(subject, calls[subject.name], clock))
        turn.rotate(-1)
    return [Measurement(case.name, name, calls[name], tuple(values)) for name, values in seconds.items()]


def paired_ratio(ours: Measurement, other: Measurement) -> float:
    """How many times as long as ours the other takes: the median of the ratios within each round."""
    return statistics.median(b / a for a, b in zip(ours.seconds, other.seconds, strict=True))


def duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(measurements: Sequence[Measurement]) -> list[str]:
    """The lines of one case: best, median, spread, and each rival's time over ours."""
    ours = measurements[0]
    lines = [f"{ours.case}", f"  {'':22}{'best':>10}{'median':>10}{'spread':>8}{'best/ours':>11}{'paired':>8}"]
    for one in measurements:
        ratios = "" if one is ours else f"{one.best / ours.best:>10.2f}x{paired_ratio(ours, one):>7.2f}x"
        lines.append(f"  {one.subject:22}{duration(one.best):>10}{duration(one.median):>10}{one.spread:>7.0%} {ratios}")
    return lines


def run(
    name: str,
    cases: Iterable[Case],
    options: argparse.Namespace,
    packages: Sequence[str],
    clock: Clock = time.perf_counter,
) -> None:
    """Measure the cases, print each as it is done, and write all of it to a file of results."""
    settings = Settings(options.rounds, options.window)
    done: list[tuple[Case, list[Measurement]]] = []
    for case in cases:
        if options.only in case.name:
            done.append((case, measure(case, settings, clock)))
            print("\n".join(table(done[-1][1])), flush=True)
    save(name, done, options, packages)


def save(
    name: str,
    done: Sequence[tuple[Case, Sequence[Measurement]]],
    options: argparse.Namespace,
    packages: Sequence[str],
    more: Mapping[str, object] | None = None,
) -> None:
    """Write the measurements, with all that is needed to judge them, to a file; and `more`, which are not times."""
    content = {
        "benchmark": name,
        **describe_surroundings(packages),
        "settings": {"rounds": options.rounds, "window_s": options.window},
        "results": [result(case, measured[0], one) for case, measured in done for one in measured],
        **(more or {}),
    }
    write(results_path(name, options), content, options)


def results_path(name: str, options: argparse.Namespace) -> Path:
    """Neither a part nor a look ever replaces the whole."""
    is_whole = options.size is Size.FULL and not options.only
    path: Path = options.out or RESULTS / (f"{name}.json" if is_whole else f"{name}-part.json")
    return path


def write(path: Path, content: Mapping[str, object], options: argparse.Namespace) -> None:
    """Every file of results is written here."""
    if options.size is Size.SMOKE:
        print(f"not written, as this was a smoke run: {path.name}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {os.path.relpath(path)}")


def result(case: Case, ours: Measurement, one: Measurement) -> dict[str, Any]:
    return {
        "case": one.case,
        "subject": one.subject,
        "best_s": one.best,
        "median_s": one.median,
        "spread": round(one.spread, 4),
        "best_over_first": round(one.best / ours.best, 3),
        "paired_over_first": round(paired_ratio(ours, one), 3),
        "calls_per_window": one.calls_per_window,
        "windows_s": [float(f"{seconds:.4g}") for seconds in one.seconds],
        **(case.facts or {}),
    }


def describe_surroundings(packages: Sequence[str]) -> dict[str, Any]:
    """Everything that a reader needs to judge the figures; nothing that names the machine or its owner."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}},
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str:
    """The commit that was measured, with a plus sign if the sources differ from it; "unknown" outside of a clone."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def parser(
    description: str | None,
    only: str = "run the cases whose name contains this text",
    *,
    needs_java: bool = False,
) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, help="how often each subject is measured; else the size decides")
    size = made.add_mutually_exclusive_group()
    for name, text in (
        (Size.QUICK, "less of everything: a look, not a claim"),
        (Size.SMOKE, "the least of everything: does it run? Nothing is written"),
    ):
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name, default=Size.FULL, help=text)
    made.add_argument("--only", default="", help=only)
    if not needs_java:
        made.add_argument("--no-java", action="store_true", help="leave out what needs Java")
    made.add_argument("--out", type=Path, help="file for the results (benchmarks/results/NAME.json)")
    made.set_defaults(window=0.0)  # one call is a window, unless read_windows says otherwise
    return made


def read_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, **by_size: Mapping[Size, object]
) -> argparse.Namespace:
    """The options of a run; what the command line does not say is looked up in these tables."""
    options = parser.parse_args(arguments)
    if options.out is not None and options.size is Size.SMOKE:
        parser.error("--smoke writes nothing, so there is no use for --out")
    for name, table in by_size.items():
        if getattr(options, name, None) is None:
            setattr(options, name, table[options.size])
    return options


def read_windows(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, **by_size: Mapping[Size, object]
) -> argparse.Namespace:
    """The options of a benchmark whose windows have many calls."""
    parser.add_argument("--window", type=float, default=None, help="seconds per window; else the size decides")
    usual: dict[str, Mapping[Size, object]] = {"rounds": ROUNDS, "window": WINDOWS_S}
    return read_options(parser, arguments, **usual | by_size)


def quarters(samples: Sequence[int]) -> list[int]:
    """The most that a process held in each quarter of a run, of the samples with a process."""
    held = [each for each in samples if each]
    size = max(1, -(-len(held) // QUARTERS))
    return [max(held[start : start + size]) for start in range(0, len(held), size)]


def run_python(code: str, bytecode: str) -> None:
    """Start this Python with some code and wait for its end: how start-up and imports are timed.

    `bytecode` is a folder for compiled modules, whatever the surroundings say about writing them: packages come with
    theirs when they are installed, a working copy does not.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment)
