"""Deals the tests out to processes side by side: those that share a broker go to one of them, one after another.

pytest-xdist has groups of its own, but tells them to its controller in the names of tests, which pytest 9.2 does not
let it change any more: every test would be dealt out alone, and brokers would be booted again and again.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

from tests.interop.node.brokers import APACHE, MOVING, OTTLA

__all__ = ["BrokerScheduling", "group_of"]


def group_of(nodeid: str) -> str:
    """What tests have in common that use the same broker: the folder and the broker's kind, else the file."""
    path, _, name = nodeid.partition("::")
    file = PurePosixPath(path)
    given = name.partition("[")[2].removesuffix("]").split("-")
    kind = next((each for each in given if each in (OTTLA, APACHE, MOVING)), None)
    if kind is None:
        return f"{file.parent.name}-{file.stem}"
    version = next((each for each in given if re.fullmatch(r"tv\d", each)), "")
    return f"{file.parent.name}-{kind}-{version}"


class BrokerScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
