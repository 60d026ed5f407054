"""Unmodified Java consumers of both releases in groups of the new protocol, each program with one thing to do."""

from __future__ import annotations

import pytest

from tests.interop.programs import JARS, run_program

PROGRAMS = (
    "ConsumerGroup",
    "ConsumerTopics",
    "ConsumerStatic",
    "ConsumerUnderLoad",
    "ConsumerCrowd",
    "ConsumerRolling",
)


@pytest.mark.parametrize("release", JARS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_is_content(program: str, release: str, bootstrap_servers: str):
    run_program(program, release, bootstrap_servers)
