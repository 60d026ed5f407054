"""What runs the loops over columns: machine code of numba's, or pure Python where numba is not installed."""

from __future__ import annotations

import functools
import warnings
from typing import Literal

__all__ = ["Engine", "is_compiled"]

Engine = Literal["auto", "numba", "pure"]


def is_compiled(engine: Engine) -> bool:
    """Whether the compiled loops are to be used; ModuleNotFoundError if they must be, and there are none."""
    if engine == "pure" or _has_numba():
        return engine != "pure"
    if engine == "numba":
        raise ModuleNotFoundError("numba is not installed (it comes with ottla[spark])")
    return False


@functools.cache
def _has_numba() -> bool:
    try:
        import numba  # noqa: F401  (0.3 s, and whoever asks is about to need it)
    except ImportError as error:
        if error.name is None or not error.name.startswith(("numba", "llvmlite")):
            raise
        warnings.warn("numba is not installed: record batches are read and written by slow pure Python", stacklevel=4)
        return False
    return True
