"""Each expectation can fail: a report that says all that it has to, spoilt in one way at a time."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ottla.cli.demo.expected import expectations

Report = dict[str, Any]

TRUTH: dict[str, Any] = {
    "member_killed": {"group": "billing", "client": "billing-2", "partitions": [["orders", 2], ["orders", 3]]},
    "node_killed": {
        "node": 1, "led": 9, "led_quorum": True, "at_ms": 100_000, "restarted_ms": 145_000, "ready_ms": 146_000,
        "in_sync_ms": 147_000, "leader_after": 3, "epoch_before": 1, "epoch_after": 2,
    },
    "storm": {"group": "risk-checks", "from_ms": 200_000, "to_ms": 230_000},
    "poison": [["payments", 0, 7], ["payments", 2, 9]],
    "task_move": {
        "group": "word-totals", "at_ms": 40_000,
        "before": {"word-totals-1": ["0_0", "0_1"], "word-totals-2": []},
        "after": {"word-totals-1": ["0_0"], "word-totals-2": ["0_1"]},
    },
}  # fmt: skip


def finding(rule: str, name: str, since_ms: int, until_ms: int, **evidence: Any) -> dict[str, Any]:
    return {
        "rule": rule, "severity": "critical", "state": "resolved", "subject": {"kind": "group", "name": name},
        "since_ms": since_ms, "until_ms": until_ms, "evidence": evidence, "sentence": f"{rule} of {name}",
    }  # fmt: skip


def move(task: str, **other: Any) -> dict[str, Any]:
    usual = {"group": "word-totals", "role": "active", "kind": "moved", "started": 41_000}
    return usual | {"task": task, "from_process": "A", "to_process": "B"} | other


def good() -> Report:
    return {
        "findings": [
            finding("member-lost", "billing", 60_000, 67_000, client="billing-2", partitions=["orders-3", "orders-2"],
                    stood_still_ms=7_000),
            finding("node-unreachable", "1", 101_000, 112_000),
            finding("broker-fenced", "1", 112_000, 146_000, moved=9, lost_a_copy=13),
            *(finding("under-replicated", topic, 112_000, 147_000, missing=[1])
              for topic in ("orders", "payments", "lines", "__consumer_offsets")),
            finding("no-majority-margin", "quorum", 103_000, 146_000),
            finding("quorum-leader-changed", "quorum", 103_000, 103_000, leader=3, epoch=2),
            finding("redelivery-storm", "risk-checks", 200_000, 240_000, peak_percent=63),
            finding("poison-records", "risk-checks", 20_000, 110_000, records=[["payments", 2, 9], ["payments", 0, 7]]),
        ],
        "tables": {
            "task_movement": {"rows": [move("0_1"), move("0_0", started=300_000)]},
            "outputs": {"rows": [{"name": "task_movement"}]},
        },
    }  # fmt: skip


def of(report: Report, rule: str) -> dict[str, Any]:
    return next(each for each in report["findings"] if each["rule"] == rule)


def add(report: Report, rule: str, name: str, **other: Any) -> None:
    report["findings"].append(finding(rule, name, 1, 2) | other)


def test_a_report_that_says_all_that_it_has_to():
    checked = expectations(good(), TRUTH)
    assert [each for each in checked if not each.holds] == []
    assert len(checked) >= 18


def spoil(rule: str, **change: Any) -> Callable[[Report], None]:
    def change_it(report: Report) -> None:
        for key, value in change.items():
            target = of(report, rule)
            (target if key in target else target["evidence"])[key] = value

    return change_it


def without(rule: str) -> Callable[[Report], None]:
    return lambda report: report["findings"].remove(of(report, rule))


def moved(*rows: dict[str, Any]) -> Callable[[Report], None]:
    return lambda report: report["tables"]["task_movement"].update(rows=list(rows))


SPOILT: list[tuple[str, Callable[[Report], None]]] = [
    ("exactly one member", without("member-lost")),
    ("exactly one member", lambda report: report["findings"].append(of(report, "member-lost"))),
    ("the killed one", spoil("member-lost", client="billing-1")),
    ("the killed one", spoil("member-lost", partitions=["orders-2"])),
    ("made no progress", spoil("member-lost", stood_still_ms=3_999)),
    ("made no progress", spoil("member-lost", stood_still_ms=15_001)),
    ("is resolved", spoil("member-lost", state="open")),
    ("was fenced", without("broker-fenced")),
    ("until it was back", spoil("broker-fenced", since_ms=99_999)),
    ("until it was back", spoil("broker-fenced", since_ms=125_001)),
    ("until it was back", spoil("broker-fenced", until_ms=157_001)),
    ("until it was back", spoil("broker-fenced", until_ms=134_999)),
    ("no longer fenced", spoil("broker-fenced", state="open")),
    ("partitions that it led", spoil("broker-fenced", moved=8)),
    ("were under-replicated", without("under-replicated")),
    ("were under-replicated", spoil("under-replicated", missing=[1, 2])),
    ("were under-replicated", spoil("under-replicated", state="open")),
    ("had no margin", without("no-majority-margin")),
    ("had no margin", spoil("no-majority-margin", since_ms=165_001, until_ms=170_000)),
    ("had no margin", spoil("no-majority-margin", state="open")),
    ("no other node", lambda report: add(report, "broker-fenced", "2")),
    ("no other node", lambda report: add(report, "node-unreachable", "3")),
    ("leads the quorum", without("quorum-leader-changed")),
    ("leads the quorum", spoil("quorum-leader-changed", epoch=1)),
    ("leads the quorum", spoil("quorum-leader-changed", leader=2)),
    ("one redelivery storm", without("redelivery-storm")),
    ("one redelivery storm", lambda report: add(report, "redelivery-storm", "other", evidence={"peak_percent": 50})),
    ("it covers", spoil("redelivery-storm", since_ms=213_000)),
    ("not much longer", spoil("redelivery-storm", until_ms=260_001)),
    ("at its peak", spoil("redelivery-storm", peak_percent=44)),
    ("at its peak", spoil("redelivery-storm", peak_percent=76)),
    ("poison records", spoil("poison-records", records=[["payments", 0, 7]])),
    ("poison records", spoil("poison-records", records=[["payments", 0, 7], ["payments", 2, 9], ["payments", 1, 1]])),
    ("no rejected-records", lambda report: add(report, "rejected-records", "risk-checks")),
    ("no under-min-isr", lambda report: add(report, "under-min-isr", "orders")),
    ("no offline-partitions", lambda report: add(report, "offline-partitions", "orders")),
    ("no finding about audit", lambda report: add(report, "lag-growing", "audit")),
    ("no critical finding is open", lambda report: add(report, "voter-lagging", "quorum", state="open")),
    ("no other unexpected findings", lambda report: add(report, "member-churn", "billing")),
    ("moved to the second process", moved()),
    ("moved to the second process", moved(move("0_0"))),
    ("moved to the second process", moved(move("0_1"), move("0_0"))),
    ("moved to the second process", moved(move("0_1", started=30_000))),
    ("moved to the second process", moved(move("0_1", from_process="B"))),
]


@pytest.mark.parametrize(("what", "change"), SPOILT)
def test_each_of_them_is_noticed(what: str, change: Callable[[Report], None]):
    report = copy.deepcopy(good())
    change(report)
    broken = [each for each in expectations(report, TRUTH) if not each.holds]
    assert any(what in each.what for each in broken), broken
    assert all(each.seen for each in broken)


def test_consequences_are_allowed():
    report = good()
    for rule in ("lag-growing", "member-waiting", "share-stalled-by-record", "observer-stale"):
        add(report, rule, "billing")
    assert all(each.holds for each in expectations(report, TRUTH))


def test_a_node_that_did_not_lead_the_quorum_changes_no_leader():
    report = good()
    without("quorum-leader-changed")(report)
    killed = TRUTH["node_killed"] | {"led_quorum": False, "leader_after": 2, "epoch_after": 1}
    assert all(each.holds for each in expectations(report, TRUTH | {"node_killed": killed}))


def test_without_tables_nothing_is_said_of_tasks():
    report = good()
    report["tables"] = {"task_movement": {"rows": []}, "outputs": {"rows": []}}
    checked = expectations(report, TRUTH)
    assert all(each.holds for each in checked)
    assert not any("second process" in each.what for each in checked)
