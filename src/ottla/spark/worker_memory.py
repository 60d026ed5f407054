"""What a worker of Spark holds from task to task."""

from __future__ import annotations

import gc
import sys

__all__ = ["keep_modules"]

_module_count = 0


def keep_modules() -> None:
    """Exempt all that is loaded from garbage collection, whenever there are new modules.

    Spark's workers collect garbage after each task, and look at every object of every module for it: 80 ms with Arrow
    and compiled loops, longer than a small task takes. Modules are never garbage.
    """
    global _module_count
    if len(sys.modules) != _module_count:
        gc.freeze()
        _module_count = len(sys.modules)
