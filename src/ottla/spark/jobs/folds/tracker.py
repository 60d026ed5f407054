"""The tracker of a group: takes what happens to it, step by step, and makes the rows of its history.

Records and samples are given as the same steps (`join`, `leave`, `bump_epoch`, `target`, `current` and so on), so a
rebalance is the same for both sources. Records of one write have the same time, and the state of the group between
two of them means nothing; so the state is noted when the time moves on, or at the end (`settle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

import msgspec

from ottla.health.facts import GroupMember
from ottla.spark.jobs.folds import tasks, windows
from ottla.spark.jobs.folds.moves import moves, placed
from ottla.spark.jobs.folds.rows import STATE_CHANGED, Event, Out, Rebalance
from ottla.spark.jobs.folds.state import NOBODY, Counted, EpochBump, Handovers, Holding, State, TrackedMember

__all__ = ["LEAVE_GROUP_STATIC_MEMBER_EPOCH", "LEFT", "SEQ_BITS", "GroupTracker", "listed"]

LEAVE_GROUP_STATIC_MEMBER_EPOCH: Final = -2
"""The member epoch of a static member that has left and may return."""
STABLE: Final = 0
REVOKING: Final = 1

JOINED: Final = "member_joined"
LEFT: Final = "left_or_expired"
FENCED: Final = "member_fenced"
_RANK: Final = {
    cause: rank
    for rank, cause in enumerate((
        JOINED, FENCED, LEFT, "subscription_changed", "topology_changed", "assignor_changed", "config_changed",
        "metadata_changed", "regex_changed", "partitions_initialized",
    ))
}  # fmt: skip
"""What may cause an epoch bump. Of several causes the one that comes first here is named."""
_CHANGES: Final = {JOINED: 1, FENCED: -1, LEFT: -1}
"""How many members a cause adds."""
UNKNOWN: Final = "unknown"
CAUSES: Final = 1_000
TRIGGER_MEMBERS: Final = 100
RECENT_HASHES: Final = 32
LISTS: Final = 512
SEQ_BITS: Final = 16
"""The events of a record are numbered in the last bits of their place, which begins with its offset."""

_LAST_OF_RECORD: Final = (1 << SEQ_BITS) - 1
_to_json: Final = msgspec.json.Encoder().encode


def listed(things: Iterable[str]) -> str:
    """Names as a JSON list, tasks and partitions in the order of their numbers."""
    if isinstance(things, frozenset) and len(things) == 1:
        return _to_json([*things]).decode()
    return _to_json(sorted(things, key=lambda each: (len(each), each))).decode()


class GroupTracker:
    """One group, up to the last step of its history."""

    __slots__ = (
        "_lists", "_window_end_ms", "counted", "limits", "name_of", "out", "state", "told",
    )  # fmt: skip

    def __init__(
        self, state: State, limits: windows.Limits, name_of: Callable[[frozenset[str]], Iterable[str]] | None = None
    ) -> None:
        self.state = state
        self.limits = limits
        self.name_of = name_of
        self._lists: dict[frozenset[str], str] = {}
        """Some sets of partitions, as `_listed` tells them."""
        self.out = Out()
        self.told: dict[str, GroupMember] = {}
        """Members as the last fact tells them; those that have changed since are missing."""
        self.counted: Counted = state.counted or Counted(0)
        self._window_end_ms = self.counted.start_ms + limits.window_ms if state.counted else NOBODY

    # --- time ---------------------------------------------------------------------------------------------------------

    def at(self, ts: int) -> None:
        """The next steps happened at this time."""
        state = self.state
        if ts != state.ts:
            if state.ts != NOBODY:
                self.settle()
            if ts >= self._window_end_ms:
                self.counted = windows.roll(state, ts, self.out, self.limits.window_ms)
                self._window_end_ms = self.counted.start_ms + self.limits.window_ms
                if state.state == "Empty" and ts - state.ts >= self.limits.forget_ms:
                    self._forget()
            state.ts = ts
            state.next_seq = 0

    def _forget(self) -> None:
        """Forget old assignments, which no new member takes over."""
        self.state.converged = None
        self.state.rises, self.state.warmups = [], []
        self.state.handovers = Handovers()

    def settle(self) -> None:
        """Note the state of the group, after all steps of one time."""
        if self.state.rebalance is not None and not self.state.reconciling:
            self._converge_or_empty()
        self.note_state()

    def close(self) -> None:
        """The history ends here, perhaps between two records of one write."""
        if self.state.rebalance is not None and not self.state.members:
            self._end("emptied")
        self.note_state()

    def note_state(self) -> None:
        state = self.state
        if state.source == "records" and state.type and (name := self._state_name()) != state.state:
            state.next_seq = (state.offset << SEQ_BITS) + _LAST_OF_RECORD
            self.set_state(name)

    def set_state(self, name: str) -> None:
        """The group is in this state now."""
        old = self.state.state
        if name != old:
            windows.spend(self.state, self.state.ts)
            self.state.state = name
            self.event(STATE_CHANGED, None, old, name)

    def _state_name(self) -> str:
        state = self.state
        if not state.members:
            return "Empty"
        if state.type in ("classic", "share"):
            return "Stable"
        if state.type == "streams" and not self._is_ready():
            return "NotReady"
        if state.epoch > state.assignment_epoch:
            return "Assigning"
        return "Reconciling" if state.reconciling or state.away else "Stable"

    def _is_ready(self) -> bool:
        state = self.state
        if state.validated_topology_epoch is None:  # the beginning of the history is lost
            return True
        known = state.topology_epoch if state.topology_epoch is not None else state.validated_topology_epoch
        return state.validated_topology_epoch == known != NOBODY

    def event(
        self, event: str, member: str | None = None, old: str | None = None, new: str | None = None,
        detail: str | None = None,
    ) -> None:  # fmt: skip
        state = self.state
        seq, epoch, assignment, offset = state.next_seq, state.epoch, state.assignment_epoch, state.offset
        state.next_seq = seq + 1
        self.out.events.append(
            Event(
                state.type, state.ts, seq, event, member, old, new,
                epoch if epoch >= 0 else None, assignment if assignment >= 0 else None,
                offset if offset >= 0 else None, detail,
            )
        )  # fmt: skip

    def _listed(self, things: frozenset[str]) -> str:
        """Partitions with the names of their topics. The same few sets recur."""
        found = self._lists.get(things)
        if found is None:
            if len(self._lists) == LISTS:
                self._lists.clear()
            found = self._lists[things] = listed(things if self.name_of is None else self.name_of(things))
        return found

    # --- the group ----------------------------------------------------------------------------------------------------

    def set_type(self, kind: str, detail: str | None = None) -> None:
        """The group has this type, and did not exist before, or had another one: its history begins here."""
        if self.state.type:
            self.delete("replaced")  # makes a new state
        self.state.type = kind
        self.event("created", None, None, kind, detail)

    def delete(self, detail: str | None = None) -> None:
        """The group was deleted: forget everything but the position in the log."""
        state = self.state
        for member in list(state.members):
            self.leave(member, detail="deleted")
        if state.rebalance is not None:
            self._end("emptied")
        self.event("deleted", None, state.type, None, detail)
        if state.state != "Empty":
            windows.spend(state, state.ts)
        self.counted.deleted = state.type
        fresh = State(source=state.source, partition=state.partition, offset=state.offset, ts=state.ts)
        fresh.next_seq, fresh.counted, fresh.state_since_ms = state.next_seq, state.counted, state.state_since_ms
        self.state = fresh

    def set_topology(self, epoch: int) -> None:
        state = self.state
        old, state.topology_epoch = state.topology_epoch, epoch
        if old is not None and old != epoch:
            self.event("topology_changed", None, str(old), str(epoch))
            self.cause("topology_changed")
            state.has_new_who = True

    def cause(self, kind: str, member: str | None = None) -> None:
        """A possible reason for the next bump of the epoch."""
        if len(self.state.causes) < CAUSES:
            self.state.causes.append((kind, member))

    # --- members ------------------------------------------------------------------------------------------------------

    def join(self, member: TrackedMember, *, is_new: bool = True) -> None:
        """A member joins. If it is not new, it had joined before the history began."""
        state = self.state
        state.members[member.id] = member
        state.reconciling += 1
        state.has_new_who = True
        self.counted.members.add(member.id)
        if is_new:
            self.counted.joins += 1
            self.cause(JOINED, member.id)
        self.event("member_joined", member.id, None, member.client, self._about(member, is_new))

    def _about(self, member: TrackedMember, is_new: bool) -> str:
        about: dict[str, object] = {"host": member.host}
        if member.instance is not None:
            about["instance"] = member.instance
        if member.process:
            about["process"] = member.process
        before = self._same_before(member) if is_new else None
        if before is not None:
            about["same_instance"] = before
        if not is_new:
            about["first_seen"] = True
        return _to_json(about).decode()

    def _same_before(self, member: TrackedMember) -> str | None:
        """The member id under which the same static member last held something."""
        if member.instance is None:
            return None
        found = (name for name, each in (self.state.converged or {}).items() if each.instance == member.instance)
        return next((name for name in found if name not in self.state.members), None)

    def leave(self, member_id: str, detail: str = LEFT) -> None:
        state = self.state
        member = state.members.pop(member_id, None)
        if member is None:
            return
        self.told.pop(member_id, None)
        state.reconciling -= not member.is_reconciled
        state.away -= member.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
        state.has_new_who = True
        limit_ms = member.rebalance_timeout_ms
        late_ms = state.ts - member.pending_since_ms
        is_fenced = member.state == REVOKING and limit_ms is not None and 0 < limit_ms <= late_ms
        if state.type == "streams":
            tasks.note_left(state, member)
        windows.count_left(self.counted, member, state.ts, is_fenced=is_fenced)
        self.cause(FENCED if is_fenced else LEFT, member_id)
        reason = "has not revoked its partitions in time" if is_fenced else detail
        self.event("member_fenced" if is_fenced else "member_left", member_id, member.client, None, reason)

    def subscribe(self, member: TrackedMember, subscribed: str) -> None:
        """A member tells about itself again, with these subscriptions."""
        self.told.pop(member.id, None)
        if member.subscribed != subscribed:
            self.event("subscription_changed", member.id, member.subscribed, subscribed)
            self.cause("subscription_changed", member.id)
            member.subscribed = subscribed
            self.state.has_new_who = True

    def run_topology(self, member: TrackedMember, epoch: int) -> None:
        if member.topology_epoch != epoch:
            self.event("topology_changed", member.id, _text(member.topology_epoch), str(epoch))
            self.cause("topology_changed", member.id)
            member.topology_epoch = epoch
            self.state.has_new_who = True

    # --- epochs -------------------------------------------------------------------------------------------------------

    def see_hash(self, metadata_hash: int) -> None:
        """The metadata hash of the group's topics. A hash that was there recently is no change of topics."""
        state = self.state
        old, state.metadata_hash = state.metadata_hash, metadata_hash
        if metadata_hash == old:
            return
        if metadata_hash not in state.recent_hashes:
            state.recent_hashes = [*state.recent_hashes[1 - RECENT_HASHES :], metadata_hash]
            state.fresh_hash = metadata_hash
            state.has_new_who = True
        if old is not None:
            self.cause("metadata_changed")

    def bump_epoch(self, epoch: int, started_ms: int | None = None) -> None:
        """The group epoch (of a classic group: the generation) increases to this."""
        state = self.state
        old = state.epoch
        if epoch == old:
            return
        by = epoch - old if NOBODY < old < epoch else 1
        trigger, members, changes = self._trigger()
        before = len(state.members) - changes
        if state.rebalance is not None:
            self._end("superseded" if state.members else "emptied", members_after=before)
        if epoch < old:  # the group was deleted and created again, and the records between are lost
            state.assignment_epoch = NOBODY
        state.epoch = epoch
        self.event("epoch_bumped", None, _text(old), str(epoch), trigger)
        self._count_epoch_bump(by, trigger, is_first=old == NOBODY)
        state.rebalance = Rebalance(
            type=state.type, group_epoch=epoch, started=state.ts if started_ms is None else started_ms,
            trigger=trigger, trigger_members=members, members_before=max(0, before),
        )  # fmt: skip
        state.has_converged = state.has_gap = False

    def _trigger(self) -> tuple[str, list[str], int]:
        """The reason of an epoch bump, the members that caused it, and how many members joined since the last bump."""
        state = self.state
        causes = state.causes or state.older_causes
        trigger = min([kind for kind, _ in causes], key=_RANK.__getitem__, default=UNKNOWN)
        who = dict.fromkeys([member for kind, member in causes if kind == trigger and member is not None])
        changes = 0
        for kind, _ in state.causes:
            changes += _CHANGES.get(kind, 0)
        state.older_causes = [*state.older_causes, *state.causes][-CAUSES:]
        state.causes = []
        return trigger, list(who)[:TRIGGER_MEMBERS], changes

    def _count_epoch_bump(self, by: int, trigger: str, *, is_first: bool) -> None:
        state, counted = self.state, self.counted
        counted.epochs += by
        counted.quiet_epochs += by if trigger not in _CHANGES else by - 1
        if not is_first:
            bump = EpochBump(state.ts, by, not state.has_new_who, state.has_converged, trigger)
            windows.note_epoch_bump(state, bump)
            if bump.is_same_who and state.type != "streams":
                windows.update_alarm(state, counted, self.limits)
        state.has_new_who = False

    def adopt(self, epoch: int, assignment_epoch: int) -> None:
        """The group had these epochs, and no rebalance, when it was first seen."""
        self.state.epoch, self.state.assignment_epoch = epoch, assignment_epoch
        self.state.has_new_who = False
        self.state.has_converged = True

    def note_converged(self) -> None:
        """The assignment has converged: remember what each member holds."""
        self.state.converged = placed(self.state.members, self.state.converged)

    def target(self, epoch: int) -> None:
        """The assignment for this group epoch is made."""
        state = self.state
        old, state.assignment_epoch = state.assignment_epoch, epoch
        if old == epoch:
            return
        self.event("target_computed", None, _text(old), str(epoch))
        state.older_causes = []
        rebalance = state.rebalance
        if rebalance is not None and rebalance.target_at is None and epoch >= rebalance.group_epoch:
            rebalance.target_at = state.ts
            rebalance.computing_ms = max(0, state.ts - rebalance.started)
        self._note_warmup_step()
        state.reconciling = 0
        for member in state.members.values():
            member.is_reconciled = _is_reconciled(member, epoch)
            state.reconciling += not member.is_reconciled

    def _note_warmup_step(self) -> None:
        """Note a warm-up step of a streams assignor: the target differs only in tasks with a warm-up, now or before."""
        state = self.state
        if state.type != "streams":
            return
        changed, warming = state.target_tasks_changed, state.target_tasks_warming
        if state.rises and changed and changed <= warming:
            state.rises[-1].is_warmup_step = True
            if state.rebalance is not None and state.rebalance.trigger == UNKNOWN:
                state.rebalance.trigger = "warmup_step"
        state.target_tasks_changed, state.target_tasks_warming = set(), set()
        if state.rises:
            windows.update_alarm(state, self.counted, self.limits)

    def aim(self, member: TrackedMember, target: bytes) -> None:
        """A member has a new target, in the form that its record has."""
        member.target = target
        self.told.pop(member.id, None)

    def current(self, member: TrackedMember, epoch: int, member_state: int, holding: Holding) -> None:
        """The current assignment of a member, and the epoch that it has reached."""
        active, pending, standby, warmup = holding
        if epoch != member.epoch:
            self._bump_member_epoch(member, epoch)
        if active != member.active or pending != member.pending:
            self._hold(member, active, pending)
        if standby != member.standby:
            member.standby = self._tell_role(member, "standby", member.standby, standby)
        if warmup != member.warmup:
            self.out.movements += tasks.note_warmups(self.state, member, warmup)
            member.warmup = self._tell_role(member, "warmup", member.warmup, warmup)
        self.reach(member, epoch, member_state)

    def reach(self, member: TrackedMember, epoch: int, member_state: int) -> None:
        """A member has reached an epoch with what it holds."""
        if epoch != member.epoch:
            self._bump_member_epoch(member, epoch)
        state = self.state
        if self.told:
            self.told.pop(member.id, None)
        member.state = member_state
        is_reconciled = _is_reconciled(member, state.assignment_epoch)
        if is_reconciled != member.is_reconciled:
            state.reconciling += -1 if is_reconciled else 1
            member.is_reconciled = is_reconciled
        if not state.reconciling and state.rebalance is not None:
            self._converge_or_empty()

    def _bump_member_epoch(self, member: TrackedMember, epoch: int) -> None:
        old, member.epoch = member.epoch, epoch
        self.event("member_epoch", member.id, str(old), str(epoch))
        if epoch < 0 or old < 0:
            self.state.away += (epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH) - (old == LEAVE_GROUP_STATIC_MEMBER_EPOCH)

    def _hold(self, member: TrackedMember, active: frozenset[str], pending: frozenset[str]) -> None:
        state = self.state
        revoking, revoked, gained = _differences(member.active, member.pending, active, pending)
        is_streams = state.type == "streams"
        detail = _role("active", member.process) if is_streams else None
        if revoking:
            self.event("partition_revoking", member.id, self._listed(revoking), None, detail)
            if not member.pending:
                member.pending_since_ms = state.ts
        if revoked:
            self.event("partition_revoked", member.id, self._listed(revoked), None, detail)
            if state.rebalance is not None and state.rebalance.target_at is not None:
                state.rebalance.revoking_ms = state.ts - state.rebalance.target_at
        if gained:
            self.event("partition_gained", member.id, None, self._listed(gained), detail)
        member.active, member.pending = active, pending
        if is_streams:
            tasks.note_handovers(state, revoking, revoked, gained)

    def _tell_role(self, member: TrackedMember, role: str, old: frozenset[str], new: frozenset[str]) -> frozenset[str]:
        if revoked := old - new:
            self.event("partition_revoked", member.id, listed(revoked), None, self._role(member, role))
        if gained := new - old:
            self.event("partition_gained", member.id, None, listed(gained), self._role(member, role))
        return new

    def _role(self, member: TrackedMember, role: str) -> str | None:
        if self.state.type != "streams":
            return None
        return _role(role, member.process)

    # --- rebalances ---------------------------------------------------------------------------------------------------

    def _converge_or_empty(self) -> None:
        state = self.state
        rebalance = state.rebalance
        if not state.members:
            self._end("emptied")
        elif rebalance is not None and state.assignment_epoch >= rebalance.group_epoch:
            self._end("converged")

    def _end(self, ended_by: str, members_after: int | None = None) -> None:
        state = self.state
        over, state.rebalance = state.rebalance, None
        assert over is not None
        over.ended, over.ended_by = state.ts, ended_by
        over.members_after = len(state.members) if members_after is None else max(0, members_after)
        if state.source == "records" and over.type == "classic":
            over.computing_ms = over.revoking_ms = None
        elif not state.has_gap:
            over.duration_ms = max(0, state.ts - over.started)
            over.revoking_ms = over.revoking_ms or (0 if over.target_at is not None else None)
        windows.note_duration(self.counted, over.duration_ms)
        if ended_by == "converged":
            self._converged(over)
        self.out.rebalances.append(over)

    def _converged(self, over: Rebalance) -> None:
        """All members have reached the assignment: count what moved since the last time."""
        state = self.state
        before = state.converged
        after = placed(state.members, before)
        found = moves(before or {}, after)
        if over.type == "streams":
            over.tasks_moved = len(found.moved)
            self.out.movements += tasks.movements(state, over, found.moved, before or {}, after)
        elif before is None:
            over.partitions_moved = 0.0
        else:
            over.partitions_moved = found.exchanged / 2 if over.type == "share" else float(len(found.moved))
        over.members_touched = found.touched
        state.converged, state.has_converged = after, True


def _is_reconciled(member: TrackedMember, assignment_epoch: int) -> bool:
    epoch = member.epoch
    if epoch == assignment_epoch:
        return member.state == STABLE and not member.pending
    return epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH


@lru_cache(maxsize=4_096)
def _differences(
    had: frozenset[str], was_pending: frozenset[str], has: frozenset[str], pending: frozenset[str]
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What a member has to give up from now on, what it has given up, what it has got."""
    return pending - was_pending, (had | was_pending) - has - pending, has - had


@lru_cache(maxsize=4_096)
def _role(role: str, process: str | None) -> str:
    return _to_json({"role": role, "process": process}).decode()


def _text(epoch: int | None) -> str | None:
    return None if epoch in (None, NOBODY) else str(epoch)
