"""The stability of a group in windows of an hour, and the alarm of epochs that climb for no reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

from ottla.health.group_history import WINDOW_MS
from ottla.health.rule import RULES, limits_of
from ottla.spark.jobs.folds.rows import Out, Window
from ottla.spark.jobs.folds.state import NOBODY, Counted, EpochBump, State, TrackedMember
from ottla.spark.jobs.params import DAY_MS, HOUR_MS, Params

__all__ = ["Limits", "count_left", "note_duration", "note_epoch_bump", "roll", "spend", "update_alarm", "window_rows"]

SHORT_MS: Final = 10_000
"""Two heartbeats at Kafka's default interval."""
LIFETIMES: Final = 1_000
RISES: Final = 256
_QUIET: Final = frozenset(("Stable", "Empty"))
_CAUSES: Final = {
    "metadata_changed": "the metadata hash keeps changing back and forth",
    "config_changed": "assignment settings change",
    "assignor_changed": "members request another assignor",
    "regex_changed": "the subscribed pattern matches other topics",
    "partitions_initialized": "share partition states are initialized",
    "unknown": "the records do not show why",
}


class Limits(NamedTuple):
    """The thresholds and durations of the fold."""

    window_ms: int = HOUR_MS
    forget_ms: int = 7 * DAY_MS
    rises: float = 5
    critical_rises: float = 10

    @classmethod
    def of(cls, params: Params) -> Limits:
        limits = limits_of(RULES["epochs-climb"], params.thresholds)
        return cls(params.stability_window_ms, params.state_timeout_ms, limits["rises"], limits["critical_rises"])


def spend(state: State, until_ms: int) -> None:
    """Count the time that has passed in the group's present state."""
    spent_ms = max(0, until_ms - state.state_since_ms)
    if state.counted is not None and state.state != "Empty":
        state.counted.peopled_ms += spent_ms
        state.counted.stable_ms += spent_ms if state.state == "Stable" else 0
    state.state_since_ms = max(until_ms, state.state_since_ms)


def roll(state: State, ts: int, out: Out, window_ms: int) -> Counted:
    """The window of a time. Windows before it become rows if something happened, or the group was not stable."""
    counted = state.counted
    if counted is None:
        counted = state.counted = Counted(ts - ts % window_ms)
        state.state_since_ms = ts
    while ts >= counted.start_ms + window_ms:
        end_ms = counted.start_ms + window_ms
        spend(state, end_ms)
        out.windows += window_rows(state, counted, window_ms, at_ms=end_ms)
        next_ms = ts - ts % window_ms if state.state in _QUIET else end_ms
        counted = state.counted = Counted(next_ms, members=set(state.members))
        state.state_since_ms = next_ms
    return counted


def window_rows(state: State, counted: Counted, window_ms: int, *, at_ms: int) -> Iterator[Window]:
    """The row of a window in which the group existed. A state that has not ended lasts to the window's end."""
    kind = state.type or counted.deleted
    if not kind:
        return
    peopled_ms, stable_ms = counted.peopled_ms, counted.stable_ms
    rest_ms = max(0, counted.start_ms + window_ms - state.state_since_ms)
    if state.state != "Empty":
        peopled_ms += rest_ms
        stable_ms += rest_ms if state.state == "Stable" else 0
    yield Window(
        type=kind,
        window_start=counted.start_ms,
        epochs=counted.epochs,
        epochs_without_membership_change=counted.quiet_epochs,
        joins=counted.joins,
        leaves=counted.leaves,
        fences=counted.fences,
        distinct_members=len(counted.members),
        short_lived=counted.short_lived,
        median_lifetime_s=median(counted.lifetimes_ms) / 1000 if counted.lifetimes_ms else None,
        converged_share=stable_ms / peopled_ms if peopled_ms else None,
        longest_rebalance_ms=_longest_ms(state, counted, at_ms),
        alarm=counted.alarm,
        alarm_reason=counted.alarm_reason,
    )


def _longest_ms(state: State, counted: Counted, at_ms: int) -> int | None:
    running = state.rebalance
    if running is None or (running.type == "classic" and state.source == "records"):
        return counted.longest_ms
    return max(counted.longest_ms or 0, at_ms - running.started)


def note_duration(counted: Counted, duration_ms: int | None) -> None:
    if duration_ms is not None:
        counted.longest_ms = max(counted.longest_ms or 0, duration_ms)


def count_left(counted: Counted, member: TrackedMember, ts: int, *, is_fenced: bool) -> None:
    counted.leaves += 1
    counted.fences += is_fenced
    if member.joined_ms == NOBODY:
        return
    lifetime_ms = max(0, ts - member.joined_ms)
    counted.short_lived += lifetime_ms < SHORT_MS
    if len(counted.lifetimes_ms) < LIFETIMES:
        counted.lifetimes_ms.append(lifetime_ms)


# --- the alarm --------------------------------------------------------------------------------------------------------


def note_epoch_bump(state: State, rise: EpochBump) -> None:
    """Remember a bump for as long as the alarm needs it."""
    rises, from_ms = state.rises, rise.at_ms - WINDOW_MS
    rises.append(rise)
    over = max(0, len(rises) - RISES)
    while rises[over].at_ms <= from_ms:
        over += 1
    del rises[:over]


def update_alarm(state: State, counted: Counted, limits: Limits) -> None:
    """Evaluate the rule epochs-climb at the last bump, and keep the worst result of the window."""
    rises = _unprovoked(state.rises)
    count = sum([each.by for each in rises])
    if count < limits.rises:
        return
    has_converged = any(each.has_converged for each in rises)
    is_critical = count >= limits.critical_rises or not has_converged
    if is_critical or counted.alarm is None:
        counted.alarm = "critical" if is_critical else "warning"
        counted.alarm_reason = _reason(rises, count, has_converged)


def _unprovoked(rises: list[EpochBump]) -> list[EpochBump]:
    """The bumps since members, subscriptions, topology or topics last changed."""
    found: list[EpochBump] = []
    for rise in reversed(rises):
        if not rise.is_same_who or rise.at_ms <= rises[-1].at_ms - WINDOW_MS:
            break
        if not rise.is_warmup_step:
            found.append(rise)
    return found


def _reason(rises: list[EpochBump], count: int, has_converged: bool) -> str:
    trigger = Counter(each.trigger for each in rises).most_common(1)[0][0]
    cause = _CAUSES.get(trigger, _CAUSES["unknown"])
    ends = "" if has_converged else "; no rebalance completed before the next one began"
    return f"{count} epochs in 10 min without a change of members or topics: {cause}{ends}"
