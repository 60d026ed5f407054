"""The tables and columns that the page shows, and their titles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.draw.markup import Markup
from ottla.spark.report.html_table import Field, fields, listing

__all__ = ["LISTINGS", "listed"]


class Listing(NamedTuple):
    title: str
    nothing: str
    """The text if there are no rows."""
    columns: tuple[Field, ...]


def _listing(title: str, nothing: str, columns: str) -> Listing:
    """Columns as `name:form:title`, separated by commas."""
    return Listing(title, nothing, fields(*(each.strip() for each in columns.split(","))))


LISTINGS: Final = {
    "nodes": _listing(
        "Nodes",
        "No nodes were observed.",
        "id:plain:node, host:text, port:plain, rack:text",
    ),
    "topics": _listing(
        "Topics that groups read",
        "No end offsets of topics were observed.",
        "topic:text, partitions:number, records:number:records written, per_second:number:per second, "
        "peak_per_second:number:most per second, groups:number",
    ),
    "groups": _listing(
        "Groups",
        "No groups were observed.",
        "group:text, type:text:kind, state:text, members:number, group_epoch:plain:epoch, "
        "assignment_epoch:plain:assigned, rebalances:number, longest_rebalance_ms:ms:longest, joins:number, "
        "leaves:number, fences:number:fenced, converged_share:ratio:time stable, findings:number",
    ),
    "triggers": _listing(
        "Rebalance triggers and moves",
        "There were no rebalances.",
        "phase:text:group was, trigger:words:trigger, count:number:rebalances, converged:number, "
        "superseded:number, emptied:number, open:number, longest_ms:ms:longest, "
        "partitions_moved:number:partitions moved, tasks_moved:number:tasks moved",
    ),
    "rebalances": _listing(
        "Rebalances",
        "",
        "group:text, group_epoch:plain:epoch, started:time, duration_ms:ms:took, ended_by:text:ended by, "
        "phase:text:group was, trigger:words:trigger, who:ids, members:text, "
        "partitions_moved:number:partitions moved, tasks_moved:number:tasks moved",
    ),
    "task_movement": _listing(
        "Task moves",
        "No tasks moved.",
        "group:text, task:text, kind:words:what, role:text, from_client:id:from, to_client:id:to, started:time, "
        "ended:time, warmup_ms:ms:warm-up, revoke_ms:ms:revocation, group_epoch:plain:epoch",
    ),
    "share_groups": _listing(
        "Share groups",
        "There are no share groups.",
        "group:text, delivered:number:deliveries, redelivered:number:redeliveries, "
        "redelivered_share:ratio:redelivered, accepted:number, released:number, "
        "rejected_or_archived:number:rejected or archived, rejected:number, "
        "lock_expiries:number:locks expired, mean_lock_ms:ms:mean time in lock, "
        "max_delivery_count:number:highest delivery count, lag:number",
    ),
    "stalled": _listing(
        "Stalled partitions",
        "No partition of a share group stalled.",
        "group:text, topic:text, partition:plain, stalled_s:s:stalled for, window_start:time:seen at, "
        "start_offset:plain:at offset, lag:number",
    ),
    "poison": _listing(
        "Poison records",
        "No records reached the delivery limit.",
        "group:text, topic:text, partition:plain, offset:plain, window_start:time:in the window from",
    ),
    "lag": _listing(
        "Lag by group and topic",
        "No lag data.",
        "group:text, type:text:kind, topic:text, partitions:number, lag_records:number:records behind, "
        "lag_seconds:s:time behind, max_lag_records:number:most records behind, max_at:time:when, "
        "max_lag_seconds:s:most time behind, stuck:number:stuck partitions",
    ),
    "replicas": _listing(
        "Replicas of the metadata log",
        "No quorum data.",
        "replica:plain:node, role:text, lag_offsets_max:number:records behind, "
        "max_lag_offsets:number:most records behind, max_lag_ms:ms:longest not caught up, "
        "max_fetch_age_ms:ms:longest without a fetch",
    ),
    "elections": _listing(
        "Elections",
        "There were no elections.",
        "window_start:time:in the window from, leader:plain:new leader, leader_epoch:plain:epoch, "
        "elections:number, leaderless_ms:ms:without a leader, leaderless_is_bound:yes:upper bound",
    ),
    "unseen": _listing(
        "Rules that could not be checked",
        "All rules could be checked.",
        "rule:text, what:text:why it matters, why:text:requirement",
    ),
    "inputs": _listing(
        "Inputs",
        "Inputs unknown.",
        "name:text:what, where:text, rows:number, dropped:number, late:number",
    ),
    "outputs": _listing(
        "Tables written",
        "Tables unknown.",
        "name:text:table, rows:number, source:text:made from, format:text, path:text, seconds:s:took",
    ),
}


def listed(name: str, table: Mapping[str, Any]) -> Markup:
    one = LISTINGS[name]
    return listing(name, one.title, table, one.columns, one.nothing)
