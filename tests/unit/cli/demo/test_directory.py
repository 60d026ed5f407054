from pathlib import Path

import pytest

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.failure import Failure


def test_a_new_directory_is_made(tmp_path: Path):
    directory = DemoDirectory(tmp_path / "a" / "demo")
    directory.prepare()
    assert directory.journal.is_dir()


def test_an_empty_directory_is_used(tmp_path: Path):
    DemoDirectory(tmp_path).prepare()
    assert (tmp_path / "journal").is_dir()


def test_a_demo_from_before_is_replaced(tmp_path: Path):
    directory = DemoDirectory(tmp_path / "demo")
    directory.prepare()
    directory.truth.write_text("old")
    directory.prepare()
    assert not directory.truth.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_what_no_demo_made_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(Failure, match="was not made by the demo"):
        DemoDirectory(tmp_path).prepare()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_is_in_the_way_of_the_old_one_is_left_alone(tmp_path: Path):
    directory = DemoDirectory(tmp_path / "demo")
    directory.prepare()
    (tmp_path / "demo.old").mkdir()
    with pytest.raises(Failure, match="exists and was not made by the demo"):
        directory.prepare()
    assert directory.path.is_dir()


def test_a_file_is_no_directory(tmp_path: Path):
    (tmp_path / "demo").write_text("")
    with pytest.raises(Failure, match="is a file"):
        DemoDirectory(tmp_path / "demo").prepare()


def test_a_place_where_nothing_can_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match=r"cannot write to .*: Not a directory"):
        DemoDirectory(tmp_path / "file" / "demo").prepare()
