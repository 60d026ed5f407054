"""Targets that are computed outside the event loop: those of large groups, and those of assignors of one's own.

A small target is computed in the course of the heartbeat that finds it due. A larger one would hold up all other
requests, so the heartbeat is answered with the old target, and the new one becomes a *job* of the group:

==========  ==========================================================================================================
gathering   what the assignor must know is put together, a part at a time
computing   the effect `ComputeTarget` has the assignor run outside; its answer comes back in parts
writing     the records of a part are written and committed, then those of the next; the last record is that of the
            assignment epoch. Until it is there everybody sees the old target (`ModernGroup.withhold`)
==========  ==========================================================================================================

Requests are served between any two parts, so the group may change. A job that is *superseded*, because the group has
another epoch or other members by now, is dropped, and another one begins. After `DROPS_MAX` of them in a row the next
job is finished whatever comes, for the epoch that it was begun with: members that have left are skipped, and those that
have come since wait for the next target. Otherwise a group that never stands still would never get one.

A job fails if its assignor fails or its records cannot be written. The group keeps its target, the log says why, and
the next job waits for `RETRY_MS`.

Soft: all of it. After a restart the next heartbeat begins a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import count
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Result, Timer
from ottla.core.groups.assignors import Target
from ottla.core.groups.assignors.computation import Choice, read_targets
from ottla.wire.keyed import KeyedRecord

__all__ = ["DROPS_MAX", "PAUSE_MS", "RETRY_MS", "ComputeTarget", "TargetJob", "TargetJobs", "TargetSource"]

log = logging.getLogger(__name__)

DROPS_MAX: Final = 2
RETRY_MS: Final = 10_000
PAUSE_MS: Final = 1
"""Between two parts, so that requests get their turn."""
_DEADLINE: Final = "target"

GroupType = TypeVar("GroupType", bound=Any)  # a ModernGroup, which has a job itself


class ComputeTarget(NamedTuple):
    """The effect: run an assignor with these parts; the outcome's value is the parts of its answer."""

    family: str
    group_id: str
    number: int
    """Of the job."""
    choice: Choice
    parts: Sequence[bytes]


class _Written(NamedTuple):
    """The records of a part are committed, or cannot be."""

    family: str
    group_id: str
    number: int


class TargetSource(NamedTuple, Generic[GroupType]):
    """What a kind of group has of its own."""

    choose: Callable[[GroupType, Context], Choice]
    """Which assignor is asked."""
    parts: Callable[[GroupType, Choice, Context], Iterator[bytes]]
    """What it must know. The group may change between two parts."""
    target_record: Callable[[str, str, Target], KeyedRecord]
    """Group id, member id, target."""
    target_epoch_record: Callable[[str, int, int], KeyedRecord]
    """Group id, assignment epoch, wall clock."""


class _Records(NamedTuple):
    """To be written next."""

    records: Sequence[KeyedRecord]
    are_last: bool = False


_Steps = Generator[ComputeTarget | _Records | None, Outcome | None, None]
"""An effect, records, or nothing but a pause. An effect is answered with its outcome."""


class TargetJob:
    """A target on its way."""

    def __init__(self, number: int, group: Any, steps: _Steps) -> None:  # noqa: ANN401 - a ModernGroup
        self.number = number
        self.steps = steps
        self.epoch: int = group.group_epoch
        """When the job was begun."""
        self.members_version: int = group.members_version
        self.is_last_chance: bool = group.target_drop_count >= DROPS_MAX
        """Whether it is finished though the group has changed."""
        self.is_waiting = False
        """For its effect, or for its records to be committed."""
        self.has_last_records = False

    def is_superseded(self, group: Any) -> bool:  # noqa: ANN401
        is_as_it_was = (group.group_epoch, group.members_version) == (self.epoch, self.members_version)
        return not is_as_it_was and not self.is_last_chance


class TargetJobs(Generic[GroupType]):
    """The jobs of one family."""

    def __init__(self, family: str, source: TargetSource[GroupType], get: Callable[[str], GroupType | None]) -> None:
        """`get` finds a group of this kind."""
        self._family = family
        self._source = source
        self._get = get
        self._numbers = count(1)

    def key(self, group_id: str) -> tuple[str, ...]:
        return (self._family, _DEADLINE, group_id, "")

    @property
    def deadlines(self) -> dict[str, Callable[[Any, Context], Result]]:
        return {_DEADLINE: self.expire}

    def timers(self, group: GroupType, context: Context) -> list[Timer]:
        """What a heartbeat adds that finds a target due: a job begins as soon as its records are written."""
        if group.target_job is not None or context.now_ms < group.target_retry_at_ms:
            return []
        return [Timer(self.key(group.group_id), context.now_ms)]

    def expire(self, key: tuple[str, str, str, str], context: Context) -> Result:
        """Begin a job, or go on with it."""
        group = self._get(key[2])
        if group is None:
            return NOTHING
        if group.target_job is None:
            if group.group_epoch <= group.assignment_epoch or not group.members:
                return NOTHING
            number = next(self._numbers)
            group.target_job = TargetJob(number, group, self._steps(group, number, context))
        job: TargetJob = group.target_job
        return NOTHING if job.is_waiting else self._go_on(group, job, None, context)

    def concerns(self, subject: object) -> bool:
        """Whether `settled` is to be told of this subject."""
        return isinstance(subject, ComputeTarget | _Written)

    def settled(self, subject: ComputeTarget | _Written, outcome: Outcome, context: Context) -> Result:
        group = self._get(subject.group_id)
        job: TargetJob | None = None if group is None else group.target_job
        if group is None or job is None or job.number != subject.number:
            return NOTHING
        job.is_waiting = False
        if not outcome.is_ok:
            return self._fail(group, job, outcome, context)
        if isinstance(subject, ComputeTarget):
            return self._go_on(group, job, outcome, context)
        if job.has_last_records:
            group.target_job, group.target_drop_count = None, 0
            return NOTHING
        return self._pause(group, context)

    # --- a job --------------------------------------------------------------------------------------------------------

    def _steps(self, group: GroupType, number: int, context: Context) -> _Steps:
        epoch = group.group_epoch
        choice = self._source.choose(group, context)
        parts = []
        for part in self._source.parts(group, choice, context):
            parts.append(part)
            yield None
        outcome = yield ComputeTarget(self._family, group.group_id, number, choice, parts)
        assert outcome is not None
        answers: list[bytes] = outcome.value
        for part in answers[:-1]:
            yield _Records(self._records(group, part))
        last = self._records(group, answers[-1]) if answers else []
        epoch_record = self._source.target_epoch_record(group.group_id, epoch, context.wall_ms)
        yield _Records([*last, epoch_record], are_last=True)

    def _records(self, group: GroupType, part: bytes) -> list[KeyedRecord]:
        """What is written of a part of the answer. Members may have left since."""
        changed = [
            (member_id, target)
            for member_id, target in read_targets(part)
            if member_id in group.members and target != group.targets.get(member_id)
        ]
        group.withhold(member_id for member_id, _ in changed)
        return [self._source.target_record(group.group_id, member_id, target) for member_id, target in changed]

    def _go_on(self, group: GroupType, job: TargetJob, outcome: Outcome | None, context: Context) -> Result:
        if job.is_superseded(group):
            return self._drop(group, job, context)
        try:
            step = job.steps.send(outcome)
        except Exception:
            log.exception("group %s: its target cannot be computed", group.group_id)
            return self._end(group, context.now_ms + RETRY_MS)
        if step is None:
            return self._pause(group, context)
        job.is_waiting = True
        if isinstance(step, ComputeTarget):
            return Result(effects=(step,))
        job.has_last_records = step.are_last
        return Result(step.records, after=_Written(self._family, group.group_id, job.number), is_atomic=False)

    def _pause(self, group: GroupType, context: Context) -> Result:
        return Result(timers=(Timer(self.key(group.group_id), context.now_ms + PAUSE_MS),))

    def _drop(self, group: GroupType, job: TargetJob, context: Context) -> Result:
        """Another one follows."""
        group.target_drop_count += 1
        log.info(
            "group %s: dropped the target of epoch %d, the group has changed (epoch %d)",
            group.group_id,
            job.epoch,
            group.group_epoch,
        )
        group.target_job = None
        return self._pause(group, context)

    def _fail(self, group: GroupType, job: TargetJob, outcome: Outcome, context: Context) -> Result:
        log.warning(
            "group %s keeps its target of epoch %d, that of epoch %d cannot be had: %s",
            group.group_id,
            group.assignment_epoch,
            job.epoch,
            outcome.message or outcome.error.name,
        )
        return self._end(group, context.now_ms + RETRY_MS)

    def _end(self, group: GroupType, retry_at_ms: int) -> Result:
        group.target_job, group.target_retry_at_ms = None, retry_at_ms
        return NOTHING
