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
        "Which nodes there are was not seen.",
        "id:plain:node, host:text, port:plain, rack:text",
    ),
    "groups": _listing(
        "Groups",
        "No groups were seen.",
        "group:text, type:text:kind, state:text, members:number, group_epoch:plain:epoch, "
        "assignment_epoch:plain:assigned, rebalances:number, longest_rebalance_ms:ms:longest, joins:number, "
        "leaves:number, fences:number:thrown out, converged_share:ratio:time at rest, findings:number",
    ),
    "triggers": _listing(
        "What began rebalances, and what they moved",
        "There were no rebalances.",
        "trigger:words:begun by, count:number:rebalances, converged:number, superseded:number, emptied:number, "
        "open:number, longest_ms:ms:longest, partitions_moved:number:partitions moved, "
        "tasks_moved:number:tasks moved",
    ),
    "rebalances": _listing(
        "Rebalances",
        "",
        "group:text, group_epoch:plain:epoch, started:time, duration_ms:ms:took, ended_by:text:ended by, "
        "trigger:words:begun by, who:ids, members_before:number:members before, "
        "members_after:number:after, partitions_moved:number:partitions moved, tasks_moved:number:tasks moved",
    ),
    "task_movement": _listing(
        "What moved",
        "No task moved.",
        "group:text, task:text, kind:words:what, role:text, from_client:id:from, to_client:id:to, started:time, "
        "ended:time, warmup_ms:ms:warm-up, revoke_ms:ms:giving up, group_epoch:plain:epoch",
    ),
    "share_groups": _listing(
        "Share groups",
        "There are no share groups.",
        "group:text, delivered:number:deliveries, redelivered:number:repeated, redelivered_share:ratio:part repeated, "
        "accepted:number, released:number, rejected_or_archived:number:rejected or given up, rejected:number, "
        "lock_expiries:number:locks expired, max_delivery_count:number:most for one record, lag:number",
    ),
    "stalled": _listing(
        "Partitions that stood still",
        "No partition of a share group stood still.",
        "group:text, topic:text, partition:plain, stalled_s:s:stood still, window_start:time:seen at, "
        "start_offset:plain:at offset, lag:number",
    ),
    "poison": _listing(
        "Records that no worker could finish",
        "No record was given up.",
        "group:text, topic:text, partition:plain, offset:plain, window_start:time:in the minute from",
    ),
    "lag": _listing(
        "Lag by group and topic",
        "No lag was measured.",
        "group:text, type:text:kind, topic:text, partitions:number, lag_records:number:behind at the end, "
        "lag_seconds:s:late at the end, max_lag_records:number:most behind, max_at:time:when, "
        "max_lag_seconds:s:most late, stuck:number:partitions stuck",
    ),
    "replicas": _listing(
        "Replicas of the metadata log",
        "Nothing is known of the quorum’s replicas.",
        "replica:plain:node, role:text, lag_offsets_max:number:behind at the end, max_lag_offsets:number:most behind, "
        "max_lag_ms:ms:longest not caught up, max_fetch_age_ms:ms:longest without a fetch",
    ),
    "elections": _listing(
        "Elections",
        "There was no election.",
        "window_start:time:within ten seconds from, leader:plain:new leader, leader_epoch:plain:epoch, "
        "elections:number, leaderless_ms:ms:without a leader, leaderless_is_bound:yes:at most that long",
    ),
    "unseen": _listing(
        "Checks that could not be made",
        "All checks could be made.",
        "rule:text:check, what:text:why it would matter, why:text:what it needs",
    ),
    "inputs": _listing(
        "What was read",
        "What was read is not known.",
        "name:text:what, where:text, rows:number, dropped:number, late:number",
    ),
    "outputs": _listing(
        "Tables that were written",
        "Which tables were written is not known.",
        "name:text:table, rows:number, source:text:made from, format:text, path:text, seconds:s:took",
    ),
}


def listed(name: str, table: Mapping[str, Any]) -> Markup:
    one = LISTINGS[name]
    return listing(name, one.title, table, one.columns, one.nothing)
