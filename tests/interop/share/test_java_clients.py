"""One of the programs with unmodified Java clients: a member accepts, releases, rejects and renews records."""

from __future__ import annotations

import pytest

from tests.interop.programs import JARS, run_program
from tests.interop.share.brokers import Cluster


@pytest.mark.parametrize("release", JARS)
def test_program_is_content(release: str, cluster: Cluster):
    run_program("ShareGroup", release, cluster.bootstrap_servers)
