"""A streams group whose members describe their topology (KIP-1331), a plugin that keeps descriptions, and the
invariants of the two.

The plugin outlives the broker. It stores at the beginning or at the end of its call, and in the chaos it fails: before
it stores, after it, or for good; or its call is given up, and it stores later. Calls wait for each other as in a
broker, also for calls of a coordinator that has moved away in the meantime. A call whose broker dies has stored already
or never will. Members have either version; those of version 0 are never asked.

The invariant is checked with every record of the group, every call that ends and every start: if the group says that
the plugin holds a description, it does; if it says that there is none, or if there is no group, the plugin holds none
unless a push is under way. In the calm the group must be described, if it has a member that can, and if it does not
wait before it asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.broker.descriptions.call_order import CallOrder
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.admin import DeleteGroup
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.groups.streams.description_epochs import NONE
from ottla.core.groups.streams.effects import PERMANENT, DeleteDescription, SetDescription
from ottla.core.groups.streams.group import StreamsGroup as CoordinatedGroup
from ottla.log.partition import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_streams import StreamsGroupMetadataKey
from ottla.wire.types.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest
from simulation.clients.client import Client
from simulation.clients.streams import StreamsMember
from simulation.world import World

__all__ = ["DescribingMember", "Plugin", "description_law"]

_SLOWEST_MS: Final = 8_000
_FAILS: Final = 0.3
_REFUSES: Final = 0.03
_GIVEN_UP: Final = 0.3
_ENDS: Final = 0.4
Done = Callable[[Outcome], None]


class Plugin:
    """The descriptions, and how many pushes are under way, by group."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held: dict[str, int] = {}
        self.judges: dict[str, Callable[[], None]] = {}
        """By group: the check to run when a call has ended."""
        self._process: Partition | None = None
        self.begin()
        settings = world.environment.settings
        settings.set("group.streams.topology.description.plugin.class", "simulated.Plugin")
        world.environment.world.settings_version += 1
        world.performers[SetDescription] = self._set
        world.performers[DeleteDescription] = self._delete

    @classmethod
    def of(cls, world: World) -> Plugin:
        """The plugin of a world, created when it is first needed."""
        known = getattr(world.performers.get(SetDescription), "__self__", None)
        return known if isinstance(known, cls) else cls(world)

    def begin(self) -> None:
        """A coordinator has started. If its process is new and has opened the log again, the calls of the old process
        are gone."""
        if self._process is not self._world.host.partition:
            self._process = self._world.host.partition
            self._order = CallOrder()
            self.pushes: Counter[str] = Counter()

    def _set(self, effect: SetDescription, done: Done) -> None:
        def work() -> None:
            self.held[effect.group_id] = effect.topology_epoch

        def ended() -> None:
            self.pushes[effect.group_id] -= 1

        self.pushes[effect.group_id] += 1
        is_permanent = self._world.random.random() < _REFUSES
        failure = Outcome(ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, PERMANENT if is_permanent else None)
        self._call(effect.group_id, work, done, failure, ended)

    def _delete(self, effect: DeleteDescription, done: Done) -> None:
        def work() -> None:
            self.held.pop(effect.group_id, None)

        self._call(effect.group_id, work, done, Outcome(ErrorCode.GROUP_DELETION_FAILED), lambda: None)

    def _call(
        self, group_id: str, work: Callable[[], None], done: Done, failure: Outcome, ended: Callable[[], None]
    ) -> None:
        world, chance = self._world, self._world.random
        process, order = self._process, self._order
        fails = not world.is_calm and chance.random() < _FAILS
        is_given_up = fails and chance.random() < _GIVEN_UP
        works_first = chance.random() < 0.5
        works_last = not works_first and (is_given_up or not fails)

        def begin() -> None:
            length_ms = chance.randint(0, _SLOWEST_MS)
            if works_first:
                work()
            if is_given_up:
                world.after(chance.randint(0, length_ms), tell)
            world.after(length_ms, end)

        def tell() -> None:
            if fails:
                world.note_fault("the plugin fails")
            done(failure if fails else Outcome())

        def end() -> None:
            if not world.is_up or world.host.partition is not process:
                return
            if works_last:
                work()
            if not is_given_up:
                tell()
            ended()
            order.end(group_id)
            world.after(1, self.judges[group_id])

        order.add(group_id, begin)


class DescribingMember(StreamsMember):
    """Pushes a description when it is asked. In the chaos the application may end soon after that, be deleted, and come
    back."""

    application: Sequence[Client] = ()
    """All members of the group."""

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        super()._take(answer)
        if answer.topology_description_required:
            self.world.hold("described", self.version >= 1, f"{self.name} of version 0 is asked")
            self.after(self.world.random.randint(0, 2_000), self._push)

    def _push(self) -> None:
        chance = self.world.random
        self.ask(StreamsGroupTopologyDescriptionUpdateRequest(self.group_id, self.member_id), 0, lambda _: None)
        if not self.world.is_calm and chance.random() < _ENDS:
            self.after(chance.randint(0, 2_000), self._end_application)

    def _end_application(self) -> None:
        chance = self.world.random
        for member in self.application:
            if member.is_alive:
                member.stop()
            self.world.after(chance.randint(1_000, 20_000), member.start_unless_alive)
        delete = DeleteGroup(self.group_id)
        self.world.after(chance.randint(0, 1_000), lambda: self.ask(delete, 0, lambda _: None))


class _Law:
    """Compares the records of a group with the plugin."""

    def __init__(self, world: World, group_id: str) -> None:
        self._world = world
        self._group_id = group_id
        self._plugin = Plugin.of(world)
        self._plugin.judges[group_id] = self.judge
        self._stored = NONE

    def begin(self, records: Sequence[KeyedRecord]) -> None:
        self._plugin.begin()
        self._stored = NONE
        for record in records:
            if self._is_ours(record):
                self._stored = _stored_in(record)
        self.judge()

    def take(self, records: Sequence[KeyedRecord]) -> None:
        for record in records:
            if self._is_ours(record):
                self._stored = _stored_in(record)
                self.judge()

    def _is_ours(self, record: KeyedRecord) -> bool:
        return isinstance(record.key, StreamsGroupMetadataKey) and record.key.group_id == self._group_id

    def judge(self) -> None:
        if not self._world.is_up:
            return
        group_id, is_held = self._group_id, self._group_id in self._plugin.held
        is_left = self._stored == NONE and is_held and not self._plugin.pushes[group_id]
        self._world.hold("described", not is_left, f"the description of {group_id} is held, and nobody will delete it")
        is_missing = self._stored >= 0 and not is_held
        self._world.hold("described", not is_missing, f"{group_id} says that its description is held, and it is not")


def _stored_in(record: KeyedRecord) -> int:
    return NONE if record.value is None else int(record.value.stored_description_topology_epoch)


def description_law(world: World, group_id: str) -> Callable[[], str | None]:
    """Adds a plugin to a world, and the law for a group; returns a function that says why it is not described yet."""
    world.laws.append(_Law(world, group_id))
    plugin = Plugin.of(world)

    def undescribed() -> str | None:
        core = world.host.core
        assert isinstance(core, GroupCoordinator)
        group = core.families["streams"]._table.get(group_id)  # type: ignore[attr-defined]
        if not isinstance(group, CoordinatedGroup) or group.topology is None:
            return None
        stored, failed = group.description_epochs
        waits = group.back_off.is_active(0, world.now_ms()) or failed == 0
        return None if waits or stored == 0 == plugin.held.get(group_id) else f"{group_id} is not described"

    return undescribed
