"""Some pages as the terminal shows them; with OTTLA_REWRITE=1 in the environment the files are written anew."""

import os
from pathlib import Path

import pytest

from ottla import explain
from ottla.explain.render import terminal

GOLDEN = Path(__file__).parents[2] / "golden" / "explain"
PAGES = {
    "share_fetch_request_v2.txt": ["ShareFetch", "2", "request"],
    "streams_group_heartbeat_response_v0.txt": ["StreamsGroupHeartbeat", "0", "response"],
    "describe_quorum_response_v1.txt": ["DescribeQuorum", "1", "response"],
    "streams_group_metadata_value.txt": ["StreamsGroupMetadataValue"],
    "fenced_member_epoch.txt": ["FENCED_MEMBER_EPOCH"],
}


@pytest.mark.parametrize("file", PAGES)
def test_pages_are_as_they_were(file: str):
    (ref,) = explain.find(PAGES[file])
    text = terminal.render(explain.build(ref), 100)
    path = GOLDEN / file
    if os.environ.get("OTTLA_REWRITE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "if the change is wanted, rewrite the files and look at the diff"


def test_no_page_is_kept_that_is_not_compared():
    assert {path.name for path in GOLDEN.glob("*.txt")} == set(PAGES)
