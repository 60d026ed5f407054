"""The page of the quorum on a real broker."""

from __future__ import annotations

from tests.component.console.links import check_links
from tests.component.console.served import Browser


def test_the_quorum_of_one_node(browser: Browser):
    data = browser.until("/quorum.json", lambda data: bool(data["voters"]))
    assert (data["leader"], data["healthy"], data["majority"], data["margin"]) == (1, [1], 1, 0)
    (voter,) = data["voters"]
    assert (voter["role"], voter["leo"], voter["holds_back"]) == ("leader", data["leo"], False)
    assert voter["dir"]
    assert [each["port"] for each in voter["listeners"]]
    words = browser.page("/quorum").words
    assert "1 of 1 voter is healthy, majority 1: no margin." in words
    assert "No elections observed." in words


def test_links_lead_somewhere(browser: Browser):
    browser.until("/quorum.json", lambda data: bool(data["voters"]))
    check_links(browser, "/quorum")
