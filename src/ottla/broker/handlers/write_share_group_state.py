"""WriteShareGroupState (85): keep what has become of records of share partitions.

Versions 0 and 1. Leaders ask. Version 1 also tells how many records after the start are done, for the lag of a group.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.share_state import handle, refuse

__all__ = ["API_KEY", "VERSIONS", "handle", "refuse"]

API_KEY: Final = 85
VERSIONS: Final = (0, 1)
