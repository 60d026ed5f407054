"""ReadShareGroupState (84): what has become of the records of share partitions.

Version 0. A leader asks before it serves a share partition. From then on leaders of earlier epochs cannot write.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.share_state import handle, refuse

__all__ = ["API_KEY", "VERSIONS", "handle", "refuse"]

API_KEY: Final = 84
VERSIONS: Final = (0, 0)
