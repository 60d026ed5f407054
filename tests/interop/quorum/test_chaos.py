"""Somewhat more than a minute of faults on clusters of one kind and of both, under load of all kinds.

`python -m tools.chaos` goes on for longer. Nodes are killed, stopped, paused and cut off; nothing that a client was
promised is broken, and nodes of each kind lead the quorum and partitions, and coordinate groups.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop.node.brokers import APACHE, OTTLA
from tools.chaos.run import run

SECONDS = 75
SEED = 1631
"""The leader of the quorum is killed, a follower cut off, the leader paused and stopped, then links are cut."""
MIXTURES = {
    "three ottla": (OTTLA, OTTLA, OTTLA),
    "one apache": (OTTLA, OTTLA, APACHE),
    "two apache": (APACHE, APACHE, OTTLA),
}


@pytest.mark.parametrize("kinds", MIXTURES.values(), ids=MIXTURES)
def test_no_promise_is_broken(kinds: tuple[str, ...], apache_jars: Path, tmp_path: Path) -> None:
    report = run(kinds, seconds=SECONDS, seed=SEED, directory=tmp_path, say=lambda text: sys.stdout.write(f"{text}\n"))
    assert report.violations == []
    assert report.never_led == []
    assert report.faults >= 2, "on a machine that has time, it is six or more"
