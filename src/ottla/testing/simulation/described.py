"""A streams group whose members describe their topology (KIP-1331), a plugin that keeps what they say, and what must
hold of the two.

The plugin outlives the broker. It works at once or at the end of its call, and in the chaos it fails: before its work,
after it, or for good. A call whose broker dies has done its work or never will. Members are of either version; those of
version 0 are never asked.

Judged with every record of the group: one that says that the plugin holds the description is true; one that says that
it holds nothing is true unless a push is under way. In the calm the group must be described, if it has a member that
can, and if it does not wait before it asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.coordinator.contract import Outcome
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.streams.description_epochs import NONE
from ottla.groups.streams.effects import PERMANENT, DeleteDescription, SetDescription
from ottla.groups.streams.group import StreamsGroup as CoordinatedGroup
from ottla.testing.simulation.clients.streams import StreamsMember
from ottla.testing.simulation.trace import Violation
from ottla.testing.simulation.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_streams import StreamsGroupMetadataKey
from ottla.wire.types.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest

__all__ = ["DescribingMember", "Plugin", "description_law"]

_SLOWEST_MS: Final = 8_000
_FAILS: Final = 0.3
_REFUSES: Final = 0.03
Done = Callable[[Outcome], None]


class Plugin:
    """What it holds, and how many pushes are under way, by group."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held: dict[str, int] = {}
        self.pushes: Counter[str] = Counter()
        settings = world.surroundings.settings
        settings.set("group.streams.topology.description.plugin.class", "simulated.Plugin")
        world.surroundings.world.settings_version += 1
        world.performers[SetDescription] = self._set
        world.performers[DeleteDescription] = self._delete

    @classmethod
    def of(cls, world: World) -> Plugin:
        """The plugin of a world, made when it is first asked for."""
        known = getattr(world.performers.get(SetDescription), "__self__", None)
        return known if isinstance(known, cls) else cls(world)

    def forget_calls(self) -> None:
        """The broker is gone, and with it whoever would have waited for them."""
        self.pushes.clear()

    def _set(self, effect: SetDescription, done: Done) -> None:
        def work() -> None:
            self.held[effect.group_id] = effect.topology_epoch

        def end(outcome: Outcome) -> None:
            done(outcome)
            self.pushes[effect.group_id] -= 1

        self.pushes[effect.group_id] += 1
        self._call(work, end, ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED)

    def _delete(self, effect: DeleteDescription, done: Done) -> None:
        def work() -> None:
            self.held.pop(effect.group_id, None)

        self._call(work, done, ErrorCode.GROUP_DELETION_FAILED)

    def _call(self, work: Callable[[], None], done: Done, failure: ErrorCode) -> None:
        world, chance = self._world, self._world.random
        works_first, fails = chance.random() < 0.5, not world.is_calm and chance.random() < _FAILS
        is_permanent = fails and failure is not ErrorCode.GROUP_DELETION_FAILED and chance.random() < _REFUSES
        shard = world.host.shard
        if works_first:
            work()

        def end() -> None:
            if not world.is_up or world.host.shard is not shard:
                return
            if not works_first and not fails:
                work()
            if fails:
                world.note_fault("the plugin fails")
            done(Outcome(failure, PERMANENT if is_permanent else None) if fails else Outcome())

        world.after(chance.randint(0, _SLOWEST_MS), end)


class DescribingMember(StreamsMember):
    """Pushes when it is asked, and forgets about it."""

    def _take(self, answer: Any) -> None:  # noqa: ANN401
        super()._take(answer)
        if answer.topology_description_required:
            self.world.hold("described", self.version >= 1, f"{self.name} of version 0 is asked")
            request = StreamsGroupTopologyDescriptionUpdateRequest(self.group_id, self.member_id)
            self.after(self.world.random.randint(0, 2_000), lambda: self.ask(request, 0, lambda _: None))


class _Law:
    """What the records of a group say of the plugin."""

    def __init__(self, group_id: str, plugin: Plugin) -> None:
        self._group_id = group_id
        self._plugin = plugin
        self._stored = NONE

    def begin(self, records: Sequence[KeyedRecord]) -> None:
        self._plugin.forget_calls()
        self._stored = NONE
        for record in records:
            if self._is_ours(record):
                self._stored = _stored_in(record)

    def take(self, records: Sequence[KeyedRecord]) -> None:
        for record in records:
            if self._is_ours(record):
                before, self._stored = self._stored, _stored_in(record)
                if record.value is not None and self._stored != before:
                    self._check()

    def _is_ours(self, record: KeyedRecord) -> bool:
        return isinstance(record.key, StreamsGroupMetadataKey) and record.key.group_id == self._group_id

    def _check(self) -> None:
        group_id, plugin = self._group_id, self._plugin
        is_held = group_id in plugin.held
        if self._stored >= 0 and not is_held:
            raise Violation("described", f"{group_id} says that its description is held, and it is not")
        if self._stored == NONE and is_held and not plugin.pushes[group_id]:
            raise Violation("described", f"{group_id} says that nothing is held, and its description is")


def _stored_in(record: KeyedRecord) -> int:
    return NONE if record.value is None else int(record.value.stored_description_topology_epoch)


def description_law(world: World, group_id: str) -> Callable[[], str | None]:
    """Lets a world have a plugin, and a group be judged by it; gives what says why the group is not described yet."""
    plugin = Plugin.of(world)
    world.laws.append(_Law(group_id, plugin))

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
