"""Deals the tests out to processes side by side: those that share a broker go to one of them, one after another.

pytest-xdist has groups of its own, but tells them to its controller in the names of tests, which pytest 9.2 does not
let it change any more: every test would be dealt out alone, and brokers would be booted again and again.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from tests.interop.groups_of_tests import group_of

__all__ = ["BrokerScheduling"]


class BrokerScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
