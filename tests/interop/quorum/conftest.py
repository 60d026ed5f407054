"""Every test here boots nodes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _jars(apache_jars: Path) -> None:
    """Apache Kafka is needed everywhere."""
