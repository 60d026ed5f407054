"""Compares two files of results, older one first, and marks what has become more than 5 % slower.

    python -m benchmarks.compare OLD.json NEW.json

The rivals' code does not change with ours, so what they gained or lost between the two runs is the machine's doing. It
is shown as "rivals", and our change is judged after dividing it out.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runner import duration

SLOWER = 1.05
OURS = "ottla"


@dataclass(frozen=True)
class Change:
    """One of our figures, before and after. `machine` is what became of the rivals' time in the same case."""

    case: str
    subject: str
    old_s: float
    new_s: float
    machine: float

    @property
    def raw(self) -> float:
        return self.new_s / self.old_s

    @property
    def own(self) -> float:
        return self.raw / self.machine

    @property
    def slower(self) -> bool:
        return self.own > SLOWER


Figures = dict[tuple[str, str], float]


def figures(content: dict[str, Any]) -> Figures:
    return {(row["case"], row["subject"]): row["best_s"] for row in content["results"]}


def changes(old: Figures, new: Figures) -> list[Change]:
    return [
        Change(case, subject, old[case, subject], seconds, machine_change(case, old, new))
        for (case, subject), seconds in new.items()
        if subject.startswith(OURS) and (case, subject) in old
    ]


def machine_change(case: str, old: Figures, new: Figures) -> float:
    """The median of the rivals' changes in this case; 1 if it has no rival in both files."""
    ratios = [new[key] / old[key] for key in new if key in old and key[0] == case and not key[1].startswith(OURS)]
    return statistics.median(ratios) if ratios else 1.0


def lines(found: Sequence[Change]) -> list[str]:
    width = max((len(f"{one.case}, {one.subject}") for one in found), default=0)
    head = f"{'':{width}}{'old':>10}{'new':>10}{'change':>9}{'rivals':>9}{'own':>9}"
    return [head] + [
        f"{f'{one.case}, {one.subject}':{width}}{duration(one.old_s):>10}{duration(one.new_s):>10}"
        f"{one.raw - 1:>+9.1%}{one.machine - 1:>+9.1%}{one.own - 1:>+9.1%}{'  SLOWER' if one.slower else ''}"
        for one in found
    ]


def only_in_one(old: Figures, new: Figures) -> list[str]:
    missing = [f"only in the old file: {case}, {subject}" for case, subject in old if (case, subject) not in new]
    added = [f"only in the new file: {case}, {subject}" for case, subject in new if (case, subject) not in old]
    return missing + added


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m benchmarks.compare OLD.json NEW.json", file=sys.stderr)
        return 2
    contents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments]
    old, new = map(figures, contents)
    found = changes(old, new)
    print("old: {} of {}   new: {} of {}".format(*(one[key] for one in contents for key in ("commit", "measured_at"))))
    if contents[0]["machine"]["processor"] != contents[1]["machine"]["processor"]:
        print("The two runs were made on different processors: only the last column means something.")
    print("\n".join(lines(found) + only_in_one(old, new)))
    print(f"{sum(one.slower for one in found)} of {len(found)} figures are more than {SLOWER - 1:.0%} slower")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
