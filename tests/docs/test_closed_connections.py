"""The page about the node has every cause for which a connection is closed."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.broker.network.request import CloseCause

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "node.md"


def test_the_page_lists_every_cause_for_which_a_connection_is_closed() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Closed connections")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == list(CloseCause)
