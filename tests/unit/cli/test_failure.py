"""What cannot be done: one line that names it, one with advice, and an exit code."""

import errno

import click
import pytest

from ottla.cli import run
from ottla.cli.failure import Failure, answer, nearest


def failing(error: Exception):
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["versoin"], "ottla: unknown command 'versoin'\n  → did you mean version?\n"),
        (["VERSION"], "ottla: unknown command 'VERSION'\n  → did you mean version?\n"),
        (["qqq"], "ottla: unknown command 'qqq'\n  → 'ottla --help' lists the commands\n"),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest_one(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
):
    assert run(arguments) == 2
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--wrong"], "--wrong"),
        (["version", "--jsn"], "--json"),
        (["version", "surplus"], "surplus"),
    ],
)
def test_wrong_usage_is_one_line_naming_what_is_wrong(
    arguments: list[str], fragment: str, capsys: pytest.CaptureFixture[str]
):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("ottla")
    assert fragment in err


def test_a_failure_is_its_problem_and_its_advice(capsys: pytest.CaptureFixture[str]):
    assert answer(failing(Failure("port 'x' is not a number", "give one from 1 to 65535"))) == 2
    assert capsys.readouterr().err == "ottla: port 'x' is not a number\n  → give one from 1 to 65535\n"


def test_a_failure_may_have_another_code(capsys: pytest.CaptureFixture[str]):
    assert answer(failing(Failure("half of it was done", code=6))) == 6
    assert capsys.readouterr().err == "ottla: half of it was done\n"


def test_a_complaint_of_several_lines_becomes_one(capsys: pytest.CaptureFixture[str]):
    assert answer(failing(click.ClickException("this\n  and that"))) == 2
    assert capsys.readouterr().err == "ottla: this and that\n"


def test_an_interrupt_has_the_exit_code_of_one():
    assert answer(failing(click.Abort())) == 130


@pytest.mark.parametrize("error", [ValueError("a bug of ours"), OSError(errno.EIO, "disk")])
def test_a_bug_is_not_hidden(error: Exception):
    with pytest.raises(type(error)):
        answer(failing(error))


@pytest.mark.parametrize(
    ("word", "advice"),
    [("fetchrequest", "did you mean FetchRequest?"), ("zzz", ""), ("FetchRequst", "did you mean FetchRequest?")],
)
def test_the_nearest_word_ignores_case(word: str, advice: str):
    assert nearest(word, ["FetchRequest", "VoteRequest"]) == advice
