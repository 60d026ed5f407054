"""The pages of findings and rules."""

from __future__ import annotations

from ottla.health import RULES
from tests.component.console.links import check_links
from tests.component.console.served import Browser


def test_findings_and_all_rules(browser: Browser):
    data = browser.until("/findings.json", lambda data: bool(data["findings"]))
    assert [each["rule"] for each in data["findings"]] == ["single-voter"]
    assert data["by_severity"] == {"critical": 0, "warning": 0, "notice": 1}
    assert [each["name"] for each in data["rules"]] == list(RULES)
    words = browser.page("/findings").words
    assert "is the only voter" in words
    assert "why it cannot be checked" in words


def test_findings_are_narrowed(browser: Browser):
    browser.until("/findings.json", lambda data: bool(data["findings"]))
    for query, count in (
        ("severity=notice", 1),
        ("severity=critical", 0),
        ("state=open", 1),
        ("state=resolved", 0),
        ("q=ONLY+VOTER", 1),
        ("q=elsewhere", 0),
    ):
        assert len(browser.twin(f"/findings.json?{query}")["data"]["findings"]) == count, query
    assert browser.ask("/findings.json?severity=bad").status == 400


def test_a_rule_with_its_thresholds_and_findings(browser: Browser):
    data = browser.until("/findings/single-voter.json", lambda data: bool(data["findings"]))
    assert (data["condition"], data["thresholds"]) == ("there is one voter", {})
    assert data["findings"][0]["evidence"] == {"voters": 1}
    words = browser.page("/findings/disk-filling").words
    assert "--rule disk-filling.usable_percent=10" in words
    assert "A full disk takes its directory, or the node, offline." in words


def test_a_rule_that_cannot_be_checked_says_why(browser: Browser):
    unseen = [each for each in browser.twin("/findings.json")["data"]["rules"] if each["unseen"]]
    assert "lock-expiries" in [each["name"] for each in unseen]
    data = browser.twin("/findings/lock-expiries.json")["data"]
    assert data["unseen"]["needs"] == ["share_metrics"]
    assert data["unseen"]["why"] in browser.page("/findings/lock-expiries").words


def test_an_unknown_rule(browser: Browser):
    answer = browser.ask("/findings/single-voters")
    assert answer.status == 404
    assert "/findings/single-voter" in answer.links
    assert "no-controller" in answer.words


def test_cards_have_evidence_and_links_lead_somewhere(browser: Browser):
    browser.until("/overview.json", lambda data: bool(data["findings"]))
    assert '<dl class="evidence"><div><dt>voters</dt><dd>1</dd></div></dl>' in browser.page("/").text
    for path in ("/", "/findings", "/findings/single-voter"):
        check_links(browser, path)
