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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import cycle, islice, starmap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"

Clock = Callable[[], float]


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

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=cls.rounds, help="windows per subject (%(default)s)")
        parser.add_argument("--window", type=float, default=cls.window_s, help="seconds per window (%(default)s)")
        parser.add_argument("--only", default="", help="run the cases whose name contains this text")
        parser.add_argument("--out", type=Path, help="file for the results (benchmarks/results/NAME.json)")


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


def run(name: str, cases: Iterable[Case], options: argparse.Namespace, packages: Sequence[str]) -> Path:
    """Measure the cases, print each as it is done, and write all of it to a file of results."""
    settings = Settings(options.rounds, options.window)
    done: list[tuple[Case, list[Measurement]]] = []
    for case in cases:
        if options.only in case.name:
            done.append((case, measure(case, settings)))
            print("\n".join(table(done[-1][1])), flush=True)
    return save(name, done, options, packages)


def save(
    name: str,
    done: Sequence[tuple[Case, Sequence[Measurement]]],
    options: argparse.Namespace,
    packages: Sequence[str],
) -> Path:
    """Write the measurements, with all that is needed to judge them, to a file. A part never replaces the whole."""
    content = {
        "benchmark": name,
        **describe_surroundings(packages),
        "settings": {"rounds": options.rounds, "window_s": options.window},
        "results": [result(case, measured[0], one) for case, measured in done for one in measured],
    }
    path: Path = options.out or RESULTS / (f"{name}-part.json" if options.only else f"{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {os.path.relpath(path)}")
    return path


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


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    Settings.add_to(made)
    return made


def run_python(code: str, bytecode: str) -> None:
    """Start this Python with some code and wait for its end: how start-up and imports are timed.

    `bytecode` is a folder for compiled modules, whatever the surroundings say about writing them: packages come with
    theirs when they are installed, a working copy does not.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment)
