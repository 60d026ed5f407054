"""What a load has measured, as bars of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.cli.latencies import Latencies
    from ottla.cli.load.run import Measured

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MS_NS: Final = 1_000_000
BAR_WIDTH: Final = 40
SECONDS_MAX: Final = 60
LEVELS: Final = "▁▂▃▄▅▆▇█"


def latency_bars(latencies: Latencies) -> Iterator[str]:
    """How the latencies of the writes are spread: a line for each range that has some."""
    if not latencies.count:
        return
    counts = latencies.counts_below([bound * MS_NS for bound in BOUNDS_MS])
    seen = [place for place, count in enumerate(counts) if count]
    yield ""
    for place in range(seen[0], seen[-1] + 1):
        label = f"≤ {BOUNDS_MS[place]} ms" if place < len(BOUNDS_MS) else f"> {BOUNDS_MS[-1]} ms"
        share = counts[place] / latencies.count
        yield f"{label:>9}  {'█' * round(share * BAR_WIDTH):<{BAR_WIDTH}}  {share:6.2%}"


def over_time(measured: Measured) -> Iterator[str]:
    """Records and latency second by second; of a long run, of as many seconds as fit into a line together."""
    if len(measured.seconds) < 2:
        return
    step = -(-len(measured.seconds) // SECONDS_MAX)
    groups = [measured.seconds[place : place + step] for place in range(0, len(measured.seconds), step)]
    counts = [sum(each.writes.count for each in group) / len(group) for group in groups]
    late = [max((each.writes.quantile_ns(0.99) or 0) for each in group) / MS_NS for group in groups]
    yield ""
    yield f"records/s  {_line(counts)}  up to {max(counts):,.0f}"
    yield f"p99 in ms  {_line(late)}  up to {max(late):,.1f}"


def _line(values: list[float]) -> str:
    highest = max(values) or 1.0
    return "".join(LEVELS[min(len(LEVELS) - 1, int(each / highest * len(LEVELS)))] for each in values)
