"""The areas of a cluster in the report, each with a light of its own, and the rules of each area."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["AREAS", "Area", "area_of", "light"]


class Area(NamedTuple):
    id: str
    title: str
    about: str
    """An explanation for readers who do not know Kafka."""
    rules: frozenset[str]
    without_rows: str
    """The light if rules were checked but there are no rows."""


def _area(name: str, title: str, about: str, rules: str, *, without_rows: str = "none") -> Area:
    return Area(name, title, about, frozenset(rules.split()), without_rows)


AREAS: Final = (
    _area(
        "cluster", "Nodes and partitions",
        "Nodes are the servers of the cluster. Topics are split into partitions, and each partition is "
        "stored on one or more nodes.",
        "offline-partitions internal-topic-offline under-min-isr under-replicated node-unreachable broker-fenced "
        "log-dir-offline disk-filling features-not-finalised hanging-transaction auth-failures "
        "refused-requests open-listener",
        without_rows="ok",
    ),
    _area(
        "quorum", "Quorum",
        "The quorum is the set of controllers that agree on every metadata change. One of them leads, the others "
        "replicate its log; without a leader, metadata cannot change.",
        "no-controller quorum-lost no-majority-margin voter-lagging high-watermark-stuck quorum-leader-changed "
        "election-storm even-voters single-voter",
        without_rows="unseen",
    ),
    _area(
        "groups", "Groups",
        "A group is a set of clients, its members, that share the work of reading topics. When members join or "
        "leave, the work is reassigned: a rebalance.",
        "epochs-climb member-churn member-lost member-stuck-revoking member-waiting static-member-duplicate",
    ),
    _area(
        "streams", "Streams groups",
        "The instances of a Kafka Streams application. Their work is divided into tasks, which move between "
        "processes together with their state.",
        "streams-not-ready topology-mismatch topology-description-missing topology-description-failed warmup-stalled",
    ),
    _area(
        "share", "Share groups",
        "Groups that use a topic as a queue: each record is delivered to one worker, and redelivered if that "
        "worker does not complete it.",
        "share-stalled-by-record share-start-not-moving share-window-full redelivery-storm poison-records "
        "rejected-records lock-expiries",
    ),
    _area(
        "lag", "Lag",
        "Lag is how far a group is behind the end of the log, in records and in time.",
        "lag-growing lag-stuck lag-near-retention offset-lost lag-no-members",
    ),
    _area(
        "data", "Observation",
        "Whether the data of this report has gaps.",
        "observer-stale",
    ),
)  # fmt: skip
_BY_RULE: Final = {rule: area.id for area in AREAS for rule in area.rules}


def area_of(rule: str) -> str:
    return _BY_RULE.get(rule, "cluster")


def light(area: Area, findings: Sequence[Mapping[str, Any]], *, has_rows: bool, is_observed: bool) -> str:
    """The worst severity that is open, else `recovered` if something was wrong; `none` if the area is empty, `unseen`
    if it was not observed."""
    for severity in ("critical", "warning"):
        if any(each["severity"] == severity and each["state"] == "open" for each in findings):
            return severity
    if any(each["severity"] != "notice" for each in findings):
        return "recovered"
    if any(each["state"] == "open" for each in findings):
        return "notice"
    if findings or has_rows:
        return "ok"
    return area.without_rows if is_observed else "unseen"
