"""The description of a topology in the answer of StreamsGroupDescribe (KIP-1331): asked from the plugin for each group,
so that one that fails does not stand in the way of the others.

Soft: `_rows`, the rows that wait for the plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from itertools import count
from typing import Any, NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import Context, Outcome, Reply, Result, Token
from ottla.core.groups.streams.description_wire import described
from ottla.core.groups.streams.effects import GetDescription
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.group_description import not_describable
from ottla.core.groups.streams.settings import has_description_plugin
from ottla.topology_descriptions.description import TopologyDescription
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as DescribedGroup

__all__ = ["DescriptionQueries", "DescriptionStatus"]

log = logging.getLogger(__name__)


class DescriptionStatus(IntEnum):
    """Why there is a description in a row, or none."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class _Row(NamedTuple):
    token: Token
    row: DescribedGroup
    authorize: Callable[[Any, Any, str], bool]


class DescriptionQueries:
    def __init__(self, family: str) -> None:
        self._family = family
        self._numbers = count(1)
        self._rows: dict[int, _Row] = {}
        self.subjects: Mapping[type, Callable[[Any, Outcome, Context], Result]] = {GetDescription: self._got}

    def tokens(self) -> Iterable[Token]:
        return [each.token for each in self._rows.values()]

    def query(self, row: DescribedGroup, group: StreamsGroup | None, context: Context) -> Result:
        """Answer with a row for which a description was asked."""
        if row.error_code or group is None:
            return Result(replies=(Reply(context.token, row),))
        if group.topology is None or not has_description_plugin(context.world) or not group.is_described:
            return _reply(context.token, row, DescriptionStatus.NOT_STORED)
        number = next(self._numbers)
        self._rows[number] = _Row(context.token, row, context.authorize)
        return Result(effects=(GetDescription(self._family, number, group.group_id, group.topology.epoch),))

    def _got(self, effect: GetDescription, outcome: Outcome, context: Context) -> Result:
        token, row, authorize = self._rows.pop(effect.number)
        if not outcome.is_ok:
            return _reply(token, row, DescriptionStatus.ERROR)
        if outcome.value is None:
            log.warning("the plugin does not return the stored description of %s", effect.group_id)
            return _reply(token, row, DescriptionStatus.NOT_STORED)
        if not isinstance(outcome.value, TopologyDescription):
            log.error("the plugin returned a %s instead of a description", type(outcome.value).__name__)
            return _reply(token, row, DescriptionStatus.ERROR)
        refused = not_describable(row.group_id, outcome.value.topics(), authorize)
        if refused is not None:
            return Result(replies=(Reply(token, refused),))
        row = replace(row, topology_description=described(outcome.value))
        return _reply(token, row, DescriptionStatus.AVAILABLE)


def _reply(token: Token, row: DescribedGroup, status: DescriptionStatus) -> Result:
    return Result(replies=(Reply(token, replace(row, topology_description_status=status)),))
