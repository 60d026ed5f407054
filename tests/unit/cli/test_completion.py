"""`ottla completion`: what shells are told, and what they get when they ask."""

from __future__ import annotations

import pytest

from ottla.cli import run


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete")])
def test_each_shell_has_its_script(shell: str, word: str, capsys: pytest.CaptureFixture[str]):
    assert run(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert "_OTTLA_COMPLETE" in out
    assert word in out


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]):
    assert run(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err
