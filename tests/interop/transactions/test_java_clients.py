"""Unmodified Java clients of both releases, on clusters of both transaction versions."""

from __future__ import annotations

import pytest

from tests.interop.programs import JARS, run_program


@pytest.mark.parametrize("release", JARS)
def test_transactions_with_offsets(release: str, bootstrap_servers: str):
    run_program("Transactions", release, bootstrap_servers)
