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


def test_the_metadata_log_has_a_page_although_nobody_serves_it(browser: Browser):
    data = browser.until("/topics/__cluster_metadata/records.json", lambda data: bool(data["directories"]))
    assert data["leader"] == 1
    assert data["commands"] == [f"ottla dump {data['directories'][0]}/__cluster_metadata-0"]
    check_links(browser, "/topics/__cluster_metadata")
    assert "/topics/__cluster_metadata" in browser.page("/quorum").links
    assert browser.ask("/topics/__cluster_metadata/records/0/1").status == 404
