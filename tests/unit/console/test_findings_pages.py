"""Findings on pages: order, filters, pages of a long list, rules that are switched off."""

from __future__ import annotations

from ottla.console.pages.findings import PAGE, RULE_PAGE
from ottla.console.watcher import ClusterWatcher
from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import LogDir
from tests.unit.console.seen import context_of, loaded, shown, watcher_of

DISKS = [LogDir(node=number, path="/d<a>ta", error="KAFKA_STORAGE_ERROR") for number in range(5)]
FULL = LogDir(node=9, path="/full", total=1_000, usable=90, size=1)


def test_a_long_list_goes_on_where_it_stopped():
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        content = loaded(PAGE, context_of(watcher_of(FULL, *DISKS), {"limit": "2", "after": after}))
        seen += [each.subject.name for each in content.data.findings]
        after = content.next
    assert seen == [*(f"{number}:/d<a>ta" for number in range(5)), "9:/full"]


def test_cards_have_evidence_and_names_are_text():
    html = shown(PAGE, context_of(watcher_of(FULL, *DISKS)))
    assert "4 more like this" in html
    assert "<a>ta" not in html
    assert "<dt>free</dt>" in html


def test_a_rule_shows_each_of_its_findings_and_the_thresholds_in_force():
    own = ClusterWatcher("h:1", {}, SampleEvaluator({"disk-filling.usable_percent": 20}, ["lag-stuck"]))
    context = context_of(own, rule="disk-filling")
    assert loaded(RULE_PAGE, context).data.thresholds["usable_percent"] == 20
    assert loaded(RULE_PAGE, context).data.defaults["usable_percent"] == 10
    muted = shown(RULE_PAGE, context_of(own, rule="lag-stuck"))
    assert "muted" in muted
    assert shown(RULE_PAGE, context_of(watcher_of(*DISKS), rule="log-dir-offline")).count("<article") == 5
