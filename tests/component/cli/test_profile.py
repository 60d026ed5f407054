"""`ottla profile`, and which cluster a command talks to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from tests.component.broker.raw_client import RunningNode
from tests.component.cli.live import Capture, Live, live_node


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    yield from live_node(tmp_path_factory.mktemp("node"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OTTLA_PROFILE", "OTTLA_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def said(capsys: Capture, code: int, *words: str) -> str:
    capsys.readouterr()
    assert run(words) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def test_profiles_are_added_listed_and_removed(home: Path, capsys: Capture):
    config = home / "client.properties"
    config.write_text("security.protocol=PLAINTEXT\n")
    assert said(capsys, 0, "profile", "list", "--json") == '{\n  "rows": []\n}\n'
    file = home / "ottla" / "profiles.toml"
    added = said(capsys, 0, "profile", "add", 'a "b"', "--bootstrap", "x:1,y:2", "--command-config", str(config))
    assert added == f'a "b" added to {file}\n'
    assert file.stat().st_mode & 0o077 == 0
    said(capsys, 0, "profile", "add", "other", "--bootstrap", "z:3")
    rows = json.loads(said(capsys, 0, "profile", "list", "--json"))["rows"]
    assert rows == [
        {"name": 'a "b"', "bootstrap": "x:1,y:2", "command_config": str(config)},
        {"name": "other", "bootstrap": "z:3", "command_config": None},
    ]
    assert "x:1,y:2" in said(capsys, 0, "profile", "list")
    assert "--replace replaces it" in said(capsys, 2, "profile", "add", "other", "--bootstrap", "z:4")
    said(capsys, 0, "profile", "add", "other", "--bootstrap", "z:4", "--replace")
    assert said(capsys, 0, "profile", "remove", "other") == "other removed\n"
    assert "did you mean" not in said(capsys, 2, "profile", "remove", "other")


def test_which_cluster_is_meant(
    home: Path, running: RunningNode, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Live(running, capsys).bootstrap
    dead = "127.0.0.1:1"
    said(capsys, 0, "profile", "add", "here", "--bootstrap", here)
    said(capsys, 0, "profile", "add", "dead", "--bootstrap", dead)
    topics = ("topics", "list", "--timeout", "500ms")
    said(capsys, 0, *topics, "--profile", "here")
    assert f"at {dead}" in said(capsys, 3, *topics, "--profile", "dead")
    monkeypatch.setenv("OTTLA_PROFILE", "here")
    said(capsys, 0, *topics)
    monkeypatch.setenv("OTTLA_BOOTSTRAP", dead)
    said(capsys, 0, *topics)
    said(capsys, 3, *topics, "--bootstrap", dead)
    said(capsys, 3, *topics, "--profile", "dead")
    assert "exclude each other" in said(capsys, 2, *topics, "--profile", "here", "--bootstrap", here)
    assert "did you mean here?" in said(capsys, 2, *topics, "--profile", "hree")


def test_a_profile_whose_properties_are_gone(home: Path, capsys: Capture):
    config = home / "client.properties"
    config.write_text("")
    said(capsys, 0, "profile", "add", "x", "--bootstrap", "127.0.0.1:1", "--command-config", str(config))
    config.unlink()
    assert f"{config} cannot be read" in said(capsys, 2, "topics", "list", "--profile", "x")


def test_a_file_that_is_no_toml(home: Path, capsys: Capture):
    (home / "ottla").mkdir()
    (home / "ottla" / "profiles.toml").write_text("[x]\nbootstrap = 5\n[y")
    assert "profiles.toml cannot be read" in said(capsys, 2, "profile", "list")
