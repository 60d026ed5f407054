"""Runs every conversation in tests/golden/scenarios; `pytest tests/scenarios --rewrite` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.coordinator_kinds import KINDS
from simulation.quorum.scenario import run_quorum_text
from simulation.scenario import run_text

FOLDER = Path(__file__).parent.parent / "golden" / "scenarios"
FILES = sorted(FOLDER.rglob("*.txt"))
NAMES = [path.relative_to(FOLDER).as_posix().removesuffix(".txt") for path in FILES]


_KINDS = {"txn": "transactions", "share_state": "share state"}
"""Folders that are not about groups."""


def kind_of(path: Path) -> str:
    return _KINDS.get(path.parent.name, "groups")


@pytest.mark.parametrize(
    "path", FILES, ids=[path.relative_to(FOLDER).as_posix().removesuffix(".txt") for path in FILES]
)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    is_quorum = path.parent.name == "quorum"
    seen, faults = run_quorum_text(text) if is_quorum else run_text(text, KINDS[kind_of(path)])
    if request.config.getoption("--rewrite", default=False):
        path.write_text(seen)
        text = seen
    assert seen == text
    assert faults == [], "an invariant: of quorums, or that hard state is the same live, replayed, and compacted"
