"""Names the groups in which interop tests are dealt out to processes side by side."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.interop.node.brokers import APACHE, OTTLA

__all__ = ["group_of"]


def group_of(nodeid: str) -> str:
    """What tests have in common that use the same broker: the folder and the broker's kind, else the file."""
    path, _, name = nodeid.partition("::")
    file = PurePosixPath(path)
    given = name.partition("[")[2].removesuffix("]").split("-")
    kind = next((each for each in given if each in (OTTLA, APACHE)), None)
    if kind is None:
        return f"{file.parent.name}-{file.stem}"
    version = next((each for each in given if re.fullmatch(r"tv\d", each)), "")
    return f"{file.parent.name}-{kind}-{version}"
