"""The tables that the jobs make: their columns, the key of their rows, and the time to which a row belongs.

All times are milliseconds since 1970. Every table has `cluster`, `source` (records or samples) and `run_date`, the UTC
date of the row's own time, by which it is partitioned on disk. A later row with the same key replaces the earlier one:
a rebalance has a row while it is open and again when it is over.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.spark.records.types import Column, ListOf, Scalar, Type

__all__ = [
    "CONSUMER_LAG",
    "FINDINGS",
    "GROUP_FACTS",
    "GROUP_TIMELINE",
    "QUORUM_LAG",
    "REBALANCES",
    "SHARE_DELIVERY",
    "STABILITY",
    "TABLES",
    "TASK_MOVEMENT",
    "Table",
    "columns",
]

_TYPES: Final[dict[str, Type]] = {
    "text": Scalar("string"),
    "bytes": Scalar("binary"),
    "int": Scalar("int"),
    "long": Scalar("bigint"),
    "double": Scalar("double"),
    "flag": Scalar("boolean"),
    "texts": ListOf(Scalar("string")),
    "longs": ListOf(Scalar("bigint")),
}


def columns(text: str) -> tuple[Column, ...]:
    """Columns written as `name:type`; the types are text, bytes, int, long, double, flag, texts and longs."""
    return tuple(Column(name, _TYPES[kind]) for name, _, kind in (each.partition(":") for each in text.split()))


class Table(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns that identify a row."""
    event_time: str
    """The column with the time to which a row belongs."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)

    @property
    def undated(self) -> tuple[Column, ...]:
        """The columns without the day, which the event time tells."""
        return tuple(each for each in self.columns if each.name != "run_date")


_LAST: Final = "source:text run_date:text"

GROUP_TIMELINE: Final = Table(
    "group_timeline",
    columns(
        "cluster:text group:text ts:long seq:long type:text event:text member:text old:text new:text group_epoch:int "
        f"assignment_epoch:int offset:long detail:text {_LAST}"
    ),
    ("cluster", "group", "ts", "seq"),
    "ts",
)
"""The events of groups.

If an event is about partitions or tasks, `new` (gained) or `old` (revoking, revoked) is a JSON list of them, with one
row for each member and role, and `detail` of a streams group is `{"role": ..., "process": ...}`.
"""

REBALANCES: Final = Table(
    "rebalances",
    columns(
        "cluster:text group:text group_epoch:int type:text started:long target_at:long ended:long duration_ms:long "
        "computing_ms:long revoking_ms:long ended_by:text trigger:text trigger_members:texts members_before:int "
        f"members_after:int partitions_moved:double tasks_moved:int members_touched:int bytes_hint:long {_LAST}"
    ),
    ("cluster", "group", "group_epoch", "started"),
    "started",
)
"""One row for each group epoch (classic groups: generation) that members had to reach.

`started` distinguishes the epochs of a group that was deleted and created again. Moves are counted from one converged
assignment to the next; for a superseded rebalance they are null. In share groups half of what members gained and lost
counts as moved, so there are halves. From records alone, `started` of a classic group is the latest possible time, and
its durations are null.
"""

STABILITY: Final = Table(
    "stability",
    columns(
        "cluster:text group:text window_start:long type:text epochs:int epochs_without_membership_change:int joins:int "
        "leaves:int fences:int distinct_members:int short_lived:int median_lifetime_s:double converged_share:double "
        f"longest_rebalance_ms:long alarm:text alarm_reason:text {_LAST}"
    ),
    ("cluster", "group", "window_start"),
    "window_start",
)
"""One row for each group and hour in which something happened, or in which the group was not stable.

`alarm` is null, warning or critical: the result of the rule epochs-climb.
"""

TASK_MOVEMENT: Final = Table(
    "task_movement",
    columns(
        "cluster:text group:text group_epoch:int task:text role:text from_member:text to_member:text "
        f"from_process:text to_process:text kind:text started:long ended:long warmup_ms:long revoke_ms:long {_LAST}"
    ),
    ("cluster", "group", "group_epoch", "task", "role", "kind", "from_member", "to_member"),
    "started",
)
"""The movements of the tasks of streams groups between one converged assignment and the next."""

SHARE_DELIVERY: Final = Table(
    "share_delivery",
    columns(
        "cluster:text group:text topic_id:text partition:int window_start:long topic:text delivered:long "
        "redelivered:long accepted:long released:long rejected_or_archived:long rejected:long lock_expiries:long "
        "lock_expiries_est:long time_in_lock_ms:long max_delivery_count:int count_1:long count_2:long count_3:long "
        "count_4:long count_5plus:long poison:longs start_offset:long start_moved:long stalled_s:double lag:long "
        f"{_LAST}"
    ),
    ("cluster", "group", "topic_id", "partition", "window_start"),
    "window_start",
)
"""The deliveries of share groups and their outcomes, in windows of a minute, or of ten seconds in short runs.

A delivery counts in the window in which its end was written. The state topic cannot tell a reject from a gap:
`rejected`, `lock_expiries` and `time_in_lock_ms` are known only where the metrics of ottla brokers were sampled, and
only for whole groups, in rows with the partition -1. `lock_expiries_est` is an estimate from the times of records.
`poison` has at most 100 offsets, in the window of their last record. `stalled_s` says for how long nothing had moved at
the end of the window.
"""

QUORUM_LAG: Final = Table(
    "quorum_lag",
    columns(
        "cluster:text replica:int window_start:long role:text leader:int leader_epoch:int lag_offsets_max:long "
        "lag_offsets_avg:double lag_ms_max:long fetch_age_ms_max:long elections:int leaderless_ms:long "
        f"leaderless_is_bound:flag {_LAST}"
    ),
    ("cluster", "replica", "window_start"),
    "window_start",
)
"""The lag of voters and observers behind the leader of the quorum, in windows of ten seconds.

`elections` and `leaderless_ms` are about the cluster and are in the row of every replica. `leaderless_is_bound` says
that there was no leader for at most that long, because there is no sample in between. Without samples, the records give
only elections, in rows of the new leader.
"""

CONSUMER_LAG: Final = Table(
    "consumer_lag",
    columns(
        "cluster:text group:text topic_id:text partition:int window_start:long topic:text type:text committed:long "
        "high_watermark:long lag_records:long lag_seconds:double rate_in:double rate_out:double eta_s:double "
        f"stuck:flag {_LAST}"
    ),
    ("cluster", "group", "topic_id", "topic", "partition", "window_start"),
    "window_start",
)
"""The lag of groups in each partition at the end of windows of ten seconds.

From records, `committed` is exact, and end offsets are known only for partitions whose own log was read.
"""

FINDINGS: Final = Table(
    "findings",
    columns(
        "cluster:text id:text rule:text severity:text state:text sentence:text subject_kind:text subject_name:text "
        "subject_topic:text subject_partition:int subject_member:text since_ms:long until_ms:long precision_ms:long "
        f"times:int tier:text evidence:text next:text {_LAST}"
    ),
    ("cluster", "id"),
    "since_ms",
)
"""The findings of the health rules, one row for each in its last state. `evidence` and `next` are JSON."""

GROUP_FACTS: Final = Table(
    "group_facts",
    columns("cluster:text group:text ts:long seq:long kind:text body:bytes is_open:flag"),
    ("cluster", "group", "ts", "seq"),
    "ts",
)
"""Facts about groups from their records, as JSON. Only the health rules read it, so no run writes it.

In a stream, the next facts about a group replace those that are open.
"""

TABLES: Final[dict[str, Table]] = {
    each.name: each
    for each in (
        GROUP_TIMELINE,
        REBALANCES,
        STABILITY,
        TASK_MOVEMENT,
        SHARE_DELIVERY,
        QUORUM_LAG,
        CONSUMER_LAG,
        FINDINGS,
    )
}
"""All tables by name."""
