"""Targets one after the other, by a program that fails for one of them."""

import sys

import pytest

from tools.in_turn import make_in_turn

PROGRAM = (sys.executable, "-c", "import sys; print(f'made {sys.argv[1]}'); sys.exit(3 * (sys.argv[1] == 'bad'))")


def test_goes_on_after_a_failure_and_tells_of_each(capfd: pytest.CaptureFixture[str]):
    is_well, lines = make_in_turn(["good", "bad", "better"], PROGRAM)
    assert not is_well
    assert [line.split()[:2] for line in lines] == [["good", "passed"], ["bad", "failed"], ["better", "passed"]]
    assert capfd.readouterr().out.splitlines()[-1] == "made better"


def test_all_is_well():
    is_well, _ = make_in_turn(["good"], PROGRAM)
    assert is_well
