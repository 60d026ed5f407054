"""DeleteShareGroupState (86): forget what is kept of share partitions.

Version 0. The group coordinator asks, when a group or its offsets are deleted.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.share_state import handle, refuse

__all__ = ["API_KEY", "VERSIONS", "handle", "refuse"]

API_KEY: Final = 86
VERSIONS: Final = (0, 0)
