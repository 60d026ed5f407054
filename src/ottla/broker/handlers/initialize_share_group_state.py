"""InitializeShareGroupState (83): let a group begin with share partitions, or begin anew.

Version 0. The group coordinator asks. Whatever was kept of a share partition is replaced.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.handlers.share_state import handle, refuse

__all__ = ["API_KEY", "VERSIONS", "handle", "refuse"]

API_KEY: Final = 83
VERSIONS: Final = (0, 0)
