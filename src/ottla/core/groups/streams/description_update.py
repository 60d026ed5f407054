"""StreamsGroupTopologyDescriptionUpdate, the push: a member's description on its way to the plugin (KIP-1331).

1. Who asks, and what for, is checked; none of that touches the back-off, so strangers cannot silence a group.
2. The group notes that the plugin may hold anything from now on, and that is committed.
3. The plugin is called. Nothing waits for it but the member that pushed.
4. It took the description: the group notes the epoch. It refuses it for good: the group notes that, too. It failed for
   now: nothing is noted, and the group is asked again later.
5. When the note is committed the back-off ends and the member is answered. If the note cannot be written, the error is
   the answer, and the group waits before it asks again.

The group is still there in the end: it is not removed before the plugin has forgotten it, and the plugin is not asked
to forget it before the push has ended (`description_epochs`).

Soft: `_pushes`, those under way. After a restart the group says that nobody knows, and its members are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import Authorize, Context, Outcome, Reply, Result, Token, World
from ottla.core.groups.modern.rights import check_group
from ottla.core.groups.streams.description_epochs import DescriptionEpochs
from ottla.core.groups.streams.description_wire import description_of
from ottla.core.groups.streams.effects import PERMANENT, SetDescription
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.settings import check_served, has_description_plugin
from ottla.core.groups.table import GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

__all__ = ["DescriptionUpdates", "check_update"]

Settle = Callable[[Any, Outcome, Context], Result]
_Answer = StreamsGroupTopologyDescriptionUpdateResponse

_MOVED: Final = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )
)
"""Errors after which another coordinator decides, with a back-off of its own."""


class _Push(NamedTuple):
    token: Token
    effect: SetDescription
    group: StreamsGroup
    begun: int
    """What the group's calls want to know in the end."""


class _Marked(NamedTuple):
    """That nobody knows what the plugin holds is committed, or cannot be."""

    family: str
    number: int


class _Noted(NamedTuple):
    """How the call went is committed, or cannot be."""

    family: str
    number: int
    answer: _Answer
    is_final: bool
    """Whether the group need not be asked again."""


def check_update(request: StreamsGroupTopologyDescriptionUpdateRequest, world: World, authorize: Authorize) -> None:
    """What can be said without the group, in Kafka's order."""
    check_served(world)
    check_group(request.group_id, authorize)
    if not has_description_plugin(world):
        raise Reject(ErrorCode.UNSUPPORTED_VERSION, "the broker has no topology description plugin")
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id)):
        if not text.strip():
            raise Reject(ErrorCode.INVALID_REQUEST, f"{name} is blank")


class DescriptionUpdates:
    def __init__(self, family: str, table: GroupTable) -> None:
        self._family = family
        self._table = table
        self._numbers = count(1)
        self._pushes: dict[int, _Push] = {}
        self.subjects: Mapping[type, Settle] = {
            _Marked: self._marked,
            SetDescription: self._called,
            _Noted: self._noted,
        }

    def tokens(self) -> Iterable[Token]:
        return [each.token for each in self._pushes.values()]

    def update(self, request: StreamsGroupTopologyDescriptionUpdateRequest, context: Context) -> Result:
        check_update(request, context.world, context.authorize)
        group = self._checked_group(request)
        description = description_of(request.topology_description)
        number = next(self._numbers)
        effect = SetDescription(self._family, number, group.group_id, request.topology_epoch, description)
        self._pushes[number] = _Push(context.token, effect, group, group.calls.begin_push(number))
        return Result(group.description_records(group.description_epochs.marked()), after=_Marked(self._family, number))

    def _checked_group(self, request: StreamsGroupTopologyDescriptionUpdateRequest) -> StreamsGroup:
        group = self._group(request.group_id)
        if group is None:
            raise Reject(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no streams group {request.group_id}")
        group.member(request.member_id)
        epoch = group.topology.epoch if group.topology is not None else None
        if request.topology_epoch != epoch:
            text = f"the group's topology epoch is {epoch}, not {request.topology_epoch}"
            raise Reject(ErrorCode.INVALID_REQUEST, text)
        return group

    def _group(self, group_id: str) -> StreamsGroup | None:
        group = self._table.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    # --- outcomes -----------------------------------------------------------------------------------------------------

    def _marked(self, marked: _Marked, outcome: Outcome, context: Context) -> Result:
        if not outcome.is_ok:
            return self._end(marked.number, _refusal(outcome))
        return Result(effects=(self._pushes[marked.number].effect,))

    def _called(self, effect: SetDescription, outcome: Outcome, context: Context) -> Result:
        push = self._pushes[effect.number]
        records = push.group.description_records(_epochs_after(push, outcome))
        is_final = outcome.is_ok or outcome.value == PERMANENT
        if not is_final:
            push.group.back_off.arm_or_extend(effect.topology_epoch, context.now_ms, context.world.draw)
        return Result(records, after=_Noted(self._family, effect.number, _answer_to(outcome), is_final))

    def _noted(self, noted: _Noted, outcome: Outcome, context: Context) -> Result:
        push = self._pushes[noted.number]
        back_off, epoch = push.group.back_off, push.effect.topology_epoch
        if not outcome.is_ok:
            if outcome.error not in _MOVED:
                back_off.arm_or_extend(epoch, context.now_ms, context.world.draw)
            return self._end(noted.number, _refusal(outcome))
        if noted.is_final:
            back_off.clear(epoch)
        return self._end(noted.number, noted.answer)

    def _end(self, number: int, answer: _Answer) -> Result:
        return Result(replies=(Reply(self._pushes.pop(number).token, answer),))


def _epochs_after(push: _Push, outcome: Outcome) -> DescriptionEpochs:
    """What the group knows after a call; nothing of what is held, if a delete follows."""
    group, epoch = push.group, push.effect.topology_epoch
    epochs = group.description_epochs
    if outcome.is_ok:
        return epochs.held(epoch) if group.calls.is_push_last(push.begun) else epochs
    return epochs.refused(epoch) if outcome.value == PERMANENT else epochs


def _answer_to(outcome: Outcome) -> _Answer:
    if outcome.is_ok:
        return _Answer()
    code = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    return _Answer(error_code=code, error_message=outcome.message)


def _refusal(outcome: Outcome) -> _Answer:
    return _Answer(error_code=outcome.error, error_message=outcome.message)
