"""The table of states on the page about classic groups is the one that the code goes by."""

from __future__ import annotations

from pathlib import Path

from ottla.core.groups.classic.states import TRANSITIONS

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "classic-groups.md"


def test_table_of_states() -> None:
    rows = "\n".join(f"| {source} | {event} | {target} |" for source, event, target in TRANSITIONS)
    assert f"| in | what happens | then |\n| --- | --- | --- |\n{rows}\n\n" in PAGE.read_text()
