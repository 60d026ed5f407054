"""The user's cache: what ottla fetches or computes once, and can do without."""

import os
from pathlib import Path

__all__ = ["user_cache"]


def user_cache() -> Path:
    """The directory; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ottla"
