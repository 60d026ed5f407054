"""A minute of load while old records are deleted; `python -m tools.soak` goes on for longer, and judges what grows."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.soak.growth import judge
from tools.soak.run import run

SECONDS = 60


def test_all_promises_hold_while_old_records_are_deleted(apache_jars: Path, tmp_path: Path) -> None:
    report = run(3, seconds=SECONDS, directory=tmp_path, say=lambda text: sys.stdout.write(f"{text}\n"))
    assert report.violations == []
    assert report.records > 0
    assert all(None not in verdict.found.values() for verdict in judge(report.samples))
    assert all(has_deleted(tmp_path / "nodes" / f"node-{node_id}" / "data" / "load-0") for node_id in report.samples)


def has_deleted(partition: Path) -> bool:
    """Whether its log begins later than it did."""
    return min(int(file.stem) for file in partition.glob("*.log")) > 0
