"""ReadShareGroupStateSummary (87): where share partitions start.

Versions 0 and 1. The group coordinator asks, to describe offsets. Version 1 also tells how many records after the start
are done.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.share_state import handle, refuse

__all__ = ["API_KEY", "VERSIONS", "handle", "refuse"]

API_KEY: Final = 87
VERSIONS: Final = (0, 1)
