"""Computing targets: what assignors are told, which of them is asked, and when there is a further step to take.

The sticky assignor is asked when something has changed that it looks at, which raises the group's epoch. The highly
available one also looks at how far copies of state are behind, which changes all the time; each time that this lets
something happen is a *step*, with an epoch of its own. To know cheaply when that may be, `Progress` keeps what was open
after the last target: a heartbeat looks for a step only if a copy that was waited for has caught up, a warm-up has
become free, it is known at last whether a member reports, or a setting has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.core.groups.streams import highly_available, sticky
from ottla.core.groups.streams.configuration import Configured
from ottla.core.groups.streams.highly_available import UNTOLD_LAG, Copy, Limits, Plan
from ottla.core.groups.streams.members import Metadata, Offsets, Report, StreamsGroupMember
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.settings import StreamsGroupSettings
from ottla.core.groups.streams.tasks import NO_TASKS, Task, Tasks
from ottla.core.groups.streams.topology import Topology
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest

__all__ = ["Candidate", "Progress", "is_step", "may_go_on", "next_report", "plan_targets", "progress_of"]

_LATEST: Final = -2
"""What clients report as the offset of a task that they run. Other negative offsets say that they do not know."""
_REPORTS_FROM_VERSION: Final = 1


class Candidate(NamedTuple):
    """A member as an assignor sees it."""

    metadata: Metadata
    previous: Tasks | None
    """What it was to have; None if no target has been computed since it joined."""
    report: Report


class Progress(NamedTuple):
    """What was open when a target was last looked for."""

    epoch: int
    """Of the target."""
    settings_version: int
    waiting: frozenset[Copy]
    lacks_warmups: bool
    unheard: frozenset[str]
    """Members of which it was not known whether they report."""


def _offsets(given: Any) -> Offsets | None:  # noqa: ANN401 - TaskOffset of a request
    if given is None:
        return None
    return {(each.subtopology_id, each.partition): each.offset for each in given}


def next_report(member: StreamsGroupMember | None, request: StreamsGroupHeartbeatRequest, api_version: int) -> Report:
    """What is known with a heartbeat. Clients that report do so with every join."""
    known = member.report if member is not None else Report()
    offsets, ends = _offsets(request.task_offsets), _offsets(request.task_end_offsets)
    is_made = known.is_made
    if offsets is not None:
        is_made = True
    elif api_version < _REPORTS_FROM_VERSION or request.member_epoch == 0:
        is_made = False
    return Report(is_made, known.offsets if offsets is None else offsets, known.ends if ends is None else ends)


# --- targets ----------------------------------------------------------------------------------------------------------


def plan_targets(
    candidates: Mapping[str, Candidate],
    topology: Topology,
    configured: Configured,
    settings: StreamsGroupSettings,
    holders: Holders,
) -> Plan:
    """The target of each member; nobody gets anything while the topology is not ready."""
    if not configured.is_ready:
        return Plan(dict.fromkeys(candidates, NO_TASKS))
    stateful = frozenset(each.subtopology_id for each in topology.subtopologies if each.state_changelog_topics)
    asked = (configured.task_counts, stateful, settings.num_standby_replicas, settings.rack_tags)
    if settings.assignor_name == sticky.NAME:
        return Plan(sticky.assign([_for_sticky(*each) for each in candidates.items()], *asked))
    ends = _furthest_ends(candidates)
    members = [
        _for_sticky(member_id, each)._replace(reports_lags=each.report.is_made, lags=_lags(each.report, ends))
        for member_id, each in candidates.items()
    ]
    limits = Limits(settings.num_warmup_replicas, settings.acceptable_recovery_lag)
    return highly_available.plan(members, *asked, limits, holders)


def _for_sticky(member_id: str, candidate: Candidate) -> sticky.MemberInput:
    metadata, previous = candidate.metadata, candidate.previous
    return sticky.MemberInput(
        member_id,
        metadata.process_id,
        NO_TASKS if previous is None else previous,
        {tag.key: tag.value for tag in metadata.client_tags},
        frozenset(candidate.report.offsets) if previous is None else frozenset(),
    )


def _furthest_ends(candidates: Mapping[str, Candidate]) -> dict[Task, int]:
    found: dict[Task, int] = {}
    for candidate in candidates.values():
        for task, end in candidate.report.ends.items():
            found[task] = max(end, found.get(task, end))
    return found


def _lags(report: Report, ends: Offsets) -> dict[Task, int]:
    lags = {task: _lag(report, task, ends) for task in report.offsets}
    return {task: lag for task, lag in lags.items() if lag is not None}


def _lag(report: Report, task: Task, ends: Offsets) -> int | None:
    """How far a member's state of a task is behind, by its own account of the end or else by that of others; None if it
    has none."""
    offset = report.offsets.get(task, -1)
    if offset < 0:
        return 0 if offset == _LATEST else None
    end = report.ends.get(task, ends.get(task))
    return UNTOLD_LAG if end is None else max(0, end - offset)


# --- steps ------------------------------------------------------------------------------------------------------------


def progress_of(
    plan: Plan, epoch: int, candidates: Mapping[str, Candidate], settings: StreamsGroupSettings
) -> Progress:
    """What is open after a target of this epoch."""
    unheard = frozenset(member_id for member_id, each in candidates.items() if each.report.is_made is None)
    return Progress(epoch, settings.version, plan.waiting, plan.lacks_warmups, unheard)


def may_go_on(
    progress: Progress | None,
    epoch: int,
    candidates: Mapping[str, Candidate],
    settings: StreamsGroupSettings,
    holders: Holders,
) -> bool:
    """Whether it is worth while to look for a step from the target of this epoch."""
    if progress is None or progress.epoch != epoch or progress.settings_version != settings.version:
        return True
    if any(each in candidates and candidates[each].report.is_made is not None for each in progress.unheard):
        return True
    if progress.lacks_warmups and sum(map(len, holders.warmup.values())) < settings.num_warmup_replicas:
        return True
    return bool(progress.waiting) and _has_caught_up(progress.waiting, candidates, settings.acceptable_recovery_lag)


def _has_caught_up(waiting: frozenset[Copy], candidates: Mapping[str, Candidate], acceptable_lag: int) -> bool:
    by_process: dict[str, list[Task]] = {}
    for task, process_id in waiting:
        by_process.setdefault(process_id, []).append(task)
    ends = _furthest_ends(candidates)
    for each in candidates.values():
        for task in by_process.get(each.metadata.process_id, ()):
            lag = _lag(each.report, task, ends)
            if lag is not None and lag <= acceptable_lag:
                return True
    return False


def is_step(previous: Mapping[str, Tasks], targets: Mapping[str, Tasks]) -> bool:
    """Whether these differ enough to be worth an epoch: standbys alone are not moved about."""
    nothing = NO_TASKS
    return any(
        (before.active, before.warmup) != (after.active, after.warmup)
        for before, after in ((previous.get(each, nothing), target) for each, target in targets.items())
    )
