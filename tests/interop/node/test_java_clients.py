"""Unmodified Java clients of both releases, each program with one thing to do."""

from __future__ import annotations

import pytest

from tests.interop.programs import JARS, run_program

PROGRAMS = ("ProduceFetch", "AssignedConsumer", "NodeAdmin")


@pytest.mark.parametrize("release", JARS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_content(name: str, release: str, bootstrap_servers: str):
    run_program(name, release, bootstrap_servers)
