"""Who tries which bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Try = Callable[[Path, pytest.MonkeyPatch], None]
TRIES: dict[str, Try] = {}


def reaches(*names: str) -> Callable[[Try], Try]:
    def remember(step: Try) -> Try:
        for name in names:
            assert name not in TRIES
            TRIES[name] = step
        return step

    return remember
