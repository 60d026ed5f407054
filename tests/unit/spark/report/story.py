"""Tables of all kinds for the report: four minutes in which a member dies, the broker restarts and records come back.

`tables_of` makes tables of any rows: what a row does not say is null, dates follow from its time. `incidents` tells the
whole story, `healthy` one in which nothing happens, `crowd` one that is far too large to be shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ottla.health.coverage import NEEDS
from ottla.spark.jobs.tables import TABLES
from ottla.spark.records.types import arrow_schema

START_MS = 1_790_000_000_000  # 2026-09-21 14:13:20 UTC
END_MS = START_MS + 245_000
GENERATED_MS = END_MS + 41_000
CLUSTER = "q1Sh-9_2RxaLyDGnb8rWTg"
ORDERS, PAYMENTS = "0rdersAAAAAAAAAAAAAAAA", "paymentsAAAAAAAAAAAAAA"
KILL, TAKEN_OVER = 60.0, 66.3
DOWN, UP = 90.0, 105.2
STORM, CALM = 150.0, 180.0
POISON = {0: [4, 41, 97, 160], 1: [12, 55, 71, 188], 2: [9, 33, 120, 201]}

Rows = dict[str, list[dict[str, Any]]]


def at(second: float) -> int:
    return START_MS + round(second * 1000)


def tables_of(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, Any]:
    """A table of each name with these rows."""
    return {name: _table(name, list(given)) for name, given in rows.items()}


def _table(name: str, given: list[Mapping[str, Any]]) -> Any:
    table = TABLES[name]
    filled = [
        {"cluster": CLUSTER, "source": "records", "run_date": _date(row[table.event_time]), **row} for row in given
    ]
    schema = arrow_schema(table.columns)
    for row in filled:
        assert row.keys() <= set(schema.names), f"{name} has no column {row.keys() - set(schema.names)}"
    return pa.Table.from_pylist(filled, schema=schema)


def _date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def finding(rule: str, sentence: str, since: float, until: float | None = None, **more: Any) -> dict[str, Any]:
    """A row of findings; `until` says that it is over."""
    subject = more.pop("subject", ("group", "billing"))
    return {
        "id": f"{rule}:{subject[1]}",
        "rule": rule,
        "severity": more.pop("severity", "warning"),
        "state": "open" if until is None else "resolved",
        "sentence": sentence,
        "subject_kind": subject[0],
        "subject_name": subject[1],
        "since_ms": at(since),
        "until_ms": None if until is None else at(until),
        "times": 1,
        "tier": "S",
        "evidence": json.dumps(more.pop("evidence", {})),
        "next": json.dumps(more.pop("next", [{"text": "look at its log"}])),
        **more,
    }


# --- groups -----------------------------------------------------------------------------------------------------------


def events(group: str, kind: str, told: Iterable[tuple[float, str, Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    for seq, (second, event, more) in enumerate(told):
        yield {"group": group, "type": kind, "ts": at(second), "seq": seq, "event": event, **more}


def rebalance(group: str, kind: str, epoch: int, start: float, end: float | None, **more: Any) -> dict[str, Any]:
    took = {} if end is None else {"duration_ms": round((end - start) * 1000), "ended": at(end)}
    ended_by = "open" if end is None else "converged"
    return {"group": group, "type": kind, "group_epoch": epoch, "started": at(start), "target_at": at(start + 0.01),
            "ended_by": ended_by, "computing_ms": 10, "source": "records", **took, **more}  # fmt: skip


def joining(members: Iterable[str], first: float) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """Members that come one after the other, each with an epoch of its own."""
    there: list[str] = []
    for epoch, member in enumerate(members, 1):
        second = first + 1.5 * (epoch - 1)
        there.append(member)
        yield second, "member_joined", {"member": member}
        yield second, "epoch_bumped", {"old": str(epoch - 1), "new": str(epoch), "group_epoch": epoch}
        yield second + 0.01, "target_computed", {"group_epoch": epoch, "assignment_epoch": epoch}
        for late, each in enumerate(there, 1):
            yield second + 0.2 * late, "member_epoch", {"member": each, "new": str(epoch)}
    yield first + 1.5 * len(there), "state_changed", {"old": "Reconciling", "new": "Stable"}


def _billing(members: list[str]) -> Iterator[tuple[float, str, dict[str, Any]]]:
    yield 10, "created", {}
    yield from joining(members, 10)
    yield TAKEN_OVER, "member_fenced", {"member": members[1]}
    yield TAKEN_OVER, "epoch_bumped", {"old": "3", "new": "4", "group_epoch": 4}
    yield TAKEN_OVER + 0.01, "target_computed", {"group_epoch": 4, "assignment_epoch": 4}
    yield TAKEN_OVER + 0.4, "member_epoch", {"member": members[0], "new": "4"}
    yield TAKEN_OVER + 0.9, "member_epoch", {"member": members[2], "new": "4"}


def _word_totals() -> Iterator[tuple[float, str, dict[str, Any]]]:
    """One process has all eight tasks, a second takes over four of them, two of these after a warm-up."""
    tasks = [f"{sub}_{part}" for sub in (0, 1) for part in range(4)]
    one, two = ({"role": "active", "process": name} for name in ("process-one", "process-two"))
    yield 12, "created", {}
    yield from joining(["streams-1"], 12)
    yield 12.2, "partition_gained", {"member": "streams-1", "new": json.dumps(tasks), "detail": json.dumps(one)}
    yield 40, "member_joined", {"member": "streams-2"}
    yield 40, "epoch_bumped", {"new": "2", "group_epoch": 2}
    yield 40.01, "target_computed", {"group_epoch": 2, "assignment_epoch": 2}
    yield 41, "partition_revoked", {"member": "streams-1", "old": '["0_2","0_3"]', "detail": json.dumps(one)}
    yield 41.3, "member_epoch", {"member": "streams-1", "new": "2"}
    yield 41.8, "partition_gained", {"member": "streams-2", "new": '["0_2","0_3"]', "detail": json.dumps(two)}
    warm = json.dumps({"role": "warmup", "process": "process-two"})
    yield 41.8, "partition_gained", {"member": "streams-2", "new": '["1_2","1_3"]', "detail": warm}
    yield 41.8, "member_epoch", {"member": "streams-2", "new": "2"}
    yield 70, "epoch_bumped", {"new": "3", "group_epoch": 3}
    yield 70.01, "target_computed", {"group_epoch": 3, "assignment_epoch": 3}
    yield 71, "partition_revoked", {"member": "streams-1", "old": '["1_2","1_3"]', "detail": json.dumps(one)}
    yield 71, "member_epoch", {"member": "streams-1", "new": "3"}
    yield 71.5, "partition_revoked", {"member": "streams-2", "old": '["1_2","1_3"]', "detail": warm}
    yield 71.5, "partition_gained", {"member": "streams-2", "new": '["1_2","1_3"]', "detail": json.dumps(two)}
    yield 71.6, "member_epoch", {"member": "streams-2", "new": "3"}


def group_rows() -> Rows:
    members = ["billing-1", "billing-2", "billing-3"]
    workers = [f"worker-{n}" for n in range(1, 5)]
    told = [
        *events("billing", "consumer", _billing(members)),
        *events("risk-checks", "share", joining(workers, 11)),
        *events("word-totals", "streams", _word_totals()),
        *events("audit", "classic", [(9, "state_changed", {"new": "Stable", "group_epoch": 1, "assignment_epoch": 1})]),
    ]
    moved = {"from_member": "streams-1", "from_process": "process-one", "to_member": "streams-2",
             "to_process": "process-two", "group": "word-totals", "role": "active"}  # fmt: skip
    tasks = [{**moved, "task": task, "kind": "moved", "group_epoch": 2, "started": at(40), "ended": at(41.8),
              "revoke_ms": 1000} for task in ("0_2", "0_3")]  # fmt: skip
    tasks += [{**moved, "task": task, "kind": "warmup_done", "group_epoch": 3, "role": "warmup", "started": at(41.8),
               "ended": at(71.5), "warmup_ms": 29_700} for task in ("1_2", "1_3")]  # fmt: skip
    tasks += [{**moved, "task": task, "kind": "moved", "group_epoch": 3, "started": at(70), "ended": at(71.5),
               "revoke_ms": 1000} for task in ("1_2", "1_3")]  # fmt: skip
    return {
        "group_timeline": told,
        "rebalances": _rebalances(members),
        "stability": _stability(),
        "task_movement": tasks,
    }


def _rebalances(members: list[str]) -> list[dict[str, Any]]:
    joined = {"trigger": "member_joined"}
    found = [
        rebalance("billing", "consumer", n, 8.5 + 1.5 * n, 8.6 + 1.7 * n, members_before=n - 1, members_after=n,
                  partitions_moved=2.0 if n > 1 else 0.0, trigger_members=[members[n - 1]], members_touched=n, **joined)
        for n in (1, 2, 3)
    ]  # fmt: skip
    found.append(
        rebalance("billing", "consumer", 4, TAKEN_OVER, TAKEN_OVER + 0.9, members_before=3, members_after=2,
                  partitions_moved=2.0, trigger="left_or_expired", trigger_members=["billing-2"], members_touched=2)
    )  # fmt: skip
    found += [rebalance("risk-checks", "share", n, 9.5 + 1.5 * n, 9.7 + 1.7 * n, members_before=n - 1, members_after=n,
                        partitions_moved=1.5, **joined) for n in range(1, 5)]  # fmt: skip
    found += [
        rebalance("word-totals", "streams", 1, 12, 12.2, members_before=0, members_after=1, tasks_moved=0, **joined),
        rebalance("word-totals", "streams", 2, 40, 41.8, members_before=1, members_after=2, tasks_moved=2, **joined),
        rebalance("word-totals", "streams", 3, 70, 71.6, members_before=2, members_after=2, tasks_moved=2,
                  trigger="metadata_changed"),
        {"group": "audit", "type": "classic", "group_epoch": 1, "started": at(9), "ended": at(9),
         "ended_by": "converged", "trigger": "member_joined", "members_before": 0, "members_after": 1},
    ]  # fmt: skip
    return found


def _stability() -> list[dict[str, Any]]:
    hour = START_MS // 3_600_000 * 3_600_000
    numbers = {"billing": (4, 3, 0, 1, 3, 7_100), "risk-checks": (4, 4, 0, 0, 4, 5_000),
               "word-totals": (3, 2, 0, 0, 2, 1_800), "audit": (1, 1, 0, 0, 1, None)}  # fmt: skip
    return [
        {"group": group, "window_start": hour, "epochs": epochs, "epochs_without_membership_change": 0, "joins": joins,
         "leaves": leaves, "fences": fences, "distinct_members": many, "short_lived": 0, "median_lifetime_s": 180.0,
         "converged_share": 0.98, "longest_rebalance_ms": longest}
        for group, (epochs, joins, leaves, fences, many, longest) in numbers.items()
    ]  # fmt: skip


# --- shares, lag, quorum ----------------------------------------------------------------------------------------------


def share_rows() -> Rows:
    minute = START_MS // 60_000 * 60_000
    found = []
    for number in range(5):
        start = minute + number * 60_000
        stormy = min(CALM, (start - START_MS) / 1000 + 60) - max(STORM, (start - START_MS) / 1000)
        for partition, poison in POISON.items():
            first = 3_900 if number > 0 else 3_100
            again = round(110 * max(0.0, stormy)) + 18
            found.append(
                {"group": "risk-checks", "topic_id": PAYMENTS, "topic": "payments", "partition": partition,
                 "window_start": start, "delivered": first + again, "redelivered": again, "accepted": first - 4,
                 "released": again, "rejected_or_archived": 4 if number == 1 else 0, "lock_expiries_est": 0,
                 "max_delivery_count": 5 if number == 1 else 3, "count_1": first, "count_2": round(again * 0.7),
                 "count_3": again - round(again * 0.7), "count_4": 0, "count_5plus": 4 if number == 1 else 0,
                 "poison": poison if number == 1 else [], "start_moved": first, "start_offset": first * number,
                 "stalled_s": 22.0 if (number, partition) == (1, 2) else 0.0, "lag": 40 + again // 4}
            )  # fmt: skip
    return {"share_delivery": found}


def lag_rows() -> Rows:
    found = []
    for number in range(25):
        second = 10 * number
        for group, kind, topic, topic_id, count in (
            ("billing", "consumer", "orders", ORDERS, 6),
            ("audit", "classic", "orders", ORDERS, 6),
            ("word-totals", "streams", "lines", "linesAAAAAAAAAAAAAAAAA", 4),
        ):
            for partition in range(count):
                behind = 350 if group == "billing" and partition in (2, 3) and KILL < second + 10 <= 80 else 3
                behind += 140 if DOWN < second <= UP + 10 and group != "audit" else 0
                found.append(
                    {"group": group, "type": kind, "topic": topic, "topic_id": topic_id, "partition": partition,
                     "window_start": at(second), "committed": 33 * second, "high_watermark": 33 * second + behind,
                     "lag_records": behind, "lag_seconds": behind / 33, "rate_in": 33.3, "rate_out": 33.0,
                     "stuck": False, "source": "samples"}
                )  # fmt: skip
    return {"consumer_lag": found}


def quorum_rows() -> Rows:
    found = []
    for number in range(25):
        second = 10 * number
        if DOWN <= second < 100:
            continue
        restarted = second >= 100
        for replica, role in ((1, "leader"), (2, "observer")):
            found.append(
                {"replica": replica, "window_start": at(second), "role": role, "leader": 1,
                 "leader_epoch": 5 if restarted else 4, "lag_offsets_max": 0 if replica == 1 else 3 + number % 4,
                 "lag_offsets_avg": 0.0 if replica == 1 else 1.5, "lag_ms_max": 0 if replica == 1 else 480,
                 "fetch_age_ms_max": None if replica == 1 else 510, "elections": int(second == 100),
                 "leaderless_ms": 15_600 if second == 100 else 0, "leaderless_is_bound": second == 100,
                 "source": "samples"}
            )  # fmt: skip
    return {"quorum_lag": found}


def finding_rows() -> Rows:
    poison = [["payments", part, offset] for part, offsets in POISON.items() for offset in offsets]
    return {
        "findings": [
            finding(
                "member-lost", "billing-2 stopped without leaving the group billing; orders-2, orders-3 made no "
                "progress for 6.3 s", KILL, TAKEN_OVER, subject=("group", "billing"), subject_member="billing-2",
                evidence={"client": "billing-2", "partitions": ["orders-2", "orders-3"], "stood_still_ms": 6300},
                next=[{"text": "read its log", "href": "/groups/billing"},
                      {"text": "shorten the session timeout if this is too long",
                       "command": "ottla configs set group billing consumer.session.timeout.ms=…"}],
            ),
            finding(
                "node-unreachable", "Node 1 (127.0.0.1:9092) was unreachable", DOWN, UP, severity="critical",
                subject=("node", "1"), evidence={"host": "127.0.0.1", "port": 9092, "error": "refused"},
                next=[{"text": "is its process there, and its listener?", "command": "ottla doctor"}],
            ),
            finding(
                "quorum-leader-changed", "Node 1 became leader of the quorum at 2026-09-21 14:15:05 UTC (epoch 5, "
                "15.6 s without a leader)", UP, UP + 1, severity="notice", subject=("quorum", "__cluster_metadata"),
                evidence={"leader": 1, "epoch": 5, "rise": 1, "gap_ms": 15_600},
            ),
            finding(
                "redelivery-storm", "Share group risk-checks redelivered 63 % of its records (9,900 in one minute)",
                STORM, CALM + 2, severity="critical", subject=("group", "risk-checks"),
                evidence={"redelivered": 9900, "delivered": 15_714, "worst": ["payments-0"], "peak_percent": 64},
                next=[{"text": "find out why workers release records", "command": "ottla share describe risk-checks"}],
                tier="R",
            ),
            finding(
                "poison-records", "12 records of risk-checks were archived after 5 deliveries: payments-0 4, 41, 97, "
                "160, payments-1 12, 55, 71, 188, payments-2 9, 33, 120, 201", 35, subject=("group", "risk-checks"),
                evidence={"count": 12, "records": poison, "limit": 5},
                next=[{"text": "open the first",
                       "command": "ottla topics consume payments --partition 0 --from 4 --max 1"}], tier="R",
            ),
            finding(
                "single-voter", "There is one voter: without it no metadata can change", 2, severity="notice",
                subject=("quorum", "__cluster_metadata"), evidence={"voters": 1}, tier="A",
            ),
        ]
    }  # fmt: skip


# --- whole stories ----------------------------------------------------------------------------------------------------


def _unseen(rule: str, need: str) -> dict[str, Any]:
    return {"rule": rule, "missing": [need], "why": NEEDS[need]}


def run_of(**more: Any) -> dict[str, Any]:
    return {
        "v": 1,
        "run_id": "00000000-0000-4000-8000-000000000000",
        "versions": {"ottla": "0.1.0", "spark": "4.2.0", "python": "3.11.7"},
        "clusters": [CLUSTER],
        "range": {"from_ms": START_MS, "to_ms": END_MS},
        "inputs": [
            {"name": "records", "where": "data/__consumer_offsets-*", "rows": 61_004, "dropped": 0, "late": 0},
            {"name": "samples", "where": "data/ottla.observations-0", "rows": 184_220, "dropped": 3, "late": 12},
        ],
        "source": {"group_timeline": "records", "rebalances": "records", "consumer_lag": "samples"},
        "tables": [
            {"name": name, "rows": 10, "path": f"out/tables/{name}", "format": "parquet", "seconds": 1.5}
            for name in TABLES
        ],
        "unseen": [_unseen("auth-failures", "login_failures"), _unseen("warmup-stalled", "group.task_offsets")],
        "seen": {"nodes": [{"id": 1, "host": "127.0.0.1", "port": 9092, "rack": None}], "topics": 5, "partitions": 15,
                 "groups": {"classic": 1, "consumer": 1, "share": 1, "streams": 1}},
        "thresholds": {},
        "notes": [],
        "command": "ottla pipeline run --from-log data --out out",
        **more,
    }  # fmt: skip


def incidents() -> tuple[dict[str, Any], dict[str, Any]]:
    """Tables and run of the whole story."""
    rows = group_rows() | share_rows() | lag_rows() | quorum_rows() | finding_rows()
    return tables_of(rows), run_of()


def healthy() -> tuple[dict[str, Any], dict[str, Any]]:
    """A cluster to which nothing happens."""
    groups = group_rows()
    quiet = {"group_timeline": [row for row in groups["group_timeline"] if row["ts"] < at(30)],
             "rebalances": [row for row in groups["rebalances"] if row["started"] < at(30)],
             "stability": groups["stability"], "task_movement": []}  # fmt: skip
    calm = [row | {"lag_records": 3, "lag_seconds": 0.1} for row in lag_rows()["consumer_lag"]]
    quorum = [row | {"elections": 0, "leaderless_ms": 0, "leader_epoch": 4} for row in quorum_rows()["quorum_lag"]]
    return tables_of({**quiet, "consumer_lag": calm, "quorum_lag": quorum, "findings": []}), run_of()


def crowd(groups: int = 260, minutes: int = 400) -> tuple[dict[str, Any], dict[str, Any]]:
    """More groups, rebalances, findings and points than a page can show."""
    names = [f"team-{n % 17:02}.service-{n:05}" for n in range(groups)]
    rows: Rows = {"rebalances": [], "stability": [], "group_timeline": [], "consumer_lag": [], "findings": []}
    for number, name in enumerate(names):
        for epoch in range(1, 12):
            start = (epoch * 977 + number * 31) % (minutes * 60)
            took = 0.05 * (1 + number % 7) * epoch**2
            ended = "superseded" if (epoch + number) % 5 == 0 else "converged"
            rows["rebalances"].append(
                rebalance(name, "consumer", epoch, start, start + took, trigger="member_joined", members_after=3,
                          ended_by=ended, partitions_moved=3.0)
            )  # fmt: skip
            rows["group_timeline"].append(
                {"group": name, "type": "consumer", "ts": at(start), "seq": epoch, "event": "epoch_bumped",
                 "group_epoch": epoch}
            )  # fmt: skip
        rows["stability"].append({"group": name, "window_start": at(0), "epochs": 11, "joins": 9, "leaves": 8,
                                  "fences": 0, "distinct_members": 3, "converged_share": 0.9})  # fmt: skip
        if number % 3 == 0:
            sentence = f"{name} is falling behind on orders: {number + 1000:,} records"
            rows["findings"].append(finding("lag-growing", sentence, number, subject=("group", name)))
    for step in range(minutes * 6):
        for number, name in enumerate(names[:10]):
            lag = (step * (7 + number)) % (500 * (number + 1))
            rows["consumer_lag"].append({"group": name, "type": "consumer", "topic": "orders", "topic_id": ORDERS,
                                         "partition": 0, "window_start": at(10 * step), "lag_records": lag,
                                         "lag_seconds": lag / 10, "stuck": False})  # fmt: skip
    return tables_of(rows), run_of(range={"from_ms": START_MS, "to_ms": at(60 * minutes)})
