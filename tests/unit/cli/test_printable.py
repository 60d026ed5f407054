"""Names of groups, members and clients can hold control characters, which a terminal must not get."""

from __future__ import annotations

import logging

import pytest

from ottla.cli.cluster import Column, print_heading, print_table
from ottla.cli.decode.printer import printer
from ottla.cli.failure import EXIT_BAD_INPUT, Failure, answer
from ottla.cli.node_process import LineFormatter
from ottla.cli.printable import printable
from ottla.cli.verbosity import note
from ottla.explain.render.lines import Styled

NAME = "\x1b]0;owned\x07\u202etxt\n"
SHOWN = r"\x1b]0;owned\x07\u202etxt\n"

Capture = pytest.CaptureFixture[str]


def test_what_is_printable_stays_as_it_is():
    assert printable("größer 数える → 1") == "größer 数える → 1"
    assert printable("") == ""


def test_tables(capsys: Capture):
    print_table((Column("GROUP"), Column("MEMBERS")), [(NAME, (NAME, "b")), (None, ())])
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split() == [SHOWN, f"{SHOWN},b"]
    assert second.split() == ["-", "-"]


def test_headings(capsys: Capture):
    print_heading(NAME, ["Stable", "", f"assignor {NAME}"])
    assert capsys.readouterr().out == f"{SHOWN}  Stable  assignor {SHOWN}\n"


def test_messages_that_are_decoded(capsys: Capture):
    out = printer(80)
    out.lines([[Styled("#1 "), Styled(NAME, "type"), Styled("  Fetch v17")]])
    out.close()
    assert capsys.readouterr().out == f"#1 {SHOWN}  Fetch v17\n"


def test_notes(capsys: Capture):
    note(f"node 2 ({NAME}:9092) is reachable at 127.0.0.1:19093")
    assert capsys.readouterr().err == f"node 2 ({SHOWN}:9092) is reachable at 127.0.0.1:19093\n"


def test_errors(capsys: Capture):
    def fail() -> None:
        raise Failure(f"there is no group '{NAME.strip()}'", "'ottla groups list' lists them")

    assert answer(fail) == EXIT_BAD_INPUT
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"ottla: there is no group '{printable(NAME.strip())}'"
    assert second == "  → 'ottla groups list' lists them"


def test_the_log_of_a_node():
    record = logging.LogRecord("ottla.requests", logging.INFO, "", 0, "%s Metadata v%d", (NAME, 12), None)
    line = LineFormatter().format(record)
    assert line.endswith(f" INFO ottla.requests {SHOWN} Metadata v12")
    assert line.isprintable()
