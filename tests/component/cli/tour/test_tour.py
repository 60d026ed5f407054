from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.console import Console

from ottla.cli import run
from ottla.cli.tour import TOUR, take
from ottla.cli.tour.step import Stage, Step, hex_rows


def test_the_tour_passes_every_stop(capsys: pytest.CaptureFixture[str]):
    assert run(["tour"]) == 0
    out = capsys.readouterr().out
    for number, step in enumerate(TOUR, 1):
        assert f"{number} of {len(TOUR)}: {step.title}" in out
    assert f"{len(TOUR)} steps" in out


@pytest.mark.parametrize("step", TOUR, ids=lambda step: step.title)
def test_each_stop_checks_what_it_claims(step: Step):
    stage = Stage(Console(file=StringIO()))
    step.show(stage)
    assert stage.checked > 0


def test_a_claim_that_does_not_hold_ends_the_tour():
    lie = Step("a lie", "one is two", lambda stage: stage.check("1 == 2", 1 + 1 == 1))
    with pytest.raises(AssertionError, match="1 == 2"):
        take((lie,), Console(file=StringIO()))


def test_a_plain_terminal_can_show_it():
    terminal = TextIOWrapper(BytesIO(), encoding="ascii")
    take(TOUR, Console(file=terminal))
    terminal.seek(0)
    assert "ok the field is kept" in terminal.read()


def test_a_hex_dump_has_offset_bytes_and_characters():
    rows = [row.plain for row in hex_rows(bytes(range(60, 78)))]
    assert rows == [
        "  0000  3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b  <=>?@ABCDEFGHIJK",
        "  0010  4c 4d                                            LM",
    ]


def test_the_marked_byte_stands_out():
    (row,) = hex_rows(b"abc", mark=1)
    (red,) = [span for span in row.spans if "red" in str(span.style)]
    assert row.plain[red.start : red.end] == "62 "
