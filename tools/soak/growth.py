"""Which figures of nodes grow: the last quarter of a run beside its second quarter.

The first does not count, for nodes that were just started still fill their caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

__all__ = ["MEASURES", "Growth", "Measure", "Verdict", "growth", "judge"]

_SAMPLES_MIN: Final = 8
"""Two for each quarter."""
_MIB: Final = 1 << 20


class Measure(NamedTuple):
    """Something that is sampled, and by how much it may grow: by a share of what it was, or by `slack` if that is
    more."""

    name: str
    share: float
    slack: float
    unit: str = ""
    unit_size: int = 1

    def text(self, value: float) -> str:
        return f"{value / self.unit_size:.1f} {self.unit}" if self.unit else f"{value:g} {self.name}"


MEASURES: Final = (
    Measure("memory", 0.05, 4 * _MIB, "MiB", _MIB),
    Measure("open files", 0.05, 8),
    Measure("threads", 0, 2),
    Measure("disk", 0.05, 2 * _MIB, "MiB on disk", _MIB),
)
"""In the order of a `sampling.Sample`."""


class Growth(NamedTuple):
    """Medians of the second and of the last quarter."""

    before: float
    after: float
    is_growing: bool


def growth(measure: Measure, values: Sequence[float]) -> Growth | None:
    """Compare two quarters of values that were sampled at equal intervals; None if they are too few for that."""
    if len(values) < _SAMPLES_MIN:
        return None
    quarter = len(values) // 4
    before, after = median(values[quarter : 2 * quarter]), median(values[-quarter:])
    return Growth(before, after, after - before > max(measure.share * before, measure.slack))


class Verdict(NamedTuple):
    """On one measure, by the ids of nodes."""

    measure: Measure
    found: Mapping[int, Growth | None]

    @property
    def is_flat(self) -> bool:
        return all(each is not None and not each.is_growing for each in self.found.values())

    def __str__(self) -> str:
        if None in self.found.values():
            return f"{self.measure.name}: not known, for the run was too short"
        nodes = [
            f"node {number} {self.measure.text(each.before)} → {self.measure.text(each.after)}"
            f"{' GROWS' if each.is_growing else ''}"
            for number, each in self.found.items()
            if each is not None
        ]
        return f"{self.measure.name}: {'flat' if self.is_flat else 'GROWS'} ({'; '.join(nodes)})"


def judge(samples: Mapping[int, Sequence[Sequence[float]]]) -> list[Verdict]:
    """One verdict for each measure. A sample has a value for each."""
    return [
        Verdict(
            measure, {number: growth(measure, [each[index] for each in of_node]) for number, of_node in samples.items()}
        )
        for index, measure in enumerate(MEASURES)
    ]
