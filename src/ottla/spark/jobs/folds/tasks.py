"""The movements of the tasks of a streams group between two converged assignments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from ottla.spark.jobs.folds.moves import Move, missing
from ottla.spark.jobs.folds.rows import Movement, Rebalance
from ottla.spark.jobs.folds.state import NOTHING, Assignments, Handovers, Held, State, TrackedMember, Warmup

__all__ = ["movements", "note_handovers", "note_left", "note_warmups"]

_standby_tasks: Final = attrgetter("standby")


# --- while members take up and let go ---------------------------------------------------------------------------------


def note_handovers(state: State, revoking: Held, revoked: Held, gained: Held) -> None:
    """A member has to give up tasks, has given up others, and got others."""
    ts, handovers = state.ts, state.handovers
    for task in revoking:
        handovers.revoking_ms[task] = ts
    for task in revoked:
        handovers.released_ms[task] = ts
    for task in gained:
        handovers.gained_ms[task] = ts


def note_warmups(state: State, member: TrackedMember, warmup: frozenset[str]) -> list[Movement]:
    """A member is about to get these warm-ups. Returns those that begin."""
    _end_warmups(state, member, member.warmup - warmup)
    return [_begin_warmup(state, member, task) for task in sorted(warmup - member.warmup)]


def note_left(state: State, member: TrackedMember) -> None:
    note_handovers(state, NOTHING, member.active | member.pending, NOTHING)
    _end_warmups(state, member, member.warmup)


def _begin_warmup(state: State, member: TrackedMember, task: str) -> Movement:
    state.warmups.append(Warmup(task, member.id, member.process, state.epoch, state.ts))
    return Movement(
        group_epoch=state.epoch,
        task=task,
        role="warmup",
        kind="warmup_started",
        to_member=member.id,
        to_process=member.process,
        started=state.ts,
    )


def _end_warmups(state: State, member: TrackedMember, tasks: frozenset[str]) -> None:
    for warmup in state.warmups:
        if warmup.member == member.id and warmup.task in tasks and warmup.ended_ms is None:
            warmup.ended_ms = state.ts


# --- when an assignment has arrived everywhere ------------------------------------------------------------------------


def movements(
    state: State,
    over: Rebalance,
    moved: list[Move],
    before: Mapping[str, Assignments],
    after: Mapping[str, Assignments],
) -> Iterator[Movement]:
    """The rows of a finished rebalance. The state keeps what the next rows need."""
    yield from _moved(state, over, moved, before, after)
    warmed = {(each.task, each.process or each.member) for each in state.warmups}
    yield from _standbys(over, before, after, warmed)
    yield from _ended_warmups(state, over, after)
    state.handovers = Handovers()


def _moved(
    state: State,
    over: Rebalance,
    moved: list[Move],
    before: Mapping[str, Assignments],
    after: Mapping[str, Assignments],
) -> Iterator[Movement]:
    handovers = state.handovers
    for move in sorted(moved):
        process = after[move.taker].process
        began, released = handovers.revoking_ms.get(move.what), handovers.released_ms.get(move.what)
        ended = handovers.gained_ms.get(move.what, over.ended)
        yield Movement(
            group_epoch=over.group_epoch,
            task=move.what,
            role="active",
            kind="promoted" if _holds(before, "standby", move.what, move.taker, process) else "moved",
            from_member=move.giver,
            to_member=move.taker,
            from_process=before[move.giver].process,
            to_process=process,
            started=_first(began, released, ended, over.started),
            ended=ended,
            revoke_ms=None if began is None or released is None else released - began,
        )


def _first(*times: int | None) -> int:
    return next(each for each in times if each is not None)


def _standbys(
    over: Rebalance, before: Mapping[str, Assignments], after: Mapping[str, Assignments], warmed: set[tuple[str, str]]
) -> Iterator[Movement]:
    for member, got in sorted(missing(before, after, _standby_tasks).items()):
        process = after[member].process
        for task in sorted(got):
            if (task, process or member) in warmed or _holds(before, "standby", task, member, process):
                continue
            was_active = _holds(before, "active", task, member, process)
            kind = "demoted" if was_active else "standby_added"
            source = member if was_active else None
            yield _standby(over, task, kind, source, member, before, after)
    for member, gone in sorted(missing(after, before, _standby_tasks).items()):
        process = before[member].process
        for task in sorted(gone):
            if not any(_holds(after, role, task, member, process) for role in ("active", "standby")):
                yield _standby(over, task, "standby_removed", member, None, before, after)


def _standby(
    over: Rebalance,
    task: str,
    kind: str,
    giver: str | None,
    taker: str | None,
    before: Mapping[str, Assignments],
    after: Mapping[str, Assignments],
) -> Movement:
    return Movement(
        group_epoch=over.group_epoch,
        task=task,
        role="standby",
        kind=kind,
        from_member=giver,
        to_member=taker,
        from_process=_process(before, giver) or _process(after, giver),
        to_process=_process(after, taker),
        started=over.started,
        ended=over.ended,
    )


def _process(placed: Mapping[str, Assignments], member: str | None) -> str | None:
    found = placed.get(member) if member is not None else None
    return found.process if found else None


def _ended_warmups(state: State, over: Rebalance, after: Mapping[str, Assignments]) -> Iterator[Movement]:
    running: list[Warmup] = []
    for warmup in state.warmups:
        if warmup.ended_ms is None or _holds(after, "warmup", warmup.task, warmup.member, warmup.process):
            warmup.ended_ms = None
            running.append(warmup)
            continue
        roles = ("active", "standby")
        is_done = any(_holds(after, role, warmup.task, warmup.member, warmup.process) for role in roles)
        yield Movement(
            group_epoch=over.group_epoch,
            task=warmup.task,
            role="warmup",
            kind="warmup_done" if is_done else "warmup_dropped",
            from_member=warmup.member,
            to_member=warmup.member if is_done else None,
            from_process=warmup.process,
            to_process=warmup.process if is_done else None,
            started=warmup.started_ms,
            ended=warmup.ended_ms,
            warmup_ms=max(0, warmup.ended_ms - warmup.started_ms),
        )
    state.warmups = running


def _holds(placed: Mapping[str, Assignments], role: str, task: str, member: str, process: str | None) -> bool:
    """Whether a member, or another of its process, holds a task in a role: the process has the state."""
    if process:
        return any(each.process == process and task in _of(each, role) for each in placed.values())
    found = placed.get(member)
    return found is not None and task in _of(found, role)


def _of(placed: Assignments, role: str) -> frozenset[str]:
    if role == "active":
        return placed.active
    return placed.standby if role == "standby" else placed.warmup
