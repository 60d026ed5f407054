import json

import pytest

import ottla
from ottla.cli import run


def test_the_first_line_is_ottla(capsys: pytest.CaptureFixture[str]):
    assert run(["version"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"ottla {ottla.__version__}"


def test_json_has_the_same_versions(capsys: pytest.CaptureFixture[str]):
    run(["version"])
    lines = capsys.readouterr().out.splitlines()
    run(["version", "--json"])
    assert [f"{each['name']} {each['version']}" for each in json.loads(capsys.readouterr().out)["rows"]] == lines


def test_packages_that_are_not_installed_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("ottla.cli.version.PACKAGES", ("click", "no-such-package"))
    run(["version", "--json"])
    assert {each["name"] for each in json.loads(capsys.readouterr().out)["rows"]} == {"ottla", "python", "click"}


def test_the_option_is_the_short_form(capsys: pytest.CaptureFixture[str]):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"ottla {ottla.__version__}\n"
