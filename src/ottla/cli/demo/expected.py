"""Compares the facts of a report with the truth: what the report must say about the demo, and what it must not.

Pure: two dicts in, one line for each expectation out. The demo and the tests run it at their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.cli.demo.plan import AUDIT, TOPICS

__all__ = ["ALLOWED", "Expectation", "expectations"]

Facts = Mapping[str, Any]
Finding = Mapping[str, Any]

STOOD_STILL_MS: Final = (4_000, 15_000)
STORM_COVERED: Final = 0.6
STORM_EXCESS_MS: Final = 30_000
STORM_PEAK_PERCENT: Final = (45, 75)
FENCED_WITHIN_MS: Final = 25_000
"""A node's session runs out first; if it led the quorum, it begins anew with the next leader."""
DOWN_SLACK_MS: Final = 10_000
"""Samples are taken on intervals, and a node needs some time to start."""
MARGIN_SLACK_MS: Final = 20_000
MOVE_WINDOW_MS: Final = (5_000, 60_000)

OF_THE_STORY: Final = frozenset(
    {
        "member-lost",
        "broker-fenced",
        "node-unreachable",
        "under-replicated",
        "no-majority-margin",
        "quorum-leader-changed",
        "redelivery-storm",
        "poison-records",
    }
)
ALLOWED: Final = frozenset(
    {
        "lag-growing",
        "member-waiting",
        "member-stuck-revoking",
        "share-stalled-by-record",
        "voter-lagging",
        "share-window-full",
        "observer-stale",
    }
)
"""Findings that are allowed beside the incidents: their consequences."""
NEVER: Final = ("offline-partitions", "internal-topic-offline", "under-min-isr", "quorum-lost", "rejected-records")


class Expectation(NamedTuple):
    what: str
    holds: bool
    seen: str
    """What the report says."""


def expectations(report: Facts, truth: Facts) -> list[Expectation]:
    """One for each statement that the report must make, or must not make."""
    found: list[Finding] = list(report["findings"])
    checks = [
        *_member_lost(found, truth["member_killed"]),
        *_node(found, truth["node_killed"]),
        *_storm(found, truth["storm"]),
        *_poison(found, truth["poison"]),
        *_silence(found),
    ]
    if any(table["name"] == "task_movement" for table in report["tables"]["outputs"]["rows"]):
        checks.append(_task_move(report["tables"]["task_movement"]["rows"], truth["task_move"]))
    return checks


def _of(found: Iterable[Finding], *rules: str) -> list[Finding]:
    return [each for each in found if each["rule"] in rules]


def _expect(what: str, holds: bool, seen: object) -> Expectation:
    return Expectation(what, holds, "" if holds else str(seen))


def _resolved(each: Finding) -> bool:
    return bool(each["state"] == "resolved")


def _member_lost(found: list[Finding], killed: Facts) -> Iterator[Expectation]:
    lost = _of(found, "member-lost")
    yield _expect("exactly one member was lost", len(lost) == 1, [each["sentence"] for each in lost])
    for each in sorted(lost, key=lambda one: one["evidence"]["client"] != killed["client"])[:1]:
        subject, evidence = each["subject"], each["evidence"]
        who = (subject["name"], evidence["client"], sorted(evidence["partitions"]))
        wanted = (
            killed["group"],
            killed["client"],
            sorted(f"{topic}-{index}" for topic, index in killed["partitions"]),
        )
        yield _expect("the lost member is the killed one, with its partitions", who == wanted, who)
        still_ms = evidence["stood_still_ms"]
        low, high = STOOD_STILL_MS
        yield _expect(
            f"its partitions made no progress for {low / 1000:g} to {high / 1000:g} s",
            low <= still_ms <= high,
            still_ms,
        )
        yield _expect("the lost member is resolved", _resolved(each), each["state"])


def _node(found: list[Finding], killed: Facts) -> Iterator[Expectation]:
    node, moved = killed["node"], killed["led"]
    fenced = [each for each in _of(found, "broker-fenced") if each["subject"]["name"] == str(node)]
    yield _expect(f"node {node} was fenced", len(fenced) == 1, [each["sentence"] for each in fenced])
    for each in fenced[:1]:
        since, until = each["since_ms"], each["until_ms"] or 0
        holds = killed["at_ms"] <= since <= killed["at_ms"] + FENCED_WITHIN_MS
        holds &= killed["restarted_ms"] - DOWN_SLACK_MS <= until <= killed["in_sync_ms"] + DOWN_SLACK_MS
        yield _expect("it was fenced from soon after its death until it was back", holds, (since, until))
        yield _expect("it is no longer fenced", _resolved(each), each["state"])
        evidence = each["evidence"]["moved"]
        yield _expect(f"the {moved} partitions that it led moved", evidence == moved, evidence)
    yield _copies(found, killed)
    yield _margin(found, killed)
    if killed["led_quorum"]:
        yield _elected(found, killed)
    missed = [each for each in _of(found, "broker-fenced", "node-unreachable") if each["subject"]["name"] != str(node)]
    yield _expect("no other node was fenced or unreachable", not missed, [each["sentence"] for each in missed])


def _copies(found: list[Finding], killed: Facts) -> Expectation:
    """Every partition of the workloads has a replica on every node."""
    short = [each for each in _of(found, "under-replicated") if each["subject"]["name"] in TOPICS]
    holds = {each["subject"]["name"] for each in short} == TOPICS.keys()
    holds &= all(_resolved(each) and each["evidence"]["missing"] == [killed["node"]] for each in short)
    return _expect(
        "all topics were under-replicated without this node, and have recovered",
        holds,
        [(each["subject"]["name"], each["evidence"]["missing"], each["state"]) for each in short],
    )


def _margin(found: list[Finding], killed: Facts) -> Expectation:
    latest_ms = killed["restarted_ms"] + MARGIN_SLACK_MS
    times = [(each["since_ms"], each["until_ms"], each["state"]) for each in _of(found, "no-majority-margin")]
    holds = [
        since
        for since, until, state in times
        if since <= latest_ms and (until or since) >= killed["at_ms"] and state == "resolved"
    ]
    return _expect("the quorum had no margin meanwhile", len(holds) == len(times) == 1, times)


def _elected(found: list[Finding], killed: Facts) -> Expectation:
    evidence = [each["evidence"] for each in _of(found, "quorum-leader-changed")]
    holds = any(
        (each["leader"], each["epoch"]) == (killed["leader_after"], killed["epoch_after"])
        and each["epoch"] > killed["epoch_before"]
        for each in evidence
    )
    return _expect(f"node {killed['leader_after']} leads the quorum, in epoch {killed['epoch_after']}", holds, evidence)


def _storm(found: list[Finding], storm: Facts) -> Iterator[Expectation]:
    storms = _of(found, "redelivery-storm")
    names = [each["subject"]["name"] for each in storms]
    yield _expect("one redelivery storm", names == [storm["group"]], names)
    for each in storms[:1]:
        since, until = each["since_ms"], each["until_ms"] or each["since_ms"]
        covered = min(until, storm["to_ms"]) - max(since, storm["from_ms"])
        share = covered / (storm["to_ms"] - storm["from_ms"])
        yield _expect(f"it covers at least {STORM_COVERED:.0%} of the real one", share >= STORM_COVERED, f"{share:.0%}")
        excess = max(storm["from_ms"] - since, until - storm["to_ms"])
        yield _expect("it is not much longer than the real one", excess <= STORM_EXCESS_MS, f"{excess} ms more")
        low, high = STORM_PEAK_PERCENT
        peak = each["evidence"]["peak_percent"]
        yield _expect(f"at its peak {low} to {high} % were redeliveries", low <= peak <= high, peak)


def _poison(found: list[Finding], poison: list[list[Any]]) -> Iterator[Expectation]:
    given_up = sorted(tuple(record) for each in _of(found, "poison-records") for record in each["evidence"]["records"])
    wanted = sorted(map(tuple, poison))
    yield _expect(f"exactly the {len(wanted)} poison records were archived", given_up == wanted, given_up)


def _silence(found: list[Finding]) -> Iterator[Expectation]:
    about_audit = [each["sentence"] for each in found if each["subject"]["name"] == AUDIT]
    yield _expect(f"there is no finding about {AUDIT}", not about_audit, about_audit)
    is_open = [each["sentence"] for each in found if each["severity"] == "critical" and not _resolved(each)]
    yield _expect("no critical finding is open at the end", not is_open, is_open)
    for rule in NEVER:
        yield _expect(f"no {rule}", not _of(found, rule), [each["sentence"] for each in _of(found, rule)])
    others = sorted({each["rule"] for each in found} - OF_THE_STORY - ALLOWED - set(NEVER))
    yield _expect("no other unexpected findings", not others, others)


def _task_move(rows: list[Facts], move: Facts) -> Expectation:
    """The tasks that the first process lost are those that moved in the table, all to the second one."""
    lost = set().union(*move["before"].values()) - set(move["after"][min(move["after"])])
    early, late = MOVE_WINDOW_MS
    moved = [
        row
        for row in rows
        if (row["group"], row["role"], row["kind"]) == (move["group"], "active", "moved")
        and move["at_ms"] - early <= row["started"] <= move["at_ms"] + late
    ]
    tasks, receivers = {row["task"] for row in moved}, {row["to_process"] for row in moved}
    holds = tasks == lost and len(receivers) == 1 and not receivers & {row["from_process"] for row in moved}
    what = f"{', '.join(sorted(lost))} moved to the second process of {move['group']}"
    return _expect(what, holds, sorted((row["task"], row["to_process"]) for row in moved))
