"""Unmodified Java consumers of both releases in classic groups, each program with one thing to do."""

from __future__ import annotations

import pytest

from tests.interop.programs import JARS, run_program

PROGRAMS = ("ClassicGroup", "EagerGroup", "CooperativeGroup", "StaticMembers", "GroupAdmin")


@pytest.mark.parametrize("release", JARS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_is_content(program: str, release: str, bootstrap_servers: str):
    run_program(program, release, bootstrap_servers)
