"""Calls of the plugin for topology descriptions, each with a time limit.

============================================  ====================================================================
a plugin that                                 means
============================================  ====================================================================
raises PermanentFailure from set              the description is never asked for again at this epoch
raises anything else, or takes too long       it did not work now
does not keep to the interface: set, without  set: never again, with a message of ours; get, delete: it did not
`async`, raises or gives nothing to wait for  work
============================================  ====================================================================

Calls that change what is held of a group follow one another in the order in which coordinators ask for them
(`call_order`); the time limit of a call begins when it is asked for. Calls that are under way when the broker stops are
cancelled, and those who wait for them are told to look for another coordinator.

Messages of the plugin go to the client that pushes, never to one that deletes a group or describes it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Final

from ottla.broker.config.plugins import PluginError, told
from ottla.broker.coordinators.edge import Perform
from ottla.broker.descriptions.call_order import CallOrder
from ottla.broker.descriptions.plugin_loader import SETTING, load_plugin
from ottla.broker.descriptions.ports import DescriptionPorts, PluginCallPorts
from ottla.broker.descriptions.topic_table import CompactedTopicTable
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.groups.offsets import OffsetsFamily
from ottla.core.groups.streams.effects import PERMANENT, DeleteDescription, GetDescription, SetDescription
from ottla.topology_descriptions import PermanentFailure, TopicTable, TopologyDescriptionPlugin, TransientFailure
from ottla.wire.errors import ErrorCode

__all__ = ["DescriptionPlugin"]

log = logging.getLogger(__name__)

LIMIT_MS: Final = 30_000
_EXPIRY: Final = "offsets"
"""The family that clears away groups that have expired."""
_NOT_DELETED: Final = "the group's topology description could not be deleted; the group was not deleted"
_NOT_A_PLUGIN: Final = "the broker's topology description plugin has failed"

Begin = Callable[[TopologyDescriptionPlugin], Awaitable[Any]]
Done = Callable[[Outcome], None]
End = Callable[[BaseException | None, Any], None]
"""What was raised, or what was given."""


class _PluginMisuse(Exception):
    """The plugin breaks its interface."""


class _PluginTimeout(TransientFailure):
    """The plugin has not answered in time."""


class DescriptionPlugin:
    """The description plugin of a node."""

    def __init__(self, node: DescriptionPorts, plugin_class: str) -> None:
        self._node = node
        self._plugin = load_plugin(plugin_class)
        self._order = CallOrder()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_open = False
        self.counts: Counter[tuple[str, str]] = Counter()
        """By call (set, get, delete) and by outcome (success, error)."""
        self.expired_count = 0
        """Groups that had expired, and whose descriptions had to go."""

    def check_count(self) -> int:
        """Looks at all groups of a coordinator for those that have expired, since its coordinators were loaded."""
        cores = [shard.core for shard in self._node.groups.shards.values()]
        families = [core.families[_EXPIRY] for core in cores if isinstance(core, GroupCoordinator)]
        return sum(family.check_count for family in families if isinstance(family, OffsetsFamily))

    # --- what it offers the plugin ------------------------------------------------------------------------------------

    @property
    def settings(self) -> Mapping[str, str]:
        return self._node.config.static

    async def open_table(self, topic: str) -> TopicTable:
        table = CompactedTopicTable(self._node, topic)
        await table.load()
        return table

    # --- its life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        try:
            await self._plugin.start(self)
        except Exception as error:
            raise PluginError(f"{SETTING}: the plugin cannot start: {told(error)}") from error
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        try:
            await self._plugin.close()
        except Exception:
            log.exception("the topology description plugin cannot be closed")

    def cancel(self) -> None:
        """Cancel all calls."""
        self._is_open = False
        for task in self._tasks:
            task.cancel()

    # --- what coordinators ask for ------------------------------------------------------------------------------------

    def set(self, effect: SetDescription, done: Done) -> None:
        def end(error: BaseException | None, value: object) -> None:
            done(Outcome() if error is None else _set_failure(effect, error))

        self._call("set", effect.group_id, lambda plugin: plugin.set_topology(effect.group_id, *effect[3:]), end)

    def get(self, effect: GetDescription, done: Done) -> None:
        """Does not wait for other calls: a description that is being changed is not shown anyway."""

        def end(error: BaseException | None, value: object) -> None:
            if error is not None:
                log.warning("cannot get the topology description of %s: %r", effect.group_id, error)
            done(Outcome(value=value) if error is None else Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))

        self._call("get", effect, lambda plugin: plugin.get_topology(effect.group_id, effect.topology_epoch), end)

    def delete(self, effect: DeleteDescription, done: Done) -> None:
        def end(error: BaseException | None, value: object) -> None:
            if error is not None:
                log.warning("cannot delete the topology description of %s: %r", effect.group_id, error)
            failed = Outcome(ErrorCode.GROUP_DELETION_FAILED, message=_NOT_DELETED)
            done(Outcome() if error is None else failed)

        self.expired_count += effect.family == _EXPIRY
        self._call("delete", effect.group_id, lambda plugin: plugin.delete_topology(effect.group_id), end)

    def performers(self) -> dict[type, Perform]:
        return {SetDescription: self.set, GetDescription: self.get, DeleteDescription: self.delete}

    def _call(self, name: str, key: Hashable, begin: Begin, end: End) -> None:
        """Call the plugin, after earlier calls of the same key; `end` gets what it raised, or what it gave."""

        def counted(error: BaseException | None, value: object) -> None:
            self.counts[name, "success" if error is None else "error"] += 1
            end(error, value)

        call = _Call(self._node, self._order, key, lambda: self._start(begin), counted)
        if self._node.purgatory.park(call.delayed):
            self._order.add(key, call.begin)
        else:
            is_full = self._node.purgatory.is_open
            counted(TransientFailure("too many requests are waiting" if is_full else "the broker is stopping"), None)

    def _start(self, begin: Begin) -> asyncio.Task[Any]:
        task = self._node.loop.create_task(self._work(begin))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self, begin: Begin) -> Any:  # noqa: ANN401
        if not self._is_open:
            raise TransientFailure("the plugin is not open")
        try:
            awaitable = begin(self._plugin)
        except Exception as error:
            raise _PluginMisuse(f"it raised {error!r}") from error
        if not inspect.isawaitable(awaitable):
            raise _PluginMisuse(f"it returned {awaitable!r}, which is not awaitable")
        return await awaitable


class _Call:
    """A call of the plugin, which waits for its turn or is under way. `end` is told once, of what happens first: it
    ends, or its time does. The next call of its key begins when it has really ended, however late that is."""

    def __init__(
        self, node: PluginCallPorts, order: CallOrder, key: Hashable, start: Callable[[], asyncio.Task[Any]], end: End
    ) -> None:
        self._node = node
        self._order = order
        self._key = key
        self._start = start
        self._end = end
        self._task: asyncio.Task[Any] | None = None
        self.delayed = DelayedOperation(self._give_up, (), node.clock.monotonic_ms() + LIMIT_MS)

    def begin(self) -> None:
        self._task = self._start()
        self._task.add_done_callback(self._ended)

    def _give_up(self, expired: bool) -> bool:
        """Give the call up: its time is over, or the broker stops; then coordinators answer waiting requests."""
        if self._task is None:
            self._order.remove(self._key, self.begin)
        else:
            self._task.cancel()
        if self._node.purgatory.is_open:
            self._end(_PluginTimeout(f"the plugin has not responded within {LIMIT_MS // 1000} s"), None)
        return True

    def _ended(self, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if not self.delayed.is_done:
            self._node.purgatory.remove(self.delayed)
            self._end(error, None if error is not None else task.result())
        self._order.end(self._key)


def _set_failure(effect: SetDescription, error: BaseException) -> Outcome:
    code = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    log.warning("the topology description of %s was rejected: %r", effect.group_id, error)
    if isinstance(error, _PluginMisuse):
        return Outcome(code, PERMANENT, _NOT_A_PLUGIN)
    if isinstance(error, PermanentFailure):
        return Outcome(code, PERMANENT, str(error))
    return Outcome(code, message=told(error))
